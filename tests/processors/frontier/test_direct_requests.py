"""Requests that wait in no queue, of files and of mapped URLs: a redelivered event repeats them, since nothing else would."""

from __future__ import annotations

from collections.abc import Sequence

from processors.identity import url_digest
from schemas.records import MOVED, CrawlEvent, FetchRequest, Link, LocalMap, Plan, Root, Span
from tests.processors.frontier.conftest import SITE, Partition, requests

FOLDER = "file:///tree/"
DOCS = f"{SITE}docs/"
PLAN = Plan(map=(LocalMap(url=DOCS, folder="file:///srv/docs/"),))


def listed(partition: Partition, run: str, names: Sequence[str]) -> list[FetchRequest]:
    """Return the requests that a listing of folders causes."""
    links = tuple(Link(url=url, kind="folder") for url in sorted(names, key=url_digest))
    span, root = Span(low=b"", high=b"\xff" * 16), Root(url=FOLDER, run=run)
    event = CrawlEvent(kind="discovered", host=FOLDER, time=partition.now, url=FOLDER, root=root, links=links, span=span)
    return requests(partition.give(event))


def test_start_of_a_run_is_repeated_whatever_was_found_since() -> None:
    """A run begins in parts; a folder found since, which comes first in their order, leaves no request of the part out."""
    partition = Partition(part=2)
    (page,) = requests(partition.seed(url=FOLDER, host=""))
    partition.answer(page)
    first, *others = sorted((f"{FOLDER}{number}/" for number in range(6)), key=url_digest)
    for each in listed(partition, "1", others):
        partition.answer(each)
    made = requests(partition.seed(url=FOLDER, run="2", host=""))
    at = partition.offset
    assert [each.url for each in made] == [FOLDER, others[0]]
    listed(partition, "2", [first, *others])
    again = requests(partition.seed(url=FOLDER, run="2", host="", offset=at))
    assert sorted(again, key=lambda each: each.url) == sorted(made, key=lambda each: each.url)


def test_child_that_left_its_listing_is_requested_by_a_tick(partition: Partition) -> None:
    """A mapped URL that a sitemap has no more is requested, also where the listing is delivered again after a crash."""
    (page,) = requests(partition.seed(PLAN, url=DOCS))
    urls = [f"{DOCS}a", f"{DOCS}b"]
    span = Span(low=b"", high=b"\xff" * 16)
    partition.answer(page)
    for each in requests(partition.link(page, *urls, span=span, coverage="open")):
        partition.answer(each)
    partition.link(page, urls[0], span=span, coverage="open")
    partition.link(page, urls[0], span=span, coverage="open", offset=partition.offset)
    assert [(each.url, bool(each.local)) for each in requests(partition.tick(partition.now))] == [(urls[1], True)]


def test_redirect_that_is_requested_once_more_is_repeated(partition: Partition) -> None:
    """A mapped folder that a longer chain of redirects reached meanwhile is requested again, and so when the answer is repeated."""
    (page,) = requests(partition.seed(PLAN, url=DOCS))
    (found,) = requests(partition.link(page, f"{DOCS}a"))
    partition.link(page, found.url, moves=1, trail=(f"{SITE}x",))
    made = partition.answer(found, "gone", reason=MOVED)
    assert [each.url for each in requests(made)] == [found.url]
    assert partition.answer(found, "gone", reason=MOVED, offset=partition.offset) == made


def test_start_of_a_run_is_repeated_though_its_root_has_ended_since(partition: Partition) -> None:
    """A run of a root requested a mapped page of another root too: that is requested again though the root has ended since."""
    (page,) = requests(partition.seed(PLAN, url=DOCS))
    partition.answer(page)
    (found,) = requests(partition.link(page, f"{DOCS}a"))
    partition.answer(found)
    (other,) = requests(partition.resolve(partition.seed()))
    partition.answer(other)
    (found,) = requests(partition.link(other, found.url))
    partition.answer(found)
    made = requests(partition.seed(url=DOCS, run="3"))
    at = partition.offset
    assert found.url in {each.url for each in made}
    ended = Root(url=DOCS, run="4")
    partition.give(CrawlEvent(kind="unseeded", host=found.host, time=partition.now, url=DOCS, root=ended))
    again = requests(partition.seed(url=DOCS, run="3", offset=at))
    assert [each.local for each in again if each.url == found.url] == [""]
