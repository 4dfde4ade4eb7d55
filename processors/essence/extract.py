"""Extraction: the bytes of one member of an object, found by its path as the walk (`walk.py`) finds it.

Laws:
- Recognition, encodings, names of members and the budget are those of the walk, so that a path leads to the member that was
  summarized under it. Rules of selection do not apply.
- Members beside the path are not opened, and nothing is read after the member.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import BinaryIO, NamedTuple
from urllib.parse import unquote_to_bytes

from processors import identity
from processors.essence.formats.container import Budget, Member, Reader, UnnestError, UnnestLimits
from processors.essence.formats.streams import CHUNK, Counted, peek, seekable
from processors.essence.member import Listed, bounded
from processors.essence.recognize import HEAD, placed, recognize
from processors.essence.unnest import Container, members, stripped, unnesters
from schemas.records import MAX_REASON

UNNESTERS = unnesters()
"""Loaded when this module is imported: later, a sandbox may have no file system to import from."""


class MemberMissingError(LookupError):
    """An object has no such member, or the member has no bytes; the message gives the reason in one line."""


class Source(NamedTuple):
    """Object that contains the member."""

    url: str
    size: int


class _Opened(NamedTuple):
    """A file on the way to the member: the object itself (path ""), or a member that contains it."""

    path: str
    name: bytes
    reader: Reader
    stated: str
    depth: int


def extract(
    source: Source, body: BinaryIO, path: str, limits: UnnestLimits, progress: Callable[[str], None] = lambda _: None
) -> Iterator[bytes]:
    """Yield the stored bytes of a member, in pieces of at most 64 kB.

    `body`: seekable; `progress(path)` is called before each member. Raises MemberMissingError, and UnnestError if the way to the
    member or the member itself is damaged, refused or exceeds the limits.
    """
    extraction = _Extraction(source, path, limits, progress)
    try:
        yield from extraction.descend(_Opened("", _name(source.url), body, "", 0))
    except UnnestError:
        # A document around the member may report its own damage when it is closed.
        if not extraction.complete:
            raise


def _name(url: str) -> bytes:
    """Return the name of an object, as the walk derives it: b"" for a URL without a path."""
    last = url.partition("#")[0].partition("?")[0].rstrip("/").rpartition("/")[2]
    return unquote_to_bytes(last) if "/" in url.partition("://")[2].rstrip("/") else b""


class _Extraction:
    """One extraction. `complete`: all bytes of the member were yielded."""

    def __init__(self, source: Source, path: str, limits: UnnestLimits, progress: Callable[[str], None]) -> None:
        self._url = source.url
        self._path = path
        self._limits = limits
        self._budget = Budget(limits, source.size)
        self._progress = progress
        self.complete = False

    def descend(self, file: _Opened) -> Iterator[bytes]:
        """Unwrap the encodings of a file, open its container, and yield the member's bytes."""
        operator_type = placed(identity.member_url(self._url, file.path))
        while True:
            head, reader = peek(file.reader, HEAD)
            kind = recognize(file.name, head, file.stated, operator_type).type
            unnester = UNNESTERS.get(kind)
            if unnester is None:
                raise MemberMissingError(f"{identity.file_name(identity.member_url(self._url, file.path))} has no members")
            self._budget.descend(file.depth + 1)
            if isinstance(unnester, Container):
                break
            decoded = Counted(unnester.open(reader, self._budget), self._budget)
            file = file._replace(reader=decoded, name=stripped(file.name, unnester), stated="", depth=file.depth + 1)
        file = file._replace(reader=reader, depth=file.depth + 1)
        if not unnester.summarized:
            yield from self._members(file, unnester)
            return
        with seekable(reader, self._limits, damaged=True) as document:
            yield from self._members(file._replace(reader=document), unnester)

    def _members(self, container: _Opened, unnester: Container) -> Iterator[bytes]:
        listing = Listed(container.path)
        for member in members(unnester, container.reader, self._budget):
            self._budget.enter(member.name)
            if member.kind == "folder":
                continue
            path = listing.enter(member)
            self._progress(path)
            if path == self._path:
                yield from self._content(self._body(member))
                self.complete = True
                return
            if self._path.startswith(f"{path}#"):
                name, stated = member.name.rpartition(b"/")[2], bounded(member.stated, MAX_REASON)
                yield from self.descend(_Opened(path, name, self._body(member), stated, container.depth))
                return
        raise MemberMissingError("no such member any more")

    def _body(self, member: Member) -> Reader:
        if member.body is None:
            raise MemberMissingError(f"a {member.kind} in an archive has no bytes")
        return Counted(member.body, self._budget)

    def _content(self, reader: Reader) -> Iterator[bytes]:
        while data := reader.read(CHUNK):
            yield data
