"""Workarounds for defects of Faust 0.15.3 and aiokafka, each as small as possible.

Strategy: the installed libraries are not patched. A consumer class of our own replaces Faust's (`Transport`); the callers of Faust
use the other workarounds. Each one has a test on a real Kafka that shows the plain library failing, so that a workaround that is no
longer needed is found when the library is upgraded.

Sources, read in the released code: faust/transport/consumer.py (`_drain_messages`, `_add_gap`, `_new_offset`),
faust/transport/drivers/aiokafka.py (`_create_worker_consumer`), faust/streams.py (`take_events`), faust/tables/table.py
(`on_key_set`), faust/stores/rocksdb.py, mode/threads.py (`_serve`), mode/services.py (`wait_first`); aiokafka, consumer/fetcher.py
(`close`).
"""

from __future__ import annotations

import asyncio
import os
import shutil
import weakref
from bisect import bisect_left
from collections.abc import AsyncIterator, Generator, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import CoroutineType, coroutine
from typing import TYPE_CHECKING, Any, ClassVar, cast

from aiokafka.errors import (  # type: ignore[import-untyped]
    CommitFailedError,
    GroupAuthorizationFailedError,
    TopicAuthorizationFailedError,
)
from faust.streams import _current_event
from faust.transport.drivers import aiokafka
from mode.services import Service, WaitResults

from streams.kafka.decide.static_membership import watch_membership

if TYPE_CHECKING:
    from faust.transport.consumer import RecordMap
    from faust.types import TP, EventT, Message
    from faust.types.transports import ConsumerT

WAIT = 100
"""ms that a broker may delay the answer to a fetch while it has no records."""
REFUSED_PAUSE = 1.0
"""Seconds between two fetches that the ACLs may refuse."""
FAR = 1 << 62
"""An offset greater than all others."""
CLEAN = "stopped-clean"
"""File that marks the tables as closed in order by the last worker."""
LATELY = 12 * 3600.0
"""Seconds that a store may be out of use: half of the default tombstone retention of Kafka (delete.retention.ms)."""


class ConsumerThread(aiokafka.AIOKafkaConsumerThread):
    """Thread of Faust's consumer that reads only committed records, and stops even if no broker answers.

    Cause: aiokafka awaits the fetches that it has cancelled, and mistakes their cancellation for its own. The thread then exits
    before it has signalled its end, and Faust waits for that signal for a minute, or until it is killed.
    """

    async def on_thread_stop(self) -> None:
        """Close the client, even if its fetches were cancelled."""
        try:
            await super().on_thread_stop()
        except asyncio.CancelledError:
            if self._consumer is not None:
                await self._consumer._client.close()  # noqa: SLF001 - the one thing that is left to be closed

    async def on_start(self) -> None:
        """Start; a static member also watches for the loss of its instance id."""
        await super().on_start()
        if self.consumer.app.conf.consumer_group_instance_id:
            watch_membership(self._consumer, cast("Transport", self.consumer.transport).taken)

    async def getmany(self, active_partitions: set[TP] | None, timeout: float) -> RecordMap:  # noqa: ASYNC109 - as Faust's
        """Return fetched records; none while the ACLs refuse them, which is shown by /readyz (`worker/holding.py`).

        Cause: the error crashes Faust's fetcher, whose application neither ends then nor reads on once the right is granted again.
        """
        try:
            return await super().getmany(active_partitions, timeout)
        except TopicAuthorizationFailedError:
            await asyncio.sleep(REFUSED_PAUSE)
            return {}

    def verify_event_path(self, now: float, tp: TP) -> None:
        """Report nothing about partitions that seem to stand still: the watchdog finds those that do (`worker/watchdog.py`).

        Cause: Faust compares the end of a partition with the consumer's position, and takes a partition with a record to read for
        stuck if its stream has had none since the start, which may be hours ago: the first record of each partition is then an
        error of many lines ("Stream has not started processing", with possible causes), and so are later ones after a long pause.
        """

    def _create_worker_consumer(self, transport: aiokafka.Transport) -> Any:
        """Create a client that reads committed records only and gets prompt answers.

        Cause: Faust also reads records of aborted transactions, unless it writes in transactions itself. And it lets the broker
        delay an empty fetch for 1.5 s: other requests on that connection wait behind it (the end of a partition, for every tick),
        and so does a partition that was not part of that fetch.
        """
        client = super()._create_worker_consumer(transport)
        client._isolation_level = "read_committed"  # noqa: SLF001 - Faust has no setting for it
        client._fetch_max_wait_ms = WAIT  # noqa: SLF001 - the same
        tolerate_refused_commits(client)
        return client


def tolerate_refused_commits(client: Any) -> None:
    """Make a commit that the ACLs refuse a failed one, which is repeated.

    Cause: Faust's thread crashes at it, and its application neither ends then nor commits once the right is granted again.
    """
    commit = client.commit

    async def tolerant(offsets: Any) -> None:
        try:
            await commit(offsets)
        except (TopicAuthorizationFailedError, GroupAuthorizationFailedError) as error:
            # Faust takes a commit for failed only if the text of the error has these words.
            raise CommitFailedError(f"refused, as if the group had already rebalanced: {error}") from error

    client.commit = tolerant


async def _begun(rest: CoroutineType[Any, Any, Any], waits_for: Any) -> Any:
    """Continue a coroutine that was started by hand, from the future that it waits for."""
    return await _resumed(rest, waits_for)


@coroutine
def _resumed(rest: CoroutineType[Any, Any, Any], waits_for: Any) -> Generator[Any, Any, Any]:
    while True:
        try:
            sent = yield waits_for
        except BaseException as error:  # noqa: BLE001 - whatever it is, it is meant for the coroutine
            step = partial(rest.throw, error)
        else:
            step = partial(rest.send, sent)
        try:
            waits_for = step()
        except StopIteration as end:
            return end.value


class Prompt(Service):
    """Service that runs coroutines at once if they need not wait.

    Cause: Faust creates four tasks for each record, and cancels three of them, to see what comes first: its delivery, the end of
    the flow, or that of the service.
    """

    async def wait_first(self, *coros: Any, timeout: Any = None) -> Any:  # noqa: ASYNC109 - as Faust's
        """As Faust's, but a first coroutine that does not wait is completed here, and the others are never started."""
        first, *others = coros
        if self.should_stop or not all(isinstance(one, CoroutineType) for one in coros):
            return await super().wait_first(*coros, timeout=timeout)
        try:
            waits_for = first.send(None)
        except BaseException as end:
            for other in others:
                other.close()
            if isinstance(end, StopIteration):
                return WaitResults([first], [end.value], stopped=False)
            raise
        return await super().wait_first(_begun(first, waits_for), *others, timeout=timeout)


class Consumer(Prompt, aiokafka.Consumer):
    """Faust's consumer, which commits everything that is done.

    Cause: offsets without a record to process (compacted records, transaction markers, records read again after a recovery) are
    entered as a gap, and so is the offset after the gap; that one is entered again when its record is done, and records done before
    a recovery are entered a second time. `_acked` then holds offsets twice, and `_new_offset` stops at each, so that one commit
    advances by one gap only. Faust also counts a record that is still being read as done.

    It delivers the records after a seek back. Cause: Faust stores a record's offset after delivering it, and silently drops records
    below the stored offset; a seek in between is forgotten.

    It takes no existing record for a hole. Cause: a fetch that began before a recovery arrives after it, from beyond the consumer's
    position; everything in between is entered as a gap, and remains one when it is read after all. The first of these records that
    are done cause the whole gap to be committed, and the next rebalance loses the others.

    It tracks what the broker has committed. Cause: a commit that failed during a rebalance counts as made, and records read again
    below it are never acknowledged: the lag remains until more records arrive.
    """

    def _new_consumer_thread(self) -> ConsumerThread:
        return ConsumerThread(self, loop=self.loop, beacon=self.beacon)

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._leaving: dict[TP, list[int]] = {}
        """Offsets that `_new_offset` removed for the commit under way."""

    async def getmany(self, timeout: float) -> AsyncIterator[tuple[TP, Message]]:  # noqa: ASYNC109 - as Faust's
        """Yield fetched records, lowering the stored read offset where they lie below it."""
        async for tp, message in super().getmany(timeout):
            if gaps := self._gap[tp]:
                # Gaps end below the last record read. Above it nothing is known: it is being read now.
                gaps.chop(message.offset, FAR)
            noted = self._read_offset[tp]
            if noted is not None and message.offset < noted and self.app.topics.acks_enabled_for(message.topic):
                self._read_offset[tp] = message.offset
            yield tp, message

    async def _commit_offsets(self, offsets: Mapping[TP, int], start_new_transaction: bool = True) -> bool:
        """Commit; offsets that the broker did not accept remain acknowledged and are committed next time."""
        mine = self.assignment()
        wanted = {tp: offset for tp, offset in offsets.items() if tp in mine}
        if not wanted:
            return False
        await self.app.producer.flush()
        if not await self._commit(wanted):
            for tp in wanted:
                self._acked[tp] += self._leaving[tp]
            return False
        self.app.tables.on_commit(wanted)
        for tp, offset in wanted.items():
            self._committed_offset[tp] = max(offset, self._committed_offset[tp] or 0)
        self.app.monitor.on_tp_commit(wanted)
        return True

    async def set_back(self, offsets: Mapping[TP, int]) -> bool:
        """Commit lower offsets, and forget what was done above them; false if the broker did not accept them. Nothing is sought."""
        if not await self._commit(offsets):
            return False
        for tp, offset in offsets.items():
            self._committed_offset[tp] = self._read_offset[tp] = offset or None
            self._acked[tp].clear()
            self._acked_index[tp].clear()
            self._gap[tp].clear()
        return True

    def _new_offset(self, tp: TP) -> int | None:
        """Return the offset to commit, after dropping offsets that are duplicates or already committed."""
        acked = self._acked[tp]
        committed = self._committed_offset[tp] or 0
        self._enter_gaps(tp, acked)
        acked[:] = sorted({offset for offset in acked if offset >= committed})
        self._acked_index[tp].intersection_update(acked)
        before = list(acked)
        offset = super()._new_offset(tp)
        self._leaving[tp] = before[: len(before) - len(acked)]
        return offset

    def _enter_gaps(self, tp: TP, acked: list[int]) -> None:
        """Enter gaps below the highest acknowledged offset; later ones wait. A gap that holds an acknowledged offset is dropped."""
        gaps = self._gap[tp]
        if not acked or not gaps:
            return
        done = sorted(acked)
        for gap in sorted(gaps.overlap(0, done[-1] + 1)):
            gaps.remove(gap)
            if bisect_left(done, gap.begin) == bisect_left(done, gap.end):
                acked.extend(range(gap.begin, gap.end))

    async def _add_gap(self, tp: TP, offset_from: int, offset_to: int) -> None:
        """End a gap before the record that was read after it."""
        await super()._add_gap(tp, offset_from, offset_to - 1)


class Transport(aiokafka.Transport):
    """Faust's transport, with the consumer above: `app.transport = Transport([url], app)`."""

    Consumer: ClassVar[type[ConsumerT]] = Consumer

    def taken(self) -> None:
        """Called in the consumer's thread when a static member no longer belongs to its group."""


@contextmanager
def current(event: EventT[Any]) -> Iterator[None]:
    """Write tables in the partition of this event, inside the block; for agents that take batches of a stream (ours do not).

    Cause: `take_events` yields a batch when none of its events is the current one any more; a table then does not know its
    partition and raises TypeError, and the batch is acknowledged all the same.
    """
    token = _current_event.set(weakref.ref(event))
    try:
        yield
    finally:
        _current_event.reset(token)


@contextmanager
def tables(folder: Path, now: float, changelog: str = "") -> Iterator[None]:
    """Prepare the folder of a worker's tables: emptied, unless the last worker closed it in order and recently.

    Cause: a row is in RocksDB before the broker has it. The last writes of a killed worker may exist only there, ahead of the
    changelog; if a redelivery finds such a row and puts nothing, the row never reaches the changelog, and is lost when the
    partition moves. A store out of use for longer than the changelog keeps tombstones misses removals. An empty store is filled
    from the changelog, and holds exactly what is committed. (Independently, law 5 holds: on redelivery put again.)

    `now` is in seconds since the epoch; `changelog` is the topic id of the changelog: tables made from another one are dropped.
    If the block raises, the next use begins empty.
    """
    mark = folder / CLEAN
    if not mark.is_file() or not 0 <= now - mark.stat().st_mtime < LATELY or mark.read_text("utf-8") != changelog:
        shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    mark.unlink(missing_ok=True)
    _flush(folder)
    yield
    mark.write_text(changelog, "utf-8")
    _flush(folder)


def _flush(folder: Path) -> None:
    """Make the created and deleted names in a folder durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
