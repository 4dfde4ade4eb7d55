"""HTTP endpoints for probes and Prometheus, and logs, of long-running commands, by the settings."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from streams.cli.common import Failure
from streams.config.settings import Settings
from streams.telemetry import Health, Logs, Metrics


def logs_of(settings: Settings, **always: str) -> Logs:
    """Return the logs on standard error; `always` is added to each JSON line."""
    given = settings.log
    return Logs(sys.stderr, given.format, level=given.level, trace=given.trace, always=always)


@contextmanager
def serve_health(settings: Settings, health: Health, metrics: Metrics) -> Iterator[str]:
    """Serve /livez, /readyz and /metrics during the block; yields the address for a log line, and "" without a port.

    Raises Failure if the address cannot be bound.
    """
    if not settings.worker.port:
        yield ""
        return
    from streams.telemetry.server import HealthServer

    try:
        server = HealthServer(settings.worker.host, settings.worker.port, health, metrics)
    except OSError as error:
        raise Failure(f"worker.port: {settings.worker.host}:{settings.worker.port}: {error.strerror}") from None
    with server:
        host, port = server.address
        yield f", http://{host}:{port}/metrics"
