"""Listings of FTP directories from the ls-lR file of a directory above them, instead of one request for each.

Strategy: where a server's listing of a directory names an ls-lR that is younger than the refresh-rate of the root, it is fetched
with the first request for a directory below, and its listings are written to a file. While the listing names it unchanged, the
directories below are answered from there: the same records, in the same form, without a request. What it does not have, or not
readably, is requested from the server.

Laws:
- Of several ls-lR above a directory the topmost counts; the listing of its own directory is that of the server: so a new one is
  noticed, and one that is gone is dropped.
- An ls-lR that is older than the last listing of a directory does not count for it: what it lacks may have been added since.
- An ls-lR that cannot be fetched, read or stored is not tried again, until it changes.
- At most `MAX_TREES` are kept, the least recently noted is dropped.
"""

from __future__ import annotations

import asyncio
import re
import tempfile
from datetime import UTC, datetime
from typing import BinaryIO, NamedTuple, cast

from processors.essence.listings.ftp_recursive import NAME, sections
from processors.ftp_urls import ftp_path
from schemas.records import FetchRequest
from streams.fetch.adapters.ftp_control import Control, RefusedError, StaleError
from streams.fetch.answers import FetchError
from streams.fetch.settings import FetchSettings

MAX_TREES = 16
_ENTRY = re.compile(rb"(?m)^type=file;size=(\d+);modify=(\d{8,14})(?:\.\d+)?; (" + NAME.pattern + rb")$")


class Dated(NamedTuple):
    """A listing in the normal form, and the time in ms since the epoch from which it is."""

    normal: bytes
    time: int


class Tree:
    """One ls-lR: what its directory's listing states of it, and its listings once it was fetched."""

    def __init__(self, url: str, name: bytes, size: int, mark: bytes, modified: int, until: int) -> None:
        self.url = url
        """URL of the directory that has it."""
        self.name = name
        self.size = size
        self.mark = mark
        self.modified = modified
        """Time of its last change, in ms since the epoch."""
        self.until = until
        """Time from which on it is too old."""
        self.tried = False
        self._places: dict[bytes, tuple[int, int]] = {}
        self._file: BinaryIO | None = None

    def listing(self, url: str) -> Dated | None:
        """Return the listing of a directory below, None if it is not known."""
        place = self._places.get(ftp_path(url)[1][len(ftp_path(self.url)[1]) :].lstrip(b"/"))
        if place is None or self._file is None:
            return None
        self._file.seek(place[0])
        return Dated(self._file.read(place[1]), self.modified)

    def index(self, packed: BinaryIO, spool: str, now: int) -> None:
        """Read a fetched ls-lR. Raises ValueError if it is damaged, and OSError."""
        file = cast("BinaryIO", tempfile.TemporaryFile(prefix="harvest-", dir=spool or None))  # noqa: SIM115
        places = {}
        try:
            for directory, normal in sections(packed, self.name, ftp_path(self.url)[1], now):
                places[directory] = file.tell(), len(normal)
                file.write(normal)
            file.flush()
        except BaseException:
            file.close()
            raise
        self._file, self._places = file, places

    def close(self) -> None:
        """Delete the file."""
        if self._file is not None:
            self._file.close()
            self._file = None


class RecursiveListings:
    """The ls-lR files of all hosts."""

    def __init__(self, settings: FetchSettings) -> None:
        self._spool = settings.spool
        self._max_body = settings.max_body
        self._trees: dict[str, Tree] = {}
        """By the URL of the directory."""

    def note(self, request: FetchRequest, normal: bytes, now: int) -> None:
        """Remember the ls-lR that the listing of a directory names, unless it is too old; forget another one."""
        found = _ENTRY.search(normal)
        old = self._trees.pop(request.url, None)
        modified = _moment(found[2]) if found else 0
        until = modified + request.root.refresh * 1000
        if found is None or until <= now:
            new = None
        elif old is not None and (old.name, old.mark) == (found[3], found[0]):
            new, old = old, None
        else:
            new = Tree(request.url, found[3], int(found[1]), found[0], modified, until)
        if old is not None:
            old.close()
        if new is not None:
            self._trees[request.url] = new
        while len(self._trees) > MAX_TREES:
            self._trees.pop(next(iter(self._trees))).close()

    def listing(self, request: FetchRequest, now: int) -> Dated | None:
        """Return the listing of a directory from an ls-lR that was fetched."""
        tree = self._above(request, now)
        return tree.listing(request.url) if tree is not None else None

    async def fetched(self, request: FetchRequest, now: int, control: Control) -> Dated | None:
        """Return the listing of a directory after fetching the ls-lR above it, if there is one that was not tried yet."""
        tree = self._above(request, now)
        if tree is None or tree.tried or tree.size > self._max_body:
            return None
        tree.tried = True
        at_top, path = ftp_path(tree.url)
        try:
            with tempfile.TemporaryFile(prefix="harvest-", dir=self._spool or None) as packed:
                async with control.transfer("RETR", control.path(at_top, path + b"/" + tree.name if path else tree.name)) as pieces:
                    async for piece in pieces():
                        packed.write(piece)
                if packed.tell() != tree.size:
                    return None
                packed.seek(0)
                await asyncio.to_thread(tree.index, cast("BinaryIO", packed), self._spool, now)
        except StaleError:
            tree.tried = False
            raise
        except (RefusedError, ValueError, OSError):
            return None
        except FetchError as failure:
            # The connection is lost with it. Tried again, the directory is requested from the server.
            raise FetchError(f"{tree.name.decode()}: {failure.reason}", retryable=True) from failure
        return tree.listing(request.url)

    def _above(self, request: FetchRequest, now: int) -> Tree | None:
        """Return the topmost ls-lR in the directories above a directory that is not too old.

        The root directory is not below that of the login, though its URLs are.
        """
        above, found, at_top = request.url, None, ftp_path(request.url)[0]
        seen = request.validators.mtime // 10**6 if request.validators else 0
        while not (above := above.rstrip("/").rpartition("/")[0] + "/").endswith("://"):
            tree = self._trees.get(above)
            if tree is not None and seen <= tree.modified and now < tree.until and ftp_path(above)[0] == at_top:
                found = tree
        return found

    def close(self) -> None:
        """Delete all files."""
        for tree in self._trees.values():
            tree.close()
        self._trees.clear()


def _moment(modify: bytes) -> int:
    """Return a time of a listing in ms since the epoch; 0: it is none."""
    try:
        return int(datetime.strptime(modify.decode().ljust(14, "0"), "%Y%m%d%H%M%S").replace(tzinfo=UTC).timestamp() * 1000)
    except ValueError:
        return 0
