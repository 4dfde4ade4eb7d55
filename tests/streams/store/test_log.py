from __future__ import annotations

import re
import threading
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from schemas.codec import encode
from schemas.ports import Log, Logged
from schemas.records import CrawlEvent
from streams.store import LockedError, NewerError, Offsets, Store, StoreError
from streams.store.murmur2 import partition
from streams.store.schema import FILE, PAGE, VERSION

Open = Callable[..., Store]


def values(store: Store, topic: str, partition: int) -> list[bytes | None]:
    """The values of a partition's records."""
    return [logged.value for logged in store.read(topic, partition, 0, 100_000)]


def test_appended_records_are_read_in_order(store: Store) -> None:
    """Appended records are read in order, from any offset, up to a limit and an end."""
    with store.transaction() as tx:
        assert [tx.append("crawl", 2, b"k%d" % i, b"v%d" % i if i else None, 1000 + i) for i in range(5)] == [0, 1, 2, 3, 4]
        assert tx.ends("crawl") == [0, 0, 5, 0]
    assert store.ends("crawl") == [0, 0, 5, 0]
    assert store.read("crawl", 2, 0, 1) == [Logged("crawl", 2, 0, 1000, b"k0", None)]
    assert [r.offset for r in store.read("crawl", 2, 1, 9)] == [1, 2, 3, 4]
    assert [r.offset for r in store.read("crawl", 2, 1, 9, until=3)] == [1, 2]
    assert store.read("crawl", 1, 0, 9) == []
    assert [store.since("crawl", time)[2] for time in (0, 1000, 1001, 1004, 1005)] == [0, 0, 1, 4, 5]
    assert store.since("crawl", 0) == [0, 0, 0, 0]


def test_durable_pragmas(store: Store) -> None:
    """A commit is flushed to the disk: WAL with synchronous=FULL."""
    connection = store._state.connection
    assert (connection.pragma("journal_mode"), connection.pragma("synchronous")) == ("wal", 2)


def test_transaction_rolled_back_by_sqlite_is_an_error(store: Store) -> None:
    """If SQLite has rolled a transaction back by itself, as after a disk error, its end raises StoreError and writes nothing."""
    tx = store.transaction().__enter__()
    tx.append("crawl", 0, b"k", b"v", 1)
    tx.rows("stage", 0).put(b"k", b"v")
    store._state.cursor.execute("ROLLBACK")
    with pytest.raises(StoreError, match="undone"):
        tx.__exit__(None, None, None)
    assert store.ends("crawl") == [0, 0, 0, 0]
    assert values(store, "crawl", 0) == []
    assert store.rows("stage", 0) is None


def test_damaged_pages_are_an_error_of_one_line(folder: Path, opened: Open) -> None:
    """A read of a damaged log or of damaged rows raises an error of one line with the path."""
    with opened(runner=True) as store, store.transaction() as tx:
        tx.append("crawl", 0, b"k", b"v", 1)
        tx.rows("stage", 0).put(b"k", b"v")
    connection = apsw.Connection(str(folder / FILE))
    query = "SELECT rootpage FROM sqlite_master WHERE name LIKE 'log%' OR tbl_name LIKE 'rows%'"
    pages = [page for (page,) in connection.execute(query)]
    connection.close()
    with open(folder / FILE, "r+b") as file:
        for page in pages:
            file.seek((page - 1) * PAGE)
            file.write(b"\xff" * PAGE)
    damaged = opened(readonly=True)
    rows = damaged.rows("stage", 0)
    assert rows
    reads: list[Callable[[], object]] = [
        lambda: damaged.read("crawl", 0, 0, 1),
        lambda: damaged.starts("crawl"),
        lambda: rows.get(b"k"),
        lambda: list(rows.scan(b"")),
    ]
    for read in reads:
        with pytest.raises(StoreError, match=rf"^{re.escape(str(folder / FILE))}: .*malformed"):
            read()


def test_nothing_is_visible_before_commit(store: Store, opened: Open) -> None:
    """Before the commit of a transaction no reader sees its records, rows or offsets."""
    beside = opened(readonly=True)
    with store.transaction() as tx:
        tx.append("crawl", 0, b"k", b"v", 1)
        tx.rows("stage", 0).put(b"k", b"v")
        tx.commit_offset("group", "crawl", 0, Offsets(1))
        for reader in (store, beside):
            assert (reader.ends("crawl")[0], values(reader, "crawl", 0), reader.offsets("group")) == (0, [], {})
        assert beside.rows("stage", 0) is None
    rows = beside.rows("stage", 0)
    assert rows
    assert rows.get(b"k") == b"v"
    assert (beside.ends("crawl")[0], values(beside, "crawl", 0)) == (1, [b"v"])


def test_abort_undoes_everything(store: Store) -> None:
    """An exception in the block removes its records, rows, staged records and offsets; the next transaction starts without them."""
    tx = store.transaction().__enter__()
    tx.append("crawl", 0, b"k", b"v", 1)
    tx.rows("stage", 0).put(b"k", b"v")
    tx.stage("o", "crawl", 0, b"k", b"s", 1)
    tx.commit_offset("group", "crawl", 0, Offsets(1))
    tx.__exit__(ValueError, ValueError("no"), None)
    with store.transaction() as tx:
        assert (tx.rows("stage", 0).get(b"k"), tx.offsets("group", "crawl", 0)) == (None, Offsets())
        assert (tx.publish("o"), tx.append("crawl", 0, b"k", b"w", 2)) == (0, 0)
    assert values(store, "crawl", 0) == [b"w"]


STEPS = st.lists(
    st.one_of(st.tuples(st.sampled_from(["append", "stage"]), st.integers(0, 1)), st.tuples(st.just("publish"), st.just(0)))
)


@given(before=STEPS, undone=STEPS, after=STEPS)
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_rollback_to_mark(
    store: Store, before: list[tuple[str, int]], undone: list[tuple[str, int]], after: list[tuple[str, int]]
) -> None:
    """Everything written after a mark is removed, as if those steps had never been made."""
    starts = [len(values(store, "crawl", p)) for p in (0, 1)]
    expected: list[list[bytes]] = [[], []]
    held: list[list[bytes]] = [[], []]
    with store.transaction() as tx:

        def play(steps: list[tuple[str, int]], name: bytes) -> None:
            for number, (step, at) in enumerate(steps):
                value = name + b"%d" % number
                if step == "append":
                    offset = tx.append("crawl", at, b"k", value, 1)
                    if name != b"undone":
                        assert offset == starts[at] + len(expected[at])
                        expected[at].append(value)
                elif step == "stage":
                    tx.stage("o", "crawl", at, b"k", value, 1)
                    if name != b"undone":
                        held[at].append(value)
                else:
                    tx.publish("o")
                    if name != b"undone":
                        for p in (0, 1):
                            expected[p] += held[p]
                            held[p].clear()

        play(before, b"before")
        mark = tx.mark()
        play(undone, b"undone")
        tx.commit_offset("g", "crawl", 0, Offsets(7))
        tx.rollback_to(mark)
        assert tx.offsets("g", "crawl", 0) == Offsets()
        play(after, b"after")
        tx.unstage("o")
    assert [values(store, "crawl", p)[starts[p] :] for p in (0, 1)] == expected


def test_staged_records_appear_when_published(store: Store, opened: Open) -> None:
    """Staged records stay invisible over several transactions, and appear in order and without gaps when published."""
    for i in range(3):
        with store.transaction() as tx:
            tx.stage("object", "crawl", i % 2, b"k", b"s%d" % i, 5)
            tx.append("crawl", 0, b"k", b"a%d" % i, 5)
    assert values(opened(readonly=True), "crawl", 0) == [b"a0", b"a1", b"a2"]
    with store.transaction() as tx:
        tx.append("crawl", 0, b"k", b"before", 5)
        assert tx.publish("object") == 3
        assert tx.append("crawl", 0, b"k", b"behind", 5) == 6
        assert tx.publish("object") == 0
    assert values(store, "crawl", 0) == [b"a0", b"a1", b"a2", b"before", b"s0", b"s2", b"behind"]
    assert values(store, "crawl", 1) == [b"s1"]


def test_unpublished_records_are_dropped_by_the_next_runner(store: Store, opened: Open) -> None:
    """Records that a run staged and did not publish are dropped when the next runner starts, not by a reader or an appender."""
    with store.transaction() as tx:
        tx.stage("object", "crawl", 0, b"k", b"s", 5)
    store.close()
    opened(readonly=True)
    assert opened()._state.staged("object").total() == 1
    with opened(runner=True).transaction() as tx:
        assert tx.publish("object") == 0


def test_offsets_and_lag(store: Store) -> None:
    """A group's offsets are restored with those finished above the lowest unfinished one, and lag counts the rest."""
    with store.transaction() as tx:
        for i in range(10):
            tx.append("crawl", 1, b"k", b"%d" % i, 1)
        tx.commit_offset("fetch", "crawl", 1, Offsets(2, frozenset({5, 9})))
        assert tx.offsets("fetch", "crawl", 1) == Offsets(2, frozenset({5, 9}))
    with store.transaction() as tx:
        assert tx.offsets("fetch", "crawl", 1) == Offsets(2, frozenset({5, 9}))
        assert tx.offsets("fetch", "crawl", 2) == Offsets()
    assert store.offsets("fetch") == {("crawl", 1): Offsets(2, frozenset({5, 9}))}
    assert (store.groups(), store.lag("fetch"), store.lag("none")) == (["fetch"], {("crawl", 1): 6}, {})


def test_store_implements_log(opened: Open) -> None:
    """The store implements Log: records are encoded, and assigned to partitions by murmur2 unless one is given."""
    log: Log = opened(clock=lambda: 77)
    event = CrawlEvent(kind="seeded", host="h", time=1)
    log.append("crawl", [(b"%d" % i, event if i else None) for i in range(20)])
    log.append("crawl", [(b"told", event)], partition=3)
    expected = [[b"%d" % i for i in range(20) if partition(b"%d" % i, 4) == p] for p in range(4)]
    expected[3].append(b"told")
    assert [[r.key for r in log.read("crawl", p, 0, 99)] for p in range(4)] == expected
    assert {(r.time, r.value) for p in range(4) for r in log.read("crawl", p, 0, 99)} == {(77, None), (77, encode(event))}
    assert log.topics() == {"crawl": 4, "summaries": 1}


def test_unknown_topic_or_partition_raises_key_error(store: Store) -> None:
    """An unknown topic or partition raises KeyError, and the transaction is rolled back."""
    with pytest.raises(KeyError):
        store.ends("none")
    with pytest.raises(KeyError), store.transaction() as tx:
        tx.append("crawl", 4, b"k", b"v", 1)
    with pytest.raises(KeyError):
        store.append("none", [])


def test_number_of_partitions_is_fixed(store: Store, folder: Path) -> None:
    """A topic keeps its number of partitions; new topics are added, also while others have the store open."""
    with Store(folder, {"crawl": 8, "broker.new": 2}) as other:
        assert other.topics() == {"broker.new": 2, "crawl": 4, "summaries": 1}
    assert store.ends("broker.new") == [0, 0]
    store.create({"later": 1})
    with store.transaction() as tx:
        assert tx.append("later", 0, b"k", b"v", 1) == 0


def test_one_transaction_at_a_time(store: Store) -> None:
    """A second transaction of the same store is refused, and the first continues unaffected."""
    with store.transaction() as tx:
        tx.append("crawl", 0, b"k", b"v", 1)
        with pytest.raises(RuntimeError, match="open already"), store.transaction():
            pass
    assert values(store, "crawl", 0) == [b"v"]


def test_second_runner_is_refused(store: Store, opened: Open) -> None:
    """A second runner gets an error of one line that names the folder; appenders and readers do not; closing releases the lock."""
    with pytest.raises(LockedError, match=r"data: in use by another run of harvest \(process \d+\)") as caught:
        opened(runner=True)
    assert "\n" not in str(caught.value)
    opened()
    opened(readonly=True)
    store.close()
    opened(runner=True)


def test_opening_writes_nothing(store: Store, opened: Open) -> None:
    """Opening a store that is there commits nothing, which would empty the caches of others, and waits for no transaction."""
    before = store._state.connection.pragma("data_version")
    with store.transaction() as tx:
        tx.append("crawl", 0, b"k", b"v", 1)
        opened(timeout=0).topics()
    assert store._state.connection.pragma("data_version") == before


def test_newer_version_is_refused(store: Store, folder: Path) -> None:
    """A folder written by a newer version is refused with an error of one line, in every mode, and not changed."""
    store.close()
    apsw.Connection(str(folder / FILE)).execute(f"PRAGMA user_version={VERSION + 1}")
    for options in ({}, {"readonly": True}, {"runner": True}):
        with pytest.raises(NewerError, match=r"written by a newer version of harvest \(store version 3, this program knows 2\)"):
            Store(folder, **options)  # type: ignore[arg-type]


def test_missing_or_foreign_store_is_an_error(folder: Path) -> None:
    """A missing folder (for a reader), a file that is no database and a foreign database each give an error of one line."""
    with pytest.raises(StoreError, match="no data of harvest"):
        Store(folder, readonly=True)
    assert not folder.exists()
    folder.mkdir()
    (folder / FILE).write_bytes(b"something else " * 1000)
    with pytest.raises(StoreError, match="not a database"):
        Store(folder)
    (folder / FILE).unlink()
    with apsw.Connection(str(folder / FILE)) as other:
        other.execute("CREATE TABLE t(x)")
    with pytest.raises(StoreError, match="not a store of harvest"):
        Store(folder)
    with pytest.raises(StoreError, match=r"File exists|Not a directory"):
        Store(folder / FILE)


def test_reader_cannot_write(store: Store, opened: Open) -> None:
    """A store opened for reading refuses writes with an error of one line."""
    with pytest.raises(StoreError, match="for reading only"):
        opened(readonly=True).append("crawl", [(b"k", None)])


def test_threads_append_with_separate_stores(store: Store, folder: Path) -> None:
    """Threads with separate stores append to one partition: no offset is lost or duplicated."""

    def appender() -> None:
        with Store(folder) as mine:
            for _ in range(50):
                mine.append("crawl", [(b"k", None)], partition=0)

    threads = [threading.Thread(target=appender) for _ in range(3)]
    for thread in threads:
        thread.start()
    for i in range(50):
        with store.transaction() as tx:
            tx.append("crawl", 0, b"k", b"%d" % i, 1)
    for thread in threads:
        thread.join()
    assert store.ends("crawl")[0] == 200
    assert [r.offset for r in store.read("crawl", 0, 0, 999)] == list(range(200))
    assert [v for v in values(store, "crawl", 0) if v is not None] == [b"%d" % i for i in range(50)]
