from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from streams.store import Offsets, Store, upkeep

Records = list[tuple[bytes, bytes | None]]

RECORDS = st.lists(st.tuples(st.sampled_from([b"a", b"b", b"c"]), st.sampled_from([b"1", b"2", None])), max_size=25)


def write(store: Store, topic: str, records: Records, start: int = 0) -> None:
    """Append to partition 0, record n at the time `start` + n."""
    with store.transaction() as tx:
        for number, (key, value) in enumerate(records, start):
            tx.append(topic, 0, key, value, number)


def test_trim_needs_age_and_offset(store: Store) -> None:
    """A trim removes records that are both older than the time and below the offset, and the horizon informs readers."""
    write(store, "crawl", [(b"k", b"%d" % i) for i in range(10)])
    assert store.trim("crawl", before_ms=7, below={0: 5}) == 5
    assert (store.starts("crawl"), store.ends("crawl"), store.horizons("crawl")) == ([5, 0, 0, 0], [10, 0, 0, 0], [5, 0, 0, 0])
    assert store.trim("crawl", before_ms=7, below={0: 10, 1: 10}) == 2
    assert [r.offset for r in store.read("crawl", 0, 0, 99)] == [7, 8, 9]
    assert store.trim("crawl", before_ms=99, below={}) == 0
    assert store.trim("crawl", before_ms=99, below={0: 99}) == 3
    assert (store.starts("crawl"), store.ends("crawl")) == ([10, 0, 0, 0], [10, 0, 0, 0])
    with store.transaction() as tx:
        assert tx.append("crawl", 0, b"k", b"v", 100) == 10


def test_trim_in_several_transactions(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A trim of many records takes several transactions, with the same result."""
    monkeypatch.setattr(upkeep, "CHUNK", 7)
    write(store, "crawl", [(b"k", b"v")] * 50)
    assert store.trim("crawl", before_ms=45, below={0: 99}) == 45
    assert store.starts("crawl")[0] == 45


@given(old=RECORDS, new=RECORDS, before=st.integers(0, 60), bounds=st.tuples(st.integers(1, 4), st.integers(1, 9)))
@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_compaction_keeps_the_last_record_of_each_key(
    store: Store, old: Records, new: Records, before: int, bounds: tuple[int, int]
) -> None:
    """With any memory and chunk size, compaction keeps the last record of each key, except old tombstones."""
    keys, chunk = bounds
    topic = f"t{len(store.topics())}"
    store.create({topic: 1})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(upkeep, "CHUNK", chunk)
        write(store, topic, old)
        store.compact(topic, 0, keys)
        write(store, topic, new, len(old))
        dropped = store.compact(topic, before, keys)
    last = {key: offset for offset, (key, _) in enumerate([*old, *new])}
    expected = [(o, k, v) for o, (k, v) in enumerate([*old, *new]) if last[k] == o and (v is not None or o >= before)]
    assert [(r.offset, r.key, r.value) for r in store.read(topic, 0, 0, 999)] == expected
    assert store.compact(topic, before, keys) == 0
    gone = [o for k, o in last.items() if [*old, *new][o][1] is None and o < before]
    assert store.horizons(topic)[0] >= max(gone, default=-1) + 1
    assert dropped >= len(gone)


def test_compaction_without_tombstones_keeps_the_horizon(store: Store) -> None:
    """Compaction that removes no tombstone does not move the horizon: a slow reader misses nothing."""
    write(store, "summaries", [(b"a", b"1"), (b"a", b"2")])
    assert store.compact("summaries", 99) == 1
    assert store.horizons("summaries") == [0]


def test_find_by_key_and_by_text(store: Store) -> None:
    """A search returns the records with a key, and those whose value contains a text, in order, over all partitions."""
    with store.transaction() as tx:
        for i in range(1_000):
            tx.append("crawl", i % 4, b"key%d" % i, b"\x00see http://host/%d\xff" % (i % 10), i)
        tx.append("crawl", 0, b"http://host/3", None, 1)
    found = list(store.find("crawl", b"http://host/3"))
    assert len(found) == 101
    assert found == sorted(found, key=lambda r: (r.partition, r.offset))
    assert list(store.find("crawl", b"nowhere")) == []


def test_stats_count_records_and_bytes(store: Store) -> None:
    """Statistics count records and bytes of keys and values by topic, and the size of the files."""
    write(store, "crawl", [(b"key", b"value"), (b"key", None)])
    stats = store.stats()
    assert stats.topics == {"crawl": (2, 11), "summaries": (0, 0)}
    assert stats.file_bytes > 0


def test_drop_removes_records_and_moves_the_horizon(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dropped records are gone, also with several transactions, and the horizon informs readers below the last one."""
    monkeypatch.setattr(upkeep, "CHUNK", 2)
    write(store, "crawl", [(b"k", b"v")] * 8)
    assert store.drop("crawl", {0: [1, 2, 5], 1: []}) == 3
    assert [logged.offset for logged in store.read("crawl", 0, 0, 99)] == [0, 3, 4, 6, 7]
    assert (store.horizons("crawl"), store.ends("crawl")[0]) == ([6, 0, 0, 0], 8)
    with pytest.raises(KeyError):
        store.drop("nothing", {0: [1]})


def test_forgotten_topics_leave_no_records_rows_or_offsets(store: Store) -> None:
    """Forgotten topics and stages leave nothing, also no offsets of other readers; topics made again begin at 0."""
    store.create({"gone": 2, "left": 1})
    write(store, "gone", [(b"k", b"1"), (b"k", b"2")])
    with store.transaction() as tx:
        tx.append("left", 0, b"k", b"v", 1)
        for group, topic in (("reader", "gone"), ("reader", "left"), ("stage", "left")):
            tx.commit_offset(group, topic, 0, Offsets(1))
        tx.stage("essence", "gone", 1, b"k", b"3", 1)
        for name in ("stage", "reader"):
            tx.rows(name, 0).put(b"row", b"1")
    assert store.forget(["gone", "never"], ["stage", "none"]) == 2
    assert (store.forget(["gone"], ["stage"]), "gone" in store.topics()) == (0, False)
    assert (set(store.offsets("reader")), store.offsets("stage")) == ({("left", 0)}, {})
    assert store.rows("stage", 0) is None
    kept = store.rows("reader", 0)
    assert kept is not None
    assert kept.get(b"row") == b"1"
    store.create({"gone": 2})
    with store.transaction() as tx:
        assert tx.publish("essence") == 0
        assert tx.rows("stage", 0).get(b"row") is None
        assert tx.offsets("reader", "gone", 0) == Offsets()
    assert (store.ends("gone"), store.read("left", 0, 0, 9)[0].value) == ([0, 0], b"v")
