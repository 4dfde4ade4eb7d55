"""Laws of the declared topology: the writers of topics, the records that topics carry, and the drawn flowchart."""

from __future__ import annotations

import asyncio
import json
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from typer.testing import CliRunner

import schemas
from processors.broker.definition import Broker
from processors.essence import stage as essence
from schemas.records import RECORDS, Record, Rejected, Tick
from streams.cli.app import app
from streams.embedded import Embedded, EmbeddedSettings
from streams.topology.describe import mermaid, plain
from streams.topology.flow import REJECTED, Edge, Stage, Topic, Topology, TopologySettings, topology
from streams.topology.routing import Router

SCHEMAS = Path(schemas.__file__).parent
LIBRARY = Broker("library", "type:PDF", ttl=60)
OVER = Broker("over", sources=("broker:library", "http://far.test/stream"))
TOPOLOGIES = [topology(TopologySettings()), topology(TopologySettings(brokers=(Broker(), LIBRARY, OVER)))]
FROM_OUTSIDE = {"annotations", *(f"views.{broker}" for broker in ("main", "library", "over"))}
"""Topics that no stage writes: annotations and views come from people."""


class Asked:
    """A stand-in for a record that notes the requested fields."""

    def __init__(self) -> None:
        self.fields: set[str] = set()

    def __getattr__(self, name: str) -> str:
        self.fields.add(name)
        return ""


def deciding(drawn: Topology) -> Iterator[Stage[Any, Any]]:
    """The stages that are pure functions."""
    return (stage for stage in drawn.stages if isinstance(stage, Stage))


def types(hint: Any) -> set[type[Record]]:
    """The record types in an annotation: a type, a union, or an iterator of them."""
    if isinstance(hint, type) and issubclass(hint, Record):
        return {hint}
    return {found for part in get_args(hint) for found in types(part)}


def hints(stage: Stage[Any, Any]) -> tuple[set[type[Record]], set[type[Record]]]:
    """The record types that a stage's function takes and returns, by its annotations."""
    function = getattr(stage.process, "func", stage.process)
    found = typing.get_type_hints(function)
    return types(found["record"]), types(found["return"])


def carried(topics: tuple[Topic[Any], ...]) -> set[type[Record]]:
    """The record types of some topics."""
    return {cls for topic in topics for cls in topic.carries}


@pytest.mark.parametrize("drawn", TOPOLOGIES)
def test_records_of_topics_have_schemas(drawn: Topology) -> None:
    """Every topic carries records of the contract, each with its schema."""
    for topic in drawn.topics:
        assert topic.carries
        for cls in topic.carries:
            assert cls in RECORDS, topic.name
            assert json.loads((SCHEMAS / f"{cls.__name__}.avsc").read_text("utf-8"))["name"] == cls.__name__


@pytest.mark.parametrize("drawn", TOPOLOGIES)
def test_topic_key_uses_fields_of_all_records(drawn: Topology) -> None:
    """The key of a topic is made of fields that all of its records have."""
    for topic in drawn.topics:
        asked = Asked()
        topic.key(asked)
        for cls in topic.carries:
            assert asked.fields <= set(cls.__struct_fields__), (topic.name, cls.__name__)


@pytest.mark.parametrize("drawn", TOPOLOGIES)
def test_compacted_topic_has_one_writer(drawn: Topology) -> None:
    """A compacted topic has exactly one stage that writes it (law 1), or none if its records come from outside."""
    for topic in drawn.topics:
        if topic.keep == "compact":
            assert len(drawn.writers(topic)) == (topic.name not in FROM_OUTSIDE), topic.name


@pytest.mark.parametrize("drawn", TOPOLOGIES)
def test_every_topic_is_written_and_read(drawn: Topology) -> None:
    """Every topic is written by a stage or from outside, and is read by a stage or public."""
    ticks = {stage.ticks.name for stage in deciding(drawn) if stage.ticks}
    for topic in drawn.topics:
        if topic.name not in ticks:
            assert drawn.writers(topic) or topic.name in FROM_OUTSIDE, topic.name
            assert drawn.readers(topic) or topic.public, topic.name


@pytest.mark.parametrize("drawn", TOPOLOGIES)
def test_functions_match_their_topics(drawn: Topology) -> None:
    """A stage's function takes exactly the records of its input topics, and returns only records of its output topics."""
    for stage in deciding(drawn):
        takes, gives = hints(stage)
        assert takes == carried(stage.inputs) | ({Tick} if stage.ticks else set()), stage.name
        assert gives, stage.name
        assert gives <= carried(stage.outputs), stage.name


def test_essence_matches_its_topics() -> None:
    """The records that essence returns are exactly those of its edge's output topics."""
    edge = topology(TopologySettings()).stage("essence")
    gives = types(typing.get_type_hints(essence.essence)["return"])
    assert gives == carried(edge.outputs)


@pytest.mark.parametrize("drawn", TOPOLOGIES)
def test_each_output_record_type_has_one_topic(drawn: Topology) -> None:
    """No two outputs of a stage carry the same record type, so that the type selects the topic; all may write `rejected`."""
    for stage in drawn.stages:
        outputs = [cls for topic in stage.outputs for cls in topic.carries]
        assert len(outputs) == len(set(outputs)), stage.name
        router = Router(stage, REJECTED)
        assert router.route(Rejected(stage=stage.name, reason="a reason", time=0)).topic == "rejected"


@pytest.mark.parametrize("drawn", TOPOLOGIES)
def test_stage_names_are_unique_and_topics_consistent(drawn: Topology) -> None:
    """Stages have unique names, and topics of one name are equal everywhere."""
    assert len({stage.name for stage in drawn.stages}) == len(drawn.stages)
    for stage in drawn.stages:
        for topic in (*stage.inputs, *stage.outputs):
            assert (topic.carries, topic.keep) == (drawn.topic(topic.name).carries, drawn.topic(topic.name).keep)


@pytest.mark.parametrize("drawn", TOPOLOGIES)
def test_deadlines_have_ticks_and_derived_rows_have_restore(drawn: Topology) -> None:
    """A stage has a topic of ticks if and only if it has deadlines, and a restore function if it has derived rows."""
    for stage in deciding(drawn):
        assert (stage.ticks is None) == (stage.deadline is None)
        assert bool(stage.derived) == (stage.restore is not None)


@pytest.mark.parametrize("partitions", [1, 4])
def test_inputs_of_a_stage_have_equal_partitions(tmp_path: Path, partitions: int) -> None:
    """In the store all inputs of a stage, its ticks included, have equally many partitions (law 7)."""

    async def made() -> tuple[Topology, dict[str, int]]:
        async with Embedded(tmp_path, EmbeddedSettings(partitions=partitions, children=1), lambda _: None) as runner:
            return runner.topology, dict(runner.store.topics())

    drawn, counts = asyncio.run(made())
    assert set(counts) == {topic.name for topic in drawn.topics}
    for stage in drawn.stages:
        ticks = (stage.ticks,) if isinstance(stage, Stage) and stage.ticks else ()
        assert {counts[topic.name] for topic in (*stage.inputs, *ticks)} == {partitions}, stage.name


def test_describe_names_all_stages_and_topics(monkeypatch: pytest.MonkeyPatch) -> None:
    """`harvest describe` names every stage and topic, and the flowchart all but ticks and rejections."""
    # The variable that shares servers between workers of pytest is not a setting.
    monkeypatch.delenv("HARVEST_TEST_SESSION", raising=False)
    drawn = topology(TopologySettings())
    text, chart = (CliRunner().invoke(app, ["describe", *option]).stdout for option in ([], ["--mermaid"]))
    assert (text, chart) == (plain(drawn), mermaid(drawn))
    first = {line.split(maxsplit=1)[0] for line in text.splitlines() if line.strip()}
    assert {*(stage.name for stage in drawn.stages), *(topic.name for topic in drawn.topics)} <= first
    arrows = {line.split("|")[1] for line in chart.splitlines() if "|" in line}
    assert arrows == {t.name for t in drawn.topics if t.name != "rejected" and not t.name.endswith(".ticks")}
    nodes = {line.strip().split("[")[0] for line in chart.splitlines() if "-->" not in line and "[" in line}
    assert nodes >= {stage.name.replace(".", "_") for stage in drawn.stages}


def test_edges_have_kind_and_description() -> None:
    """Each stage that does I/O is an edge of one of three kinds, with a description."""
    assert {stage.kind for stage in topology(TopologySettings()).stages if isinstance(stage, Edge)} == {"fetch", "sandbox", "sink"}
    assert all(stage.says for stage in topology(TopologySettings()).stages if isinstance(stage, Edge))
