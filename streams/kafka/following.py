"""That records are decided in the order of the log, none left out.

Cause: Faust skips records. Where a recovery seeks while a fetch is being delivered, those that come before the flow is resumed are
read and forgotten, and the consumer stands behind them. It enters them as a gap, which is committed like what was done.

Strategy: who reads knows which record is due. What comes too early is let go, unacknowledged, its gap is taken out, and the
consumer is sent back to what is due. In a compacted topic nobody knows what is due; there a gap is none.

Laws:
- Nothing is decided, and nothing is committed, beyond a record that was left out.
- What retention took away before it was read is not waited for.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import faust
    from faust.types import TP

PATIENCE = 1.0
"""Seconds that a record has to come once it was asked for again."""
TRIES = 30
"""Times that one record is asked for, before the process ends."""
FAR = 1 << 62
"""An offset beyond all."""


class SkippedError(Exception):
    """A record is not delivered, however often it is asked for: a fault of the client, which a new start may mend."""


class Following:
    """The offsets that are due next. `whole` are the topics, as the broker has them, in which none may be left out."""

    def __init__(self, app: faust.App, whole: Collection[str]) -> None:
        self._app: Any = app
        self._whole = whole
        self.next: dict[TP, int] = {}
        self._asked: dict[TP, tuple[int, int, float]] = {}

    async def takes(self, message: Any) -> bool:
        """Whether a record may be decided now; if not, it comes again behind what is due. Raises SkippedError."""
        due = await self.position(message.tp)
        if message.offset > due and message.topic in self._whole:
            message.acked = True
            await self._ask(message.tp, due)
            return False
        self._asked.pop(message.tp, None)
        self.next[message.tp] = message.offset + 1
        return True

    async def position(self, tp: TP) -> int:
        """The offset that is due next in a partition."""
        if tp not in self.next:
            self.next.update(await self.earliest(tp))
        # What was committed since by another worker, which had the partition for a while, was not left out.
        return max(self.next[tp], self.committed(tp))

    async def earliest(self, tp: TP) -> dict[TP, int]:
        """The first offset that the broker still has."""
        return {tp: offset or 0 for tp, offset in (await self._app.consumer.earliest_offsets(tp)).items()}

    def committed(self, tp: TP) -> int:
        """The offset that is committed in a partition."""
        return self._app.consumer._committed_offset.get(tp) or 0  # noqa: SLF001 - told nowhere else

    async def _ask(self, tp: TP, due: int) -> None:
        """Have the consumer go back to a record."""
        self._forget_gap(tp, due)
        asked, times, when = self._asked.get(tp, (-1, 0, 0.0))
        times = times if asked == due else 0
        if times and time.monotonic() - when < PATIENCE:
            return
        if times >= TRIES:
            raise SkippedError(f"{tp.topic}-{tp.partition}: {due} does not come")
        self._asked[tp] = due, times + 1, time.monotonic()
        first = (await self.earliest(tp))[tp]
        self.next[tp] = max(first, self.next[tp])
        await self.seek(tp, max(first, due))

    async def seek(self, tp: TP, offset: int) -> None:
        """Have the consumer read on from an offset."""
        await self._app.consumer.seek(tp, offset)

    def _forget_gap(self, tp: TP, due: int) -> None:
        """What was left out is not done: Faust took it for compacted away."""
        self._app.consumer._gap[tp].chop(due, FAR)  # noqa: SLF001 - the same
