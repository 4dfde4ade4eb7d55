"""Fixtures of the distributed runner's tests: worker processes, and a test's view of the broker."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from typer.testing import CliRunner, Result

from streams.cli.app import app
from streams.kafka.client.brokers import retry_coordinator
from streams.kafka.client.cluster import Cluster
from streams.kafka.client.producer import PARTITIONER
from streams.sandbox.seal import die_with
from tests.servers.fixtures import TIMEOUT, Topics
from tests.streams.kafka.worker import Task


class Worker:
    """A running Faust worker process."""

    def __init__(self, task: Task, root: Path, log: Path) -> None:
        self.task = task
        command = [sys.executable, "-m", "tests.streams.kafka.worker", msgspec.json.encode(task).decode()]
        with log.open("ab") as errors:
            self.process = subprocess.Popen(
                command,
                cwd=root,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                preexec_fn=partial(die_with, os.getpid()),  # noqa: PLW1509 - the call that it makes is safe
            )

    def until(self, word: str, times: int = 1) -> str:
        """Wait for the worker to print a word this many times; returns the last such line. Raises EOFError if it ended before."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            times -= word in line
            if times == 0:
                return line
        raise EOFError(f"the worker ended without saying {word}")

    def stop(self) -> None:
        """Stop the worker in order, by SIGTERM."""
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait() == 0

    def died(self) -> bool:
        """Wait for the worker's end; returns whether it was killed by SIGKILL."""
        return self.process.wait() == -signal.SIGKILL

    def kill(self) -> None:
        """Kill the worker at once."""
        self.process.kill()
        self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()


class Broker:
    """A test's access to the broker."""

    def __init__(self, address: str, topics: Topics) -> None:
        self.address = address
        self.topics = topics
        self.producer: Producer | None = None

    def client(self, group: str) -> Consumer:
        """A consumer that commits no offsets and reads all records, those of open and aborted transactions too."""
        settings = {"bootstrap.servers": self.address, "group.id": group, "enable.auto.commit": False, "log_level": 0}
        settings |= {"isolation.level": "read_uncommitted", "enable.partition.eof": True, "reconnect.backoff.max.ms": 1_000}
        return Consumer(settings)

    def fill(self, topic: str, records: Mapping[bytes, bytes]) -> None:
        """Append a record for each key, and wait for the acknowledgments."""
        self.append(topic, records.items())

    def append(self, topic: str, records: Iterable[tuple[bytes, bytes]], partition: int = -1, headers: Any = None) -> None:
        """Append records, to the partitions of their keys or to one given partition, and wait for the acknowledgments."""
        if self.producer is None:
            self.producer = Producer({"bootstrap.servers": self.address, "acks": "all", "log_level": 0, **PARTITIONER})
        for key, value in records:
            self.producer.produce(topic, value, key, partition, headers=headers or [])
        assert self.producer.flush(TIMEOUT) == 0

    @contextmanager
    def transaction(self, *, keep: bool = True) -> Iterator[Producer]:
        """A foreign transaction, committed or aborted: its records are followed by a marker, which no consumer ever receives."""
        settings = {"bootstrap.servers": self.address, "transactional.id": self.topics.prefix, "log_level": 0, **PARTITIONER}
        producer = Producer(settings)
        producer.init_transactions(TIMEOUT)
        producer.begin_transaction()
        yield producer
        assert producer.flush(TIMEOUT) == 0
        (producer.commit_transaction if keep else producer.abort_transaction)(TIMEOUT)

    def committed(self, group: str, topic: str, partition: int = 0) -> int:
        """The offset that a group has committed; 0 if none."""
        client = self.client(group)
        try:
            (found,) = retry_coordinator(lambda: client.committed([TopicPartition(topic, partition)], timeout=TIMEOUT))
            return max(0, found.offset)
        finally:
            client.close()

    def lag(self, group: str, topic: str, partitions: int) -> int:
        """The number of records that a group has yet to commit."""
        client = self.client(group)
        try:
            places = [TopicPartition(topic, partition) for partition in range(partitions)]
            ends = [client.get_watermark_offsets(place, timeout=TIMEOUT)[1] for place in places]
            return sum(ends) - sum(
                max(0, place.offset) for place in retry_coordinator(lambda: client.committed(places, timeout=TIMEOUT))
            )
        finally:
            client.close()

    def read(self, topic: str, partitions: int = 1, first: int = 0) -> list[tuple[bytes, bytes | None]]:
        """All records of a topic, from partition `first` on, each up to the end-of-partition event; other errors are no end."""
        found = []
        client = self.client(f"{topic}-reader")
        try:
            for partition in range(first, partitions):
                client.assign([TopicPartition(topic, partition, 0)])
                while (message := client.poll(TIMEOUT)) is not None:
                    error = message.error()
                    if error is None:
                        found.append((message.key() or b"", message.value()))
                    elif error.code() == KafkaError._PARTITION_EOF:
                        break
                assert message is not None, f"{topic} has no end"
        finally:
            client.close()
        return found


Start = Callable[..., Worker]
Run = Callable[..., Result]


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make commands in this process wait as long for a broker as the tests do."""
    monkeypatch.setattr("streams.kafka.client.admin.REACH", TIMEOUT)
    monkeypatch.setattr("streams.kafka.client.brokers.TIMEOUT", TIMEOUT)


@pytest.fixture
def broker(kafka: str, topics: Topics) -> Broker:
    """The broker, as the tests use it."""
    return Broker(kafka, topics)


@pytest.fixture
def start(kafka: str, topics: Topics, root: Path, tmp_path: Path) -> Iterator[Start]:
    """A function that starts a worker in the test's own group; all workers end with the test."""
    workers: list[Worker] = []

    def started(topic: str, does: str, count: int, **more: Any) -> Worker:
        folder = str(tmp_path / "worker")
        task = Task(kafka, f"{topics.prefix}-app", topic, folder, does, count, **more)
        if not workers:
            # Faust would create it, and if it asked a moment too early would find no partitions in it: records read then are lost.
            topics.make("app-rows-changelog", task.partitions, {"cleanup.policy": "compact"})
        workers.append(Worker(task, root, tmp_path / "worker.log"))
        return workers[-1]

    yield started
    for worker in workers:
        worker.kill()


@pytest.fixture
def cluster(kafka: str, topics: Topics) -> Cluster:
    """The broker under a topic prefix of the test's own; its topics are deleted with the test."""
    return Cluster(kafka, f"{topics.prefix}-", partitions=2)


@pytest.fixture
def harvest(cluster: Cluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Runs the `harvest` program, configured for the cluster."""
    monkeypatch.chdir(tmp_path)
    for variable in [name for name in os.environ if name.startswith("HARVEST_")]:
        monkeypatch.delenv(variable)
    for name, value in {"BROKERS": cluster.brokers, "PREFIX": cluster.prefix, "PARTITIONS": "2"}.items():
        monkeypatch.setenv(f"HARVEST_KAFKA_{name}", value)

    def run(*arguments: str, code: int = 0) -> Result:
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code == code, (result.output, result.exception)
        return result

    return run
