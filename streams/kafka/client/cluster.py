"""A Kafka cluster as every client of ours sees it: names, settings of clients, and what went wrong in one line.

Laws:
- The name of a topic or a group on the cluster begins with the prefix; nothing but this module puts it there.
- What the cluster refuses, or that it cannot be reached, is a ClusterError of one line.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from confluent_kafka import KafkaError, KafkaException

if TYPE_CHECKING:
    from streams.config.sections import Kafka

TIMEOUT = 30.0
"""Seconds that an administrative request may take."""
REACH = 10.0
"""Seconds in which a broker must answer at all."""
HEARTBEAT = 2.0
"""Seconds between two signs of life at the most: with them comes the word that a group changes. A short session has several."""


def changelog_of(stage: str) -> str:
    """The topic that holds the rows of a stage, as Faust names it, without the prefix."""
    return f"{stage}-rows-changelog"


class ClusterError(Exception):
    """The cluster cannot be reached, or refuses: told in one line."""


class Cluster(NamedTuple):
    """Where the topics are. `brokers`: host:port, parted by commas."""

    brokers: str
    prefix: str = ""
    partitions: int = 12
    replication: int = 1
    registry: str = ""
    register: bool = True

    @classmethod
    def of(cls, settings: Kafka) -> Cluster:
        """The cluster of the settings."""
        brokers = ",".join(settings.brokers)
        fields = {name: getattr(settings, name) for name in cls._fields if name != "brokers"}
        return cls(brokers, **fields)

    def topic(self, name: str) -> str:
        """The name that a topic has on the cluster."""
        return self.prefix + name

    def group(self, stage: str) -> str:
        """The consumer group of a stage."""
        return self.prefix + stage

    def changelog(self, stage: str) -> str:
        """The topic on the cluster that holds the rows of a stage, as Faust names it."""
        return self.prefix + changelog_of(stage)

    def client(self, **more: Any) -> dict[str, Any]:
        """Settings of a client of confluent-kafka, `__` for each point; the client itself says nothing: its caller does."""
        given = {name.replace("__", "."): value for name, value in more.items()}
        return {"bootstrap.servers": self.brokers, "client.id": "harvest", "log_level": 0, **given}


def heartbeat(session: float) -> float:
    """Seconds between two signs of life of a member whose session lasts for so many."""
    return min(session / 5, HEARTBEAT)


def membership(session: float, instance: str = "") -> dict[str, Any]:
    """What a consumer of confluent-kafka is told of its place in its group; with a name for `instance` it is a static member."""
    times = {"session.timeout.ms": int(session * 1_000), "heartbeat.interval.ms": int(heartbeat(session) * 1_000)}
    return times | ({"group.instance.id": instance} if instance else {})


TAKEN = "another worker has taken the name of this one (worker.instance), or its session was over"
FENCED = "group.instance.id"
"""In what confluent-kafka says where the name of a member was given to another; its code says only that it is fatal."""


@contextmanager
def told(cluster: Cluster) -> Iterator[None]:
    """Inside the block, what the client raises becomes a ClusterError."""
    try:
        yield
    except KafkaException as error:
        raise ClusterError(sentence(cluster, error.args[0])) from error


def sentence(cluster: Cluster, error: Any) -> str:
    """What a KafkaError says, in one line."""
    if isinstance(error, KafkaError) and FENCED in error.str():
        return TAKEN
    silent = {KafkaError._TRANSPORT, KafkaError._TIMED_OUT, KafkaError._ALL_BROKERS_DOWN, KafkaError._RESOLVE}  # noqa: SLF001
    if not isinstance(error, KafkaError):
        return str(error).splitlines()[0]
    return f"{cluster.brokers}: no broker of Kafka answers" if error.code() in silent else f"{cluster.brokers}: {error.str()}"
