"""Hosts whose queues a run leaves, read from the frontier's rows."""

from __future__ import annotations

from typing import Any, cast

import pytest

from processors.frontier.rows import Table
from processors.frontier.state import HostState, UrlState
from processors.identity import url_digest
from streams.embedded.held import ASKED, CLOSED, RESTS, UNREACHED, held_hosts
from streams.simulator import MemoryRows

ROOT, HOST = "http://a.example/", "http://a.example"


class OnePartition:
    """A store with one partition of the frontier's rows."""

    def __init__(self, rows: MemoryRows) -> None:
        self._rows = rows

    def topics(self) -> dict[str, int]:
        return {"crawl": 1}

    def rows(self, stage: str, partition: int) -> MemoryRows:
        return self._rows


@pytest.mark.parametrize(
    ("site", "reason"),
    [
        (HostState(next_allowed=2_000), ASKED),
        (HostState(next_allowed=2_000, tries=1), UNREACHED),
        (HostState(opens=2_000), CLOSED),
        (HostState(rests=2_000), RESTS),
    ],
)
def test_reason_why_a_host_waits(site: HostState, reason: str) -> None:
    """The reasons differ of a host that cannot be reached, asked for a pause, is outside of its hours, or rests."""
    rows = MemoryRows()
    table = Table(rows)
    table.put_host(HOST, site)
    table.enqueue(HOST, url_digest(ROOT), UrlState(url=ROOT, kind="page", depth=0, state="queued", roots=(ROOT,)))
    (held,) = held_hosts(cast("Any", OnePartition(rows)), 1_000, [ROOT])
    assert (held.host, held.urls, held.until, held.reason) == (HOST, 1, 2_000, reason)
