"""Brokers in a data folder: added to a folder of the version before, and changed between two runs."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from processors.broker.definition import Broker
from processors.broker.entry import decode_entry
from schemas.codec import decode, encode
from schemas.records import Removed, Summary
from streams.embedded.runner import Embedded, EmbeddedSettings
from streams.embedded.turns import Inbox, Turns
from streams.store import FolderBlobs, Store
from streams.topology.flow import TopologySettings, topology
from tests.streams.topology.broker_worlds import WORDS, summary

Run = Callable[..., list[Summary | Removed]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """A function that appends summaries to a folder, runs its stages to rest, and returns what a Broker has published so far."""

    def make(
        brokers: tuple[Broker, ...], records: tuple[Summary, ...] = (), of: str = "main", *, aged: bool = False
    ) -> list[Summary | Removed]:
        declared = topology(TopologySettings(brokers=brokers))
        with Store(tmp_path, {topic.name: 1 for topic in declared.topics}, runner=True) as store:
            turns = Turns(declared, store, FolderBlobs(tmp_path / "blobs", owner=True), pytest.fail)
            turns.begin()
            with store.transaction() as tx:
                for one in records:
                    tx.append("summaries", 0, one.oid.encode(), encode(one), 1)
            for _ in range(30):
                turns.take(Inbox([], [], []))
            if aged:
                age(store)
            return [decode(logged.value or b"") for logged in store.read(f"broker.{of}", 0, 0, 999)]  # type: ignore[misc]

    return make


def age(store: Store) -> None:
    """Turn the rows of register into those of the version before."""
    with store.transaction() as tx:
        rows = tx.rows("register.main", 0)
        for key, value in list(rows.scan(b"r|")):
            rows.put(key, msgspec.msgpack.encode(msgspec.msgpack.decode(value)[:8]))
            assert not decode_entry(rows.get(key) or b"").given


def gathered(number: int = 30) -> tuple[Summary, ...]:
    """Summaries of the Gatherer's database."""
    rng = random.Random(7)
    made = (summary(f"o{n}", f"http://near.test/{n}", n + 1, 1_000, rng.choice(WORDS)) for n in range(number))
    return tuple(replace(one, sha256=one.oid.encode().hex().ljust(64, "0")) for one in made)


def held(records: list[Summary | Removed]) -> set[str]:
    """The OIDs that a Broker holds."""
    return {oid for oid, one in {one.oid: one for one in records}.items() if isinstance(one, Summary)}


def matching(word: str) -> set[str]:
    """The OIDs of the summaries with a word in their title."""
    return {one.oid for one in gathered() if word in one.attributes["title"][0].split()}


def test_unchanged_definition_reads_nothing_again(run: Run) -> None:
    """The default Broker of a folder of the version before is not read again, and publishes nothing."""
    told = len(run((Broker(),), gathered(), aged=True))
    assert len(run((Broker(),))) == told == 30


def test_broker_added_to_an_old_folder_holds_what_it_accepts(run: Run) -> None:
    """A Broker that is added to a folder of the version before reads all that is there; `main` publishes nothing."""
    run((Broker(),), gathered(), aged=True)
    both = (Broker(), Broker("whales", "whale"), Broker("over", sources=("broker:whales",)))
    assert held(run(both, of="over")) == held(run(both, of="whales")) == matching("whale")
    assert len(run(both)) == 30


@pytest.mark.parametrize(("before", "after"), [("", "squid"), ("squid", ""), ("whale OR kelp", "whale OR squid")])
def test_changed_query_publishes_only_what_changes(run: Run, before: str, after: str) -> None:
    """After a changed query, what comes and what goes is published, and what stays is not."""
    old = held(run((Broker(query=before),), gathered()))
    told = len(run((Broker(query=before),)))
    records = run((Broker(query=after),))
    new = held(records)
    assert new == (matching("squid") | (matching("whale") if "whale" in after else set()) if after else held(list(gathered())))
    assert {one.oid for one in records[told:]} == old ^ new
    assert len(records) - told == len(old ^ new)


def test_removed_source_is_swept(run: Run) -> None:
    """What is held from a source alone that the definition names no more goes; the rest stays as it is."""
    whales = Broker("whales", "whale")
    run((whales, Broker(sources=("broker:whales", "summaries"))), gathered())
    records = run((whales, Broker(sources=("broker:whales",))))
    assert held(records) == matching("whale")
    assert len(records) == 30 + 30 - len(matching("whale")) + len([one for one in records[30:] if isinstance(one, Summary)])


def test_old_row_of_a_changed_definition_is_read(run: Run) -> None:
    """Rows of the version before, which name no sources, are those of the Gatherer's database."""
    run((Broker(),), gathered(), aged=True)
    assert held(run((Broker(query="squid"),))) == matching("squid")


def test_short_time_to_live_removes_what_is_old(run: Run) -> None:
    """A Broker with a time-to-live does not hold what was confirmed too long ago, and `main` does."""
    both = (Broker(), Broker("brief", ttl=60))
    run(both, gathered())
    assert held(run(both, of="brief")) == set()
    assert len(held(run(both))) == 30


def test_run_does_not_wait_for_what_expires_next(tmp_path: Path) -> None:
    """What was due in a Broker as a run began belongs to the run; it does not wait for what is due later, however soon."""
    flow = TopologySettings(brokers=(Broker(ttl=60),))
    runner = Embedded(tmp_path, EmbeddedSettings(partitions=1, children=1, flow=flow), pytest.fail)
    runner.sinks.clear()
    runner.turns.holding = False
    with closing(runner.store), closing(runner._reading):
        assert [_finished_with(runner, runner._began + later) for later in (0, 1)] == [False, True]


@pytest.mark.parametrize("forever", [False, True])
def test_what_is_due_waits_for_the_rest_of_the_work(tmp_path: Path, forever: bool) -> None:
    """What is due in a Broker gets its tick once nothing else is left to do, and a run ends after that; a service goes on."""
    runner = Embedded(
        tmp_path, EmbeddedSettings(partitions=1, children=1, flow=TopologySettings(brokers=(Broker(ttl=60),))), pytest.fail
    )
    runner.sinks.clear()
    with closing(runner.store), closing(runner._reading):
        _finished_with(runner, 1)
        assert not runner.turns.wanted()
        assert not runner._over(forever)
        assert runner.turns.wanted()
        for _ in range(2):
            runner.turns.take(Inbox([], [], []))
        assert not runner.turns.wanted()
        assert runner._over(forever) is not forever


def _finished_with(runner: Embedded, due: int) -> bool:
    """Whether a run is over in which one summary is due at a time."""
    with runner.store.transaction() as tx:
        rows = tx.rows("register.main", 0)
        for key, _ in list(rows.scan(b"e|")):
            rows.delete(key)
        rows.put(b"e|%013d|o" % due, b"")
    return runner.finished()


def test_newer_time_of_an_equal_version_is_published(run: Run) -> None:
    """A confirmation, which is the same version with a newer time, is published with that time; the same again is not."""
    (one,) = gathered(1)
    for confirmed in (one, replace(one, time=2_000), replace(one, time=2_000)):
        run((Broker(),), (confirmed,))
    assert [each.time for each in run((Broker(),))] == [1_000, 2_000]


def test_confirmed_summary_is_not_published_after_a_changed_query(run: Run) -> None:
    """What stays after a changed query is not published again, though the topic has the times of before its confirmations too."""
    confirmed = tuple(replace(one, time=2_000) for one in gathered())
    told = len(run((Broker(),), gathered() + confirmed))
    records = run((Broker(query="squid"),))
    assert held(records) == matching("squid")
    assert not [one for one in records[told:] if isinstance(one, Summary)]
    records = run((Broker(),))
    assert held(records) == held(list(gathered()))
    assert {one.time for one in {one.oid: one for one in records}.values()} == {2_000}
