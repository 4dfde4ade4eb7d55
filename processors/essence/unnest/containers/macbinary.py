"""MacBinary I to III: a Macintosh file as one stream: a block of Finder metadata, then the forks, padded."""

from __future__ import annotations

from collections.abc import Iterator

from processors.essence.formats.container import Budget, Damaged, Member, Reader
from processors.essence.formats.streams import Slice, exact, need, skip
from processors.essence.unnest import Container
from processors.essence.unnest.containers import _mac as mac

BLOCK = 128
MAX_NAME = 63


def _number(head: bytes, at: int, size: int = 4) -> int:
    return int.from_bytes(head[at : at + size], "big")


def _pass(body: Reader, size: int) -> None:
    """Skip the padding of a part; after the last part it may be missing."""
    exact(body, -size % BLOCK)


def open_macbinary(body: Reader, budget: Budget) -> Iterator[Member]:
    """Yield the forks of the file; the resource fork only if it is not empty. Raises Damaged."""
    head = need(body, BLOCK, "a header ends early")
    if head[0] or not 0 < head[1] <= MAX_NAME or head[74] or head[82]:
        raise Damaged("not MacBinary")
    name, mtime = mac.name(head[2 : 2 + head[1]]), mac.time(_number(head, 95))
    data, resources, more = _number(head, 83), _number(head, 87), _number(head, 120, 2)
    skip(body, more + -more % BLOCK, "a header ends early")
    if data or not resources:
        part = Slice(body, data)
        yield Member(name=name, size=data, mtime=mtime, body=part)
        part.drain()
        _pass(body, data)
    if resources:
        part = Slice(body, resources)
        yield Member(name=name + mac.RESOURCES, size=resources, mtime=mtime, body=part)
        part.drain()


UNNESTER = Container(("MacBinary",), open_macbinary)
