"""What is due next in a partition, and what becomes of what was left out: what holds without a broker."""

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
    """A record, as Faust's messages tell it."""

    def __init__(self, offset: int) -> None:
        self.tp = TP("made", 0)
        self.topic, self.partition, self.offset, self.acked = "made", 0, offset, False
        self.key = self.value = b""
        self.timestamp = 0.0
        self.headers: Any = None


class Told(GapDetector):
    """What is due, where the consumer is told what the test says."""

    def __init__(self, committed: int, whole: bool = True, broker: int = 0) -> None:
        """`committed`: as Faust knows it; `broker`: as the broker has it."""
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
def test_a_record_that_was_left_out_is_read_again(
    offsets: list[int], committed: int, taken: list[int], sought: list[int], *, known: bool
) -> None:
    """Records follow each other from the earliest, or from the committed offset; what comes too early or too late is let go.

    So it is where the committed offset is not known yet, and the broker has to be asked.
    """
    following = Told(committed) if known else Told(0, broker=committed)
    messages = [Message(offset) for offset in offsets]

    async def follow() -> list[int]:
        return [message.offset for message in messages if await following.takes(message)]

    assert asyncio.run(follow()) == taken
    assert following.sought == sought
    assert [message.offset for message in messages if not message.acked] == taken


def test_what_was_left_out_at_the_end_is_read_again() -> None:
    """Where nothing comes, though more was read than was decided, what is due is asked for; where all that was read came, not."""
    following = Told(0)
    tp = TP("made", 0)
    asyncio.run(following.takes(Message(5)))
    following.read = 6
    asyncio.run(following.look([tp]))
    following.read = 8
    asyncio.run(following.look([tp]))
    assert following.sought == [6]


def test_nobody_is_sent_back_to_the_first_record() -> None:
    """Between a recovery and the look-up of what is committed, nothing below that is asked for; an old answer is not used."""
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


def test_what_is_due_is_looked_up_when_partitions_are_taken() -> None:
    """All are, and no record asks again; of partitions that were taken anew meanwhile, or of no answer, nothing is kept."""
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


def test_holes_of_a_compacted_topic_are_believed() -> None:
    """The first record after partitions were taken is believed when nothing stands before it; those behind it at once."""
    following = Told(7, whole=False)
    following.there = [9, 11, 20, 30]

    async def follow(offsets: list[int]) -> list[int]:
        return [offset for offset in offsets if await following.takes(Message(offset))]

    assert asyncio.run(follow([12, 9, 11, 20])) == [9, 11, 20]
    assert following.sought == [9]
    following.anew()
    assert asyncio.run(follow([7, 30])) == [7, 30]


@pytest.mark.parametrize(("offsets", "taken", "sought"), [([5, 8, 9], [5, 8, 9], []), ([5, 9, 8, 9], [5, 8, 9], [8])])
def test_what_is_not_there_is_not_waited_for(offsets: list[int], taken: list[int], sought: list[int]) -> None:
    """Markers of transactions are passed over, and committed with the record behind them; what was left out behind them is not."""
    following, tp = Told(0), TP("made", 0)
    following.there = [5, 8, 9]

    async def follow() -> list[int]:
        return [offset for offset in offsets if await following.takes(Message(offset))]

    assert asyncio.run(follow()) == taken
    assert following.sought == sought
    assert [(gap.begin, gap.end) for gap in following._app.consumer._gap[tp]] == [(6, 8)]


def test_what_is_not_there_at_the_end_is_committed() -> None:
    """Where markers, or holes, end the log, they are done once all before them is committed, and not asked for again."""
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


def test_a_quiet_partition_is_looked_at_while_others_are_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is due may wait behind other records for a while; it is asked for where nothing of its partition comes for long."""
    following, tp = Told(0), TP("made", 0)
    following.read = 8

    async def look() -> list[int]:
        await following.look([tp], idle=False)
        return following.sought

    assert asyncio.run(look()) == []
    monkeypatch.setattr("streams.kafka.decide.gap_detector.LONG", 0.0)
    assert asyncio.run(look()) == [5]


def test_what_was_left_out_is_no_gap() -> None:
    """What Faust takes for compacted away, and would commit, is taken out of its gaps."""
    following = Told(0)
    gaps = following._app.consumer._gap[TP("made", 0)]
    gaps.addi(2, 4)
    gaps.addi(5, 9)
    assert not asyncio.run(following.takes(Message(9)))
    assert [(gap.begin, gap.end) for gap in gaps] == [(2, 4)]


@pytest.mark.parametrize("others", [True, False])
def test_a_record_that_never_comes_ends_the_process(monkeypatch: pytest.MonkeyPatch, *, others: bool) -> None:
    """It is asked for so often, and no more, whether others come in its place or nothing does."""
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
def test_a_record_that_nobody_has_written_is_waited_for(monkeypatch: pytest.MonkeyPatch, late: int | None) -> None:
    """Where the log ends at what is due, nothing was left out, though older records came: that one may take its time."""
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
