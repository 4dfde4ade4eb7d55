"""Expected failures of a feed, as opposed to bugs: each is one clear line for the user."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw


class FeedMissing(OSError):  # noqa: N818 - named for the user's condition
    """There is no feed in the folder."""


class FeedPartial(OSError):  # noqa: N818 - as above
    """The feed lacks a part of its topic: it must not be sent. It is filled, or its worker has only some of the partitions."""


class FeedMoved(OSError):  # noqa: N818 - as above
    """The feed was made anew since it was opened: open it again, and continue from its offsets."""


class FeedDamaged(OSError):  # noqa: N818 - as above
    """The feed cannot be read, or has another format: delete it, and fill it from the topic again."""


class StreamInterrupted(OSError):  # noqa: N818 - as above
    """A stream cannot be continued: what it refers to is gone. The reader has to begin again."""


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Turn errors of SQLite into FeedDamaged, PermissionError (a folder that may only be read) or OSError."""
    try:
        yield
    except (apsw.NotADBError, apsw.CorruptError) as error:
        raise FeedDamaged(f"{path}: damaged: {error}") from error
    except (apsw.ReadOnlyError, apsw.CantOpenError) as error:
        raise PermissionError(f"the feed cannot be written: {path}: {error}"[:300]) from error
    except apsw.Error as error:
        raise OSError(f"the feed cannot be used: {path}: {error}"[:300]) from error
