"""The inputs that a tick waits for, and ticks with a time in the future; without a broker."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.errors import KafkaConnectionError  # type: ignore[import-untyped]
from faust.types import TP

from schemas.codec import decode, encode
from schemas.records import Rejected, Tick
from streams.clock import AHEAD, now_ms
from streams.kafka.decide.ticks import Ticker
from tests.streams.kafka.test_following import Message
from tests.streams.kafka.test_rows import decider

INPUT = TP("holders.main", 0)
NAMED = 9
"""The end offset in the tick."""


@pytest.mark.parametrize(
    ("due", "reached", "end", "ripe"),
    [
        (NAMED, NAMED, NAMED, True),
        (5, 5, NAMED, False),
        (4, 5, 5, False),
        (5, 5, 5, True),
        (0, 0, 0, True),
        (5, 5, None, False),
    ],
    ids=["read", "comes", "undecided", "made anew", "made anew, empty", "nobody answers"],
)
def test_tick_waits_for_existing_input(tmp_path: Path, due: int, reached: int, end: int | None, *, ripe: bool) -> None:
    """A tick waits for its inputs up to the ends that it names, or up to their actual ends if those are lower."""
    decided: Any = decider(tmp_path, "dedup.main")
    ticker = decided.ticker
    assert isinstance(ticker, Ticker)

    async def highwaters(*tps: TP) -> dict[TP, int]:
        if end is None:
            raise KafkaConnectionError
        return dict.fromkeys(tps, end)

    decided.app = SimpleNamespace(consumer=SimpleNamespace(highwaters=highwaters, _committed_offset={}))
    decided.following._app = decided.app
    decided.following.next[INPUT] = due
    decided.following.reached = lambda _: reached
    message: Any = SimpleNamespace(
        topic="dedup.main.ticks", partition=0, offset=0, value=encode(Tick(time=1, ends={"holders.main": NAMED})), incref=int
    )
    event: Any = SimpleNamespace(message=message)
    assert ticker.held(event)
    assert asyncio.run(ticker.ripe()) == ([event] if ripe else [])


def test_tick_in_future_is_rejected(tmp_path: Path) -> None:
    """A foreign tick far in the future is rejected: it advances neither the time of a stage nor the clock of its process."""
    decided: Any = decider(tmp_path, "dedup.main")
    topic, before = "dedup.main.ticks", now_ms()
    decided.following.committed = lambda _: 0
    messages = [Message(0), Message(1)]
    for message, time in zip(messages, (before + 2 * AHEAD, before), strict=True):
        message.tp, message.topic, message.value = message.tp._replace(topic=topic), topic, encode(Tick(time=time))
    far, near = (SimpleNamespace(message=message) for message in messages)
    assert not asyncio.run(decided.ticker._too_early(0, far))
    assert now_ms() < before + AHEAD
    rows, (sent,) = decided.decide(far)
    letter = decode(sent.value)
    assert isinstance(letter, Rejected)
    assert (rows, letter.reason) == ([], "not a record: a time in the future")
    assert decided.decide(near)[0]
