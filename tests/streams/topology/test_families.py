"""Large families of equal contents: answered in rounds of bounded chunks, whatever is redelivered meanwhile."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from processors.broker import dedup
from schemas.ports import Origin
from schemas.records import Holder, Tick
from streams.simulator import MemoryRows
from tests.streams.topology.worlds import Make, Seeded, check, disturb, furnish, gather, oracle, reachable_only

if TYPE_CHECKING:
    from tests.streams.topology.conftest import World


@pytest.mark.parametrize("partitions", [1, 4])
@pytest.mark.parametrize("seed", range(12))
def test_chunks_and_crashes(
    seed: int, partitions: int, world: World, make_simulator: Make, seeded: Seeded, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a family takes many ticks, every member is told all the same what it is in the end."""
    monkeypatch.setattr(dedup, "SMALL", 2)
    monkeypatch.setattr(dedup, "CHUNK", 2)
    rng = random.Random(seed)
    simulator = make_simulator(world, partitions, rng)
    furnish(world, rng, 8)
    for run in ("r1", "r2", "r3"):
        for i in range(rng.randrange(12)):
            world.write(f"same{rng.randrange(20):02}{'x' * (i % 3)}", b"licence")
        gather(simulator, run, seeded, crashes=20)
        check(simulator, reachable_only(world, oracle(world), simulator))
        disturb(world, rng)


class CountedRows(MemoryRows):
    """Rows that count what is scanned of them."""

    scanned = 0

    def scan(self, prefix: bytes, after: bytes = b"", limit: int = -1) -> Iterator[tuple[bytes, bytes]]:
        for found in super().scan(prefix, after, limit):
            self.scanned += 1
            yield found


def test_a_family_that_goes_on_growing() -> None:
    """It is told as it grows, a chunk a lull, and no tick looks at more of it than that; in the end all know their place."""
    rows, now, joined, ticks = CountedRows(), 1_000_000, 0, 0
    told: dict[str, str] = {}

    def tick() -> bool:
        nonlocal ticks
        due = dedup.deadline(rows)
        if due is None or due > now:
            return due is not None
        before = rows.scanned
        told.update((role.oid, role.copy_of) for role in dedup.dedup(rows, Tick(time=now), Origin("dedup.ticks", 0, ticks, ticks)))
        assert rows.scanned - before < 2 * dedup.CHUNK
        ticks += 1
        return True

    for turn in range(100):
        for _ in range(50):
            url = f"http://h/{joined:06}"
            holder = Holder(content="c", oid=url, url=url, member=False, version=1, joined=True)
            told.update((role.oid, role.copy_of) for role in dedup.dedup(rows, holder, Origin("holders", 0, joined, joined)))
            joined += 1
        now += 100
        tick()
        assert ticks <= 2 + turn * 100 // dedup.LULL
    assert len(told) > joined // 2
    while tick():
        now += 100
    assert told == {f"http://h/{n:06}": "http://h/000000" if n else "" for n in range(joined)}
