"""WARC (ISO 28500:2017), as crawlers keep the web: what each response and each resource gave is a member, named by its URI.

Of a response of HTTP, the member is what was served: its body without chunks (RFC 9112, 7.1) and, where the crawler left it
compressed, without gzip; its Content-Type is the stated one, and its references are relative to the URI. Requests, what was not
fetched again (revisit), and notes of the crawler are no members.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from processors.essence.formats.container import Budget, Damaged, Member, Reader
from processors.essence.formats.inflate import MAGIC, Inflate
from processors.essence.formats.mail_header import Header
from processors.essence.formats.mime import field, moment
from processors.essence.formats.streams import CHUNK, Decoded, Joined, Slice, partly
from processors.essence.unnest import Container

__all__ = ["UNNESTER", "Buffered", "Failed", "Header", "field", "modified", "open_warc", "served"]

MEMBERS = frozenset(("response", "resource", "conversion"))
MAX_LINE = 16_384
MAX_FIELDS = 1_000
"""Lines of a header."""
_VERSION = re.compile(rb"WARC/\d\.\d+\s*")
_STATUS = re.compile(rb"HTTP/\d(?:\.\d)?[ \t]")
_SIZE = re.compile(rb"\s*([0-9A-Fa-f]{1,15})\s*(?:;.*)?", re.DOTALL)


class Buffered:
    """A stream that is read by lines and by bytes in turn."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._data = b""
        self._at = 0

    def line(self) -> bytes:
        """The next line, with its end; b"" at the end of the stream. Raises Damaged for one that is too long."""
        while not (end := self._data.find(b"\n", self._at) + 1):
            if len(self._data) - self._at > MAX_LINE:
                raise Damaged("damaged: a line that is too long")
            more = self._reader.read(CHUNK)
            if not more:
                end = len(self._data)
                break
            self._data, self._at = self._data[self._at :] + more, 0
        line, self._at = self._data[self._at : end], end
        return line

    def read(self, size: int, /) -> bytes:
        """The next bytes, behind the lines that were taken."""
        if self._at >= len(self._data):
            return self._reader.read(size)
        data = self._data[self._at : self._at + size]
        self._at += len(data)
        return data

    def header(self) -> Header:
        """Lines up to an empty one. Raises Damaged."""
        found = Header()
        for _ in range(MAX_FIELDS):
            line = self.line()
            if not line.strip():
                return found
            found.take(line)
        raise Damaged("damaged: a header without an end")


class _Chunked:
    """A body in chunks, put together. What is no chunk is given as it stands: some crawlers keep the header alone."""

    def __init__(self, stream: Buffered) -> None:
        self._stream = stream
        self._left = 0
        self._ended = False
        self._first = True

    def read(self, size: int, /) -> bytes:
        while not (self._left or self._ended):
            self._next()
        if self._ended:
            return self._stream.read(size) if self._left else b""
        data = self._stream.read(min(size, self._left))
        self._left -= len(data)
        if not data:
            raise Damaged("truncated: a chunk ends early")
        return data

    def _next(self) -> None:
        """Go to the next chunk."""
        if self._first:
            self._first = False
            head = self._stream.read(MAX_LINE)
            self._stream = Buffered(Joined(head, self._stream))
            if not _SIZE.fullmatch(head.partition(b"\n")[0]):
                # -1: all that follows is plain.
                self._ended, self._left = True, -1
                return
        line = self._stream.line()
        if line in (b"\n", b"\r\n"):
            line = self._stream.line()
        match = _SIZE.fullmatch(line)
        if line and not match:
            self._stream = Buffered(Failed(Damaged("damaged: no chunk where one belongs")))
            self._left = 1
            return
        self._left = int(match[1], 16) if match else 0
        self._ended = self._left == 0


class Failed:
    """A body that cannot be read."""

    def __init__(self, damage: Damaged) -> None:
        self._damage = damage

    def read(self, size: int, /) -> bytes:
        """Raises Damaged."""
        raise self._damage


def _uri(head: Header) -> str:
    return field(head, "warc-target-uri").removeprefix("<").removesuffix(">")


def modified(head: Header) -> int:
    """When a page was last changed, in ns since the epoch, as its server said; 0: unknown."""
    return moment(field(head, "last-modified"))


def served(block: Slice) -> tuple[Reader, Header]:
    """The body of a response of HTTP and its header; all of the block where it is none. Raises Damaged."""
    head, _ = partly(block, MAX_LINE)
    stream = Buffered(Joined(head, block))
    if not _STATUS.match(head):
        return stream, Header()
    stream.line()
    fields = stream.header()
    body: Reader = stream
    if "chunked" in field(fields, "transfer-encoding").lower():
        body = _Chunked(stream)
    if "gzip" in field(fields, "content-encoding").lower():
        start, _ = partly(body, len(MAGIC))
        body = Joined(start, body)
        if start == MAGIC:
            body = Decoded(body, Inflate())
    return body, fields


def _member(head: Header, block: Slice) -> Member:
    uri, stated = _uri(head), field(head, "content-type")
    if not stated.lower().startswith("application/http"):
        return Member(name=uri.encode("utf-8", "replace"), body=block, stated=stated, url=uri)
    try:
        body, fields = served(block)
    except Damaged as damage:
        # The next record may be sound.
        body, fields = Failed(damage), Header()
    return Member(
        name=uri.encode("utf-8", "replace"), body=body, mtime=modified(fields), stated=field(fields, "content-type"), url=uri
    )


def open_warc(body: Reader, budget: Budget) -> Iterator[Member]:
    """What the records hold. Raises Damaged."""
    stream = Buffered(body)
    first = True
    while line := stream.line():
        if not line.strip() and not first:
            continue
        if not _VERSION.fullmatch(line):
            raise Damaged("no WARC record" if first else "damaged: no record where one belongs")
        first = False
        head = stream.header()
        size = field(head, "content-length")
        if not (size.isascii() and size.isdecimal()) or len(size) > 18:
            raise Damaged("damaged: a record does not tell its length")
        block = Slice(stream, int(size))
        if field(head, "warc-type").lower() in MEMBERS and field(head, "content-type") != "text/dns":
            yield _member(head, block)
        block.drain()
    if first:
        raise Damaged("no WARC record")


UNNESTER = Container(("WARC",), open_warc)
