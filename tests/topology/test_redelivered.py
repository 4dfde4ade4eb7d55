"""Answers that come again, since the worker was killed between the rows and what it gave."""

from __future__ import annotations

from typing import Any

import pytest

from processors.frontier import FrontierSettings, frontier
from processors.frontier_asking import DAY
from schemas.ports import Origin
from schemas.records import CrawlEvent, FetchedObject, FetchRequest, Link, Record, Root
from streams.simulator import MemoryRows

HOST = "http://example.org"
URL = f"{HOST}/"
DELIVERED = 100
"""An offset behind all before it."""


class Partition:
    """A partition of the frontier, which is told of a root that lives for a second."""

    def __init__(self) -> None:
        self.rows = MemoryRows()
        self.offset = 0

    def give(self, record: CrawlEvent, offset: int = 0) -> list[Record]:
        """What an event gives; without an offset, the next one's."""
        self.offset += 1
        return list(frontier(self.rows, record, Origin("crawl", 0, offset or self.offset), FrontierSettings()))

    def seeded(self, run: str, time: int) -> FetchRequest:
        """The request of the root, or of the robots.txt before it."""
        root, links = Root(url=URL, run=run, ttl=1), (Link(url=URL, kind="page"),)
        return one(self.give(CrawlEvent(kind="seeded", host=HOST, time=time, url=URL, root=root, links=links)))

    def resolved(self, to: FetchRequest, time: int) -> FetchRequest:
        """The request that waited for the host."""
        there: dict[str, Any] = {"addresses": ("192.0.2.1",), "robots": b""}
        return one(self.give(CrawlEvent(kind="resolved", host=HOST, time=time, version=to.version, **there)))


def one(given: list[Record]) -> FetchRequest:
    """The only record, a request."""
    (request,) = given
    assert isinstance(request, FetchRequest)
    return request


@pytest.mark.parametrize("kind", ["resolved", "failed", "refused", "deferred"])
def test_what_expires_is_told_again(kind: Any) -> None:
    """A URL that goes past its time-to-live, for whatever answer, goes again where that answer comes again: no removal is lost."""
    partition = Partition()
    request = partition.resolved(partition.seeded("1", 1), 2)
    partition.give(CrawlEvent(kind="fetched", host=HOST, time=3, url=URL, version=request.version, root=request.root))
    asked = partition.seeded("2", 2 * DAY)
    if kind != "resolved":
        asked = partition.resolved(asked, 2 * DAY + 1)
    url = "" if kind == "resolved" else URL
    answer = CrawlEvent(kind=kind, host=HOST, time=2 * DAY + 2, url=url, version=asked.version, reason="odd", wait=DAY)
    told = [[gone for gone in partition.give(answer, DELIVERED) if isinstance(gone, FetchedObject)] for _ in range(2)]
    assert [(gone.url, gone.outcome) for gone in told[0]] == [(URL, "expired")]
    assert told[0] == told[1]
