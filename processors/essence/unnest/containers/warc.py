"""WARC (ISO 28500:2017), the archive format of web crawlers: each response or resource is a member, named by its URI.

For an HTTP response, the member is the served content: its body without chunks (RFC 9112, 7.1) and, if the crawler left it
compressed, without gzip; its Content-Type is the stated one, and its references are relative to the URI. Requests, revisit records
(pages that were not fetched again) and metadata of the crawler are not members.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from processors.essence.formats.container import Budget, Damaged, Member, Reader
from processors.essence.formats.inflate import MAGIC, Inflate
from processors.essence.formats.mail.mail_header import Header
from processors.essence.formats.mail.mime import field, moment
from processors.essence.formats.streams import CHUNK, Decoded, Joined, Slice, partly
from processors.essence.unnest import Container

__all__ = ["UNNESTER", "Buffered", "Failed", "Header", "field", "modified", "open_warc", "served"]

MEMBERS = frozenset(("response", "resource", "conversion"))
MAX_LINE = 16_384
MAX_FIELDS = 1_000
"""Maximum number of lines in a header."""
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
        """Return the next line, including its end; b"" at the end of the stream. Raises Damaged for one that is too long."""
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
        """Return the next bytes after the lines that were read."""
        if self._at >= len(self._data):
            return self._reader.read(size)
        data = self._data[self._at : self._at + size]
        self._at += len(data)
        return data

    def header(self) -> Header:
        """Read lines up to an empty one. Raises Damaged."""
        found = Header()
        for _ in range(MAX_FIELDS):
            line = self.line()
            if not line.strip():
                return found
            found.take(line)
        raise Damaged("damaged: a header without an end")


class _Chunked:
    """A chunked body, joined. Data that is not chunked is returned unchanged: some crawlers keep only the header field."""

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
        """Move to the next chunk."""
        if self._first:
            self._first = False
            head = self._stream.read(MAX_LINE)
            self._stream = Buffered(Joined(head, self._stream))
            if not _SIZE.fullmatch(head.partition(b"\n")[0]):
                # -1: the rest is not chunked.
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
    """Return the time of a page's last change in nanoseconds since the epoch, as its server stated it; 0: unknown."""
    return moment(field(head, "last-modified"))


def served(block: Slice) -> tuple[Reader, Header]:
    """Return the body of an HTTP response and its header; the whole block if it is not a response. Raises Damaged."""
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
        # The next record may be undamaged.
        body, fields = Failed(damage), Header()
    return Member(
        name=uri.encode("utf-8", "replace"), body=body, mtime=modified(fields), stated=field(fields, "content-type"), url=uri
    )


def open_warc(body: Reader, budget: Budget) -> Iterator[Member]:
    """Yield the content of the records. Raises Damaged."""
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
