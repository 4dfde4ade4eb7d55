"""The clock of the runners."""

from __future__ import annotations

import time

import pytest

from streams.clock import Clock

HOUR = 3_600_000


def test_clock_goes_on_while_machine_sleeps(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock goes on while the machine sleeps, and ignores changes of the wall clock."""
    real, slept = time.clock_gettime_ns, [0]
    asleep = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    monkeypatch.setattr(time, "clock_gettime_ns", lambda which: real(which) + (slept[0] if which == asleep else 0))
    clock = Clock()
    before = clock()
    slept[0] = 8 * HOUR * 1_000_000
    assert clock() - before >= 8 * HOUR
    monkeypatch.setattr(time, "time_ns", lambda: 0)
    assert clock() - before >= 8 * HOUR


def test_not_before_moves_clock_only_forward() -> None:
    """`not_before` moves the clock forward to a time, and never back."""
    clock = Clock()
    ahead = clock() + HOUR
    clock.not_before(ahead)
    assert clock() >= ahead
    clock.not_before(1)
    assert clock() >= ahead
