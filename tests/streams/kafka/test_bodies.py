"""`harvest bodies trim` on a real Kafka: bodies go when they are old and no record names them."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest

from schemas.codec import encode
from schemas.ports import Logged
from schemas.records import FetchedObject, Record
from streams.clock import now_ms
from streams.kafka.client.cluster import Cluster
from streams.kafka.client.log import KafkaLog
from streams.store.blobs import FolderBlobs
from streams.store.bodies import open_bodies
from streams.store.object_blobs import DAY, ObjectBlobs
from streams.store.object_storage import BlobSettings
from streams.topology.flow import TopologySettings, topology
from tests.streams.kafka.conftest import Run

pytestmark = pytest.mark.servers

OLD, KEPT, NEW = b"old" * 30_000, b"kept" * 30_000, b"new" * 30_000


def named(digest: str, time: int) -> list[Logged]:
    """A record of a time that names a body, and one without a body."""
    url = f"http://example.org/{digest}"
    records: list[Record] = [
        FetchedObject(url=url, version=1, time=time, outcome="fetched", blob=digest, size=90_000),
        FetchedObject(url=url, version=2, time=time, outcome="fetched", body=b"x", size=1),
    ]
    return [Logged("objects", -1, -1, time, url.encode(), encode(record)) for record in records]


@pytest.mark.parametrize("url", ["", "file"])
def test_old_bodies_without_records_are_trimmed(
    harvest: Run, cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    """Of old bodies only those go that no record names, from a shared folder as from object storage; new ones stay."""
    old = now_ms() - 19 * DAY // 2
    if url:
        monkeypatch.setenv("HARVEST_BLOBS_URL", f"file://{tmp_path}/storage")
    settings = BlobSettings(url=os.environ.get("HARVEST_BLOBS_URL", ""))
    before = open_bodies(tmp_path / "harvest-data", settings, clock=lambda: old)
    before.check(write=True)
    gone, kept = (before.put(io.BytesIO(body))[0] for body in (OLD, KEPT))
    new = open_bodies(tmp_path / "harvest-data", settings).put(io.BytesIO(NEW))[0]
    # The retention of the topic is longer than that of the trimming: the broker itself deletes nothing here.
    monkeypatch.setenv("HARVEST_RETENTION", str(30 * DAY // 1_000))
    harvest("topics", "apply")
    with KafkaLog(cluster, topology(TopologySettings())) as log:
        log.write([*named(kept, old), *named(new, now_ms())])
    eight = str(8 * DAY // 1_000)
    assert harvest("bodies", "trim").stdout == "0 bodies deleted, 0 bytes\n"
    assert harvest("bodies", "trim", "--retention", eight).stdout == "0 bodies deleted, 0 bytes\n"
    assert harvest("bodies", "trim", "--retention", str(6 * DAY // 1_000)).stdout == f"1 body deleted, {len(OLD):,} bytes\n"
    left = open_bodies(tmp_path / "harvest-data", settings)
    assert isinstance(left, FolderBlobs | ObjectBlobs)
    assert set(left.digests()) == {kept, new}
    assert gone not in {kept, new}
