"""ARC, the Internet Archive's format for web pages before WARC (versions 1 and 2): each record is a page, named by its URL.

A line states the URL, time, type and length of a record; the server's response follows, its header first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime

from processors.essence.formats.container import Budget, Damaged, Member, Reader
from processors.essence.formats.streams import Slice
from processors.essence.unnest import Container
from processors.essence.unnest.containers.warc import Buffered, Failed, Header, field, modified, served

_LINE = re.compile(rb"(\S{1,8000}) (\S{1,60}) (\d{1,14}) (\S{1,200}) (?:\S{1,9000} ){0,6}(\d{1,18})\s*")
FILE = b"filedesc:"


def _fetched(digits: bytes) -> int:
    """Return the time of a record in nanoseconds since the epoch; 0 if malformed."""
    try:
        when = datetime.strptime(digits.decode("ascii").ljust(14, "0"), "%Y%m%d%H%M%S").replace(tzinfo=UTC)
    except ValueError:
        return 0
    return int(when.timestamp()) * 1_000_000_000


def _member(url: bytes, date: bytes, stated: bytes, block: Slice) -> Member:
    try:
        body, fields = served(block)
    except Damaged as damage:
        # The next record may be undamaged.
        body, fields = Failed(damage), Header()
    return Member(
        name=url,
        body=body,
        mtime=modified(fields) or _fetched(date),
        stated=field(fields, "content-type") or stated.decode("latin-1"),
        url=url.decode("utf-8", "replace"),
    )


def open_arc(body: Reader, budget: Budget) -> Iterator[Member]:
    """Yield the pages. Raises Damaged."""
    stream, first = Buffered(body), True
    while line := stream.line():
        if not line.strip() and not first:
            continue
        found = _LINE.fullmatch(line)
        if not found:
            raise Damaged("no ARC file" if first else "damaged: no record where one belongs")
        first = False
        url, _, date, stated, size = found.groups()
        block = Slice(stream, int(size))
        if not url.startswith((FILE, b"dns:")):
            yield _member(url, date, stated, block)
        block.drain()
    if first:
        raise Damaged("no ARC file")


UNNESTER = Container(("ARC",), open_arc)
