"""A stage whose definition has changed reads its source again from the first record, on a real Kafka."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from processors.identity import oid
from schemas.codec import decode, encode
from schemas.records import Record, Removed, Role, Summary
from streams.kafka.client.cluster import changelog_of
from streams.sandbox.seal import die_with
from tests.streams.kafka.conftest import Broker
from tests.streams.kafka.redefined import NAME, TAKES, redefined

PARTITIONS = 2
EACH = 400
"""Summaries of each definition: together more than a batch in each partition."""
ROLES = 20
LOG = 8_000
"""Characters of the worker's log that a failure shows."""
STAGE = redefined("")
INPUTS = [topic.name for topic in STAGE.inputs]


def summary(url: str) -> Summary:
    """The summary of an object."""
    return Summary(oid=oid("g", url), url=url, object_url=url, gatherer="g", version=1, time=1, type="RawText")


class Redefined:
    """The topics of the stage, full of records, and its worker."""

    def __init__(self, broker: Broker, root: Path, folder: Path) -> None:
        self.broker, self.root, self.folder = broker, root, folder
        self.prefix = f"{broker.topics.prefix}-"
        ticks = f"{NAME}.ticks"
        for name in (*INPUTS, ticks, "broker.main", "rejected"):
            broker.topics.make(name, PARTITIONS)
        broker.topics.make(changelog_of(NAME), PARTITIONS, {"cleanup.policy": "compact"})
        urls = [f"http://example.org/{number}/{end}" for number in range(EACH) for end in "ab"]
        self.send("summaries", *map(summary, urls))
        self.send("copies.main", *(Role(oid=f"role {n}", version=1, copy_of="", copies=(), count=0) for n in range(ROLES)))
        self.worker: subprocess.Popen[bytes] | None = None
        self.log = folder / "worker.log"
        self.started_at = 0

    def send(self, topic: str, *records: Summary | Role) -> None:
        """Append records."""
        self.broker.append(self.prefix + topic, [(record.oid.encode(), encode(record)) for record in records])

    def start(self, definition: str, cut: str = ":0") -> None:
        """Start the worker with a definition, to be killed at `cut` if one is given."""
        words = [self.broker.address, self.prefix, str(PARTITIONS), str(self.folder / "worker"), definition, cut]
        with self.log.open("ab") as log:
            self.started_at = log.tell()
            self.worker = subprocess.Popen(
                [sys.executable, "-m", "tests.streams.kafka.redefined", *words],
                cwd=self.root,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=partial(die_with, os.getpid()),  # noqa: PLW1509 - the call that it makes is safe
            )

    def stop(self) -> None:
        """Stop the worker in order."""
        assert self.worker is not None
        self.worker.send_signal(signal.SIGTERM)
        code = self.worker.wait()
        assert code == 0, f"exit code {code}: {self.said()[-LOG:]}"

    def killed(self, definition: str) -> None:
        """Run the worker with a definition until it is killed behind the outputs of its first batch."""
        self.start(definition, "outputs:1")
        assert self.worker is not None
        assert self.worker.wait() == -signal.SIGKILL

    def applied(self, definition: str) -> None:
        """Run the worker with a definition until its rows say that they are of it, and everything is committed; then stop it.

        It has taken over all partitions by then: if the rows are of that definition already, nothing else shows that it works.
        """
        self.start(definition)
        while self.said().count(TAKES) < PARTITIONS or self.defined() != [definition.encode()] * PARTITIONS or self.lag():
            assert self.worker is not None
            assert self.worker.poll() is None, self.said()[-LOG:]
            time.sleep(0.3)
        self.stop()

    def said(self) -> str:
        """What the worker has written since its start."""
        with self.log.open("rb") as log:
            log.seek(self.started_at)
            return log.read().decode()

    def defined(self) -> list[bytes]:
        """The definition that the rows of each partition are of."""
        topic = self.prefix + changelog_of(NAME)
        return [dict(self.broker.read(topic, at + 1, at)).get(b"d|") or b"" for at in range(PARTITIONS)]

    def lag(self) -> int:
        """The records that the stage has still to commit."""
        return sum(self.broker.lag(self.prefix + NAME, self.prefix + topic, PARTITIONS) for topic in INPUTS)

    def published(self) -> Counter[str]:
        """How often each URL was published, and each role, whose name is instead of a URL."""
        records: list[Record] = [decode(value) for _, value in self.broker.read(self.prefix + "broker.main", PARTITIONS) if value]
        return Counter(r.url for r in records if isinstance(r, Summary | Removed))


@pytest.fixture
def stage(broker: Broker, root: Path, tmp_path: Path) -> Iterator[Redefined]:
    """The stage, not started."""
    stage = Redefined(broker, root, tmp_path)
    yield stage
    if stage.worker is not None:
        stage.worker.kill()
        stage.worker.wait()


def times(published: Counter[str], end: str) -> set[int]:
    """How often the summaries of a definition were published."""
    found = {published[url] for url in published if url.endswith(end)}
    return found if sum(url.endswith(end) for url in published) == EACH else {0, *found}


@pytest.mark.slow(45)
def test_changed_definition_reads_source_again(stage: Redefined) -> None:
    """With a changed definition the source alone is read again, with an equal one nothing; a kill in between repeats it.

    Whatever definition comes after the kill, the rows are made anew, and the commits are at the ends in the end.
    """
    stage.applied("/a")
    assert (times(stage.published(), "/a"), times(stage.published(), "/b")) == ({1}, {0})
    stage.applied("/a")
    assert times(stage.published(), "/a") == {1}
    stage.killed("/b")
    stage.applied("/a")
    assert times(stage.published(), "/a") == {2}
    stage.killed("/b")
    stage.applied("/b")
    published = stage.published()
    assert (times(published, "/a"), min(times(published, "/b"))) == ({2}, 1)
    assert {published[url] for url in published if url.startswith("role")} == {1}
