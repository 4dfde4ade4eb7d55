"""The clock of the runners."""

from __future__ import annotations

import time

import pytest

from streams.clock import Clock

HOUR = 3_600_000


def test_a_machine_that_sleeps(monkeypatch: pytest.MonkeyPatch) -> None:
    """It goes on while the machine sleeps, and takes no notice of a wall clock that is set."""
    real, slept = time.clock_gettime_ns, [0]
    asleep = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    monkeypatch.setattr(time, "clock_gettime_ns", lambda which: real(which) + (slept[0] if which == asleep else 0))
    clock = Clock()
    before = clock()
    slept[0] = 8 * HOUR * 1_000_000
    assert clock() - before >= 8 * HOUR
    monkeypatch.setattr(time, "time_ns", lambda: 0)
    assert clock() - before >= 8 * HOUR


def test_not_before() -> None:
    """It is never earlier than it was told to be, and is not set back."""
    clock = Clock()
    ahead = clock() + HOUR
    clock.not_before(ahead)
    assert clock() >= ahead
    clock.not_before(1)
    assert clock() >= ahead
