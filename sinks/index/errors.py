"""What may be wrong with an index, whatever engine it is of: told to whoever opens, reads or writes it."""

from __future__ import annotations

from processors.query import QueryError


class IndexDamaged(RuntimeError):  # noqa: N818 - it names a state of the index, as FileNotFoundError does
    """There is no index that this version can read: make it anew from the beginning of the Broker's topic."""


class IndexMissing(FileNotFoundError):  # noqa: N818 - it names a state of the index, as FileNotFoundError does
    """There is no index yet."""


class IndexBusy(OSError):  # noqa: N818 - it names a state of the index, as FileNotFoundError does
    """Another process writes this index."""


class IndexUnreachable(OSError):  # noqa: N818 - it names a state of the index, as FileNotFoundError does
    """Its server does not answer, refuses to serve, or is too busy: what was asked may be asked again."""


class IndexMoved(OSError):  # noqa: N818 - it names a state of the index, as FileNotFoundError does
    """Another index has taken the place of the one that was being written: ask `offsets` where to go on."""


class QueryRefused(QueryError):  # noqa: N818 - it names what became of the query
    """The engine does not take what it was asked for; of a query: it is too large for it."""

    def __init__(self, message: str) -> None:
        super().__init__(message, 0)
