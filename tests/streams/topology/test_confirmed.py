"""Confirmations in the catalog: members of an unchanged object are published again, with a new time and the same version."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from processors.broker.register import Plan, register
from processors.gatherer.catalog import Catalogued, Input, catalog
from schemas.ports import Origin
from schemas.records import Annotation, Complete, Confirmed, Partial, Record, Removed, Summary, Withdrawn
from streams.simulator import MemoryRows, Simulator
from streams.topology.flow import Topology, TopologySettings, topology
from tests.streams.topology.test_histories import URL, complete, history, summary

SEEDS = 400
CRASHES = 4
LATER = 1_000


def confirmed(version: int, time: int, url: str = URL) -> Confirmed:
    """A confirmation of an object."""
    return Confirmed(object_url=url, version=version, time=time)


class Catalog:
    """One partition of the catalog."""

    def __init__(self) -> None:
        self.rows = MemoryRows()
        self.offset = 0

    def __call__(self, *records: Input) -> list[Catalogued]:
        """Return what some records publish, each delivered once."""
        published: list[Catalogued] = []
        for record in records:
            self.offset += 1
            published += catalog(self.rows, record, Origin("made", 0, self.offset, self.offset))
        return published


def test_held_members_are_published_with_the_new_time() -> None:
    """Each member that is held is published under its own version, annotated as ever; a removed one is not."""
    give = Catalog()
    give(Annotation(url=URL, object_url=URL, time=1, attributes={"note": ("n",)}))
    give(*(summary(URL, path, 1) for path in ("", "a", "b")), complete(URL, 1, 3))
    give(
        Withdrawn(object_url=URL, version=2, time=2, attempt="a2", path="b"),
        Partial(object_url=URL, version=2, time=2, attempt="a2", count=0),
    )
    published = give(confirmed(3, LATER))
    assert [(one.url, one.version, one.time) for one in published] == [(URL, 1, LATER), (f"{URL}#a", 1, LATER)]
    assert isinstance(published[0], Summary)
    assert published[0].annotations == {"note": ("n",)}


def test_a_redelivered_confirmation_is_repeated_and_an_older_one_is_not() -> None:
    """An equal time is published again, since the first publication may be lost; no time goes back."""
    give = Catalog()
    give(summary(URL, "", 1), complete(URL, 1, 1))
    assert give(confirmed(2, LATER)) == give(confirmed(2, LATER)) != []
    assert give(confirmed(2, LATER - 1)) == []
    (again,) = give(summary(URL, "", 1))
    assert again.time == LATER


def test_another_attempt_at_a_confirmed_version_is_published_by_a_broker() -> None:
    """An object that is summarized anew under its version, as by a retry, reaches a Broker although it was confirmed since."""
    give, rows = Catalog(), MemoryRows()
    made = (*give(summary(URL, "", 1)), *give(confirmed(2, LATER)), *give(replace(summary(URL, "", 1), attempt="b", type="Text")))
    assert [one.time for one in made][1:] == [LATER, LATER]
    published = [one for n, record in enumerate(made) for one in register(rows, record, Origin("summaries", 0, n, n), Plan())]
    assert [one.type for one in published if isinstance(one, Summary)][2:] == ["Text"]


def test_a_confirmation_brings_nothing_back() -> None:
    """An object that is gone, or has a later version, is not confirmed by an earlier request; one that is unknown neither."""
    give = Catalog()
    assert give(confirmed(1, LATER)) == []
    give(summary(URL, "", 3), complete(URL, 3, 1))
    assert give(confirmed(2, LATER)) == []
    give(complete(URL, 4, 0))
    assert give(confirmed(5, LATER)) == []


def confirmed_history(chance: random.Random) -> Iterator[Record]:
    """A history of objects that are confirmed now and then: see `history`."""
    for number, record in enumerate(history(chance, ("test",))):
        yield record
        if isinstance(record, Complete) and chance.random() < 0.6:
            yield confirmed(record.version, LATER + number, record.object_url)


def ended(seed: int, crashes: int) -> Mapping[bytes, Record]:
    """The final summaries of a history, by key."""
    stages = Topology((topology(TopologySettings()).stage("catalog"),))
    simulator = Simulator(stages, 1, random.Random(f"{seed} {crashes}").randrange, lambda *_: [], lambda _: [])
    for record in confirmed_history(random.Random(seed)):
        simulator.send("made", record)
    simulator.run(crashes=crashes)
    last: dict[bytes, Record] = {}
    for key, record in simulator.records("summaries"):
        assert isinstance(record, Summary | Removed)
        last[key] = replace(record, published=0)
    return {key: one for key, one in last.items() if isinstance(one, Summary)}


def test_confirmed_history_ends_as_without_crashes() -> None:
    """With crashes, confirmed objects end with the same versions and times as without."""
    failed = [seed for seed in range(SEEDS) if ended(seed, CRASHES) != ended(seed, 0)]
    assert failed == []
