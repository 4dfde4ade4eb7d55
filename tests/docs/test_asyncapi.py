"""The description of the public topics is what the code gives, and what AsyncAPI 3 allows."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import pytest

from streams.topology import asyncapi
from streams.topology.flow import TopologySettings, topology

ANEW = "run `python -m streams.topology.asyncapi` and commit what it wrote"


@pytest.fixture(scope="module")
def description(root: Path) -> dict[str, Any]:
    """The file."""
    found: dict[str, Any] = json.loads((root / "schemas" / asyncapi.FILE).read_text("utf-8"))
    return found


def test_not_stale(root: Path) -> None:
    """The file is the one that the topology and the schemas give."""
    assert (root / "schemas" / asyncapi.FILE).read_text("utf-8") == asyncapi.text(), ANEW


def test_every_public_topic(description: dict[str, Any]) -> None:
    """Each public topic is a channel, with a message for each record that it carries, its key and how long it is kept."""
    public = {topic.name: topic for topic in topology(TopologySettings()).topics if topic.public}
    channels = {channel["address"]: channel for channel in description["channels"].values()}
    assert set(channels) == set(public)
    for name, topic in public.items():
        assert set(channels[name]["messages"]) == {cls.__name__ for cls in topic.carries}
        kept = channels[name]["bindings"]["kafka"]["topicConfiguration"]
        assert kept["cleanup.policy"] == ["compact" if topic.keep == "compact" else "delete"]
        assert (kept.get("retention.ms") == -1) == (topic.keep == "always")


def test_asyncapi_allows_it(description: dict[str, Any]) -> None:
    """A model of AsyncAPI 3 and its Kafka bindings takes every field, and refuses one that is none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        from asyncapi3.models.asyncapi import AsyncAPI3  # type: ignore[import-untyped]

    model = AsyncAPI3.model_validate(description)
    assert model.model_dump(by_alias=True, exclude_none=True, mode="json") == description
    wrong = {**description, "channels": {"x": {**description["channels"]["summaries"], "adress": "x"}}}
    with pytest.raises(ValueError, match="adress"):
        AsyncAPI3.model_validate(wrong)


def test_references_lead_somewhere(description: dict[str, Any]) -> None:
    """Each reference names a part of the document."""

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
