"""The sample corpus, as the pipeline itself publishes it, is found and ranked alike by the engines."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from itertools import chain, zip_longest
from pathlib import Path

import pytest
from typer.testing import CliRunner

from processors.identity import oid
from processors.query import parse, predicate
from schemas.codec import decode
from schemas.ports import BrokerIndex
from schemas.records import Removed, Summary
from streams.cli.app import app
from streams.store import Store
from tests.samples import make_corpus
from tests.sinks.index.conftest import ENGINES

Change = Summary | Removed
PARTITIONS = 4
TOPIC = "broker.main"
NAMED = ("title:survey", "title:abstracts")
QUERIES = (
    *("harvest", "gatherer broker", "summaries OR abstracts", "the web", "archie veronica wais", "what is worth finding in layers"),
    *('"resource discovery"', '"a server"', "=Harvest", '="Harvest separated"', *NAMED),
    *("gath*", "*ing", "s?mm*", "title:*er*", "hravest~2", "sumaries~1", "discovery~3", "/gather(er|ing)s?/", "/[a-m]+er/"),
    *("server NEAR/5 index", '"links words"~5', "type:HTML", "type:HTML search", "search NOT type:HTML", "-harvest", "*"),
    *(
        "date:1994-12",
        "after:1993 summary",
        "file-size:>500 archive",
        "in:corpus/notes",
        "file-name:broker.html OR index",
        "copy:*",
    ),
    *("reading (list OR document) -type:HTML", "author:* OR quillwort", "C program", "the", "quillwort"),
)

OTHERS = 3_000
MANY = {"title": ("krill plankton",), "description": ("krill, plankton, algae, shrimps, urchins and starfish on all shores",)}
"""Attributes of documents that no query for a word finds."""


@pytest.fixture(scope="session")
def partitions(tmp_path_factory: pytest.TempPathFactory) -> list[list[Change]]:
    """What the pipeline publishes of the sample corpus, in each partition of the Broker's topic."""
    folder = tmp_path_factory.mktemp("gathered")
    make_corpus.write(folder / "corpus")
    plain: dict[str, str | None] = {name: None for name in os.environ if name.startswith("HARVEST_")}
    ours = {"HARVEST_DATA": str(folder / "data"), "HARVEST_PARTITIONS": str(PARTITIONS), "HARVEST_GATHERER": "example"}
    result = CliRunner(env=plain | ours).invoke(app, ["gather", "--quiet", str(folder / "corpus")])
    assert result.exit_code == 0, result.output
    with Store(folder / "data", readonly=True) as store:
        read = [store.read(TOPIC, at, 0, end) for at, end in enumerate(store.ends(TOPIC))]
        return [[record for one in rows if isinstance(record := decode(one.value or b""), Change)] for rows in read]


@pytest.fixture(scope="session")
def summaries(partitions: list[list[Change]]) -> list[Summary]:
    """The summaries that are current after all of it."""
    newest: dict[str, Change] = {}
    for change in chain.from_iterable(partitions):
        if change.oid not in newest or newest[change.oid].published <= change.published:
            newest[change.oid] = change
    return [one for one in newest.values() if isinstance(one, Summary)]


@pytest.fixture
def both(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[list[BrokerIndex]]:
    """An empty index of each engine."""
    with ExitStack() as stack:
        opens = [stack.enter_context(contextmanager(kind)(request)) for kind in ENGINES.values()]
        yield [stack.enter_context(closing(opened(tmp_path))) for opened in opens]


def test_engines_rank_sample_corpus_alike(both: list[BrokerIndex], summaries: list[Summary]) -> None:
    """The first ten hits of every query are the same, in the same order, and beside many other documents with the same scores.

    Tantivy counts documents that OpenSearch does not have: the state of the index, and deleted ones until segments are merged. So
    scores are nearly the same in a small collection, and to three digits among some thousands of documents. Those of forms of words
    under a name may differ more, and are left out: in lengths, Tantivy counts each occurrence, Lucene each form once.
    """
    others = [
        Summary(oid=oid("g", url), url=url, object_url=url, gatherer="g", type="", version=1, time=1, published=1, attributes=MANY)
        for url in (f"http://h/{at}" for at in range(OTHERS))
    ]
    found = 0
    for added, tolerance in ((summaries, 0.1), (others, 0.001)):
        for index in both:
            index.apply(added, {})
        for query in QUERIES:
            first, second = (index.search(parse(query)) for index in both)
            assert [hit._replace(score=0) for hit in first.hits] == [hit._replace(score=0) for hit in second.hits], query
            if query not in NAMED:
                assert [hit.score for hit in first.hits] == pytest.approx([hit.score for hit in second.hits], rel=tolerance), query
            assert first.total == second.total, query
            found += bool(first.hits)
    assert found > 2 * len(QUERIES) - 10


def test_partitions_may_come_in_any_order(
    engine: Callable[[Path], BrokerIndex], tmp_path: Path, partitions: list[list[Change]], summaries: list[Summary]
) -> None:
    """An index that is filled from four partitions by turns finds the same as one that is filled at once, and as the predicate."""
    (tmp_path / "once").mkdir()
    (tmp_path / "turns").mkdir()
    with closing(engine(tmp_path / "once")) as once, closing(engine(tmp_path / "turns")) as turns:
        once.apply(list(chain.from_iterable(partitions)), {0: sum(map(len, partitions))})
        for at, changes in enumerate(zip_longest(*([rows[at : at + 5] for at in range(0, len(rows), 5)] for rows in partitions))):
            for partition, batch in enumerate(changes):
                if batch:
                    turns.apply(batch, {partition: 5 * at + len(batch)})
        assert turns.offsets() == {partition: len(rows) for partition, rows in enumerate(partitions)}
        for query in map(parse, QUERIES):
            accepted = sorted(one.oid for one in summaries if predicate(query)(one))
            assert list(once.scroll(query)) == list(turns.scroll(query)) == accepted, query
            assert once.count(query) == turns.count(query) == len(accepted), query
