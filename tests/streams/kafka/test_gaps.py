"""Gaps that Faust's consumer takes for compacted records, and would commit: plain and with the workaround, without a broker."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from faust.transport.drivers import aiokafka
from faust.types import TP

from streams.kafka.client.cluster import Cluster
from streams.kafka.decide.apps import application
from streams.kafka.decide.client_workarounds import Transport

PLACE = TP("made", 0)
COMMITTED = 100


class Consuming:
    """A consumer of one partition that has to start again at COMMITTED, after all records before it were processed."""

    def __init__(self, loop: asyncio.AbstractEventLoop, folder: Path, monkeypatch: pytest.MonkeyPatch, *, mended: bool) -> None:
        app: Any = application("gaps", Cluster("127.0.0.1:1"), folder, 1, loop=loop)
        app.transport = (Transport if mended else aiokafka.Transport)(app.conf.broker, app)
        self._loop = loop
        self.consumer = app.consumer
        self.consumer._committed_offset[PLACE] = self.consumer._read_offset[PLACE] = COMMITTED
        self._given: list[int] = []
        monkeypatch.setattr(app.topics, "acks_enabled_for", lambda _: True)
        monkeypatch.setattr(aiokafka.Consumer, "getmany", self._getmany)

    async def _getmany(self, timeout: float) -> AsyncIterator[tuple[TP, Any]]:  # noqa: ASYNC109 - as Faust's
        for offset in self._given:
            yield PLACE, SimpleNamespace(offset=offset, topic=PLACE.topic, partition=0)

    def read(self, offsets: Iterable[int]) -> None:
        """Deliver records, as `_drain_messages` does."""
        self._given = list(offsets)

        async def drain() -> None:
            async for tp, message in self.consumer.getmany(1.0):
                noted = self.consumer._read_offset[tp]
                if noted is not None and message.offset < noted:
                    continue
                if noted is not None and message.offset > noted + 1:
                    await self.consumer._add_gap(tp, noted + 1, message.offset)
                self.consumer._read_offset[tp] = message.offset

        self._loop.run_until_complete(drain())

    def done(self, offsets: Iterable[int]) -> None:
        """Acknowledge records."""
        self.consumer._acked[PLACE].extend(offsets)
        self.consumer._acked_index[PLACE].update(offsets)

    def commits(self) -> int:
        """The offset that is committed in the end, if the broker takes all commits. One commit may advance by a single record."""
        committed = self.consumer._committed_offset
        while (offset := self.consumer._new_offset(PLACE)) is not None and offset > committed[PLACE]:
            committed[PLACE] = offset
        found: int = committed[PLACE]
        return found


Made = Callable[[bool], Consuming]


@pytest.fixture
def consuming(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Made]:
    """A function that returns such a consumer, plain or with the workaround."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield lambda mended: Consuming(loop, tmp_path, monkeypatch, mended=mended)
    asyncio.set_event_loop(None)
    loop.close()


@pytest.mark.parametrize(("mended", "committed"), [(False, 501), (True, 106)], ids=["plain", "mended"])
def test_records_fetched_before_rebalance_make_no_gap(consuming: Made, *, mended: bool, committed: int) -> None:
    """Records of a fetch in flight arrive after the restart and are dropped, and the records before them are still read.

    Plain, the apparent gap before them is committed once the first records in it are processed: the next rebalance loses the
    others.
    """
    one = consuming(mended)
    one.read([500, 501])
    # The library drops what is below its read offset; that has its own workaround (`test_seek_back_during_delivery_takes_effect`).
    one.consumer._read_offset[PLACE] = COMMITTED
    one.read(range(COMMITTED, 110))
    one.done(range(COMMITTED, 106))
    assert one.commits() == committed


@pytest.mark.parametrize("left", [False, True], ids=["read behind it", "nothing was read since"])
def test_gap_with_processed_records_is_not_committed(consuming: Made, *, left: bool) -> None:
    """A gap over existing records is not committed, whatever caused it: a record processed inside it proves that it is none."""
    one = consuming(True)
    one.done(range(COMMITTED, 106))
    one.consumer._gap[PLACE].addi(103, 500)
    if left:
        one.done([600])
    assert one.commits() == 106


def test_compaction_holes_are_committed(consuming: Made) -> None:
    """Holes that compaction left are committed once the record behind them is processed, and not before."""
    one = consuming(True)
    one.read([*range(COMMITTED, 105), 120, 121, 200, 201])
    one.done(range(COMMITTED, 105))
    assert one.commits() == 105
    one.done([120, 121])
    assert one.commits() == 122
    one.done([201, 200])
    assert one.commits() == 202
