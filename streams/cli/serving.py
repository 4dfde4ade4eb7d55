"""What a process that goes on says of itself, as the settings want it: HTTP for probes and Prometheus, logs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from streams.cli.common import Failure
from streams.config.settings import Settings
from streams.telemetry import Health, Logs, Metrics


def logs_of(settings: Settings, **always: str) -> Logs:
    """The logs, on standard error; `always` stands in each line that is JSON."""
    return Logs(sys.stderr, settings.log.format, trace=settings.log.trace, always=always)


@contextmanager
def served(settings: Settings, health: Health, metrics: Metrics) -> Iterator[str]:
    """/livez, /readyz and /metrics while the block lasts; gives where, for a line. Without a port: nothing, and "".

    Raises Failure where the address cannot be had.
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
