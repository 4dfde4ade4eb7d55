"""The workers of the other modules end in order. Runs behind those modules, which would have to start the workers again."""

from __future__ import annotations

import pytest

from tests.conformance.runners import KafkaRunner

pytestmark = [pytest.mark.servers, pytest.mark.slow(1), pytest.mark.xdist_group("conformance"), pytest.mark.timeout(600)]


def test_workers_stop_at_sigterm(on_servers: KafkaRunner) -> None:
    """At SIGTERM `harvest worker` ends with exit code 0; it has written nothing to standard output."""
    on_servers.start()
    on_servers.rest()
    assert on_servers.stop() == 0
    assert (on_servers.flow.folder / "workers.out").read_bytes() == b""
