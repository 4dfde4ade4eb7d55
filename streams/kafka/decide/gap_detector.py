"""Detects records that Faust skipped, and seeks back to them; drops records that are already committed.

Cause: Faust skips records. If a recovery seeks while a fetch is being delivered, records that arrive before the flow resumes are
read and dropped, and the consumer's position is after them. Faust enters them as a gap, which is committed like processed records.

Faust also goes back too far. Between a recovery and the lookup of committed offsets it knows no committed offset, and reports the
first one as next. An old record that is decided again reverts later ones, for good if the partition moves before all of those are
repeated.

Strategy: the next offset due is tracked for each partition. A record beyond it is dropped unacknowledged, its gap is removed, and
the consumer seeks back to the offset due; likewise if no record arrives although the consumer has read beyond it. A separate client
first checks whether the record exists at all (`offset_probe.py`).

Laws:
- Nothing is decided or committed beyond a record that was skipped.
- Nothing is decided below the offset that was committed when partitions were taken over (by then `rereading.py` may have set it
  back), nor below offsets committed since.
- Offsets without a record are not waited for, and are committed: holes of compaction, transaction markers, records that retention
  removed before they were read. Nor are records waited for that are not written yet.
- In a compacted topic a hole is accepted without a check, except before the first record after partitions were assigned: Faust may
  have skipped to that record.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from aiokafka.errors import KafkaError  # type: ignore[import-untyped]

from streams.kafka.decide.client_workarounds import FAR
from streams.kafka.decide.offset_probe import ProbeResult, Witness

if TYPE_CHECKING:
    import faust
    from faust.types import TP

PATIENCE = 1.0
"""Seconds to wait for a record after a seek; multiplied by the number of seeks for it, up to LONGEST."""
LONGEST = 8
TRIES = 12
"""Seeks for one record before the process ends, which takes about a minute."""


LONG = 20.0
"""Seconds without a record of a partition, after which none is assumed to wait in a queue of Faust's."""


class SkippedError(Exception):
    """A record is not delivered despite repeated seeks: a client fault, which a restart may repair."""


class SeekAttempt(NamedTuple):
    """A repeated request for a record: its offset, number of seeks, and time of the last one (monotonic)."""

    due: int
    times: int
    when: float


class GapDetector:
    """The next offset due in each partition. `whole`: names on the broker of the topics that are not compacted."""

    def __init__(self, app: faust.App, whole: Collection[str], witness: Witness) -> None:
        self._app: Any = app
        self._whole = whole
        self._witness = witness
        self.next: dict[TP, int] = {}
        self._settled: dict[TP, int] = {}
        """Committed offset by partition, as the broker answered."""
        self._taken = 0
        """Number of assignments so far."""
        self._begun: set[TP] = set()
        self._asked: dict[TP, SeekAttempt] = {}
        self._came: dict[TP, float] = {}
        """Time (monotonic) of the last record, or since when one has been awaited."""

    def anew(self) -> None:
        """Reset after an assignment: the committed offsets are due next."""
        self._taken += 1
        self.next.clear()
        self._settled.clear()
        self._begun.clear()
        self._asked.clear()
        self._came.clear()

    async def begin(self, tps: Collection[TP]) -> None:
        """Look up the offsets due in assigned partitions together, so that their first records do not wait for it one by one."""
        taken = self._taken
        # If the broker does not answer, each offset is looked up when its first record arrives.
        with suppress(KafkaError, TimeoutError):
            async with asyncio.timeout(PATIENCE * LONGEST):
                first, settled = await asyncio.gather(self.earliest(*tps), asyncio.gather(*map(self.settled, tps)))
            if taken == self._taken:
                for tp, committed in zip(tps, settled, strict=True):
                    self._settled.setdefault(tp, committed)
                    self.next.setdefault(tp, first.get(tp, 0))

    async def takes(self, message: Any) -> bool:
        """Whether a record may be decided now; if not, it is delivered again after a seek. Raises SkippedError."""
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
        """Repeat requests for skipped records, and request the offset due wherever the consumer has read beyond it.

        While the stage is not idle, the record due may wait in a queue: it is requested only after LONG seconds without a record.
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
        """Return the next offset due in a partition."""
        while tp not in self.next:
            taken = self._taken
            settled, first = await self.settled(tp), await self.earliest(tp)
            # If partitions were reassigned meanwhile, other workers may have committed more.
            if taken == self._taken:
                self._settled[tp] = settled
                self.next[tp] = first.get(tp, 0)
        return max(self.next[tp], self.committed(tp))

    async def settled(self, tp: TP) -> int:
        """Return the committed offset of the group on the broker; 0 if none."""
        thread = self._app.consumer._thread  # noqa: SLF001 - told nowhere else
        return await thread.call_thread(thread._ensure_consumer().committed, tp) or 0  # noqa: SLF001 - the same

    async def earliest(self, *tps: TP) -> dict[TP, int]:
        """Return the first offset that the broker still has, by partition."""
        return {tp: offset or 0 for tp, offset in (await self._app.consumer.earliest_offsets(*tps)).items()}

    def reached(self, tp: TP) -> int:
        """Return the offset that the consumer reads next; 0 if it has none."""
        # Not by the consumer's method, which may block in its thread without end.
        subscription = self._app.consumer._thread._consumer._subscription.subscription  # noqa: SLF001 - told nowhere else
        assignment = subscription.assignment if subscription is not None else None
        state = assignment.state_value(tp) if assignment is not None else None
        return state.position if state is not None and state.has_valid_position else 0

    def committed(self, tp: TP) -> int:
        """Return the committed offset of a partition, as far as it is known."""
        known: int = self._app.consumer._committed_offset.get(tp) or 0  # noqa: SLF001 - told nowhere else
        return max(self._settled.get(tp, 0), known)

    async def _ask(self, tp: TP, due: int, came: int = FAR) -> None:
        """Seek the consumer back to a record, where `came` arrived instead; rate-limited. Raises SkippedError.

        If the offset has no record, the next one becomes due, which may be the one that arrived.
        """
        self._forget_gap(tp, due)
        before = self._asked.get(tp)
        asked = self._asked[tp] = before if before is not None and before.due == due else SeekAttempt(due, 0, -FAR)
        # Each seek drops the fetch under way: on a slow machine, seeking too often would never let one complete.
        if time.monotonic() - asked.when < PATIENCE * min(max(asked.times, 1), LONGEST):
            return
        taken = self._taken
        found = await self.found(tp, due)
        if taken != self._taken or due != await self.position(tp):
            # The partition was reassigned, or the record has arrived meanwhile.
            return
        if found.offset > due:
            if not self._passed(tp, due, found) or not found.there or found.offset == came:
                return
            # The next record was skipped too.
            asked = SeekAttempt(found.offset, 0, -FAR)
        elif not found.there and asked.times:
            # The record is not written yet, or the skipped ones have fallen to retention.
            self._asked.pop(tp)
            return
        if asked.times >= TRIES:
            raise SkippedError(f"{tp.topic}-{tp.partition}: {due} does not come")
        self._asked[tp] = asked._replace(times=asked.times + 1, when=time.monotonic())
        await self.seek(tp, asked.due)

    def _passed(self, tp: TP, due: int, found: ProbeResult) -> bool:
        """Advance to the next record or to the end if nothing is in between; to the end only once everything below is committed."""
        consumer = self._app.consumer
        if found.there:
            # The gap is committed with the record after it.
            consumer._gap[tp].addi(due, found.offset)  # noqa: SLF001 - told nowhere else
        elif self.committed(tp) < due:
            return False
        else:
            consumer._acked[tp].extend(range(due, found.offset))  # noqa: SLF001 - the same
        self._asked.pop(tp, None)
        self.next[tp] = found.offset
        return True

    async def found(self, tp: TP, due: int) -> ProbeResult:
        """Return the first record at or after `due`, by another client; assume that it is at `due` if no broker answers."""
        return await asyncio.to_thread(self._witness, tp, due) or ProbeResult(due, there=True)

    async def seek(self, tp: TP, offset: int) -> None:
        """Move the consumer to an offset."""
        await self._app.consumer.seek(tp, offset)

    def _forget_gap(self, tp: TP, due: int) -> None:
        """Remove the gap from `due` on: Faust took skipped records for compacted ones."""
        self._app.consumer._gap[tp].chop(due, FAR)  # noqa: SLF001 - the same
