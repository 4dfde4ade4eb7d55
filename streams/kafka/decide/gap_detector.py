"""That records are decided in the order of the log, none left out.

Cause: Faust skips records. Where a recovery seeks while a fetch is being delivered, those that come before the flow is resumed are
read and forgotten, and the consumer stands behind them. It enters them as a gap, which is committed like what was done.

And it goes back too far. Between a recovery and the look-up of what is committed it knows of no committed offset; whoever asks it
then what is due is told "the first". A record of long ago that is decided once more undoes what came after it, and stays undone
where the partition goes to somebody else before all of that has come again.

Strategy: who reads knows which record is due. What comes too early is let go, unacknowledged, its gap is taken out, and the
consumer is sent back to what is due; and so it is where nothing comes any more, though it has read beyond. Before, somebody else is
asked whether there is a record at all (`offset_probe.py`).

Laws:
- Nothing is decided, and nothing is committed, beyond a record that was left out.
- Nothing is decided below what the broker had committed when partitions were taken, nor below what was committed since.
- What is not there is not waited for, and is committed: holes of compaction, markers of transactions, what retention took away
  before it was read. Nor is what nobody has written yet.
- In a compacted topic a hole is a hole without asking, but for the one before the first record after partitions were taken: that
  record is the one that Faust may skip to.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from aiokafka.errors import KafkaError  # type: ignore[import-untyped]

from streams.kafka.decide.client_workarounds import FAR
from streams.kafka.decide.offset_probe import Found, Witness

if TYPE_CHECKING:
    import faust
    from faust.types import TP

PATIENCE = 1.0
"""Seconds that a record has to come once it was asked for again; each time as many more, up to LONGEST times as many."""
LONGEST = 8
TRIES = 12
"""Times that one record is asked for, before the process ends: after a minute."""


LONG = 20.0
"""Seconds without a record of a partition, after which none is taken to wait in a queue of Faust's."""


class SkippedError(Exception):
    """A record is not delivered, however often it is asked for: a fault of the client, which a new start may mend."""


class Asked(NamedTuple):
    """What was asked for again: how often, and when last."""

    due: int
    times: int
    when: float


class GapDetector:
    """The offsets that are due next. `whole` are the topics, as the broker has them, that are not compacted."""

    def __init__(self, app: faust.App, whole: Collection[str], witness: Witness) -> None:
        self._app: Any = app
        self._whole = whole
        self._witness = witness
        self.next: dict[TP, int] = {}
        self._settled: dict[TP, int] = {}
        """What the broker had committed when it was asked."""
        self._taken = 0
        """How often partitions were taken."""
        self._begun: set[TP] = set()
        self._asked: dict[TP, Asked] = {}
        self._came: dict[TP, float] = {}
        """When a record came last, or was first waited for."""

    def anew(self) -> None:
        """Partitions were taken: what is due is what is committed."""
        self._taken += 1
        self.next.clear()
        self._settled.clear()
        self._begun.clear()
        self._asked.clear()
        self._came.clear()

    async def begin(self, tps: Collection[TP]) -> None:
        """Look up what is due in partitions that were taken, lest their first records wait for it, one behind the other."""
        taken = self._taken
        # Where the broker does not answer it is looked up when a record comes.
        with suppress(KafkaError, TimeoutError):
            async with asyncio.timeout(PATIENCE * LONGEST):
                first, settled = await asyncio.gather(self.earliest(*tps), asyncio.gather(*map(self.settled, tps)))
            if taken == self._taken:
                for tp, committed in zip(tps, settled, strict=True):
                    self._settled.setdefault(tp, committed)
                    self.next.setdefault(tp, first.get(tp, 0))

    async def takes(self, message: Any) -> bool:
        """Whether a record may be decided now; if not, it comes again behind what is due. Raises SkippedError."""
        tp, offset = message.tp, message.offset
        self._came[tp] = time.monotonic()
        due = await self.position(tp)
        ahead = offset > due and (message.topic in self._whole or tp not in self._begun)
        if ahead:
            await self._ask(tp, due, offset)
            ahead = offset > await self.position(tp)
        elif offset < self.committed(tp):
            await self._ask(tp, due)
        if ahead or offset < self.committed(tp):
            message.acked = True
            return False
        self._asked.pop(tp, None)
        self._begun.add(tp)
        self.next[tp] = offset + 1
        return True

    async def look(self, tps: Collection[TP], *, idle: bool = True) -> None:
        """Ask again for what was skipped, and for what is due where more than that was read.

        Where the stage is not idle, what is due may wait behind other records: it is asked for where nothing has come for long.
        Raises SkippedError.
        """
        now = time.monotonic()
        for tp in tps:
            if not idle and now - self._came.setdefault(tp, now) < LONG:
                continue
            asked = self._asked.get(tp)
            due = asked.due if asked is not None else await self.position(tp)
            if asked is not None or self.reached(tp) > due:
                await self._ask(tp, due)

    async def position(self, tp: TP) -> int:
        """The offset that is due next in a partition."""
        while tp not in self.next:
            taken = self._taken
            settled, first = await self.settled(tp), await self.earliest(tp)
            # Of partitions that went meanwhile, and came back, others may have committed more.
            if taken == self._taken:
                self._settled[tp] = settled
                self.next[tp] = first.get(tp, 0)
        return max(self.next[tp], self.committed(tp))

    async def settled(self, tp: TP) -> int:
        """The offset that the broker has committed for the group; 0 if none."""
        thread = self._app.consumer._thread  # noqa: SLF001 - told nowhere else
        return await thread.call_thread(thread._ensure_consumer().committed, tp) or 0  # noqa: SLF001 - the same

    async def earliest(self, *tps: TP) -> dict[TP, int]:
        """The first offsets that the broker still has."""
        return {tp: offset or 0 for tp, offset in (await self._app.consumer.earliest_offsets(*tps)).items()}

    def reached(self, tp: TP) -> int:
        """The offset that the consumer reads next; 0 where it does not know."""
        # Not by its method, which waits in the consumer's thread for what may not come.
        subscription = self._app.consumer._thread._consumer._subscription.subscription  # noqa: SLF001 - told nowhere else
        assignment = subscription.assignment if subscription is not None else None
        state = assignment.state_value(tp) if assignment is not None else None
        return state.position if state is not None and state.has_valid_position else 0

    def committed(self, tp: TP) -> int:
        """The offset that is committed in a partition, as far as it is known."""
        known: int = self._app.consumer._committed_offset.get(tp) or 0  # noqa: SLF001 - told nowhere else
        return max(self._settled.get(tp, 0), known)

    async def _ask(self, tp: TP, due: int, came: int = FAR) -> None:
        """Have the consumer go back to a record, where `came` came instead; not too often. Raises SkippedError.

        Where there is none the next one is due, which may be the one that came.
        """
        self._forget_gap(tp, due)
        before = self._asked.get(tp)
        asked = self._asked[tp] = before if before is not None and before.due == due else Asked(due, 0, -FAR)
        # Each asking gives up the fetch that is under way: on a slow machine the next would never be the one that brings it.
        if time.monotonic() - asked.when < PATIENCE * min(max(asked.times, 1), LONGEST):
            return
        taken = self._taken
        found = await self.found(tp, due)
        if taken != self._taken or due != await self.position(tp):
            # It is another's, or it has come meanwhile.
            return
        if found.offset > due:
            if not self._passed(tp, due, found) or not found.there or found.offset == came:
                return
            # That one was left out too.
            asked = Asked(found.offset, 0, -FAR)
        elif not found.there and asked.times:
            # Nobody has written it yet; those that were too old come no more.
            self._asked.pop(tp)
            return
        if asked.times >= TRIES:
            raise SkippedError(f"{tp.topic}-{tp.partition}: {due} does not come")
        self._asked[tp] = asked._replace(times=asked.times + 1, when=time.monotonic())
        await self.seek(tp, asked.due)

    def _passed(self, tp: TP, due: int, found: Found) -> bool:
        """Go on to the next record, or to the end, where nothing is in between; not before all that is below is committed."""
        consumer = self._app.consumer
        if found.there:
            # It is committed with the record behind it.
            consumer._gap[tp].addi(due, found.offset)  # noqa: SLF001 - told nowhere else
        elif self.committed(tp) < due:
            return False
        else:
            consumer._acked[tp].extend(range(due, found.offset))  # noqa: SLF001 - the same
        self._asked.pop(tp, None)
        self.next[tp] = found.offset
        return True

    async def found(self, tp: TP, due: int) -> Found:
        """The first record at what is due or behind it, as somebody else sees it; the one that is due, where nobody answers."""
        return await asyncio.to_thread(self._witness, tp, due) or Found(due, there=True)

    async def seek(self, tp: TP, offset: int) -> None:
        """Have the consumer read on from an offset."""
        await self._app.consumer.seek(tp, offset)

    def _forget_gap(self, tp: TP, due: int) -> None:
        """What was left out is not done: Faust took it for compacted away."""
        self._app.consumer._gap[tp].chop(due, FAR)  # noqa: SLF001 - the same
