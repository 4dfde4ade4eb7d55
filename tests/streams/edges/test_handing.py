"""The cache of appended records: edges get each record once, in order and complete, without a read of the log."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.ports import Logged
from schemas.records import Tick
from streams.embedded import edge_cache
from streams.embedded.edge_cache import EdgeCache


class Log:
    """A log of one partition that counts the records read from it."""

    def __init__(self) -> None:
        self.records: list[Logged] = []
        self.asked = 0

    def append(self, size: int = 1) -> Logged:
        """Append a record, and return it with its decoded form, which a read of the log does not have."""
        offset = len(self.records)
        self.records.append(Logged("objects", 0, offset, 1, b"k", b"v" * size))
        return self.records[-1]._replace(record=Tick(time=offset, ends={}))

    def ends(self, topic: str) -> Sequence[int]:
        """Same signature as `Source.ends`."""
        return [len(self.records)]

    def read(self, topic: str, partition: int, offset: int, limit: int) -> Sequence[Logged]:
        """Same signature as `Source.read`."""
        found = self.records[offset : offset + limit]
        self.asked += len(found)
        return found


@given(st.lists(st.tuples(st.sampled_from(["keep", "miss", "read"]), st.integers(1, 5)), max_size=60))
def test_each_record_is_returned_once_in_order(steps: list[tuple[str, int]]) -> None:
    """For any order of cached, uncached and read records, each is returned once, in order of offsets, with the bytes of the log."""
    log = Log()
    source = EdgeCache(log)
    given = list[Logged]()
    for step, count in [*steps, *[("read", 5)] * 120]:
        if step == "keep":
            source.keep([log.append() for _ in range(count)])
        elif step == "miss":
            for _ in range(count):
                log.append()
        else:
            given += source.read("objects", 0, len(given), count)
    assert [one._replace(record=None) for one in given] == log.records
    assert all(one.record in (None, Tick(time=one.offset, ends={})) for one in given)
    assert source._bytes == 0


def test_cached_records_are_not_read_from_the_log() -> None:
    """A cached record is returned decoded, without a read of the log; a second read comes from the log."""
    log = Log()
    source = EdgeCache(log)
    kept = [log.append() for _ in range(10)]
    source.keep(kept)
    assert [one for at in (0, 4, 8) for one in source.read("objects", 0, at, 4)] == kept
    assert log.asked == 0
    assert source.read("objects", 0, 3, 2) == log.records[3:5]


@pytest.mark.parametrize(("name", "bound"), [("COUNT", 5), ("BYTES", 5 * 101)])
def test_records_beyond_the_bound_are_read_from_the_log(monkeypatch: pytest.MonkeyPatch, name: str, bound: int) -> None:
    """Records that exceed the bounds of the cache, and all that follow them, are read from the log."""
    monkeypatch.setattr(edge_cache, name, bound)
    log = Log()
    source = EdgeCache(log)
    source.keep([log.append(100) for _ in range(8)])
    assert len(source.read("objects", 0, 0, 3)) == 3
    source.keep([log.append(100)])
    assert [one.record is not None for one in source.read("objects", 0, 3, 2)] == [True, True]
    assert source.read("objects", 0, 5, 9) == log.records[5:]
    assert log.asked == 4
