"""Brokers with views in the simulator: definitions and views that change in mid-stream, with crashes, from many seeds."""

from __future__ import annotations

from pathlib import Path

import pytest

from processors.broker.definition import Broker
from processors.broker.register import Plan, register, restart
from schemas.ports import Origin
from schemas.records import Summary, View
from streams.simulator import MemoryRows
from tests.streams.topology.broker_worlds import archive, published, rest, summary
from tests.streams.topology.view_worlds import AT_FIRST, Sea, check_expiry, check_sea, net_changes

SEEDS = range(12)
INDEXED = 4
"""Every so many seeds, an index is asked too."""


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ticks work through three entries each."""
    monkeypatch.setattr("processors.broker.tagging.CHUNK", 3)
    monkeypatch.setattr("processors.broker.register.CHUNK", 3)


@pytest.mark.parametrize("partitions", [1, 4])
@pytest.mark.parametrize("seed", SEEDS)
def test_views_hold_what_their_predicates_accept(seed: int, partitions: int, tmp_path: Path) -> None:
    """At rest, each Broker and each view holds what its predicates accept, in rows, archive, tags and index."""
    sea = Sea(seed, partitions)
    sea.live(60, redefining=True)
    sea.settle()
    check_sea(sea, tmp_path if seed % INDEXED == 0 else None)


@pytest.mark.parametrize("seed", SEEDS)
def test_views_of_a_broker_that_expires_lose_nothing_confirmed_in_time(seed: int) -> None:
    """What is confirmed within the time-to-live is not expired, whatever comes between, also on ticks that are held."""
    sea = Sea(seed, 4)
    sea.live(80)
    sea.settle()
    check_sea(sea)
    check_expiry(sea.sim, "brief", 600)


CHANGES = {
    "narrower": ("whale OR squid", "whale"),
    "wider": ("whale", "whale OR squid"),
    "other": ("squid", "whale"),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("seed", SEEDS)
def test_changed_query_publishes_only_what_changes_in_views(seed: int, change: str) -> None:
    """After a changed query, all Brokers and their views are as if it had always been so; what stays is not published again."""
    before, after = (Broker("whales", query) for query in CHANGES[change])
    sea = Sea(seed, 4, (before, *AT_FIRST[1:]))
    sea.live(40, crashes=0)
    rest(sea.sim)
    for name in ("whales", "both"):
        told, changed = net_changes(sea.sim, name, lambda: sea.redefine((after, *AT_FIRST[1:])))
        assert told == changed
    check_sea(sea)


@pytest.mark.parametrize("seed", SEEDS)
def test_views_follow_changed_languages(seed: int) -> None:
    """Tags are made anew for the languages of a changed definition, as the index is, also if it has no query."""
    sea = Sea(seed, 4, (Broker(),))
    sea.gathered.change(20)
    rest(sea.sim)
    sea.redefine((Broker(languages=("de",)),))
    rest(sea.sim, crashes=4)
    check_sea(sea)


@pytest.mark.parametrize(("committed", "told"), [({}, 1), ({"summaries": 0}, 1), ({"summaries": 1}, 0)])
def test_what_a_former_source_caused_is_published_again_if_it_may_be_lost(committed: dict[str, int], told: int) -> None:
    """What a record caused that was not committed as its topic ceased to be a source is repeated: it never comes again."""
    rows, one = MemoryRows(), summary("o", "http://near.test/0", 1, 1_000, "whale")
    before = Plan.of(Broker("both", sources=("broker:whales", "summaries")))
    after = Plan.of(Broker("both", sources=("broker:whales",)))
    restart(rows, {}, before)
    assert list(register(rows, one, Origin("summaries", 0, 0), before))
    assert not list(register(rows, one, Origin("broker.whales", 0, 0), before))
    restart(rows, {**committed, "broker.whales": 1}, after)
    made = list(register(rows, one, Origin("broker.whales", 0, 0), after))
    assert [each.oid for each in made if isinstance(each, Summary)] == ["o"] * told


def test_views_of_a_source_are_not_published_by_the_brokers_over_it() -> None:
    """A view that comes in a Broker changes nothing in those that are made from it."""
    sea = Sea(0, 1)
    sea.gathered.change(20)
    rest(sea.sim)
    before = archive(sea.sim, "both")
    view = View(path="new", query="whale", time=sea.seen + 1)
    sea.sim.broadcast("views.brief", lambda _: view)
    rest(sea.sim)
    assert any("new" in one.views for one in published(sea.sim, "brief").values())
    assert archive(sea.sim, "both") == before
