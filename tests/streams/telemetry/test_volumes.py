"""The metrics of volumes."""

from __future__ import annotations

from pathlib import Path
from urllib.request import urlopen

from streams.telemetry.health import Health
from streams.telemetry.metrics import Metrics
from streams.telemetry.server import HealthServer
from streams.telemetry.volumes import volumes


def test_free_space_of_folders_is_measured_when_collected(tmp_path: Path) -> None:
    """/metrics has size and free space of the volume of each folder that exists, as of the request."""
    metrics, blobs = Metrics(), tmp_path / "blobs"
    measure = volumes(metrics, {"data": tmp_path, "blobs": blobs})
    with HealthServer("127.0.0.1", 0, Health(), metrics, measure) as server:
        url = "http://{}:{}/metrics".format(*server.address)
        for exists in (False, True, False):
            if exists:
                blobs.mkdir()
            elif blobs.exists():
                blobs.rmdir()
            with urlopen(url, timeout=10) as answer:
                text = answer.read().decode()
            for name in ("harvest_volume_bytes", "harvest_volume_free_bytes"):
                assert f'{name}{{folder="data"}}' in text
                assert (f'{name}{{folder="blobs"}}' in text) == exists
    assert 0 <= metrics.volume_free.values()["data",] <= metrics.volume.values()["data",]
