"""HTTP endpoints for probes and Prometheus, and logs, of long-running commands, by the settings."""

from __future__ import annotations

import errno
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from streams.cli.common import Failure
from streams.config.settings import Settings
from streams.telemetry import Health, Logs, Metrics

if TYPE_CHECKING:
    from streams.config.sections import Worker
    from streams.telemetry.server import HealthServer


def logs_of(settings: Settings, **always: str) -> Logs:
    """Return the logs on standard error; `always` is added to each JSON line."""
    given = settings.log
    return Logs(sys.stderr, given.format, level=given.level, trace=given.trace, always=always)


@contextmanager
def serve_health(settings: Settings, health: Health, metrics: Metrics) -> Iterator[str]:
    """Serve /livez, /readyz and /metrics during the block; yields the address for a log line, and "" without a port.

    Raises Failure if no address can be bound.
    """
    if not settings.worker.port:
        yield ""
        return
    from streams.telemetry.volumes import volumes

    measure = volumes(metrics, {"data": settings.data, "blobs": settings.data / "blobs"})
    with _first_free(settings.worker, health, metrics, measure) as server:
        host, port = server.address
        yield f", http://{host}:{port}/metrics"


def _first_free(worker: Worker, health: Health, metrics: Metrics, measure: Callable[[], None]) -> HealthServer:
    """Return a server on the first port that is free. Raises Failure.

    The port is bound at once, so that workers that start at the same time get different ones.
    """
    from streams.telemetry.server import HealthServer

    # A range at the end of all ports is shorter.
    last = min(worker.port + worker.ports - 1, 65_535)
    for port in range(worker.port, last + 1):
        try:
            return HealthServer(worker.host, port, health, metrics, measure)
        except OSError as error:
            if error.errno != errno.EADDRINUSE or port == last:
                which = str(port) if worker.ports == 1 else f"{worker.port} to {last}"
                raise Failure(f"worker.port: {worker.host}:{which}: {error.strerror}") from None
    raise AssertionError("unreachable: the last port returns or raises")
