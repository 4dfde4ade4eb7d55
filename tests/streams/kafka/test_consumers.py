"""The example consumers of schemas/README.md, run as printed there except for the broker and the topic."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from processors.identity import oid
from schemas.codec import encode
from schemas.ports import Logged
from schemas.records import Removed, Summary
from streams.kafka.client.cluster import Cluster
from streams.kafka.client.log import KafkaLog
from streams.topology.flow import TopologySettings, topology
from tests.servers.fixtures import Topics

EXAMPLE = re.compile(r"(?s)<!-- example: [^\n]*-->\n```(\w+)\n(.*?)^```$", re.MULTILINE)


def url(number: int) -> str:
    """The URL of an object."""
    return f"http://example.org/{number:02}"


def changes(number: int) -> Sequence[Summary | Removed | None]:
    """The history of an object: it stays, changes, is removed, comes back, or is forgotten."""
    key, where = oid("test", url(number)), url(number)
    gone = Removed(oid=key, url=where, object_url=where, version=2, time=2, reason="gone")
    first, second = (
        Summary(
            oid=key,
            url=where,
            object_url=where,
            gatherer="test",
            version=version,
            time=1,
            type="Text",
            attributes={"title": (f"version {version}",)},
        )
        for version in (1, 2)
    )
    given: Sequence[Sequence[Summary | Removed | None]]
    given = ([first], [first, second], [first, gone], [first, gone, second], [first, gone, None])
    return given[number % 5]


@pytest.fixture
def examples(root: Path, kafka: str, topics: Topics) -> dict[str, str]:
    """The examples by language, pointed at a topic with the changes of some objects."""
    name = topics.make("summaries", 3, {"cleanup.policy": "compact"})
    with KafkaLog(Cluster(kafka, f"{topics.prefix}-"), topology(TopologySettings())) as log:
        for number in range(25):
            key = oid("test", url(number)).encode()
            values = (None if change is None else encode(change) for change in changes(number))
            log.write(Logged("summaries", -1, -1, 1_000, key, value) for value in values)
    found = dict(EXAMPLE.findall((root / "schemas" / "README.md").read_text("utf-8")))
    quoted = {"python": '"summaries"', "sh": "-t summaries"}
    return {
        kind: text.replace("localhost:9092", kafka).replace(quoted[kind], quoted[kind].replace("summaries", name))
        for kind, text in found.items()
    }


def run(command: Sequence[str], root: Path) -> list[str]:
    """Run a program in the clone; returns the lines that it prints."""
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=root)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_plain_consumer_rebuilds_collection(examples: dict[str, str], root: Path) -> None:
    """A plain consumer of confluent-kafka rebuilds the collection from offset 0, with nothing but the published schemas."""
    kept = {0: 1, 1: 2, 3: 2}
    expected = [f"{url(n)} Text version {kept[n % 5]}" for n in range(25) if n % 5 in kept]
    assert run([sys.executable, "-c", examples["python"]], root) == expected


def test_kcat_lists_existing_keys(examples: dict[str, str], root: Path) -> None:
    """The keys that kcat lists are those of all existing objects (Debian package kcat)."""
    expected = {oid("test", url(number)) for number in range(25) if number % 5 in (0, 1, 3)}
    lines = run(["sh", "-c", examples["sh"]], root)
    assert (set(lines), len(lines)) == (expected, len(expected))
