"""Kafka cluster settings shared by all clients: names, client settings, one-line errors.

Laws:
- Every client of the brokers is made with the settings of `Cluster.client`, or with credentials for the same `Security`: no other
  module names addresses, protocol, login or certificates.
- The name of a topic or a group on the cluster begins with the prefix; only this module adds it.
- A refused request or an unreachable cluster is a ClusterError of one line.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from confluent_kafka import KafkaError, KafkaException

from streams.kafka.client.security import Security

if TYPE_CHECKING:
    from streams.config.sections import Kafka

TIMEOUT = 30.0
"""Seconds that an administrative request may take."""
REACH = 10.0
"""Seconds that any broker has to answer at all."""
HEARTBEAT = 2.0
"""Upper bound of seconds between two heartbeats: the answer to one announces a rebalance. A short session has several heartbeats.
"""


READER = "reader"
"""Group of clients that read topics for a command. The client requires a group; nothing is committed for it."""
RECOVERY, PROBE = "harvest-recovery", "harvest-witness"
"""The same for the clients of a worker that fill its tables, and that look for lost records."""


def changelog_of(stage: str) -> str:
    """Return the changelog topic of a stage, as Faust names it, without the prefix."""
    return f"{stage}-rows-changelog"


def identity_group(stage: str) -> str:
    """Return the group, without the prefix, that stores the ids of a stage's topics (`topic_identity.py`)."""
    return f"{stage}.topics"


class ClusterError(Exception):
    """The cluster cannot be reached, or refuses a request; the text is one line."""

    refused = False
    """Whether the ACLs do not allow the request."""


class Cluster(NamedTuple):
    """Address, security and layout of a cluster.

    `brokers`: host:port, separated by commas; `further`: other settings of librdkafka, by name.
    """

    brokers: str
    prefix: str = ""
    partitions: int = 12
    replication: int = 1
    registry: str = ""
    register: bool = True
    security: Security = Security()
    further: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, settings: Kafka) -> Cluster:
        """Return the cluster of the settings."""
        return cls(
            ",".join(settings.brokers),
            settings.prefix,
            settings.partitions,
            settings.replication,
            settings.registry,
            settings.register,
            Security.of(settings.security),
            tuple(settings.client.items()),
        )

    def topic(self, name: str) -> str:
        """Return the name of a topic on the cluster."""
        return self.prefix + name

    def group(self, stage: str) -> str:
        """Return the consumer group of a stage."""
        return self.prefix + stage

    def changelog(self, stage: str) -> str:
        """Return the name on the cluster of a stage's changelog, as Faust names it."""
        return self.prefix + changelog_of(stage)

    def client(self, **more: Any) -> dict[str, Any]:
        """Return settings of a confluent-kafka client, with `__` for each dot. The client logs nothing; its caller does."""
        given = {name.replace("__", "."): value for name, value in more.items()}
        return {"log_level": 0, **given, **self.connection()}

    def connection(self) -> dict[str, Any]:
        """Return the settings of the connection alone; they contain secrets."""
        return {"bootstrap.servers": self.brokers, "client.id": "harvest", **dict(self.further), **self.security.confluent()}

    def named(self, instance: str = "") -> dict[str, str]:
        """Return the client id of a worker, by which `harvest topics members` names it; nothing if `kafka.client` has one."""
        return {} if "client.id" in dict(self.further) else {"client.id": member_name(instance)}


def member_name(instance: str = "") -> str:
    """Return the name of this worker: its instance, or else the machine and the process."""
    return instance or re.sub(r"[^A-Za-z0-9._-]", "-", f"{socket.gethostname()}-{os.getpid()}")


REFUSED = frozenset(
    {
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    }
)
"""Error codes of requests that the ACLs of the cluster do not allow."""


def heartbeat(session: float) -> float:
    """Return the seconds between two heartbeats for a session of this many seconds."""
    return min(session / 5, HEARTBEAT)


def membership(session: float, instance: str = "") -> dict[str, Any]:
    """Return the session settings of a confluent-kafka consumer; a non-empty `instance` makes it a static member."""
    times = {"session.timeout.ms": int(session * 1_000), "heartbeat.interval.ms": int(heartbeat(session) * 1_000)}
    return times | ({"group.instance.id": instance} if instance else {})


TAKEN = "another worker has taken the name of this one (worker.instance), or its session was over"
FENCED = "group.instance.id"
"""Text in the client's error when another member took over the instance id; the error code says only that it is fatal."""


@contextmanager
def cluster_errors(cluster: Cluster) -> Iterator[None]:
    """Convert a KafkaException raised inside the block to a ClusterError."""
    try:
        yield
    except KafkaException as error:
        raise cluster_error(cluster, error.args[0]) from error


def cluster_error(cluster: Cluster, error: Any) -> ClusterError:
    """Return the ClusterError for a KafkaError."""
    made = ClusterError(sentence(cluster, error))
    made.refused = isinstance(error, KafkaError) and error.code() in REFUSED
    return made


def is_refusal(error: BaseException) -> bool:
    """Return whether a ClusterError or a KafkaException says that the ACLs do not allow a request; False for all others."""
    if isinstance(error, KafkaException):
        return isinstance(error.args[0], KafkaError) and error.args[0].code() in REFUSED
    return isinstance(error, ClusterError) and error.refused


def sentence(cluster: Cluster, error: Any) -> str:
    """Return the text of a KafkaError in one line."""
    if isinstance(error, KafkaError) and FENCED in error.str():
        return TAKEN
    silent = {KafkaError._TRANSPORT, KafkaError._TIMED_OUT, KafkaError._ALL_BROKERS_DOWN, KafkaError._RESOLVE}  # noqa: SLF001
    if not isinstance(error, KafkaError):
        return str(error).splitlines()[0]
    if error.code() in REFUSED:
        who = f" to {cluster.security.name}" if cluster.security.name else ""
        return f"{cluster.brokers}: the ACLs refuse this{who}: {error.str()} (streams/kafka/README.md lists what is needed)"
    if advice := cluster.security.advice([error]):
        return f"{cluster.brokers}: {advice}"
    return f"{cluster.brokers}: no broker of Kafka answers" if error.code() in silent else f"{cluster.brokers}: {error.str()}"
