"""Large families of equal contents, answered in rounds of bounded chunks, under crashes and redelivery."""

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
def test_members_of_large_family_get_final_roles(
    seed: int, partitions: int, world: World, make_simulator: Make, seeded: Seeded, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a family that takes many ticks, every member gets its final role."""
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
    """Rows that count the scanned ones."""

    scanned = 0

    def scan(self, prefix: bytes, after: bytes = b"", limit: int = -1) -> Iterator[tuple[bytes, bytes]]:
        for found in super().scan(prefix, after, limit):
            self.scanned += 1
            yield found


def test_growing_family_is_answered_in_bounded_chunks() -> None:
    """A growing family gets a chunk of roles in each lull, and no tick scans more rows; in the end all roles are right."""
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
