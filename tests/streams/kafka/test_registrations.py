"""Registrations of servers on a real Kafka: renewed, withdrawn and expired by ticks of the worker, despite its kills."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from schemas.records import CrawlEvent, Removed, Summary
from streams.clock import now_ms
from streams.operations.registrations import registration_event
from tests.processors.registry.samples import server, withdrawal
from tests.streams.kafka.conftest import Broker
from tests.streams.kafka.flows import Flow, edges, newest
from tests.streams.topology.test_registrations import dial, summarize

STAGES = ("frontier", "catalog")
PARTITIONS = 2


def lasting(seconds: int, number: int) -> CrawlEvent:
    """Return the event of a server that has registered for some seconds, fewer than a registry takes."""
    event = registration_event(server(number), now_ms())
    assert event.root is not None
    return replace(event, root=replace(event.root, ttl=seconds))


def removed(flow: Flow) -> dict[str, str]:
    """Return the reasons of the removed servers."""
    found = newest(flow.records["summaries"]).values()
    return {one.object_url: one.reason for one in found if isinstance(one, Removed)}


@pytest.mark.slow(40)
@pytest.mark.timeout(600)
@pytest.mark.parametrize("cut", ["rows:1", "outputs:1"])
def test_servers_that_renew_stay(cut: str, broker: Broker, root: Path, tmp_path: Path) -> None:
    """Of six servers one withdraws and two go silent; the others are held, and nothing is fetched for any."""
    flow = Flow(broker, root, tmp_path, PARTITIONS, edges(dial, summarize), STAGES)
    try:
        for number in range(2, 6):
            flow.send("crawl", lasting(3_600, number))
        for stage in STAGES:
            flow.start(stage, cut)
        flow.rest()
        flow.send("crawl", registration_event(withdrawal(server(2)), now_ms()))
        for number in range(4):
            if number != 2:
                flow.send("crawl", lasting(4 if number < 2 else 3_600, number))
        while len(gone := removed(flow)) < 3:
            flow.rest()
        assert gone == {server(0).object_url: "expired", server(1).object_url: "expired", server(2).object_url: "gone"}
        found = newest(flow.records["summaries"]).values()
        held = {one.attributes["name"][0] for one in found if isinstance(one, Summary)}
        assert held == {"server-3", "server-4", "server-5"}
        assert flow.killed.total()
        assert not flow.records["fetches"]
        assert not flow.records["rejected"]
    finally:
        flow.close()
