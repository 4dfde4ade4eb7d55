"""Every engine, the parser and the predicate agree about every query."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from processors.identity import oid
from processors.query import QueryError, parse, predicate, unparse
from processors.query.facets import FACETS, refined
from processors.query.words import properties
from schemas.ports import BrokerIndex, Sort
from schemas.query import (
    And,
    Every,
    Exists,
    Fuzzy,
    Inside,
    MomentRange,
    Most,
    Near,
    Node,
    Not,
    NumberRange,
    Or,
    Phrase,
    Regex,
    Site,
    Verbatim,
    Whole,
    Wildcard,
    Word,
)
from schemas.records import Removed, Summary
from tests.sinks.index.conftest import ENGINES

Open = Callable[[Path], BrokerIndex]

WORDS = (
    "whale",
    "Whale",
    "fin",
    "x-ray",
    "東",
    "東京",
    "京",
    "Straße",
    "STRASSE",
    "ﬁn",
    "a_b",
    "b",
    "!!",
    "1.5",
    "\u00ad",
    "http://a/",
    "whales",
    "whaling",
    "résumé",
    "resume",
    "C++",
    "2024-03-05",
    "Zelёnyi",
)
PROPERTIES = ("html", "WHALE", "http://a/0", "HTTP://A/1", "AB" * 16)
"""Values of exact fields, in various spellings."""
NAMES = (
    "title",
    "Title",
    "description",
    "keywords",
    "author",
    "partial-text",
    "remark",
    "re mark",
    "re=mark",
    "%",
    "type",
    "URL",
    "md5",
    "oid",
    "object-url",
    "owner",
    "Url-References",
    "Terms",
    "file-name",
    "Copy",
    "language",
    "pages",
    "date",
)
"""A few words and names, so that they often match; each differs from another in one way only."""

text = st.lists(st.sampled_from(WORDS), max_size=4).map(" ".join) | st.text(max_size=6)
value = text | text.map(lambda t: t.encode("utf-8", "replace")) | st.binary(max_size=4)
attributes = st.dictionaries(st.sampled_from(NAMES), st.lists(value, max_size=2).map(tuple), max_size=4)
name = st.sampled_from(("", *NAMES))
patterns = st.sampled_from(("wha*", "*ale", "wh?le", "*hal*", "str*", "x?", "whale*", "f?n*"))
expressions = st.sampled_from(
    (
        "wh[ai]le",
        "(whale|fin)s?",
        "w.{2,3}e",
        "stra(ss|ß)e",
        "^whale",
        "whale +fin",
        "fin$",
        r"\d",
        r"\w+le",
        "[^x]hale",
        "whale(fin)?",
    )
)
bounds = st.sampled_from((None, -1.0, 0.0, 1.0, 1.5, 2.0, 2_000.0))
moments = st.sampled_from((None, 1_704_067_200, 1_709_596_800, 1_717_200_000))
leaf = st.one_of(
    st.just(Every()),
    st.builds(Word, st.sampled_from(WORDS) | st.text(max_size=4), name),
    st.builds(Phrase, text, name),
    st.builds(Exists, st.sampled_from(NAMES)),
    st.builds(Verbatim, st.sampled_from(WORDS) | text, name),
    st.builds(Whole, st.sampled_from(WORDS) | text, st.sampled_from(("author", "terms", *NAMES))),
    st.builds(Wildcard, patterns, name),
    st.builds(Fuzzy, st.sampled_from(("whale", "wale", "strasse", "whalefin")), st.sampled_from((1, 2, 3)), name),
    st.builds(Regex, expressions, name),
    st.builds(Near, st.lists(st.sampled_from(WORDS), min_size=2, max_size=3).map(tuple), st.sampled_from((0, 1, 5)), name),
    st.builds(NumberRange, st.sampled_from(("pages", "title", "remark")), bounds, bounds),
    st.builds(
        MomentRange, st.sampled_from(("", "date", "remark")), st.none() | st.just(1_704_067_200), st.none() | st.just(1_717_200_000)
    ),
    st.builds(Site, st.sampled_from(("a", "A", "b.a", "localhost"))),
    st.builds(Inside, st.sampled_from(("http://a/", "http://A", "docs", "docs/whale"))),
)
tree: st.SearchStrategy[Node] = st.recursive(
    leaf,
    lambda inner: st.one_of(
        st.builds(Not, inner),
        st.builds(And, st.lists(inner, max_size=3).map(tuple)),
        st.builds(Most, st.lists(inner | st.builds(Word, st.sampled_from(WORDS)), max_size=6).map(tuple)),
        st.builds(Or, st.lists(inner, max_size=3).map(tuple)),
    ),
    max_leaves=6,
)


def utf8(attributes: dict[str, tuple[str | bytes, ...]]) -> bool:
    """Return whether a record can have these attributes: Avro strings are UTF-8."""
    try:
        [v.encode() for values in attributes.values() for v in values if isinstance(v, str)]
    except UnicodeEncodeError:
        return False
    return True


def corpus(drawn: list[tuple[dict[str, tuple[str | bytes, ...]], dict[str, tuple[str | bytes, ...]], bool]]) -> list[Summary]:
    """Return summaries of the drawn values: attributes, annotations, and whether there is a digest (and HTML, and a copy)."""
    made = []
    for at, (given_attributes, notes, rich) in enumerate(drawn):
        url = f"http://a/{at}" if rich else f"http://A/{at}"
        about: dict[str, Any] = {
            "oid": (oid("g", url), oid("g", url).upper(), f"odd {at}")[at % 3],
            "url": url,
            "object_url": ("http://a/", url, url.swapcase(), "")[at % 4],
            "gatherer": "g",
            "version": 1,
            "time": 1,
        }
        more: dict[str, Any] = {"md5": "ab" * 16, "type": "HTML", "copy_of": "first"} if rich else {"type": "whale"}
        more |= {"copies": ("http://b/x-ray#d/whale%2etxt", "file:///%FF")} if at % 2 else {}
        made.append(Summary(**about, **more, attributes=given_attributes, annotations=notes, published=1))
    return made


documents = st.lists(st.tuples(attributes.filter(utf8), attributes.filter(utf8), st.booleans()), min_size=1, max_size=6).map(corpus)


SORTS: tuple[Sort, ...] = ("newest", "oldest", "largest", "url")

EXAMPLES = {"tantivy": (100, 25), "opensearch": (25, 4)}
"""Number of collections tried on each engine: a server takes longer to create an index."""
FACETED = {"tantivy": 8, "opensearch": 1}
"""Number of queries of a collection whose facets are compared: each value of a facet is a further search."""


def settings_for(examples: int) -> settings:
    """Return the settings of a property with so many examples."""
    return settings(max_examples=examples, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def assert_facets_lead_to_their_counts(index: BrokerIndex, query: Node) -> None:
    """Assert that each count of a facet is the total of the query with that choice, and that no value is left out."""
    page = index.search(query, facets=FACETS)
    assert list(page.facets) == list(FACETS)
    for facet, values in page.facets.items():
        for value, total in values:
            assert index.search(refined(query, facet, value)).total == total > 0, (query, facet, value)


def test_engine_and_predicate_agree(request: pytest.FixtureRequest, engine: Open) -> None:
    """For any query, an engine finds the summaries that the predicate accepts; search leaves out the copies."""
    name = request.node.callspec.params["engine"]

    @settings_for(EXAMPLES[name][0])
    @given(summaries=documents, queries=st.lists(tree, min_size=1, max_size=8))
    def agree(summaries: list[Summary], queries: list[Node]) -> None:
        with tempfile.TemporaryDirectory() as folder, closing(engine(Path(folder))) as index:
            index.apply(summaries, {0: len(summaries)})
            for at, query in enumerate(queries):
                accepted = [one for one in summaries if predicate(query)(one)]
                assert list(index.scroll(query)) == sorted(one.oid for one in accepted), query
                assert index.count(query) == len(accepted)
                page = index.search(query)
                assert sorted(hit.url for hit in page.hits) == sorted(one.url for one in accepted if not one.copy_of)
                assert page.total == len(page.hits)
                assert all(len(hit.snippet) <= 300 for hit in page.hits)
                for sort in SORTS:
                    assert sorted(index.search(query, sort=sort).hits) == sorted(hit._replace(score=1.0) for hit in page.hits)
                if at < FACETED[name]:
                    assert_facets_lead_to_their_counts(index, query)

    agree()


def test_engine_and_predicate_agree_on_every_leaf(request: pytest.FixtureRequest, engine: Open) -> None:
    """For every word under every name, and for every name, an engine finds the summaries that the predicate accepts."""
    asked: list[Node] = [Exists(one) for one in NAMES]
    asked += [Wildcard("wha*", one) for one in ("", *NAMES)] + [Fuzzy("wale", 1, one) for one in ("", *NAMES)]
    asked += [Word(word, one) for word in (*WORDS, *PROPERTIES) for one in ("", *NAMES)]

    @settings_for(EXAMPLES[request.node.callspec.params["engine"]][1])
    @given(summaries=documents)
    def agree(summaries: list[Summary]) -> None:
        with tempfile.TemporaryDirectory() as folder, closing(engine(Path(folder))) as index:
            index.apply(summaries, {})
            said = [Word(value, name) for one in summaries for name, value in properties(one).items()]
            for query in asked + said:
                assert list(index.scroll(query)) == sorted(one.oid for one in summaries if predicate(query)(one)), query

    agree()


PARTITIONS = 4
changes = st.lists(st.tuples(st.integers(0, 9), st.none() | attributes.filter(utf8)), min_size=1, max_size=24)
"""What happens to one of ten objects, in order: it gets these attributes, or is removed (None)."""
turns = st.lists(st.tuples(st.integers(0, PARTITIONS - 1), st.integers(1, 5)), max_size=12)
"""The partition of each batch, and how many changes it has at most."""


def published(drawn: list[tuple[int, dict[str, tuple[str | bytes, ...]] | None]]) -> list[list[Summary | Removed]]:
    """Return the changes in each partition, as a Broker publishes them: those of an object are in one partition."""
    partitions: list[list[Summary | Removed]] = [[] for _ in range(PARTITIONS)]
    for at, (place, given_attributes) in enumerate(drawn, 1):
        url = f"http://a/{place}"
        about: dict[str, Any] = {"oid": oid("g", url), "url": url, "object_url": url, "version": at, "time": at, "published": at}
        change: Summary | Removed = Removed(**about, reason="gone")
        if given_attributes is not None:
            change = Summary(**about, gatherer="g", type="HTML" if at % 2 else "Text", attributes=given_attributes)
        partitions[place % PARTITIONS].append(change)
    return partitions


def test_partitions_may_come_in_any_order(request: pytest.FixtureRequest, engine: Open) -> None:
    """An index that gets the changes of four partitions by turns answers as one that gets all at once, and as the predicate."""

    @settings_for(EXAMPLES[request.node.callspec.params["engine"]][1])
    @given(drawn=changes, turns=turns, queries=st.lists(tree, min_size=1, max_size=8))
    def agree(drawn: list[Any], turns: list[tuple[int, int]], queries: list[Node]) -> None:
        partitions = published(drawn)
        everything = [change for rows in partitions for change in rows]
        current = {change.oid: change for change in everything}
        summaries = sorted((one for one in current.values() if isinstance(one, Summary)), key=lambda one: one.oid)
        with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
            paths = [Path(folder, name) for name in ("once", "turns")]
            for path in paths:
                path.mkdir()
            once, taken = (stack.enter_context(closing(engine(path))) for path in paths)
            once.apply(everything, {0: len(everything)})
            done = [0] * PARTITIONS
            for at, size in [*turns, *((at, len(rows)) for at, rows in enumerate(partitions))]:
                batch = partitions[at][done[at] :][:size]
                done[at] += len(batch)
                taken.apply(batch, {at: done[at]})
            assert taken.offsets() == dict(enumerate(map(len, partitions)))
            for query in queries:
                accepted = [one.oid for one in summaries if predicate(query)(one)]
                assert list(once.scroll(query)) == list(taken.scroll(query)) == accepted, query
                assert once.count(query) == taken.count(query) == len(accepted), query
                found, again = ({hit._replace(score=0) for hit in index.search(query).hits} for index in (once, taken))
                assert found == again, query
                assert len(found) == len(accepted), query

    agree()


def collection() -> list[Summary]:
    """Return summaries with different scores: words of random frequency in random fields, one in ten a copy."""
    chance = random.Random(1994)
    names = ("title", "description", "abstract", "keywords", "author", "partial-text", "terms", "remark", "file-size")

    def words() -> str:
        return " ".join(f"w{int(chance.paretovariate(0.6))}" for _ in range(chance.choice((2, 7, 60))))

    made = []
    for at in range(400):
        url = f"http://a/{chance.random()}"
        about: dict[str, Any] = {"oid": oid("g", url), "url": url, "object_url": url, "gatherer": "g", "version": 1, "time": 1}
        given: dict[str, tuple[str | bytes, ...]] = {name: (words(),) for name in names if chance.random() < 0.6}
        made.append(Summary(**about, type="Text", attributes=given, copy_of="first" if at % 10 == 0 else "", published=1))
    return made


@pytest.fixture
def both(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[list[BrokerIndex]]:
    """An index of each engine with the same summaries."""
    with ExitStack() as stack:
        opens = [stack.enter_context(contextmanager(kind)(request)) for kind in ENGINES.values()]
        indexes = [stack.enter_context(closing(opened(tmp_path))) for opened in opens]
        for index in indexes:
            index.apply(collection(), {0: 400})
        yield indexes


QUERIES = ("w1", "w2 OR w9", "title:w1 w2", '"w1 w1"', 'remark:"w1 w1" OR w7', "w3 NOT w1", "w2 type:text", "type:text", "* -w1")


def test_engines_give_same_hits_in_same_order(both: list[BrokerIndex]) -> None:
    """All engines give the same hits with the same scores, except for rounding, and so in the same order."""
    for query, copies in product(QUERIES, (False, True)):
        pages = [index.search(parse(query), limit=1_000, copies=copies) for index in both]
        assert len({page.total for page in pages}) == 1
        first, *others = [{hit.url: hit for hit in page.hits} for page in pages]
        for page, other in zip(pages[1:], others, strict=True):
            assert other.keys() == first.keys()
            assert all(hit.score == pytest.approx(first[url].score, rel=0.01) for url, hit in other.items())
            assert all(hit._replace(score=0) == first[url]._replace(score=0) for url, hit in other.items())
            scores = [first[hit.url].score for hit in page.hits]
            assert all(after <= before * 1.01 for before, after in pairwise(scores))


@settings(max_examples=300, deadline=None)
@given(query=tree, summaries=documents)
def test_unparsed_query_has_same_meaning(query: Node, summaries: list[Summary]) -> None:
    """A tree that can be typed has the same meaning after it was written as text and parsed."""
    if all(map(typable, leaves(query))):
        again = predicate(parse(unparse(query)))
        before = predicate(query)
        assert [again(one) for one in summaries] == [before(one) for one in summaries]


def leaves(query: Node) -> list[Node]:
    """Return the nodes without children."""
    match query:
        case And(parts) | Or(parts) | Most(parts):
            return [leaf for part in parts for leaf in leaves(part)]
        case Not(part):
            return leaves(part)
    return [query]


def typable(node: Node) -> bool:
    """Return whether the parser accepts the words of a leaf: it refuses words without a letter or digit, which cannot match."""
    try:
        parse(unparse(node))
    except QueryError:
        return False
    return True
