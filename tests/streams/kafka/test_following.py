"""`GapDetector`: the next offset due in a partition, and the recovery of skipped records; without a broker."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.errors import KafkaConnectionError  # type: ignore[import-untyped]
from faust.types import TP
from intervaltree import IntervalTree  # type: ignore[import-untyped]

from streams.kafka.decide.client_workarounds import FAR
from streams.kafka.decide.gap_detector import TRIES, GapDetector, SkippedError
from streams.kafka.decide.offset_probe import ProbeResult


class Message:
    """A record with the attributes of Faust's messages."""

    def __init__(self, offset: int) -> None:
        self.tp = TP("made", 0)
        self.topic, self.partition, self.offset, self.acked = "made", 0, offset, False
        self.key = self.value = b""
        self.timestamp = 0.0
        self.headers: Any = None


class Told(GapDetector):
    """A gap detector whose consumer is simulated by the test."""

    def __init__(self, committed: int, whole: bool = True, broker: int = 0) -> None:
        """`committed`: the offset that Faust knows; `broker`: the offset that the broker has."""
        self.sought: list[int] = []
        self.read = 0
        self.there: list[int] | None = None
        """The offsets that have a record; None: all of them."""
        self.end = FAR
        self.broker = broker
        consumer = SimpleNamespace(
            _committed_offset={TP("made", 0): committed}, _gap=defaultdict(IntervalTree), _acked=defaultdict(list)
        )
        super().__init__(SimpleNamespace(consumer=consumer), {"made"} if whole else (), self._found)  # type: ignore[arg-type]

    async def earliest(self, *tps: TP) -> dict[TP, int]:
        return dict.fromkeys(tps, 5)

    def _found(self, tp: TP, offset: int) -> ProbeResult:
        offset = max(offset, 5)
        there = range(offset, self.end) if self.there is None else [one for one in self.there if one >= offset]
        return ProbeResult(there[0], there=True) if there else ProbeResult(self.end, there=False)

    async def settled(self, tp: TP) -> int:
        return self.broker

    async def seek(self, tp: TP, offset: int) -> None:
        self.sought.append(offset)

    def reached(self, tp: TP) -> int:
        return self.read


@pytest.mark.parametrize(
    ("offsets", "committed", "taken", "sought"),
    [
        ([5, 6, 7], 0, [5, 6, 7], []),
        ([6, 5, 6], 0, [5, 6], [5]),
        ([5, 7, 8, 6, 7], 0, [5, 6, 7], [6]),
        ([5, 6, 5, 6, 7], 0, [5, 6, 5, 6, 7], []),
        ([9, 10], 9, [9, 10], []),
        ([10, 9], 9, [9], [9]),
        ([5, 6, 9, 10], 9, [9, 10], [9]),
        ([8, 10, 9, 10], 9, [9, 10], [9]),
    ],
)
@pytest.mark.parametrize("known", [True, False], ids=["known", "asked"])
def test_skipped_record_is_read_again(
    offsets: list[int], committed: int, taken: list[int], sought: list[int], *, known: bool
) -> None:
    """Records are taken in order from the earliest or the committed offset; one that is out of order is dropped.

    The same applies if the committed offset is not known yet and the broker has to be asked.
    """
    following = Told(committed) if known else Told(0, broker=committed)
    messages = [Message(offset) for offset in offsets]

    async def follow() -> list[int]:
        return [message.offset for message in messages if await following.takes(message)]

    assert asyncio.run(follow()) == taken
    assert following.sought == sought
    assert [message.offset for message in messages if not message.acked] == taken


def test_records_skipped_at_end_are_read_again() -> None:
    """If nothing arrives although more was read than processed, the due offset is read again; if all was processed, it is not."""
    following = Told(0)
    tp = TP("made", 0)
    asyncio.run(following.takes(Message(5)))
    following.read = 6
    asyncio.run(following.look([tp]))
    following.read = 8
    asyncio.run(following.look([tp]))
    assert following.sought == [6]


def test_no_seek_below_committed_offset() -> None:
    """Between recovery and the look-up of the committed offset, no lower one is sought; outdated answers are dropped."""
    following, tp = Told(0, broker=9), TP("made", 0)
    following.read = 12
    asyncio.run(following.look([tp]))
    assert following.sought == [9]
    answers = [9, 20]

    async def settled(tp: TP) -> int:
        if len(answers) > 1:
            following.anew()
        return answers.pop(0)

    following.anew()
    following.settled = settled  # type: ignore[method-assign]
    assert asyncio.run(following.position(tp)) == 20


def test_due_offsets_are_looked_up_at_assignment() -> None:
    """The due offsets of all partitions are looked up at once; outdated answers and failed look-ups are not kept."""
    following, tps = Told(0), [TP("made", number) for number in range(3)]
    following.anew()
    asked: list[TP] = []

    async def settled(tp: TP) -> int:
        asked.append(tp)
        return 9

    following.settled = settled  # type: ignore[method-assign]
    asyncio.run(following.begin(tps))
    assert [asyncio.run(following.position(tp)) for tp in tps] == [9, 9, 9]
    assert asked == tps

    async def gone(tp: TP) -> int:
        following.anew()
        return 9

    following.settled = gone  # type: ignore[method-assign]
    asyncio.run(following.begin(tps))
    assert following.next == {}

    async def away(tp: TP) -> int:
        raise KafkaConnectionError

    following.settled = away  # type: ignore[method-assign]
    asyncio.run(following.begin(tps))
    assert following.next == {}


def test_holes_of_compacted_topic_are_accepted() -> None:
    """The first record after an assignment is accepted if no record exists before it; later holes are accepted at once."""
    following = Told(7, whole=False)
    following.there = [9, 11, 20, 30]

    async def follow(offsets: list[int]) -> list[int]:
        return [offset for offset in offsets if await following.takes(Message(offset))]

    assert asyncio.run(follow([12, 9, 11, 20])) == [9, 11, 20]
    assert following.sought == [9]
    following.anew()
    assert asyncio.run(follow([7, 30])) == [7, 30]


@pytest.mark.parametrize(("offsets", "taken", "sought"), [([5, 8, 9], [5, 8, 9], []), ([5, 9, 8, 9], [5, 8, 9], [8])])
def test_transaction_markers_are_skipped(offsets: list[int], taken: list[int], sought: list[int]) -> None:
    """Transaction markers are skipped, and committed with the record behind them; a record skipped behind them is read again."""
    following, tp = Told(0), TP("made", 0)
    following.there = [5, 8, 9]

    async def follow() -> list[int]:
        return [offset for offset in offsets if await following.takes(Message(offset))]

    assert asyncio.run(follow()) == taken
    assert following.sought == sought
    assert [(gap.begin, gap.end) for gap in following._app.consumer._gap[tp]] == [(6, 8)]


def test_markers_at_end_of_log_are_committed() -> None:
    """Markers or holes at the end of the log are acknowledged once all before them is committed, and not read again."""
    following, tp = Told(5), TP("made", 0)
    following.there, following.end = [5, 6], 9
    consumer = following._app.consumer

    async def look() -> tuple[int, list[int]]:
        await following.look([tp])
        return await following.position(tp), consumer._acked[tp]

    async def follow() -> None:
        for offset in (5, 6):
            assert await following.takes(Message(offset))
        following.read = 9
        assert await look() == (7, [])
        consumer._committed_offset[tp] = 7
        assert await look() == (9, [7, 8])
        consumer._acked[tp].clear()
        assert await look() == (9, [])

    asyncio.run(follow())
    assert following.sought == []


def test_quiet_partition_is_checked_while_others_are_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A due record may wait behind other partitions for a while; if its partition stays quiet for long, it is sought."""
    following, tp = Told(0), TP("made", 0)
    following.read = 8

    async def look() -> list[int]:
        await following.look([tp], idle=False)
        return following.sought

    assert asyncio.run(look()) == []
    monkeypatch.setattr("streams.kafka.decide.gap_detector.LONG", 0.0)
    assert asyncio.run(look()) == [5]


def test_skipped_records_are_removed_from_gaps() -> None:
    """A gap that Faust takes for compacted records, and would commit, is removed from its gaps if records were skipped in it."""
    following = Told(0)
    gaps = following._app.consumer._gap[TP("made", 0)]
    gaps.addi(2, 4)
    gaps.addi(5, 9)
    assert not asyncio.run(following.takes(Message(9)))
    assert [(gap.begin, gap.end) for gap in gaps] == [(2, 4)]


@pytest.mark.parametrize("others", [True, False])
def test_missing_record_ends_process_after_limited_tries(monkeypatch: pytest.MonkeyPatch, *, others: bool) -> None:
    """A record is sought a limited number of times, whether others arrive in its place or none, then the process ends."""
    monkeypatch.setattr("streams.kafka.decide.gap_detector.PATIENCE", 0.0)
    following = Told(0)
    following.read = 9

    async def wait() -> None:
        for _ in range(TRIES + 1):
            if others:
                await following.takes(Message(9))
            else:
                await following.look([TP("made", 0)])

    with pytest.raises(SkippedError, match="5 does not come"):
        asyncio.run(wait())
    assert following.sought == [5] * TRIES


@pytest.mark.parametrize("late", [9, None], ids=["it comes in the end", "nothing comes"])
def test_unwritten_record_is_awaited_without_limit(monkeypatch: pytest.MonkeyPatch, late: int | None) -> None:
    """If the log ends at the due offset, nothing was skipped, although older records came: there is no limit to that wait."""
    monkeypatch.setattr("streams.kafka.decide.gap_detector.PATIENCE", 0.0)
    following, tp = Told(9), TP("made", 0)
    following.end = following.read = 9

    async def wait() -> list[int]:
        taken = [offset for offset in (6, 7) if await following.takes(Message(offset))]
        for _ in range(2 * TRIES):
            await following.look([tp])
        if late is not None:
            following.end = late + 1
            taken += [late] if await following.takes(Message(late)) else []
        return taken

    assert asyncio.run(wait()) == ([] if late is None else [late])
    assert following.sought == [9]
