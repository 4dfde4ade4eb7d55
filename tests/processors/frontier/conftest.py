"""One partition of the frontier, driven by hand: events in, outputs out."""

from __future__ import annotations

from typing import Any

import pytest

from processors.frontier.rows import Table
from processors.frontier.settings import FrontierSettings
from processors.frontier.stage import frontier
from processors.frontier.state import UrlState
from processors.identity import frontier_key, url_digest
from schemas.ports import Origin
from schemas.records import CrawlEvent, FetchRequest, Link, Plan, Record, Root, Tick
from streams.simulator import MemoryRows

SITE = "http://a.test/"


class Partition:
    """A partition with the rows of the frontier; `given` are the outputs of the last event."""

    def __init__(self, **settings: Any) -> None:
        self.rows = MemoryRows()
        self.settings = FrontierSettings(**settings)
        self.offset = 0
        self.now = 1_000_000

    def give(self, record: CrawlEvent | Tick, *, offset: int = 0, topic: str = "crawl") -> list[Record]:
        """Return the outputs of an event; without an offset it gets the next one."""
        self.offset += not offset
        return list(frontier(self.rows, record, Origin(topic, 0, offset or self.offset, 0), self.settings))

    def seed(self, plan: Plan | None = None, run: str = "1", url: str = SITE, offset: int = 0, **root: Any) -> list[Record]:
        """Start a run of a root, with a plan."""
        host = frontier_key(url)
        of = Root(url=url, run=run, **{"host": host, **root})
        links = (Link(url=url, kind="page"),)
        event = CrawlEvent(kind="seeded", host=host, time=self.now, url=url, root=of, links=links, plan=plan, partitions=1)
        return self.give(event, offset=offset)

    def resolve(self, given: list[Record], robots: bytes = b"") -> list[Record]:
        """Answer the only request, which asks for robots.txt."""
        (request,) = requests(given)
        assert request.kind == "resolve"
        there: dict[str, Any] = {"addresses": ("192.0.2.1",), "robots": robots}
        return self.give(CrawlEvent(kind="resolved", host=request.host, time=self.now, version=request.version, **there))

    def answer(self, request: FetchRequest, kind: Any = "fetched", *, offset: int = 0, **fields: Any) -> list[Record]:
        """Answer a request."""
        event = CrawlEvent(
            kind=kind, host=request.host, time=self.now, url=request.url, version=request.version, root=request.root, **fields
        )
        return self.give(event, offset=offset)

    def link(self, page: FetchRequest, *urls: str, offset: int = 0, **fields: Any) -> list[Record]:
        """Report links of a page, all to one host."""
        links = tuple(Link(url=url, kind="page") for url in urls)
        event = CrawlEvent(
            kind="discovered",
            host=frontier_key(urls[0]),
            time=self.now,
            url=page.url,
            root=page.root,
            **{"depth": page.depth, "links": links, **fields},
        )
        return self.give(event, offset=offset)

    def tick(self, now: int) -> list[Record]:
        """Let time pass."""
        self.now = now
        return self.give(Tick(time=now), topic="frontier.ticks")

    def state(self, url: str) -> UrlState | None:
        """Return the row of a URL."""
        return Table(self.rows).get(frontier_key(url), url_digest(url))


def requests(given: list[Record]) -> list[FetchRequest]:
    """Return the requests among outputs."""
    return [each for each in given if isinstance(each, FetchRequest)]


def refusals(given: list[Record]) -> dict[str, str]:
    """Return the reasons of refused URLs."""
    refused = (each for each in given if isinstance(each, CrawlEvent) and each.kind == "refused")
    return {link.url: each.reason for each in refused for link in each.links}


@pytest.fixture
def partition() -> Partition:
    """A partition without rows."""
    return Partition()
