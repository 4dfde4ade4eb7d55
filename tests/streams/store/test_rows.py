from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from schemas.ports import Rows
from streams.store import Store, Transaction
from streams.store.rows import CHUNK_MIN, successor
from streams.store.seen import BITS, Seen, is_stem

KEYS = st.one_of(st.binary(max_size=3), st.text("ab\xff|\0", max_size=4).map(lambda s: s.encode("latin-1")))
VALUES = st.binary(max_size=40)


class RowsMachine(RuleBasedStateMachine):
    """Rows in and out of transactions, compared with a dict that is copied at each mark and commit."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.committed: dict[bytes, bytes] = {}
        self.model: dict[bytes, bytes] = {}
        self.marks: list[tuple[int, dict[bytes, bytes]]] = []
        self.tx: Transaction | None = None

    @initialize(cache=st.sampled_from([0, 600, 1 << 20]))
    def open(self, cache: int) -> None:
        self.store = Store(self.folder, {"t": 1}, runner=True, rows_cache=cache)

    def rows(self) -> Rows:
        assert self.tx is not None
        return self.tx.rows("stage", 0)

    @precondition(lambda self: self.tx is None)
    @rule()
    def begin(self) -> None:
        self.tx = self.store.transaction().__enter__()

    @precondition(lambda self: self.tx is not None)
    @rule(key=KEYS, value=VALUES)
    def put(self, key: bytes, value: bytes) -> None:
        self.rows().put(key, value)
        self.model[key] = value

    @precondition(lambda self: self.tx is not None)
    @rule(keys=st.lists(KEYS, max_size=8))
    def prefetch(self, keys: list[bytes]) -> None:
        assert self.tx is not None
        self.tx.rows("stage", 0).prefetch(keys)

    @precondition(lambda self: self.tx is not None)
    @rule(prefix=st.binary(max_size=2), count=st.integers(1, 3 * CHUNK_MIN))
    def put_many(self, prefix: bytes, count: int) -> None:
        for i in range(count):
            self.put(prefix + bytes((i,)), b"many")

    @precondition(lambda self: self.tx is not None)
    @rule(key=KEYS)
    def delete(self, key: bytes) -> None:
        self.rows().delete(key)
        self.model.pop(key, None)

    @precondition(lambda self: self.tx is not None)
    @rule(key=KEYS)
    def get(self, key: bytes) -> None:
        assert self.rows().get(key) == self.model.get(key)

    @precondition(lambda self: self.tx is not None)
    @rule(prefix=KEYS, after=KEYS, limit=st.integers(-1, 70))
    def scan(self, prefix: bytes, after: bytes, limit: int) -> None:
        expected = sorted((k, v) for k, v in self.model.items() if k.startswith(prefix) and k > after)
        assert list(self.rows().scan(prefix, after, limit)) == (expected if limit < 0 else expected[:limit])

    @precondition(lambda self: self.tx is not None)
    @rule()
    def mark(self) -> None:
        assert self.tx is not None
        self.marks.append((self.tx.mark(), dict(self.model)))

    @precondition(lambda self: self.marks)
    @rule(back=st.integers(1, 3))
    def rollback(self, back: int) -> None:
        assert self.tx is not None
        mark, self.model = self.marks[-min(back, len(self.marks))]
        del self.marks[-min(back, len(self.marks)) :]
        self.tx.rollback_to(mark)

    @precondition(lambda self: self.tx is not None)
    @rule(commit=st.booleans())
    def end(self, *, commit: bool) -> None:
        assert self.tx is not None
        error = None if commit else KeyError("no")
        self.tx.__exit__(type(error) if error else None, error, None)
        self.tx, self.marks = None, []
        if commit:
            self.committed = dict(self.model)
        self.model = dict(self.committed)

    @precondition(lambda self: self.tx is None)
    @rule(key=KEYS, value=VALUES)
    def write_beside(self, key: bytes, value: bytes) -> None:
        with Store(self.folder) as other, other.transaction() as tx:
            tx.rows("stage", 0).put(key, value)
        self.model[key] = self.committed[key] = value

    @precondition(lambda self: self.tx is None)
    @rule()
    def reopen(self) -> None:
        self.store.close()
        self.open(600)

    @invariant()
    def reads_see_what_is_committed(self) -> None:
        if hasattr(self, "store"):
            rows = self.store.rows("stage", 0)
            assert dict(rows.scan(b"", b"") if rows else []) == {k: v for k, v in self.committed.items() if k}

    def teardown(self) -> None:
        if self.tx:
            self.end(commit=True)
        if hasattr(self, "store"):
            self.store.close()
        shutil.rmtree(self.folder)


TestRows = RowsMachine.TestCase
TestRows.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestRows.__doc__ = "Rows are a dict in order of the key: through transactions, marks, aborts, scans and small caches."


def test_successor_ends_the_range_of_a_prefix() -> None:
    """The end of a prefix's range is the smallest key above it, or none."""
    assert [successor(p) for p in (b"a", b"a\xff", b"\xff\xff", b"")] == [b"b", b"b", None, None]


def test_no_write_after_the_transaction(store: Store) -> None:
    """Rows cannot be written after the end of their transaction."""
    with store.transaction() as tx:
        rows = tx.rows("stage", 0)
        rows.put(b"a", b"1")
    with pytest.raises(RuntimeError, match="transaction"):
        rows.put(b"b", b"2")


def test_rows_may_be_deleted_during_a_scan(store: Store) -> None:
    """Rows may be deleted during a scan: each is returned once, and none remains."""
    keys = [b"q|%04d" % i for i in range(3_000)]
    with store.transaction() as tx:
        for key in keys:
            tx.rows("frontier", 0).put(key, b"x")
    with store.transaction() as tx:
        rows = tx.rows("frontier", 0)
        seen = []
        for key, _ in rows.scan(b"q|"):
            rows.delete(key)
            seen.append(key)
        assert seen == keys
        assert list(rows.scan(b"")) == []


def test_rows_of_another_process_are_found(store: Store, opened: Callable[..., Store]) -> None:
    """Rows that another process wrote into a table known to be empty are found."""
    with store.transaction() as tx:
        assert tx.rows("a", 0).get(b"g\0x") is None
    with opened().transaction() as tx:
        tx.rows("a", 0).put(b"g\0x", b"1")
    with store.transaction() as tx:
        assert tx.rows("a", 0).get(b"g\0x") == b"1"
        assert list(tx.rows("a", 0).scan(b"g\0")) == [(b"g\0x", b"1")]


def test_stages_and_partitions_have_separate_rows(store: Store) -> None:
    """Stages and partitions have separate rows."""
    with store.transaction() as tx:
        for name, partition in (("a", 0), ("a", 1), ("b", 0)):
            tx.rows(name, partition).put(b"key", f"{name}{partition}".encode())
        assert [tx.rows(n, p).get(b"key") for n, p in (("a", 0), ("a", 1), ("b", 0), ("b", 1))] == [b"a0", b"a1", b"b0", None]


def test_aborted_first_rows_are_gone(store: Store) -> None:
    """After an abort of the first rows of a stage the next transaction starts with none."""
    tx = store.transaction().__enter__()
    tx.rows("a", 0).put(b"k", b"v")
    tx.__exit__(KeyError, KeyError("no"), None)
    assert store.rows("a", 0) is None
    with store.transaction() as tx:
        assert tx.rows("a", 0).get(b"k") is None


def test_cache_is_bounded(opened: Callable[..., Store]) -> None:
    """The cache of committed rows stays within its bound, however many are written and read."""
    store = opened(runner=True, rows_cache=100_000)
    with store.transaction() as tx:
        rows = tx.rows("a", 0)
        for i in range(3_000):
            rows.put(b"%d" % i, bytes(1_000))
    kept = [*rows._young.values(), *rows._old.values()]
    assert 0 < sum(len(v or b"") for v in kept) <= 100_000


@given(st.lists(KEYS), st.lists(KEYS), st.sampled_from([3, 8, BITS]))
def test_bitmap_reports_every_added_key(added: list[bytes], more: list[bytes], bits: int) -> None:
    """A bitmap of any size reports each added key and its stems as possible; a large one excludes most others."""
    seen = Seen(bits)
    seen.add(sorted(added))
    seen.add(more)
    keys = {*added, *more}
    stems = {prefix for key in keys for end in range(len(key) + 1) if is_stem(prefix := key[:end])}
    assert all(seen.may_hold(key) for key in keys | stems)
    others = [b"%d" % number for number in range(100)]
    assert bits < BITS or sum(map(seen.may_hold, others)) < 10


def test_absent_rows_are_known_without_a_query(opened: Callable[..., Store], monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys that were never written are known to be absent, for `get` and scans by stem; written ones are read from the table."""
    asked: list[str] = []
    store = opened(runner=True, rows_cache=100_000)
    for key in (b"m|one\0x", b"m|one\0y"):
        with store.transaction() as tx:
            tx.rows("a", 0).put(key, b"1")
    with store.transaction() as tx:
        rows: Any = tx.rows("a", 0)
        rows._young.clear()
        execute = rows._execute

        def counted(query: str, *bound: Any) -> Any:
            asked.append(query)
            return execute(query, *bound)

        monkeypatch.setattr(rows, "_execute", counted)
        assert rows.get(b"m|two\0x") is None
        assert list(rows.scan(b"m|two\0")) == []
        assert asked == []
        assert list(rows.scan(b"m|one\0")) == [(b"m|one\0x", b"1"), (b"m|one\0y", b"1")]
        assert rows.get(b"m|one\0x") == b"1"
        assert len(asked) == 2
        assert list(rows.scan(b"h|one|")) == []
        assert len(asked) == 2
        rows.put(b"h|one|\0x", b"1")
    with store.transaction() as tx:
        assert [key for key, _ in tx.rows("a", 0).scan(b"h|one|")] == [b"h|one|\0x"]


def test_partitions_share_a_cache(opened: Callable[..., Store]) -> None:
    """The size of a stage's row cache does not grow with its number of partitions."""
    store = opened(runner=True, rows_cache=100_000)
    with store.transaction() as tx:
        assert 90_000 < sum(2 * tx.rows("a", partition)._half for partition in range(4)) <= 100_000


def test_prefetched_rows_are_read_in_one_statement(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows of twenty keys are read in one statement, absent ones included; no later get of them reads the table."""
    with Store(tmp_path, {"t": 1}, runner=True) as store, store.transaction() as tx:
        for number in range(0, 20, 2):
            tx.rows("stage", 0).put(b"k%d" % number, b"v%d" % number)
    with Store(tmp_path, {"t": 1}, runner=True) as store, store.transaction() as tx:
        rows, keys = tx.rows("stage", 0), [b"k%d" % number for number in range(20)]
        statements: list[str] = []
        ask = rows._ask

        def counted(query: str, bounds: tuple[bytes | int | None, ...]) -> list[Any]:
            statements.append(query)
            return ask(query, bounds)

        monkeypatch.setattr(rows, "_ask", counted)
        rows.prefetch(keys)
        assert [rows.get(key) for key in keys] == [None if n % 2 else b"v%d" % n for n in range(20)]
        assert len(statements) == 1
