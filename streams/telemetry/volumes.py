"""Measures the volumes of the data folder and of the bodies.

Strategy: they are measured when the metrics are collected, on the thread of that request, since a file system on the network may
hang; then only /metrics does not answer.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from streams.telemetry.metrics import Metrics


def volumes(metrics: Metrics, folders: Mapping[str, Path]) -> Callable[[], None]:
    """Return a function that updates size and free space of the volumes of folders, by their label."""

    def measure() -> None:
        for label, folder in folders.items():
            try:
                found = shutil.disk_usage(folder)
            except OSError:  # not created yet, or removed
                metrics.volume.forget(label)
                metrics.volume_free.forget(label)
            else:
                metrics.volume.set(found.total, label)
                metrics.volume_free.set(found.free, label)

    return measure
