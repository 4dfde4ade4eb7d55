"""Histories of a few objects through the deciding stages, with crashes: a batch may have several versions of an object.

Batches of the worlds (`worlds.py`) rarely have two versions of an object; those of a busy worker do. The rows that a killed worker
leaves then contain a version whose predecessor is delivered again.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import pytest

from processors.gatherer.catalog import catalog
from processors.identity import member_url, oid
from schemas.ports import Origin
from schemas.records import Complete, Record, Removed, Summary
from streams.simulator import MemoryRows, Simulator
from streams.topology.flow import Topology, TopologySettings, topology

SEEDS = 1_000
CRASHES = 4
URL = "http://example.org/a"


def summary(url: str, path: str, version: int, md5: str = "", gatherer: str = "test") -> Summary:
    """The summary of a member or of an object."""
    whole = member_url(url, path) if path else url
    about: dict[str, Any] = {
        "oid": oid(gatherer, whole),
        "url": whole,
        "object_url": url,
        "path": path,
        "md5": md5 or f"{version:032x}",
    }
    return Summary(**about, gatherer=gatherer, version=version, time=version, type="Text", attempt=f"a{version}")


def complete(url: str, version: int, count: int) -> Complete:
    """The end of an attempt; without a summary, the object is gone."""
    attempt = f"a{version}" if count else ""
    return Complete(
        object_url=url, version=version, time=version, attempt=attempt, count=count, reason="whole" if count else "gone"
    )


def history(chance: random.Random, names: tuple[str, ...]) -> Iterator[Record]:
    """Versions of one or two objects whose members come and go, sometimes with the contents of others.

    Each version is made under one of the Gatherer's names.
    """
    objects = chance.randint(1, 2)
    for version in range(1, chance.randint(3, 5)):
        for number in range(objects):
            url = f"http://example.org/{number}"
            paths = ["", *(f"m{n}" for n in range(2) if chance.random() < 0.5)] if chance.random() < 0.8 else []
            name = chance.choice(names) if len(names) > 1 else names[0]
            for path in paths:
                yield summary(url, path, version, chance.choice(("", "1" * 32, "2" * 32)), name)
            yield complete(url, version, len(paths))


def ended(stages: tuple[str, ...], seed: int, crashes: int, names: tuple[str, ...] = ("test",)) -> Mapping[bytes, Record]:
    """The final summaries of a history, by key; of a Broker, those with the highest publish counter."""
    simulator = Simulator(
        Topology(tuple(topology(TopologySettings()).stage(name) for name in stages)),
        1,
        random.Random(f"{seed} {crashes}").randrange,
        lambda *_: [],
        lambda _: [],
    )
    for record in history(random.Random(seed), names):
        simulator.send("made", record)
    simulator.run(crashes=crashes)
    last: dict[bytes, Summary | Removed] = {}
    for key, record in simulator.records("broker.main" if "register.main" in stages else "summaries"):
        assert isinstance(record, Summary | Removed)
        if key not in last or record.published >= last[key].published:
            last[key] = record
    return {key: msgspec.structs.replace(one, published=0) for key, one in last.items() if isinstance(one, Summary)}


@pytest.mark.parametrize("stages", [("catalog",), ("catalog", "register.main", "dedup.main")], ids=["summaries", "broker"])
def test_history_ends_as_without_crashes(stages: tuple[str, ...]) -> None:
    """A history ends the same with crashes as without, whatever its batches contain and wherever they are cut."""
    failed = [seed for seed in range(SEEDS) if ended(stages, seed, CRASHES) != ended(stages, seed, 0)]
    assert failed == []


@pytest.mark.parametrize("stages", [("catalog",), ("catalog", "register.main", "dedup.main")], ids=["summaries", "broker"])
def test_url_has_one_summary_under_changing_gatherer_names(stages: tuple[str, ...]) -> None:
    """A summary made under another Gatherer's name replaces the old one, wherever batches are cut; no URL has two summaries."""
    names = "test", "other"
    for seed in range(SEEDS // 2):
        found = ended(stages, seed, 0, names)
        urls = [one.url for one in found.values() if isinstance(one, Summary)]
        assert len(urls) == len(set(urls)), seed
        assert ended(stages, seed, CRASHES, names) == found, seed


def test_summary_under_new_oid_replaces_old_one() -> None:
    """The old OID is removed, again until its removal is surely delivered, but not if the member has that OID again."""
    rows = MemoryRows()
    old, new = summary(URL, "", 1), summary(URL, "", 2, gatherer="other")

    def given(record: Summary | Complete, offset: int, committed: int) -> list[tuple[type, str]]:
        return [(type(one), one.oid) for one in catalog(rows, record, Origin("made", 0, offset, committed))]

    assert given(old, 0, 0) == [(Summary, old.oid)]
    assert given(new, 1, 1) == [(Removed, old.oid), (Summary, new.oid)]
    assert given(new, 1, 1) == [(Removed, old.oid), (Summary, new.oid)]
    assert given(complete(URL, 2, 1), 2, 2) == []
    assert given(msgspec.structs.replace(new, version=3), 3, 3) == [(Summary, new.oid)]
    assert given(msgspec.structs.replace(old, version=4), 4, 4) == [(Removed, new.oid), (Summary, old.oid)]


def test_removal_is_repeated_when_batch_comes_again_in_halves() -> None:
    """A removal is repeated when a batch's rows are kept but its outputs are lost, and the batch comes again in two halves."""
    rows = MemoryRows()
    records = [
        *(summary(URL, "", 1), summary(URL, "m", 1), complete(URL, 1, 2)),
        *(summary(URL, "", 2), complete(URL, 2, 1)),
        *(summary(URL, "", 3), complete(URL, 3, 1)),
    ]

    def given(first: int, end: int) -> list[Record]:
        batch = enumerate(records[first:end], first)
        return [made for at, record in batch for made in catalog(rows, record, Origin("made", 0, at, first))]  # type: ignore[arg-type]

    given(0, 7)
    again = [*given(0, 5), *given(5, 7)]
    assert [type(one) for one in again if one.url == member_url(URL, "m")] == [Removed]  # type: ignore[attr-defined]
