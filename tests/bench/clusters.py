"""Shared by the benchmarks of the distributed runner: servers, topics, and processes that run until they are stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from confluent_kafka import Consumer, Message, Producer, TopicPartition

from streams.kafka.client.admin import LATEST, Admin
from streams.kafka.client.brokers import retry_coordinator
from streams.kafka.client.cluster import Cluster
from streams.kafka.client.producer import PARTITIONER
from streams.sandbox.seal import die_with
from tests.bench.figures import BenchError
from tests.bench.objects import environment
from tests.servers import sharing
from tests.servers.fixtures import TIMEOUT, Topics
from tests.servers.process import LASTING

PARTITIONS = 4
RETENTION = 86_400.0
"""Seconds that topics keep records."""
LOOK = 0.05
"""Seconds between two checks for progress."""
READ = 10_000
"""Maximum records of one consumer request."""
STANDS = 300.0
"""Seconds without progress after which a measurement fails."""


@contextmanager
def servers(*names: str) -> Iterator[tuple[str, ...]]:
    """Yield the addresses of servers, of the surrounding test session or a new one; print their logs if the block fails."""
    own = sharing.SESSION not in os.environ
    if own:
        os.environ[LASTING] = "1"
        sharing.begin()
    try:
        yield tuple(map(sharing.address, names))
    except Exception:
        for name in names:
            print(f"{name} said last:\n{sharing.last_words(name)}", file=sys.stderr)
        raise
    finally:
        if own:
            sharing.end()


@contextmanager
def topics(kafka: str) -> Iterator[Topics]:
    """Topics of one measurement, deleted after it."""
    made = Topics(kafka)
    try:
        yield made
    finally:
        made.close()


@contextmanager
def processes(
    commands: Sequence[Sequence[str | Path]], folder: Path, more: Mapping[str, str]
) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Run processes with `more` in their environment; at the end of the block, those that still run are killed."""
    log = folder / "processes.log"
    started: list[subprocess.Popen[bytes]] = []
    try:
        for command in commands:
            with log.open("ab") as said:
                started.append(
                    subprocess.Popen(
                        command,
                        cwd=folder,
                        env={**environment(), **more},
                        stdin=subprocess.DEVNULL,
                        stdout=said,
                        stderr=said,
                        preexec_fn=partial(die_with, os.getpid()),  # noqa: PLW1509 - the call that it makes is safe
                    )
                )
        yield started
    except BenchError as error:
        raise BenchError(f"{error}\n{log.read_text('utf-8', 'replace')[-2_000:]}") from None
    finally:
        for process in started:
            process.kill()
            process.wait()


def stop(started: Iterable[subprocess.Popen[bytes]]) -> None:
    """Stop processes with SIGTERM. Raises BenchError if one exits with an error."""
    for process in started:
        process.send_signal(signal.SIGTERM)
    for process in started:
        if code := process.wait():
            raise BenchError(f"{process.args!r} ended with {code}")


class Watch:
    """Observes running processes: the end offsets of topics and the committed offsets of groups, by partition."""

    def __init__(self, kafka: str, started: Sequence[subprocess.Popen[bytes]], stands: float = STANDS) -> None:
        self._client = {"bootstrap.servers": kafka, "enable.auto.commit": False, "log_level": 0}
        self._admin = Admin(Cluster(kafka))
        self._groups: dict[str, Consumer] = {}
        self._started = started
        self._stands = stands
        self._seen: object = None
        self._since = time.monotonic()

    def ends(self, *topics: str) -> list[int]:
        """The next offset of each partition, topic by topic."""
        # One request for all partitions: observation must not keep the broker busy.
        places = [(topic, partition) for topic in topics for partition in range(PARTITIONS)]
        return list(self._admin.offsets(places, LATEST).values())

    def committed(self, group: str, topic: str) -> list[int]:
        """The committed offsets of a group."""
        if group not in self._groups:
            self._groups[group] = Consumer({**self._client, "group.id": group})
        places = [TopicPartition(topic, partition) for partition in range(PARTITIONS)]
        found = retry_coordinator(partial(self._groups[group].committed, places, timeout=TIMEOUT))
        return [max(0, place.offset) for place in found]

    def check(self, seen: object) -> None:
        """Raise BenchError if a process has ended, or if `seen` has not changed for `stands` seconds."""
        for process in self._started:
            if process.poll() is not None:
                raise BenchError(f"{process.args!r} ended with {process.returncode}")
        if seen != self._seen:
            self._seen, self._since = seen, time.monotonic()
        elif time.monotonic() - self._since > self._stands:
            raise BenchError(f"nothing has moved for {self._stands:.0f} s: {seen!r}")

    def close(self) -> None:
        """Close the consumers."""
        for client in self._groups.values():
            client.close()


def read(kafka: str, topic: str, count: int, partitions: int = PARTITIONS) -> Iterator[Message]:
    """Read `count` records from the beginning of a topic with a bare consumer. Raises BenchError if they do not arrive."""
    reader = Consumer({"bootstrap.servers": kafka, "group.id": f"{topic}-bench", "enable.auto.commit": False, "log_level": 0})
    try:
        reader.assign([TopicPartition(topic, partition, 0) for partition in range(partitions)])
        until = time.monotonic() + STANDS
        while count > 0:
            for message in reader.consume(READ, LOOK):
                if message.error() is None:
                    yield message
                    count -= 1
                    until = time.monotonic() + STANDS
            if time.monotonic() > until:
                raise BenchError(f"{topic} cannot be read")
    finally:
        reader.close()


def fill(kafka: str, topic: str, records: Iterable[tuple[bytes, bytes]], to: Callable[[bytes], int] = lambda _: -1) -> None:
    """Append records and wait for acknowledgment; `to` maps a key to its partition (default: murmur2). Raises BenchError."""
    producer = Producer({"bootstrap.servers": kafka, "acks": "all", "linger.ms": 20, "log_level": 0, **PARTITIONER})
    for key, value in records:
        while True:
            try:
                producer.produce(topic, value, key, to(key))
            except BufferError:
                producer.poll(LOOK)
            else:
                break
        producer.poll(0)
    if producer.flush(TIMEOUT):
        raise BenchError(f"{topic} could not be filled")


def module(name: str, *words: object) -> list[str]:
    """The command that runs a Python module."""
    return [sys.executable, "-m", name, *map(str, words)]
