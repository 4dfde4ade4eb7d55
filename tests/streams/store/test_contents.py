"""Contents that topics and rows share, against a model: values stay readable, and contents are counted as they are named."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import ClassVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from streams.store import Store, Transaction
from streams.store.schema import FILE
from streams.store.snapshot import copy_database
from tests.streams.store.test_former import write_former
from tests.streams.store.test_values import check_shares, stored, summary

LOG = ("summaries", "crawl", "broker.a")
STAGES = ("catalog", "register.a")
Record = tuple[int, bytes, bytes | None]

made = st.tuples(st.integers(0, 1), st.integers(1, 2)).map(lambda pair: summary(*pair))
values = st.one_of(made, made.map(lambda value: b"before" + value[:-3] + b"behind"), st.binary(max_size=60))
keys = st.sampled_from([b"0", b"1", b"2"])
writes = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.sampled_from(LOG), keys, st.none() | values),
        st.tuples(st.just("put"), st.sampled_from(STAGES), keys, values),
        st.tuples(st.just("delete"), st.sampled_from(STAGES), keys, st.none()),
        st.tuples(st.just("stage"), st.just("summaries"), keys, values),
    ),
    min_size=1,
    max_size=6,
)
Writes = list[tuple[str, str, bytes, bytes | None]]


class ContentsMachine(RuleBasedStateMachine):
    """A runner, another writer and a reader of one folder, which any of the ways in which values come and go changes."""

    named: ClassVar = ("runner", "other")

    @initialize(old=st.booleans())
    def begin(self, old: bool) -> None:
        self.home = Path(tempfile.mkdtemp())
        self.folder = self.home / "data"
        self.topics: dict[str, list[Record]] = {name: [] for name in LOG}
        self.ends = dict.fromkeys(LOG, 0)
        self.rows: dict[str, dict[bytes, bytes]] = {name: {} for name in STAGES}
        self.staged: list[tuple[bytes, bytes | None]] = []
        if old:
            write_former(self.folder, range(4))
            self.topics["summaries"] = [(number, b"%d" % number, summary(number)) for number in range(4)]
            self.ends["summaries"] = 4
            self.rows["catalog"] = {b"%d" % number: b"\x91" + summary(number) for number in range(4)}
        self.open()

    def open(self) -> None:
        self.runner = Store(self.folder, dict.fromkeys(LOG, 1), runner=True)
        self.other = Store(self.folder)
        self.reader = Store(self.folder, readonly=True)

    def close(self) -> None:
        for each in (self.reader, self.other, self.runner):
            each.close()

    def apply(self, tx: Transaction, wanted: Writes) -> None:
        for kind, name, key, value in wanted:
            if kind == "append":
                tx.append(name, 0, key, value, 1)
            elif kind == "stage":
                tx.stage("owner", name, 0, key, value, 1)
            elif value is None:
                tx.rows(name, 0).delete(key)
            else:
                tx.rows(name, 0).put(key, value)

    def add(self, name: str, key: bytes, value: bytes | None) -> None:
        self.topics[name].append((self.ends[name], key, value))
        self.ends[name] += 1

    @rule(wanted=writes, undone=writes, publish=st.sampled_from(["", "", "publish", "unstage"]))
    def write(self, wanted: Writes, undone: Writes, publish: str) -> None:
        """A transaction of the runner, a part of which is undone."""
        with self.runner.transaction() as tx:
            self.apply(tx, wanted)
            mark = tx.mark()
            self.apply(tx, undone)
            tx.rollback_to(mark)
            if publish:
                getattr(tx, publish)("owner")
        for kind, name, key, value in wanted:
            if kind == "append":
                self.add(name, key, value)
            elif kind == "stage":
                self.staged.append((key, value))
            elif value is None:
                self.rows[name].pop(key, None)
            else:
                self.rows[name][key] = value
        if publish == "publish":
            for key, value in self.staged:
                self.add("summaries", key, value)
        if publish:
            self.staged = []

    @rule(wanted=writes)
    def fail(self, wanted: Writes) -> None:
        """A transaction that has been written, and fails before its end."""
        tx = self.runner.transaction().__enter__()
        self.apply(tx, wanted)
        tx._write()
        tx.__exit__(KeyError, KeyError(), None)

    @rule(name=st.sampled_from(LOG), key=keys, value=values)
    def append_from_outside(self, name: str, key: bytes, value: bytes) -> None:
        with self.other.transaction() as tx:
            tx.append(name, 0, key, value, 1)
        self.add(name, key, value)

    @rule(who=st.sampled_from(named), name=st.sampled_from(LOG), share=st.floats(0, 1))
    def trim(self, who: str, name: str, share: float) -> None:
        below = int(share * (self.ends[name] + 1))
        getattr(self, who).trim(name, 2, {0: below})
        self.topics[name] = [record for record in self.topics[name] if record[0] >= below]

    @rule(who=st.sampled_from(named), name=st.sampled_from(LOG))
    def compact(self, who: str, name: str) -> None:
        getattr(self, who).compact(name, 0)
        last = {key: offset for offset, key, _ in self.topics[name]}
        self.topics[name] = [record for record in self.topics[name] if last[record[1]] == record[0]]

    @rule(name=st.sampled_from(LOG), number=st.integers(0, 99))
    def drop(self, name: str, number: int) -> None:
        if self.topics[name]:
            gone = self.topics[name].pop(number % len(self.topics[name]))
            self.runner.drop(name, {0: [gone[0]]})

    @rule(whole=st.booleans())
    def forget_broker(self, whole: bool) -> None:
        """As `broker remove --forget` does; a Broker of the same name may come again."""
        self.runner.forget(["broker.a"] if whole else [], ["register.a"])
        self.rows["register.a"] = {}
        if whole:
            self.topics["broker.a"], self.ends["broker.a"] = [], 0
            self.runner.create({"broker.a": 1})

    @rule()
    def upkeep(self) -> None:
        for _ in self.runner.modernize():
            pass
        self.runner.shrink(9)

    @rule(steps=st.integers(1, 3))
    def begin_upkeep(self, steps: int) -> None:
        for _ in zip(range(steps), self.runner.modernize(), strict=False):
            pass

    @rule()
    def restart(self) -> None:
        self.close()
        self.staged = []
        self.open()

    @rule()
    def restore(self) -> None:
        """Go on with a copy that was made while the store is in use."""
        other = Path(tempfile.mkdtemp(dir=self.home))
        copy_database(self.folder, other / FILE)
        self.close()
        self.folder, self.staged = other, []
        self.open()

    @rule(who=st.sampled_from((*named, "reader")))
    def look(self, who: str) -> None:
        """Read everything, which lets a writer know contents."""
        store = getattr(self, who)
        for name in LOG:
            assert [(r.offset, r.key, r.value) for r in store.read(name, 0, 0, 999)] == self.topics[name]
        for name in STAGES:
            rows = store.rows(name, 0)
            assert dict(rows.scan(b"") if rows else []) == self.rows[name]

    @invariant()
    def whole(self) -> None:
        self.look("reader")
        assert self.runner.damage() == ""
        check_shares(self.folder)

    def teardown(self) -> None:
        if not hasattr(self, "home"):
            return
        for name in LOG:
            self.runner.trim(name, 2, {0: self.ends[name]})
        self.runner.forget([], [*STAGES, "register.main"])
        assert stored(self.folder, "SELECT count(*) FROM contents") == 0
        self.close()
        shutil.rmtree(self.home)


TestContents = pytest.mark.slow(6)(ContentsMachine.TestCase)
TestContents.settings = settings(max_examples=40, stateful_step_count=50)
