"""Drawings of the topology in plain text and Mermaid, from the value that the runners execute.

Each line is an output: a stage, the topic that it writes, and the stages that read that topic.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from streams.topology.flow import Edge, Stage, Topology

SHAPES = {"fetch": ("[/", "/]"), "sandbox": ("[[", "]]"), "sink": ("[(", ")]")}
"""Mermaid shapes by kind of edge; a deciding stage is a box."""


def plain(found: Topology) -> str:
    """Return the stages in flow order with their inputs, outputs and tables, then the topics."""
    return "\n".join([*_stages(found), "", *_topics(found), ""])


def _stages(drawn: Topology) -> Iterator[str]:
    for stage in drawn.stages:
        what = f"decides; rows: {stage.rows}" if isinstance(stage, Stage) else f"{stage.kind}; {stage.says}"
        inputs, outputs = ", ".join(t.name for t in stage.inputs), ", ".join(t.name for t in stage.outputs)
        yield f"{stage.name:<15} {inputs} -> {outputs or ('the index' if stage.name.startswith('index.') else 'the stream')}"
        yield f"{'':<15} {what}{'; ticks' if isinstance(stage, Stage) and stage.ticks else ''}"


def _topics(drawn: Topology) -> Iterator[str]:
    for topic in drawn.topics:
        carries = ", ".join(cls.__name__ for cls in topic.carries)
        public = ", public" if topic.public else ""
        yield f"{topic.name:<22} {carries} ({topic.keep}{public}): {topic.says}"


def mermaid(found: Topology) -> str:
    """Return the topology as a Mermaid flowchart: stages are nodes, topics are arrows; every stage may write `rejected`."""
    roots = ["  roots([roots]) -->|crawl| frontier"] if any(stage.name == "frontier" for stage in found.stages) else []
    lines = ["flowchart LR", *roots, *_from_outside(found)]
    lines += [f"  {_node(stage)}" for stage in found.stages]
    lines += list(_arrows(found))
    return "\n".join([*lines, ""])


def _from_outside(drawn: Topology) -> Iterator[str]:
    """Yield the arrows of the topics that no stage writes."""
    ticks = {stage.ticks.name for stage in drawn.stages if isinstance(stage, Stage) and stage.ticks}
    for topic in drawn.topics:
        if topic.name not in ticks and not drawn.writers(topic):
            # Public topics are written by stages, which are not in the drawing of one Broker.
            source = f"{_id(topic.name)}([{topic.name}])" if topic.public else "people([people])"
            for reader in drawn.readers(topic):
                yield f"  {source} -->|{topic.name}| {_id(reader)}"


def _node(stage: Stage[Any, Any] | Edge[Any, Any]) -> str:
    opening, closing = SHAPES[stage.kind] if isinstance(stage, Edge) else ("[", "]")
    return f"{_id(stage.name)}{opening}{stage.name}{closing}"


def _arrows(drawn: Topology) -> Iterator[str]:
    for stage in drawn.stages:
        for topic in stage.outputs:
            if topic.name == "rejected":
                continue
            readers = [_id(name) for name in drawn.readers(topic)]
            for reader in readers or [f"{_id(topic.name)}([{topic.name}])"]:
                yield f"  {_id(stage.name)} -->|{topic.name}| {reader}"


def _id(name: str) -> str:
    return name.replace(".", "_")
