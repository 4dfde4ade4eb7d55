"""Views in the simulator: tags are those of the definitions, whatever comes in between."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any, cast
from zlib import crc32

import pytest

from processors.broker.definition import Broker
from processors.broker.tagging import CHUNK, DEFINITION, definitions
from processors.broker.views import latest, tags, tree
from processors.identity import oid
from schemas.ports import Origin
from schemas.records import Removed, Summary, Tick, View
from streams.simulator import MemoryRows, Simulator
from streams.topology.flow import Stage, TopologySettings, topology

BROKERS = (Broker(), Broker("sea", query="sea", sources=("broker:main",)))
DRAWN = topology(TopologySettings(brokers=BROKERS))
WORDS = ("unix", "shell", "sea", "whale", "copy:copy")
PATHS = ("a", "a/b", "a/b/c", "a/b/c/d", "e", "e/f")


def summary(number: int, version: int, words: tuple[str, ...]) -> Summary:
    """A summary; those of equal words are copies of each other."""
    url = f"http://h/{'copy' if number % 2 else 'first'}{number}"
    text = " ".join(words)
    content = {"size": 1 + len(text), "md5": "0" * 32, "sha256": f"{crc32(text.encode()):064x}"} if number % 3 else {}
    return Summary(
        oid=oid("g", url), url=url, object_url=url, gatherer="g", version=version, time=version, type="Text",
        attributes={"title": (text,)}, **content,  # type: ignore[arg-type]
    )  # fmt: skip


def change(draw: random.Random, simulator: Simulator, versions: dict[int, int], time: int) -> None:
    """Send a summary, a removal, or a definition to all partitions."""
    if draw.random() < 0.25:
        path, query = draw.choice(PATHS), draw.choice(WORDS)
        view = View(path=path, query=query, time=time, removed=draw.random() < 0.25)
        simulator.broadcast(f"views.{draw.choice(BROKERS).name}", lambda _: view)
        return
    number = draw.randrange(24)
    versions[number] = version = versions.get(number, 0) + draw.randint(0, 1) or 1
    made = summary(number, version, tuple(sorted(draw.sample(WORDS[:4], 2))))
    if draw.random() < 0.1:
        gone = Removed(oid=made.oid, url=made.url, object_url=made.url, version=version, time=1, reason="gone")
        simulator.send("summaries", gone)
    else:
        simulator.send("summaries", made)


@pytest.mark.parametrize("partitions", [1, 4])
@pytest.mark.parametrize("seed", range(30))
def test_tags_are_those_of_definitions(seed: int, partitions: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """At rest each summary held was last published with the views that the predicates give, and publish counters only rise.

    Definitions four deep are made, changed and removed in mid-stream, chunks are small, and workers crash. One of the two Brokers
    is made from the other, whose views are not its own.
    """
    monkeypatch.setattr("processors.broker.tagging.CHUNK", 3)
    draw = random.Random(seed)
    simulator = Simulator(DRAWN, partitions, draw.randrange, lambda *_: (), lambda _: ())
    versions: dict[int, int] = {}
    for time in range(1, 120):
        change(draw, simulator, versions, time)
        simulator.step(draw.randrange(8), crashes=20)
    simulator.run()
    assert simulator.crashes
    for broker in BROKERS:
        check(simulator, broker.name)


def check(simulator: Simulator, broker: str) -> None:
    """Check the tags of a Broker's summaries by the predicates of its views, and its publish counters."""
    rules = tree(latest(cast("View", record) for _, record in simulator.records(f"views.{broker}")))
    held = [record for record in simulator.compacted(f"broker.{broker}").values() if isinstance(record, Summary)]
    assert held
    assert {record.url: record.views for record in held} == {record.url: tags(rules, record) for record in held}
    last: dict[str, int] = {}
    for _, record in simulator.records(f"broker.{broker}"):
        assert isinstance(record, (Summary, Removed))
        assert record.published > last.get(record.oid, -1)
        last[record.oid] = record.published


def test_partitions_agree_whatever_order_they_read_in() -> None:
    """Two writers at once, whose events reach two partitions in different orders, leave the same definitions there."""
    stage = cast("Stage[Any, Any]", DRAWN.stage("register.main"))
    events = [View(path="a", query=q, time=5) for q in ("x", "y")] + [View(path="a", time=4, removed=True)]
    found = []
    for order in (events, events[::-1]):
        rows = MemoryRows()
        for at, event in enumerate(order):
            list(stage.process(rows, event, Origin("views.main", 0, at)))
        found.append(definitions(rows.scan(DEFINITION)))
    assert found[0] == found[1] == {"a": events[1]}


def test_view_publishes_only_what_changes() -> None:
    """A view that comes publishes what it holds, chunk by chunk, and nothing else; a redelivered tick publishes the same again."""
    stage = cast("Stage[Any, Any]", DRAWN.stage("register.main"))
    rows = MemoryRows()
    for number in range(CHUNK + 50):
        words = ("sea",) if number % 10 == 0 else ("unix",)
        list(stage.process(rows, summary(number, 1, words), Origin("summaries", 0, number)))
    assert stage.deadline is not None
    assert stage.deadline(rows) is None
    list(stage.process(rows, View(path="sea", query="sea", time=1), Origin("views.main", 0, 0)))
    told: list[set[str]] = []
    while stage.deadline(rows) is not None:
        tick = Origin("register.main.ticks", 0, len(told), len(told))
        first, again = ({cast("Summary", made).oid for made in stage.process(rows, Tick(time=1), tick)} for _ in range(2))
        assert first == again
        told.append(first)
    assert len(told) == 2
    assert sum(map(len, told)) == len(set().union(*told)) == (CHUNK + 50) // 10


def test_without_views_there_are_no_rows() -> None:
    """A Broker without views has no row more than before, and needs no tick."""
    stage = cast("Stage[Any, Any]", DRAWN.stage("register.main"))
    rows = MemoryRows()
    list(stage.process(rows, summary(1, 1, ("sea",)), Origin("summaries", 0, 0)))
    list(stage.process(rows, Tick(time=1), Origin("t", 0, 0)))
    assert [key[:2] for key in rows.rows] == [b"r|"]


class CountedRows(MemoryRows):
    """Rows that count how often the definitions are read."""

    scans = 0

    def scan(self, prefix: bytes, after: bytes = b"", limit: int = -1) -> Iterator[tuple[bytes, bytes]]:
        """Yield rows in order of the key."""
        self.scans += prefix == DEFINITION
        return super().scan(prefix, after, limit)


def test_definitions_are_read_when_they_change() -> None:
    """Records read the definitions once after each change, however many they are, and have the tags of the newest ones."""
    stage = cast("Stage[Any, Any]", DRAWN.stage("register.main"))
    rows, found = CountedRows(), set()
    for time, word in enumerate(("unix", "shell", "sea"), 1):
        list(stage.process(rows, View(path="p", query=word, time=time), Origin("views.main", 0, time)))
        for number in range(5):
            made = stage.process(rows, summary(number, time, (word,)), Origin("summaries", 0, 5 * time + number))
            found |= {one.views for one in made if isinstance(one, Summary)}
        assert rows.scans <= time
    assert found == {("p",)}


def test_definition_of_empty_broker_needs_no_tick() -> None:
    """A Broker that holds nothing has nothing to sweep when a view comes; what it takes later has its tags."""
    stage = cast("Stage[Any, Any]", DRAWN.stage("register.main"))
    rows = MemoryRows()
    list(stage.process(rows, View(path="sea", query="sea", time=1), Origin("views.main", 0, 0)))
    assert stage.deadline is not None
    assert stage.deadline(rows) is None
    made = list(stage.process(rows, summary(0, 1, ("sea",)), Origin("summaries", 0, 0)))
    assert [one.views for one in made if isinstance(one, Summary)] == [("sea",)]


def test_unusable_definition_stops_nothing() -> None:
    """A definition whose query cannot be read rejects neither summaries nor ticks, which would come again without end."""
    stage = cast("Stage[Any, Any]", DRAWN.stage("register.main"))
    rows = MemoryRows()
    list(stage.process(rows, summary(0, 1, ("sea",)), Origin("summaries", 0, 0)))
    for offset, view in enumerate((View(path="sea", query="sea", time=1), View(path="bad", query='"open', time=1))):
        list(stage.process(rows, view, Origin("views.main", 0, offset)))
    made = list(stage.process(rows, Tick(time=1), Origin("register.main.ticks", 0, 0)))
    assert [one.views for one in made if isinstance(one, Summary)] == [("sea",)]
    assert stage.deadline is not None
    assert stage.deadline(rows) is None
