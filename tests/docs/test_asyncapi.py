"""The description of the public topics matches the code and is valid AsyncAPI 3."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import pytest

from processors.broker.definition import Broker
from streams.kafka.client.brokers import written_topics
from streams.topology import asyncapi
from streams.topology.flow import TopologySettings, topology

ANEW = "run `python -m streams.topology.asyncapi` and commit what it wrote"


@pytest.fixture(scope="module")
def description(root: Path) -> dict[str, Any]:
    """The AsyncAPI document."""
    found: dict[str, Any] = json.loads((root / "schemas" / asyncapi.FILE).read_text("utf-8"))
    return found


def test_file_equals_the_generated_description(root: Path) -> None:
    """The file equals the description generated from the topology and the schemas."""
    assert (root / "schemas" / asyncapi.FILE).read_text("utf-8") == asyncapi.text(), ANEW


THREE = (Broker(), Broker("pages", "type:HTML"), Broker("few", "title:whale", sources=("broker:pages",)))


@pytest.mark.parametrize("brokers", [(Broker(),), THREE], ids=["main", "three"])
def test_every_public_topic_is_described(brokers: tuple[Broker, ...]) -> None:
    """Each public topic, of each Broker too, is a channel with a message for each of its record types, and with its retention."""
    drawn = topology(TopologySettings(brokers=brokers))
    description = asyncapi.document(drawn)
    public = {topic.name: topic for topic in drawn.topics if topic.public}
    assert public.keys() >= {f"broker.{broker.name}" for broker in brokers}
    channels = {channel["address"]: channel for channel in description["channels"].values()}
    assert set(channels) == set(public)
    for name, topic in public.items():
        assert set(channels[name]["messages"]) == {cls.__name__ for cls in topic.carries}
        kept = channels[name]["bindings"]["kafka"]["topicConfiguration"]
        assert kept["cleanup.policy"] == ["compact" if topic.keep == "compact" else "delete"]
        assert (kept.get("retention.ms") == -1) == (topic.keep == "always")


@pytest.mark.parametrize("brokers", [(Broker(),), THREE], ids=["main", "three"])
def test_description_is_valid_asyncapi(brokers: tuple[Broker, ...]) -> None:
    """A model of AsyncAPI 3 and its Kafka bindings accepts every field, and rejects an unknown one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        from asyncapi3.models.asyncapi import AsyncAPI3  # type: ignore[import-untyped]

    description = asyncapi.document(topology(TopologySettings(brokers=brokers)))
    model = AsyncAPI3.model_validate(description)
    assert model.model_dump(by_alias=True, exclude_none=True, mode="json") == description
    wrong = {**description, "channels": {"x": {**description["channels"]["summaries"], "adress": "x"}}}
    with pytest.raises(ValueError, match="adress"):
        AsyncAPI3.model_validate(wrong)


def test_references_resolve(description: dict[str, Any]) -> None:
    """Each reference resolves to a part of the document."""

    def references(node: Any) -> list[str]:
        if isinstance(node, dict):
            own = [node["$ref"]] if isinstance(node.get("$ref"), str) else []
            return own + [found for value in node.values() for found in references(value)]
        return [found for value in node for found in references(value)] if isinstance(node, list) else []

    found = references(description)
    assert found
    for reference in found:
        node: Any = description
        for step in reference.removeprefix("#/").split("/"):
            node = node[step]


def test_readme_and_description_name_the_same_writers(root: Path, description: dict[str, Any]) -> None:
    """The README's table of topics and the description name the same writers of each public topic."""
    rows = [[cell.strip() for cell in row.split("|")] for row in (root / "schemas" / "README.md").read_text("utf-8").splitlines()]
    table = {row[1].split("`")[1]: row[4] for row in rows if len(row) == 8 and row[1].endswith("(public)")}
    written = {operation["channel"]["$ref"]: operation["summary"] for operation in description["operations"].values()}
    assert table
    assert {f"#/channels/{name.replace('.', '-')}": f"Written by {writers}." for name, writers in table.items()} == written


def test_every_stage_writes_rejections() -> None:
    """Every stage is a writer of `rejected` in the topology, and has the right to write it on a cluster."""
    drawn = topology(TopologySettings())
    assert drawn.writers(drawn.topic("rejected")) == tuple(stage.name for stage in drawn.stages)
    for stage in drawn.stages:
        assert written_topics(stage).count("rejected") == 1, stage.name
