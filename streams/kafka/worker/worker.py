"""Worker: runs one stage in this process until a signal.

Strategy: the kind of a stage selects its runner (`RUNNERS`): a `Stage` is a Faust agent, an `Edge` of kind "fetch", "sandbox" or
"sink" a plain consumer. Only modules that the stage needs are imported.

A runner blocks until SIGTERM or SIGINT, and then leaves in order, which ends the process. Any other end exits with 1.
"""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from processors.essence.stage import EssenceSettings
from processors.query.forms import DEFAULT_LANGUAGES
from schemas.wire import Wire
from sinks.index.opensearch.server import Server
from streams.edges.extensions import Extensions
from streams.fetch import FetchSettings
from streams.kafka.client.brokers import partitions
from streams.kafka.client.cluster import Cluster, is_refusal
from streams.kafka.client.registry import wire
from streams.kafka.client.security import Security
from streams.kafka.client.topic_identity import TopicWatch
from streams.kafka.worker.holding import LATELY, hold_refused, refusal
from streams.kafka.worker.stopping import end_process
from streams.kafka.worker.telemetry import PartitionId, WorkerTelemetry
from streams.kafka.worker.watchdog import Watchdog
from streams.sandbox.values import SandboxLimits
from streams.store import BodyStore, open_bodies
from streams.store.object_storage import BlobSettings
from streams.telemetry import Health, Logs, Metrics
from streams.topology.flow import Edge, Stage, Topology, TopologySettings, topology

COMMIT = 1.0
"""Seconds between two commits: records finished since the last one are repeated after a kill."""
SESSION = 10.0
"""Seconds without a heartbeat after which a worker's partitions are reassigned."""


class WorkerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of a worker."""

    brokers: tuple[str, ...]
    prefix: str = ""
    registry: str = ""
    """URL of a Schema Registry; `register` says whether missing schemas are registered."""
    register: bool = True
    security: Security = Security()
    further: tuple[tuple[str, str], ...] = ()
    """Further settings of librdkafka, as in `kafka.client`."""
    index_url: str | Server = ""
    index_name: str = "harvest"
    """Location of the index, as in the settings `index.url` and `index.name`."""
    index_timeout: float = 10.0
    """Seconds without an answer of the index after which the worker is not ready."""
    folder: Path
    """The data folder, with tables, and with bodies unless they are in object storage: then no other worker must see it."""
    blobs: BlobSettings = BlobSettings()
    retention: float = 604_800.0
    """Seconds after which Kafka deletes records, for the metrics."""
    stall: float = 60.0
    children: int = 2
    commit: float = COMMIT
    session: float = SESSION
    instance: str = ""
    """Instance id in each group, kept across restarts (static membership); empty: none."""
    fetch: FetchSettings = FetchSettings()
    essence: EssenceSettings = EssenceSettings(gatherer="localhost")
    own: Extensions = Extensions()
    """The operator's extensions of essence."""
    flow: TopologySettings = TopologySettings()
    """The frontier, and the Brokers."""
    languages: tuple[str, ...] = DEFAULT_LANGUAGES
    """Languages whose words are found in all their forms."""
    limits: SandboxLimits = SandboxLimits()

    @property
    def cluster(self) -> Cluster:
        """The cluster, for administration and sinks."""
        return Cluster(
            ",".join(self.brokers),
            self.prefix,
            registry=self.registry,
            register=self.register,
            security=self.security,
            further=self.further,
        )


class Context(msgspec.Struct, frozen=True, dict=True):
    """Arguments of a runner: its stage, the settings, and the partition count of the stage's topics."""

    stage: Stage[Any, Any] | Edge[Any, Any]
    settings: WorkerSettings
    partitions: int
    telling: WorkerTelemetry

    @property
    def brokers(self) -> str:
        """The brokers as clients expect them: host:port, separated by commas."""
        return ",".join(self.settings.brokers)

    @property
    def cluster(self) -> Cluster:
        """The cluster, for administration and sinks."""
        return self.settings.cluster

    @cached_property
    def wire(self) -> Wire:
        """The wire format of values in topics."""
        return wire(self.cluster, worker_topology(self.settings).topics)

    def bodies(self) -> BodyStore:
        """Open the store of bodies, whose trouble makes this worker not ready. Raises StoreError, OSError."""
        found = open_bodies(self.settings.folder, self.settings.blobs, max_body=self.settings.fetch.largest)
        self.telling.needs("bodies", lambda: found.trouble)
        return found

    @property
    def group(self) -> str:
        """The consumer group of the stage."""
        return self.cluster.group(self.stage.name)

    @property
    def places(self) -> list[PartitionId]:
        """All partitions that the group reads, by the names of their topics on the broker."""
        ticks = self.stage.ticks if isinstance(self.stage, Stage) else None
        topics = (*self.stage.inputs, *((ticks,) if ticks else ()))
        return [(self.cluster.topic(topic.name), partition) for topic in topics for partition in range(self.partitions)]

    @property
    def tables(self) -> Path:
        """The folder of the stage's tables; further workers on this machine use folders beside it."""
        return self.settings.folder / "tables" / self.stage.name

    def watch(self, mine: Callable[[], Iterable[PartitionId]], excused: Callable[[], Iterable[PartitionId]]) -> None:
        """Start a watchdog, which ends this process if its partitions stand still without excuse, or if its topics change."""
        end, looked = self.telling.end, self.telling.looked
        changed = TopicWatch(self.cluster, self.stage)
        places = lambda: self.places  # noqa: E731 - named for the line below
        stall = self.settings.stall
        Watchdog(self.cluster, self.group, stall, mine, excused, end, looked, places, changed, self.is_refused).start()

    def refusal(self) -> str:
        """Return why the cluster refuses this worker; "": it does not."""
        return refusal(self.cluster, self.stage)

    def is_refused(self) -> bool:
        """Whether the cluster refuses this worker, which is then not ready."""
        reason = self.refusal()
        self.telling.hold(reason)
        return bool(reason)

    def hold(self, *, refused: bool = False) -> None:
        """Hold a worker that failed because the cluster refuses it, and start it again; else, or if it is to stop, return.

        `refused`: the failure itself is a refusal, though the cluster may accept the worker again by now.
        """
        if self.telling.stopping():
            return
        lately = refused or time.monotonic() - self.telling.refused_at < LATELY
        hold_refused(self.refusal, self.telling.hold, self.telling.logs.say, lately=lately)


Runner = Callable[[Context], None]


def worker_topology(settings: WorkerSettings) -> Topology:
    """Return the topology that workers run."""
    return topology(settings.flow)


def runner_key(stage: Stage[Any, Any] | Edge[Any, Any]) -> str:
    """Return the key of a stage's runner in `RUNNERS`."""
    return stage.kind if isinstance(stage, Edge) else "decide"


def runnable_stages(drawn: Topology) -> tuple[str, ...]:
    """Return the names of all stages that have a runner, in flow order."""
    return tuple(stage.name for stage in drawn.stages if runner_key(stage) in RUNNERS)


def run_stage(
    name: str, settings: WorkerSettings, health: Health | None = None, metrics: Metrics | None = None, logs: Logs | None = None
) -> None:
    """Run a stage until a signal, which ends the process; it reports to `health`, `metrics`, `logs`.

    Raises BrokerError, KeyError, OSError.
    """
    stage = worker_topology(settings).stage(name)
    said = health or Health(), metrics or Metrics(), logs or Logs(sys.stderr)
    telling = WorkerTelemetry(stage.name, settings.prefix, settings.stall, *said)
    telling.retains((topic.name for topic in stage.inputs if topic.keep == "delete"), settings.retention)
    context = Context(stage, settings, partitions(settings.cluster, stage), telling)
    module, _, function = RUNNERS[runner_key(stage)].partition(":")
    runner: Runner = getattr(importlib.import_module(module), function)
    telling.refused = context.hold
    try:
        runner(context)
    except (Exception, SystemExit) as error:
        context.hold(refused=is_refusal(error))
        raise
    if telling.stopping():
        end_process()


RUNNERS: Mapping[str, str] = {
    "decide": "streams.kafka.decide.run_agent:run_agent",
    "fetch": "streams.kafka.edge.run_edge:run_fetch",
    "sandbox": "streams.kafka.edge.run_edge:run_essence",
    "sink": "streams.kafka.sink.run_sink:run_sink",
}
"""Module and function of the runner, by kind of stage."""
