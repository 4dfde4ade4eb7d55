"""Links of pages to URLs that are known already."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from processors.frontier.rows import Table
from processors.frontier.settings import FrontierSettings
from processors.frontier.stage import Decision
from processors.frontier.state import UrlState
from processors.identity import url_digest
from schemas.ports import Origin
from schemas.records import MOVED, CrawlEvent, Link, Root
from streams.simulator import MemoryRows
from tests.processors.frontier.conftest import SITE, Partition, requests

HOST = "http://a.example"
ROOT = Root(url=f"{HOST}/", run="2", urls=5, depth=3)
URL = f"{HOST}/page"
KNOWN = st.builds(
    UrlState,
    url=st.just(URL),
    kind=st.sampled_from(["page", "file", "folder"]),
    depth=st.integers(0, 4),
    roots=st.sampled_from([(ROOT.url,), (f"{HOST}/other",), (f"{HOST}/other", ROOT.url)]),
    state=st.sampled_from(["queued", "asked", "waiting", "ok", "failed", "refused", "gone"]),
    run=st.sampled_from(["1", "2"]),
    version=st.integers(1, 9),
    origin=st.integers(6, 8),
    moves=st.integers(0, 2),
    moved=st.booleans(),
    whole=st.booleans(),
    missing=st.integers(0, 1),
    held=st.booleans(),
)


@given(known=KNOWN, moves=st.integers(0, 2))
def test_settled_link_changes_nothing(known: UrlState, moves: int) -> None:
    """A link that is skipped as settled would have changed no row of its URL and caused no request."""
    rows = MemoryRows()
    table = Table(rows)
    table.put(HOST, url_digest(URL), known)
    decision = Decision(table, 10, Origin("crawl", 0, 7, 5), FrontierSettings())
    before = dict(rows.scan(b""))
    settled = decision._is_settled(known, ROOT, moves)
    made = list(decision.found(HOST, Link(url=URL, kind="page"), 2, ROOT, f"{HOST}/from", moves=moves))
    if settled:
        assert (made, dict(rows.scan(b""))) == ([], before)


def test_link_to_page_in_flight_is_settled() -> None:
    """A link to a page that this run has requested is settled; one of an earlier run, or of this same event, is not."""
    decision = Decision(Table(MemoryRows()), 10, Origin("crawl", 0, 7, 5), FrontierSettings())
    known = UrlState(url=URL, kind="page", depth=1, roots=(ROOT.url,), state="asked", run="2", version=1, origin=6)
    assert decision._is_settled(known, ROOT, 0)
    assert not decision._is_settled(known.but(run="1"), ROOT, 0)
    assert not decision._is_settled(known.but(origin=7), ROOT, 0)


def test_url_that_moved_is_left_with_the_roots_that_found_it(partition: Partition) -> None:
    """A URL that redirects, found by two roots in one run, is forgotten once both have ended."""
    (first,) = requests(partition.resolve(partition.seed()))
    (second,) = requests(partition.seed(url=f"{SITE}b/"))
    (old,) = requests(partition.link(first, f"{SITE}old"))
    partition.answer(old, "gone", reason=MOVED)
    partition.link(second, f"{SITE}old")
    for root in (f"{SITE}b/", SITE):
        partition.give(CrawlEvent(kind="unseeded", host=HOST, time=partition.now, url=root, root=Root(url=root, run="2")))
    assert list(Table(partition.rows).all()) == []


def test_root_that_was_added_again_is_not_ended_once_more(partition: Partition) -> None:
    """The end of a root that is delivered again repeats its requests, and leaves the root alone that was added again since."""
    (first,) = requests(partition.resolve(partition.seed()))
    (second,) = requests(partition.seed(url=f"{SITE}b/"))
    partition.answer(first)
    partition.answer(second)
    (page,) = requests(partition.link(first, f"{SITE}p"))
    partition.answer(page)
    (page,) = requests(partition.link(second, page.url))
    partition.answer(page)
    ended = CrawlEvent(kind="unseeded", host=HOST, time=partition.now, url=second.url, root=Root(url=second.url, run="2"))
    made = requests(partition.give(ended))
    at = partition.offset
    assert [each.url for each in made] == [page.url]
    (again,) = requests(partition.seed(url=second.url, run="3"))
    assert requests(partition.give(ended, offset=at)) == made
    assert [each.url for each in requests(partition.link(again, f"{SITE}new"))] == [f"{SITE}new"]


def test_host_whose_urls_have_ended_is_looked_up_anew(partition: Partition) -> None:
    """The look-up of a host may be lost in a crash once nothing waits for it: a link to that host begins another one."""
    other = "http://b.test/"
    (page,) = requests(partition.resolve(partition.seed(url=other, host="")))
    (lost,) = requests(partition.seed())
    partition.give(CrawlEvent(kind="unseeded", host=lost.host, time=partition.now, url=SITE, root=Root(url=SITE, run="2")))
    (again,) = requests(partition.link(page, f"{SITE}x"))
    assert (again.kind, again.host) == ("resolve", lost.host)
