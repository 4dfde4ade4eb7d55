"""What the benchmarks of the distributed runner share: servers, topics, and processes that work until they are told to stop."""

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
"""Seconds between two looks at what others do."""
READ = 10_000
"""Records that a bare consumer is asked for at a time."""
STANDS = 300.0
"""Seconds without anything new after which a measurement is given up."""


@contextmanager
def servers(*names: str) -> Iterator[tuple[str, ...]]:
    """The addresses of servers: those of the test session that this is a part of, else of its own. What fails tells their logs."""
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
    """Topics of one measurement."""
    made = Topics(kafka)
    try:
        yield made
    finally:
        made.close()


@contextmanager
def processes(
    commands: Sequence[Sequence[str | Path]], folder: Path, more: Mapping[str, str]
) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Processes beside this one, with `more` in their environment; they are killed behind the block, if they are still there."""
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
    """Have processes leave in order. Raises BenchError where one does not."""
    for process in started:
        process.send_signal(signal.SIGTERM)
    for process in started:
        if code := process.wait():
            raise BenchError(f"{process.args!r} ended with {code}")


class Watch:
    """Looks on while others work: the ends of topics, and what groups have committed, by partition."""

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
        # One request for all: who looks on must not be what keeps the broker busy.
        places = [(topic, partition) for topic in topics for partition in range(PARTITIONS)]
        return list(self._admin.offsets(places, LATEST).values())

    def committed(self, group: str, topic: str) -> list[int]:
        """What a group has committed."""
        if group not in self._groups:
            self._groups[group] = Consumer({**self._client, "group.id": group})
        places = [TopicPartition(topic, partition) for partition in range(PARTITIONS)]
        found = retry_coordinator(partial(self._groups[group].committed, places, timeout=TIMEOUT))
        return [max(0, place.offset) for place in found]

    def check(self, seen: object) -> None:
        """Raises BenchError where a process has ended, or what is seen has not changed for long."""
        for process in self._started:
            if process.poll() is not None:
                raise BenchError(f"{process.args!r} ended with {process.returncode}")
        if seen != self._seen:
            self._seen, self._since = seen, time.monotonic()
        elif time.monotonic() - self._since > self._stands:
            raise BenchError(f"nothing has moved for {self._stands:.0f} s: {seen!r}")

    def close(self) -> None:
        """Leave."""
        for client in self._groups.values():
            client.close()


def read(kafka: str, topic: str, count: int, partitions: int = PARTITIONS) -> Iterator[Message]:
    """So many records from the beginning of a topic, by a bare consumer. Raises BenchError where they do not come."""
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
    """Append records, acknowledged; `to` is the partition of a key, as it comes that of murmur2. Raises BenchError."""
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
    """The command that runs a module of ours."""
    return [sys.executable, "-m", name, *map(str, words)]
