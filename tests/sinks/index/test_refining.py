"""Refining a search in each engine: orders, facets, explanations, completion."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from processors.query import parse
from processors.query.facets import FACETS, VIEW, refined
from schemas.ports import BrokerIndex, FacetValue, Sort
from schemas.query import Every
from schemas.records import Summary
from sinks.index.errors import QueryRefused
from sinks.index.options import Options
from sinks.index.tantivy import search

Make = Callable[..., Summary]


@pytest.fixture
def many(summary: Make) -> list[Summary]:
    """Summaries of a few dates, sizes, authors and hosts; many are alike, and some have none."""
    chance = random.Random(38)
    made = []
    for at in range(300):
        given: dict[str, Any] = {"title": "whale " * chance.randint(1, 5) + chance.choice(("ship", "squid", ""))}
        given |= {"date": f"{chance.choice((1851, 1984, 2024))}-03-0{chance.randint(1, 2)}"} if chance.random() < 0.7 else {}
        given |= {"author": ("Herman Melville", "H. M.")[: chance.randint(1, 2)]} if chance.random() < 0.7 else {}
        given |= {"language": chance.choice(("en", "de"))} if chance.random() < 0.9 else {}
        host = chance.choice(("www.example.org", "docs.example.org", "a.test"))
        made.append(
            summary(f"http://{host}/{at}", size=chance.choice((0, 10, 2_000)), type=chance.choice(("HTML", "PDF")), **given)
        )
    return made


def key(one: Summary, sort: Sort) -> tuple[Any, ...]:
    """Return what a summary is sorted by."""
    date = "".join(map(str, one.attributes.get("date", ())))
    if sort == "newest":
        return (-int(date.replace("-", "")) if date else 0, one.url)
    if sort == "oldest":
        return (int(date.replace("-", "")) if date else 10**9, one.url)
    return (-one.size, one.url) if sort == "largest" else (one.url,)


@pytest.mark.parametrize("sort", ["newest", "oldest", "largest", "url"])
def test_sorted_pages_are_whole_and_disjoint(
    index: BrokerIndex, many: list[Summary], sort: Sort, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In each order the pages follow each other: no hit is missing, none comes twice, and equal ones are in order of URL."""
    monkeypatch.setattr(search, "SPARE", 3)
    for at in range(0, len(many), 70):
        index.apply(many[at : at + 70], {})
    expected = [one.url for one in sorted(many, key=lambda one: key(one, sort))]
    pages = [index.search(parse("whale"), 7, at, sort=sort) for at in range(0, 301, 7)]
    assert [hit.url for page in pages for hit in page.hits] == expected
    assert {page.total for page in pages} == {300}
    assert [hit.url for hit in index.search(Every(), 1_000, sort=sort).hits] == expected


@pytest.mark.parametrize(
    "query", ["whale", "ship OR squid", "whale type:HTML", 'ship author:=="H. M." during:1984', "=whale site:example.org", "*"]
)  # fmt: skip
def test_count_of_facet_is_what_the_choice_gives(index: BrokerIndex, many: list[Summary], query: str) -> None:
    """Each count is the total of the query with that value chosen; a choice leaves the counts of its own facet as they were."""
    index.apply(many, {})
    tree = parse(query)
    page = index.search(tree, facets=FACETS)
    assert page.facets.keys() == set(FACETS)
    assert len(page.facets["type"]) == 2
    for facet, values in page.facets.items():
        assert [one.total for one in values] == sorted((one.total for one in values), reverse=True)
        for value, total in values:
            narrowed = index.search(refined(tree, facet, value), facets=(facet,))
            assert narrowed.total == total
            assert narrowed.facets[facet] == values


def test_views_are_counted_by_their_tags(index: BrokerIndex, summary: Make) -> None:
    """All views are counted, however many, copies apart; a summary that is tagged anew is counted for its new views."""
    index.apply([summary(f"http://a/{at}", views=(f"v{at:03}", "all")) for at in range(100)], {0: 1})
    index.apply([summary("http://a/copy", views=("all", "x"), copy_of="0" * 64)], {0: 2})
    found = index.search(Every(), facets=(VIEW, "type")).facets[VIEW]
    assert list(found) == [FacetValue("all", 100), *(FacetValue(f"v{at:03}", 1) for at in range(100))]
    index.apply([summary("http://a/0", views=("all", "new view"), published=2)], {0: 3})
    found = index.search(Every(), copies=True, facets=(VIEW,)).facets[VIEW]
    assert found[0] == FacetValue("all", 101)
    assert {"new view", "x", "v001"} < {one.value for one in found}
    assert "v000" not in {one.value for one in found}


def test_hosts_of_a_facet(index: BrokerIndex, summary: Make) -> None:
    """A host counts for those above it, but is not listed twice for the same summaries."""
    index.apply(
        [summary(f"http://{host}/") for host in ("a.example.org", "b.example.org", "www.test.net", "localhost", "[::1]")], {}
    )
    expected = [("example.org", 2), ("[::1]", 1), ("a.example.org", 1), ("b.example.org", 1), ("localhost", 1), ("www.test.net", 1)]
    assert list(index.search(Every(), facets=("site",)).facets["site"]) == [FacetValue(*one) for one in expected]


def test_frequent_value_is_found_though_it_is_rare_in_each_part(index: BrokerIndex, summary: Make) -> None:
    """A value that no commit has among its most frequent is counted, if it is frequent in all of them together."""
    for part in range(4):
        names = [f"Author {part}-{at}" for at in range(150) for _ in range(3)] + ["Common"] * 2
        index.apply([summary(f"http://{part}/{at}", author=name) for at, name in enumerate(names)], {})
    assert index.search(Every(), 0, facets=("author",)).facets["author"][0] == FacetValue("Common", 8)


def test_spellings_that_one_choice_finds_are_one_value(index: BrokerIndex, summary: Make) -> None:
    """Types are compared case folded, so each is one value of the facet, in its most frequent spelling."""
    index.apply([summary(f"http://{at}/", type=name) for at, name in enumerate(("HTML", "HTML", "html", "Text"))], {})
    assert index.search(Every(), facets=("type",)).facets["type"] == (FacetValue("HTML", 3), FacetValue("Text", 1))


def test_facet_that_needs_too_many_summaries_is_left_out(
    index: BrokerIndex, summary: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the counts of a facet would need too many summaries to be read, the page has its hits, and says what is left out."""
    index.apply([summary(f"http://{at}/", title="Whale", type="PDF" if at < 2 else "Text") for at in range(9)], {})
    monkeypatch.setattr(index, "_options", Options(checked=5))
    page = index.search(parse("=Whale type:PDF"), facets=("type", "year"))
    assert (page.total, page.facets, len(page.left_out)) == (2, {"year": ()}, 1)
    assert page.left_out[0].startswith("the facet type is not counted: =Whale would have to be looked for in 9 summaries")
    with pytest.raises(QueryRefused):
        index.search(parse("=Whale"), facets=("type",))


def test_equal_urls_are_in_order_of_oid(index: BrokerIndex, summary: Make) -> None:
    """Summaries of one URL, of several Gatherers, are in order of OID on every page."""
    oids = [f"{at:064x}" for at in (5, 3, 8, 1, 7, 2)]
    for at in range(0, 6, 2):
        index.apply([summary("http://a/", oid=oid) for oid in oids[at : at + 2]], {})
    for sort in ("url", "newest", "relevance"):
        found = [hit.oid for at in range(6) for hit in index.search(Every(), 1, at, sort=sort).hits]
        assert found == sorted(oids)


def test_copies_are_counted_as_they_are_listed(index: BrokerIndex, summary: Make) -> None:
    """Facets leave out copies as the search does."""
    index.apply([summary("http://a/"), summary("http://b/", copy_of="x")], {})
    assert [index.search(Every(), copies=copies, facets=("type",)).facets["type"][0].total for copies in (False, True)] == [1, 2]


@pytest.mark.parametrize(
    "query",
    [
        "whale",
        "white whale ship",
        "title:whale OR ship",
        '"white whale" type:Text',
        "whale (ship OR (white squid))",
        "wha* ship",
        "=whale ship",
    ],
)
def test_parts_add_up_to_the_score(index: BrokerIndex, summary: Make, query: str) -> None:
    """The parts of an explanation add up to the score of each hit."""
    texts = ("white whale", "whale ship", "white ship", "whale whale squid", "the white squid ship whale", "whaling")
    index.apply([summary(f"http://{at}/", title=text, remark=text[::-1]) for at, text in enumerate(texts)], {})
    tree = parse(query)
    hits = index.search(tree).hits
    found = index.explain(tree, [hit.oid for hit in hits])
    assert hits
    for hit in hits:
        assert sum(part.score for part in found[hit.oid]) == pytest.approx(hit.score, rel=1e-3)
        assert found[hit.oid]


def test_completion(index: BrokerIndex, summary: Make) -> None:
    """Words of titles, keywords and authors complete a beginning, most frequent first; copies do not count."""
    index.apply([summary(f"http://{at}/", title="Whale ship", author="Whitman", description="whaling") for at in range(3)], {})
    index.apply([summary("http://b/", keywords="whalebone, 1851"), summary("http://c/", title="whalebone", copy_of="x")], {})
    assert list(index.complete("WH")) == [("whale", 3), ("whitman", 3), ("whalebone", 1)]
    assert list(index.complete("wha", 1)) == [("whale", 3)]
    assert [list(index.complete(text)) for text in ("", " ", "x", ".*", "18", '"', "a@", "w<", "w" * 2_000)] == [[]] * 9


def test_frequencies(index: BrokerIndex, summary: Make) -> None:
    """The frequency of a word is the number of summaries that have it in any form."""
    index.apply(
        [summary("http://a/", title="whale"), summary("http://b/", remark="whales"), summary("http://c/", title="ship")], {}
    )
    assert list(index.frequencies(["whale", "ships", "squid"])) == [2, 1, 0]


def test_record_is_the_summary(index: BrokerIndex, summary: Make, removed: Callable[..., Any]) -> None:
    """The record of an OID is its newest summary, or its removal."""
    one, other = summary("http://a/", title="whale"), summary("http://b/")
    index.apply([one, other], {})
    removal = removed("http://b/", published=2)
    index.apply([removal], {})
    assert [index.record(oid) for oid in (one.oid, other.oid, "0" * 64)] == [one, removal, None]


def test_fresh_and_linked_hits_come_first(index: BrokerIndex, summary: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """With weights for them, freshness and links order hits that are equal otherwise, and are parts of the score."""
    now = datetime.now(UTC)
    new, old = (f"{now - timedelta(days=days):%Y-%m-%d}" for days in (1, 5_000))
    index.apply([summary(url, title="whale", date=date) for url, date in (("http://a/", old), ("http://b/", new))], {})
    index.apply([summary("http://c/", title="whale", date=old)], {})
    index.apply([summary(f"http://{at}/", url_references="http://c/") for at in range(30)], {})
    query = parse("whale")
    assert [hit.url for hit in index.search(query).hits] == ["http://a/", "http://b/", "http://c/"]
    for options, best, part in ((Options(freshness=1), "http://b/", "freshness"), (Options(links=1), "http://c/", "links")):
        monkeypatch.setattr(index, "_options", options)
        hits = index.search(query).hits
        assert hits[0].url == best
        assert [hit.url for at in range(4) for hit in index.search(query, 1, at).hits] == [hit.url for hit in hits]
        parts = index.explain(query, [hits[0].oid])[hits[0].oid]
        assert sum(one.score for one in parts) == pytest.approx(hits[0].score, rel=1e-3)
        assert parts[-1].query == part


def test_checked_candidates_are_told(index: BrokerIndex, summary: Make) -> None:
    """A page tells how many summaries were read."""
    index.apply([summary(f"http://{at}/", title=title) for at, title in enumerate(("Whale", "whale", "ship"))], {})
    assert (index.search(parse("whale")).checked, index.search(parse("=Whale")).checked) == (0, 2)
