"""How an edge takes records from the partitions of its input."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from schemas.records import Tick
from streams.edges.base import EdgeBase
from streams.store import Offsets, Store


class Taking(EdgeBase):
    """An edge that does not process what it takes."""

    def launch(self, ready: int = 0) -> None:
        """Do nothing."""


@pytest.mark.parametrize("room", [1, 2, 3, 7])
def test_every_partition_gets_its_share(tmp_path: Path, room: int) -> None:
    """However few records are taken at a time, every partition gets its share, and an empty one does not delay the others."""
    with Store(tmp_path / "d", {"t": 5}) as store:
        for p in range(4):
            store.append("t", [(b"k", Tick(time=n)) for n in range(100)], partition=p)
        edge = Taking("fetch", "t", store, 5, ordered=False)
        for p in range(5):
            edge.open(p, Offsets())
        begun: Counter[int] = Counter()
        while sum(begun.values()) < 200:
            for logged in edge.take(room):
                begun[logged.partition] += 1
                edge.windows[logged.partition].finish(logged.offset)
        assert set(begun) == {0, 1, 2, 3}
        assert min(begun.values()) >= max(begun.values()) // 2
