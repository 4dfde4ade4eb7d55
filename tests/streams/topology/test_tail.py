"""The tail cache compared with the log that it caches."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import ClassVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from schemas.records import Tick
from streams.embedded import turn_cache as module
from streams.embedded.turn_cache import TurnCache
from streams.store import Offsets, Store, Transaction

LENGTH = 6


class TailMachine(RuleBasedStateMachine):
    """A partition with two readers: appends and publications of the runner, appends of another process, and rollbacks."""

    groups: ClassVar = ("a", "b")

    @initialize()
    def open(self) -> None:
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(module, "LENGTH", LENGTH)
        self.folder = Path(tempfile.mkdtemp())
        self.store = Store(self.folder, {"t": 1}, runner=True)
        self.other = Store(self.folder)
        self.tail = TurnCache()
        self.tx: Transaction | None = None
        self.log: list[bytes] = []
        """Committed records."""
        self.written: list[bytes] = []
        """Records of the open transaction, behind the committed ones."""
        self.offsets = dict.fromkeys(self.groups, 0)
        self.mark: tuple[int, tuple[int, int], list[bytes], dict[str, int]] | None = None
        self.number = 0

    def value(self) -> bytes:
        self.number += 1
        return b"%d" % self.number

    @precondition(lambda self: self.tx is None)
    @rule()
    def begin(self) -> None:
        self.tx = self.store.transaction().__enter__()
        self.before = self.tail.mark()
        self.begun = dict(self.offsets)
        self.written, self.mark, self.parted = [], None, False

    @precondition(lambda self: self.tx is None)
    @rule()
    def append_from_outside(self) -> None:
        value = self.value()
        with self.other.transaction() as tx:
            tx.append("t", 0, b"k", value, 1)
        self.log.append(value)

    @precondition(lambda self: self.tx is not None)
    @rule(count=st.integers(1, 4))
    def append(self, count: int) -> None:
        assert self.tx is not None
        for value in [self.value() for _ in range(count)]:
            offset = self.tx.append("t", 0, b"k", value, 1)
            self.tail.add("t", 0, offset, b"k", value, Tick(time=int(value)))
            self.written.append(value)

    @precondition(lambda self: self.tx is not None and self.mark is None)
    @rule(count=st.integers(1, 3))
    def publish(self, count: int) -> None:
        assert self.tx is not None
        for value in [self.value() for _ in range(count)]:
            self.tx.stage("owner", "t", 0, b"k", value, 1)
            self.written.append(value)
        self.tx.publish("owner")
        self.parted = True

    @precondition(lambda self: self.tx is not None)
    @rule(group=st.sampled_from(groups), limit=st.integers(1, 9))
    def read(self, group: str, limit: int) -> None:
        assert self.tx is not None
        start = self.offsets[group]
        found = self.tail.read(self.tx, self.store, "t", 0, start, limit)
        expected = [*self.log, *self.written][start : start + limit]
        assert [each.value for each in found] == expected[: len(found)]
        assert [each.offset for each in found] == list(range(start, start + len(found)))
        assert all(each.record is None or each.record == Tick(time=int(each.value or b"")) for each in found)
        # At least some of the records: those behind a publication of this transaction are read after its commit.
        assert found or self.parted or not expected
        if found:
            self.tx.commit_offset(group, "t", 0, Offsets(found[-1].offset + 1))
            self.tail.advance(group, "t", 0, found[-1].offset + 1)
            self.offsets[group] = found[-1].offset + 1

    @precondition(lambda self: self.tx is not None)
    @rule()
    def set_mark(self) -> None:
        assert self.tx is not None
        self.mark = self.tx.mark(), self.tail.mark(), list(self.written), dict(self.offsets)

    @precondition(lambda self: self.tx is not None and self.mark is not None)
    @rule()
    def go_back(self) -> None:
        assert self.tx is not None
        assert self.mark is not None
        at, tailed, self.written, self.offsets = self.mark
        self.tx.rollback_to(at)
        self.tail.rollback(tailed)
        self.mark = None

    @precondition(lambda self: self.tx is not None)
    @rule(commit=st.booleans())
    def end(self, *, commit: bool) -> None:
        assert self.tx is not None
        error = None if commit else KeyError("no")
        self.tx.__exit__(type(error) if error else None, error, None)
        self.tx = None
        if commit:
            self.log += self.written
            self.tail.commit()
        else:
            self.offsets = self.begun
            self.tail.rollback(self.before)

    @invariant()
    def what_is_read_is_known(self) -> None:
        if hasattr(self, "tail"):
            known = {group: self.tail.committed.get((group, "t", 0), 0) for group in self.groups}
            assert known == self.offsets

    @precondition(lambda self: self.tx is None)
    @invariant()
    def is_bounded(self) -> None:
        if hasattr(self, "tail"):
            assert len(self.tail._recent.get(("t", 0), ())) <= LENGTH

    def teardown(self) -> None:
        if hasattr(self, "store"):
            if self.tx:
                self.end(commit=False)
            self.store.close()
            self.other.close()
            self.patch.undo()
            shutil.rmtree(self.folder)


TestTail = TailMachine.TestCase
TestTail.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)
TestTail.__doc__ = "A reader of the tail reads what the log has, in order, each once, whatever was undone or came in between."


def test_long_tail_is_dropped() -> None:
    """A tail that has grown too long is dropped, and read from the log again."""
    tail = TurnCache()
    for offset in range(module.LENGTH + 1):
        tail.add("t", 0, offset, b"k", b"v", None)
    assert len(tail._recent["t", 0]) == module.LENGTH + 1
    tail.commit()
    assert not tail._recent["t", 0]
