"""Records of the maximum size: those that `harvest topics apply` leaves room for pass the deciding stages."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from processors.identity import oid
from schemas.codec import decode, encode
from schemas.ports import Logged
from schemas.records import Record, Rejected, Summary
from streams.kafka.client.cluster import Cluster
from streams.kafka.client.log import KafkaLog
from streams.sandbox.seal import die_with
from streams.topology.flow import TopologySettings, topology
from tests.streams.kafka.conftest import Run


def summary(name: str, size: int) -> Summary:
    """A summary with this many bytes of text."""
    url = f"http://example.org/{name}"
    about = {"oid": oid("test", url), "url": url, "object_url": url, "gatherer": "test", "version": 1, "time": 1}
    return Summary(**about, type="Text", attributes={"full-text": ("x" * size,)})  # type: ignore[arg-type]


@pytest.fixture
def catalog(harvest: Run, cluster: Cluster, root: Path, tmp_path: Path) -> Iterator[KafkaLog]:
    """The topics as `harvest topics apply` makes them, and a worker of the catalogue."""
    harvest("topics", "apply")
    told = {"KAFKA_BROKERS": cluster.brokers, "KAFKA_PREFIX": cluster.prefix, "DATA": str(tmp_path / "data"), "GATHERER": "test"}
    worker = subprocess.Popen(
        [sys.executable, "-m", "streams.cli", "worker", "catalog"],
        cwd=root,
        env=os.environ | {f"HARVEST_{name}": value for name, value in told.items()},
        stdin=subprocess.DEVNULL,
        preexec_fn=partial(die_with, os.getpid()),  # noqa: PLW1509 - the call that it makes is safe
    )
    with KafkaLog(cluster, topology(TopologySettings())) as log:
        yield log
    worker.terminate()
    assert worker.wait() == 0


def written(log: KafkaLog, topic: str) -> list[Record]:
    """The records of a topic."""
    found = (logged for number in range(log.topics()[topic]) for logged in log.read(topic, number, 0, 100))
    return [decode(logged.value) for logged in found if logged.value is not None]


def test_largest_allowed_summary_is_catalogued(catalog: KafkaLog) -> None:
    """A summary with as much full text as the setting allows is catalogued, as on the embedded runner."""
    whole, small = summary("large", 1 << 20), summary("small", 5)
    catalog.write(Logged("made", -1, -1, 1, one.object_url.encode(), encode(one)) for one in (whole, small))
    while len(found := written(catalog, "summaries") + written(catalog, "rejected")) < 2:
        time.sleep(0.2)
    assert not [one.reason for one in found if isinstance(one, Rejected)]
    assert {one.oid for one in found if isinstance(one, Summary)} == {whole.oid, small.oid}
