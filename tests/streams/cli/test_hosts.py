"""Many hosts at once, through a kill and a restart: what their servers see."""

from __future__ import annotations

import signal
import time
from pathlib import Path
from typing import Any

import pytest

from tests.samples.host_farm import Farm, event_kinds

HOSTS = 200
ALLOW = ("--allow", "127.0.0.0/8", "--pause", "1", "--quiet", "--data", "d")
PATIENCE = 240.0


@pytest.mark.slow(30)
def test_pauses_of_many_hosts_are_kept_through_a_kill(harvest: Any, tmp_path: Path) -> None:
    """200 hosts with pauses of 1 and 2 s: all are at work, no pause is broken at the servers, hardly any request is deferred.

    The first process is killed in the middle; the second one fetches the rest.
    """
    pauses = [1.0 + n % 2 for n in range(HOSTS)]
    with Farm(pauses, 6) as farm:
        process = harvest.start("gather", *farm.urls, *ALLOW)
        end = time.monotonic() + PATIENCE
        while farm.requests() < HOSTS * 4:
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < end
            time.sleep(0.05)
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=PATIENCE)
        assert len(farm.asked) == HOSTS
        harvest("gather", *farm.urls, *ALLOW)
        assert farm.broken() == []
        assert {address: len({one.path for one in asked}) for address, asked in farm.asked.items()} == dict.fromkeys(farm.pauses, 8)
        # Those in flight at the kill were repeated, at most as many as each host has credit for.
        found = event_kinds(tmp_path / "d")
        assert found["fetched"] == HOSTS * 7
        assert found["deferred"] < 0.05 * farm.requests()
