"""`harvest gather` with a Broker that has a time-to-live, which keeps what is confirmed; and with a definition that changes."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from processors.broker.definition import Broker
from schemas.codec import decode
from schemas.records import Removed, Summary
from streams.clock import now_ms
from streams.config.topology import confirmed_every
from streams.store import Store

pytestmark = pytest.mark.slow

HOUR = 3_600
Later = Callable[[int], None]


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Later:
    """A function that moves the clock of the runners on by some seconds."""

    def move(seconds: int) -> None:
        monkeypatch.setattr(now_ms, "_wall", now_ms._wall + seconds * 10**9)

    return move


@pytest.fixture(autouse=True)
def folders(harvest: Any) -> None:
    """Two folders of files to gather."""
    for name in ("kept", "left"):
        (harvest.folder / name).mkdir()
        for word in ("whale", "squid"):
            (harvest.folder / name / f"{word}.txt").write_text(f"{word} of {name}\n")


def records(broker: str) -> list[Any]:
    """The records of a Broker's archive."""
    with Store(Path("harvest-data"), readonly=True) as store:
        return [decode(one.value) for one in store.read(f"broker.{broker}", 0, 0, 999) if one.value is not None]


def held(broker: str) -> dict[str, Summary]:
    """What a Broker holds, by folder and name of the file."""
    last = {one.oid: one for one in records(broker)}
    return {"/".join(one.url.split("/")[-2:]): one for one in last.values() if isinstance(one, Summary)}


def test_broker_keeps_what_is_confirmed_and_expires_the_rest(harvest: Any, later: Later) -> None:
    """What later runs find unchanged stays in a Broker beyond its time-to-live; what they do not visit goes, and comes back."""
    harvest("broker", "create", "brief", "--ttl", "1h")
    harvest("gather", "kept", "left", "--quiet")
    first = held("brief")
    assert len(first) == 4
    for _ in range(3):
        later(HOUR * 2 // 3)
        harvest("gather", "kept", "--quiet")
    assert set(held("brief")) == {"kept/squid.txt", "kept/whale.txt"}
    assert all(one.version == first[name].version and one.time > first[name].time for name, one in held("brief").items())
    assert {one.reason for one in records("brief") if isinstance(one, Removed)} == {"expired"}
    assert len(held("main")) == 4
    assert "whale.txt" in harvest("search", "whale", "--broker", "brief").stdout
    assert "left" not in harvest("search", "whale", "--broker", "brief").stdout
    harvest("gather", "left", "--quiet")
    assert set(held("brief")) == set(first)


def test_nothing_expires_that_the_run_confirms(harvest: Any, later: Later) -> None:
    """A run after the time-to-live is over confirms what it visits before anything expires: what stays is never removed."""
    harvest("broker", "create", "brief", "--ttl", "1h")
    harvest("broker", "create", "over", "--from", "broker:brief", "--ttl", "1h")
    harvest("gather", "kept", "left", "--quiet")
    for _ in range(2):
        later(HOUR + 1)
        harvest("gather", "kept", "--quiet")
    for broker in ("brief", "over"):
        gone = [one for one in records(broker) if isinstance(one, Removed)]
        assert {(one.url.split("/")[-2], one.reason) for one in gone} == {("left", "expired")}
        assert set(held(broker)) == {"kept/squid.txt", "kept/whale.txt"}
        assert len(gone) == 2


def test_run_without_a_visit_expires(harvest: Any, later: Later) -> None:
    """A Broker expires what it holds in the next run, also where nothing is fetched."""
    harvest("broker", "create", "brief", "--ttl", "1h")
    harvest("gather", "kept", "--quiet")
    later(HOUR + 1)
    harvest("gather", "left", "--quiet")
    assert set(held("brief")) == {"left/squid.txt", "left/whale.txt"}


@pytest.mark.parametrize(("before", "after"), [("whale", ""), ("", "whale"), ("whale", "squid")])
def test_definition_changed_between_two_runs(harvest: Any, before: str, after: str) -> None:
    """The run after a changed definition publishes what comes and what goes, and nothing else; the index follows."""
    harvest("broker", "create", "main", "--query", before)
    harvest("gather", "kept", "left", "--quiet")
    old, told = held("main"), len(records("main"))
    Path("harvest-data", "brokers", "main.toml").write_text(f"query = '{after}'\n")
    harvest("gather", "kept", "--quiet")
    assert set(held("main")) == {
        f"{folder}/{word}.txt" for folder in ("kept", "left") for word in ("squid", "whale") if after in word
    }
    assert len(records("main")) - told == len(set(held("main")) ^ set(old))
    assert len(harvest.lines("search", "*")) == len(held("main"))


def test_unchanged_files_are_confirmed(harvest: Any, later: Later) -> None:
    """The second run publishes unchanged files with a new time under their version, and counts as before."""
    harvest("broker", "create", "brief", "--ttl", "1h")
    harvest("gather", "kept", "--quiet")
    first, told = held("brief"), len(records("brief"))
    later(HOUR * 2 // 3)
    said = harvest("gather", "kept").stderr
    assert all(one.version == first[name].version and one.time > first[name].time for name, one in held("brief").items())
    assert len(records("brief")) == told + 2
    assert "nothing changed" in said
    assert re.search(r"objects unchanged +2\n", said)


def test_nothing_is_confirmed_without_a_time_to_live(harvest: Any, later: Later) -> None:
    """Without a Broker's time-to-live, the second run writes nothing about unchanged files."""
    harvest("gather", "kept", "--quiet")
    first = records("main")
    later(HOUR)
    harvest("gather", "kept", "--quiet")
    assert records("main") == first


def test_half_of_the_shortest_time_to_live_counts() -> None:
    """Confirmations go on after half of the shortest time-to-live; without one, never."""
    assert confirmed_every((Broker(),)) is None
    assert confirmed_every((Broker(), Broker("a", ttl=7), Broker("b", ttl=3_600))) == 3_500
