"""A worker: one stage in this process, until it is told to stop.

Strategy: a stage name leads to a runner by what the stage is (`RUNNERS`): a `Stage` is an agent of Faust's, an `Edge` of kind
"fetch", "sandbox" or "sink" a plain consumer. Nothing is imported that the stage does not need.

A runner blocks until SIGTERM or SIGINT, and then leaves in order. Whatever else ends it ends the process with 1.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from processors.essence.stage import EssenceSettings
from schemas.wire import Wire
from streams.edges.extensions import Own
from streams.fetch import FetchSettings
from streams.kafka.client.brokers import partitions
from streams.kafka.client.cluster import Cluster
from streams.kafka.client.registry import wire
from streams.kafka.worker.telemetry import PartitionId, Telling
from streams.kafka.worker.watchdog import Watchdog
from streams.sandbox.values import SandboxLimits
from streams.telemetry import Health, Logs, Metrics
from streams.topology.flow import Edge, Stage, Topology, TopologySettings, topology

COMMIT = 1.0
"""Seconds between two commits: what a killed worker had done since is done again."""
SESSION = 10.0
"""Seconds without a sign of life after which a worker's partitions are given to others."""


class WorkerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker may be told."""

    brokers: tuple[str, ...]
    prefix: str = ""
    registry: str = ""
    """URL of a Schema Registry, and whether schemas that it does not have are registered."""
    register: bool = True
    index_url: str = ""
    index_name: str = "harvest"
    """Where the index is, as the settings `index.url` and `index.name` say it."""
    folder: Path
    """The data folder: bodies, which all workers see, and tables."""
    stall: float = 60.0
    children: int = 2
    commit: float = COMMIT
    session: float = SESSION
    instance: str = ""
    """The name that it keeps from start to start, in each group (static membership); empty: none."""
    fetch: FetchSettings = FetchSettings()
    essence: EssenceSettings = EssenceSettings(gatherer="localhost")
    own: Own = Own()
    """What the operator adds to essence."""
    flow: TopologySettings = TopologySettings()
    """The frontier, and the Brokers."""
    limits: SandboxLimits = SandboxLimits()

    @property
    def cluster(self) -> Cluster:
        """The cluster, as administration and sinks have it."""
        return Cluster(",".join(self.brokers), self.prefix, registry=self.registry, register=self.register)


class Context(msgspec.Struct, frozen=True, dict=True):
    """What a runner gets: its stage, the settings, and how many partitions the broker has for it."""

    stage: Stage[Any, Any] | Edge[Any, Any]
    settings: WorkerSettings
    partitions: int
    telling: Telling

    @property
    def brokers(self) -> str:
        """The brokers, as clients take them."""
        return ",".join(self.settings.brokers)

    @property
    def cluster(self) -> Cluster:
        """The cluster, as administration and sinks have it."""
        return self.settings.cluster

    @cached_property
    def wire(self) -> Wire:
        """How values stand in topics."""
        return wire(self.cluster, declared(self.settings).topics)

    @property
    def group(self) -> str:
        """The consumer group of the stage."""
        return self.cluster.group(self.stage.name)

    @property
    def places(self) -> list[PartitionId]:
        """All partitions that the group reads, by their topics on the broker."""
        ticks = self.stage.ticks if isinstance(self.stage, Stage) else None
        topics = (*self.stage.inputs, *((ticks,) if ticks else ()))
        return [(self.cluster.topic(topic.name), partition) for topic in topics for partition in range(self.partitions)]

    @property
    def tables(self) -> Path:
        """The folder of the stage's tables; those of further workers on this machine are beside it."""
        return self.settings.folder / "tables" / self.stage.name

    def watch(self, mine: Callable[[], Iterable[PartitionId]], excused: Callable[[], Iterable[PartitionId]]) -> None:
        """Have a watchdog end this process where partitions that it has stand still, but for those that are excused."""
        told = self.telling.end, self.telling.looked
        Watchdog(self.brokers, self.group, self.settings.stall, mine, excused, *told, lambda: self.places).start()


Runner = Callable[[Context], None]


def declared(settings: WorkerSettings) -> Topology:
    """The topology that workers run."""
    return topology(settings.flow)


def kind(stage: Stage[Any, Any] | Edge[Any, Any]) -> str:
    """Which runner a stage takes."""
    return stage.kind if isinstance(stage, Edge) else "decides"


def served(declared: Topology) -> tuple[str, ...]:
    """The names of all stages that there is a runner for, in flow order."""
    return tuple(stage.name for stage in declared.stages if kind(stage) in RUNNERS)


def work(
    name: str, settings: WorkerSettings, health: Health | None = None, metrics: Metrics | None = None, logs: Logs | None = None
) -> None:
    """Run a stage until a signal comes. What it says of itself it says there. Raises BrokerError, KeyError, OSError."""
    stage = declared(settings).stage(name)
    said = health or Health(), metrics or Metrics(), logs or Logs(sys.stderr)
    telling = Telling(stage.name, settings.prefix, settings.stall, *said)
    context = Context(stage, settings, partitions(settings.brokers, settings.prefix, stage), telling)
    module, _, function = RUNNERS[kind(stage)].partition(":")
    runner: Runner = getattr(importlib.import_module(module), function)
    runner(context)


RUNNERS: Mapping[str, str] = {
    "decides": "streams.kafka.decide.run_agent:decides",
    "fetch": "streams.kafka.edge.run_edge:fetches",
    "sandbox": "streams.kafka.edge.run_edge:parses",
    "sink": "streams.kafka.sink.run_sink:indexes",
}
"""What runs a stage, by what it is: module and function."""
