"""Batches of a deciding stage, as its agent takes and acknowledges them, in an application that is not started."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from faust.types import TP
from mode.utils.queues import FlowControlEvent, ThrowableQueue

from streams.kafka.decide import agents
from tests.streams.kafka.test_rows import decider

TPS = TP("annotations", 0)
SOON = 60.0
"""Seconds within which an event without a wait must happen."""


class Event:
    """A record as Faust gives it to an agent."""

    def __init__(self, number: int) -> None:
        self.message = SimpleNamespace(tp=TPS)
        self.number = number
        self.acknowledged = False

    def ack(self) -> None:
        """Note the acknowledgment."""
        self.acknowledged = True


class Playing:
    """An agent, its queue, and the batches that it made."""

    def __init__(self, folder: Path, batch: Callable[[], Awaitable[None]]) -> None:
        self.ends: list[Any] = []
        self.batches: list[list[int]] = []
        self.idle: list[bool] = []
        self.decider = decider(folder, "catalog", self.ends)
        self.decider._ended = -1_000.0
        self.queue: Any = None
        self.came = asyncio.Event()

        async def whole(events: Any) -> None:
            self.batches.append([event.number for event in events])
            self.idle.append(self.decider.idle())
            self.came.set()
            await batch()

        self.decider.batch = whole  # type: ignore[method-assign]

    async def begin(self) -> asyncio.Task[None]:
        """Start the agent; returns its task."""
        flow = FlowControlEvent(initially_suspended=False)
        self.queue = ThrowableQueue(maxsize=1_000, flow_control=flow)
        stream = SimpleNamespace(channel=SimpleNamespace(queue=self.queue), maybe_start=lambda: asyncio.sleep(0))
        task = asyncio.ensure_future(self.decider.run(stream))
        await asyncio.sleep(0)
        return task

    def give(self, numbers: range) -> list[Event]:
        """Put records into the queue."""
        events = [Event(number) for number in numbers]
        for event in events:
            self.queue.put_nowait(event)
        return events

    async def until(self, batches: int) -> None:
        """Wait until this many batches were begun, and the loop has run since."""
        while len(self.batches) < batches:
            self.came.clear()
            await self.came.wait()
        await asyncio.sleep(0.01)


async def nothing() -> None:
    """A batch that succeeds."""


async def fails() -> None:
    """A batch that fails."""
    raise OSError("the broker does not take it")


def test_batches_are_ordered_and_acknowledged(tmp_path: Path) -> None:
    """All waiting records are taken together, up to a limit, in order, and acknowledged after their batch."""
    playing = Playing(tmp_path, nothing)

    async def play() -> None:
        task = await playing.begin()
        events = playing.give(range(600))
        await playing.until(3)
        assert all(event.acknowledged for event in events)
        assert playing.decider.app.monitor.stream_inbound_time[TPS] > 0
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(play())
    assert [len(batch) for batch in playing.batches] == [256, 256, 88]
    assert [number for batch in playing.batches for number in batch] == list(range(600))
    assert (playing.ends, playing.idle) == ([], [False, False, False])


def test_failed_batch_is_not_acknowledged(tmp_path: Path) -> None:
    """A failed batch ends the process, and none of its records is acknowledged."""
    playing = Playing(tmp_path, fails)

    async def play() -> None:
        task = await playing.begin()
        events = playing.give(range(3))
        with pytest.raises(OSError, match="does not take"):
            await task
        assert not any(event.acknowledged for event in events)

    asyncio.run(play())
    assert [type(error) for error in playing.ends] == [OSError]


@pytest.mark.parametrize("cancelled", [False, True], ids=["its stream ends", "it is cancelled"])
def test_waiting_records_of_ended_agent_are_not_acknowledged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, cancelled: bool
) -> None:
    """Records that wait for a batch when their agent ends are neither processed nor acknowledged; until then it is not idle."""
    monkeypatch.setattr(agents, "LEAST", 0.05)
    playing = Playing(tmp_path, nothing)

    async def play() -> None:
        task = await playing.begin()
        assert playing.decider.idle()
        events = playing.give(range(3))
        await asyncio.sleep(0.01)
        assert not playing.decider.idle()
        if cancelled:
            task.cancel()
        else:
            playing.queue._throw(StopAsyncIteration())
        await asyncio.wait([task])
        assert task.cancelled() is cancelled
        assert not any(event.acknowledged for event in events)
        assert playing.decider.idle()

    asyncio.run(play())
    assert (playing.batches, playing.ends) == ([], [])


def test_end_of_stream_ends_agent(tmp_path: Path) -> None:
    """The end of a stream ends an agent that waits for records."""
    playing = Playing(tmp_path, nothing)

    async def play() -> None:
        task = await playing.begin()
        playing.queue._throw(StopAsyncIteration())
        await task

    asyncio.run(play())
    assert playing.batches == []


@pytest.mark.parametrize(
    ("took", "paused", "waits"),
    [
        (0.0, 0.0, agents.LEAST),
        (0.03, 0.0, agents.WAITS * 0.03),
        (10.0, 0.0, agents.MOST),
        (10.0, 2 * agents.MOST, agents.LEAST),
    ],
)
def test_wait_is_proportional_to_last_batch(tmp_path: Path, took: float, paused: float, waits: float) -> None:
    """The wait for more records is proportional to the last batch's time; after a pause it is the shortest."""
    decided = decider(tmp_path, "catalog")
    decided._took = took
    assert decided.waits(paused) == waits


def test_full_batch_starts_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full batch is started at once, however long the wait would be."""
    monkeypatch.setattr(agents, "LEAST", 3_600.0)
    monkeypatch.setattr(agents, "MOST", 3_600.0)
    playing = Playing(tmp_path, nothing)

    async def play() -> None:
        task = await playing.begin()
        playing.give(range(agents.BATCH - 1))
        await asyncio.sleep(0.02)
        assert playing.batches == []
        playing.give(range(1))
        await asyncio.wait_for(playing.until(1), SOON)
        task.cancel()
        await asyncio.wait([task])

    asyncio.run(play())
    assert [len(batch) for batch in playing.batches] == [agents.BATCH]
