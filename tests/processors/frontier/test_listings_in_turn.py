"""Listings that name each other."""

from __future__ import annotations

from processors.frontier.listed import RECENT
from processors.identity import frontier_key, url_digest
from schemas.records import CrawlEvent, FetchRequest, Link, Record, Span
from tests.processors.frontier.conftest import SITE, Partition, requests

MAPS = [f"{SITE}{name}.xml" for name in "abc"]


def listed(partition: Partition, request: FetchRequest, mark: str) -> list[Record]:
    """Return the outputs of an open listing that names the others, all with one mark."""
    links = tuple(Link(url=url, kind="listing", mark=mark) for url in sorted(MAPS, key=url_digest) if url != request.url)
    event = CrawlEvent(
        kind="discovered",
        host=frontier_key(request.url),
        time=partition.now,
        url=request.url,
        root=request.root,
        links=links,
        span=Span(low=b"", high=b"\xff" * 16),
        coverage="open",
    )
    return partition.give(event)


def test_listings_that_name_each_other_are_not_requested_for_ever(partition: Partition) -> None:
    """A slow server whose listings name each other with new marks each time causes a bounded number of requests in a run."""
    (page,) = requests(partition.resolve(partition.seed()))
    partition.answer(page)
    waiting, made = requests(partition.link(page, *MAPS)), 0
    while waiting and made < 20:
        request, made = waiting.pop(0), made + 1
        partition.now += RECENT + 1
        waiting += requests(partition.answer(request)) + requests(listed(partition, request, str(made)))
    assert made == len(MAPS)
