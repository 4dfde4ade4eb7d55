"""What Faust 0.15.3 and the Kafka clients get wrong for us, and the smallest thing that mends each.

Strategy: nothing of the libraries is replaced where they are installed. A consumer of our own stands in for Faust's (`Transport`);
the rest is called by whoever uses Faust. Each mend has a test on a real Kafka that shows the plain library failing, so that one
that is needed no more is found when the library is raised.

Sources, read in the released code: faust/transport/consumer.py (`_drain_messages`, `_add_gap`, `_new_offset`),
faust/transport/drivers/aiokafka.py (`_create_worker_consumer`), faust/streams.py (`take_events`), faust/tables/table.py
(`on_key_set`), faust/stores/rocksdb.py, mode/threads.py (`_serve`), mode/services.py (`wait_first`); aiokafka,
consumer/fetcher.py (`close`); librdkafka, CONFIGURATION.md (`partitioner`), src/rdkafka_idempotence.c (`rd_kafka_idemp_pid_fsm`),
src/rdkafka_broker.c (`rd_kafka_toppar_producer_serve`).
"""

from __future__ import annotations

import asyncio
import os
import shutil
import weakref
from bisect import bisect_left
from collections.abc import AsyncIterator, Generator, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from types import CoroutineType, coroutine
from typing import TYPE_CHECKING, Any, ClassVar, cast

from confluent_kafka import KafkaException, Producer
from faust.streams import _current_event
from faust.transport.drivers import aiokafka
from mode.services import Service, WaitResults

from streams.kafka.decide.static_membership import heed

if TYPE_CHECKING:
    from faust.types import TP, EventT, Message
    from faust.types.transports import ConsumerT

PARTITIONER = {"partitioner": "murmur2_random"}
"""For every producer of confluent-kafka (law 7): its own default is CRC32, which sends most keys elsewhere than Kafka's Java
client, Faust and the embedded store do, so that the rows of a key and its records would part."""

MEET = 1.0
"""Seconds that whoever makes a producer waits at the most until that has found a broker."""
HELD = {"linger.ms": 200, "batch.size": 512 << 10}
"""For a producer that is told when to send: it keeps what it is given until then. A broker that finds a batch too large refuses all
of it: topics have to take as much, and a record that is larger travels alone."""
AT_ONCE = HELD["batch.size"]
"""Bytes that such a producer is given at the most before it is told."""
ROOM = 100
"""Bytes that a record takes beside its key and value."""
ROUND = 0.25
"""Seconds that `flushed` waits at the most."""
WAIT = 100
"""ms that a broker may keep a fetch for which it has nothing."""
FAR = 1 << 62
"""An offset beyond all."""
CLEAN = "stopped-clean"
"""The file that says that a worker took leave of its tables in order."""
LATELY = 12 * 3600.0
"""Seconds that a store may have been away: half of what Kafka keeps tombstones for (delete.retention.ms), as it comes."""


def met(producer: Producer) -> Producer:
    """A new producer, once it knows a broker. Where none answers, whoever sends is told.

    Cause: one that keeps records in order needs an id from a broker. While it is connected to none it looks for one each half
    second, whatever comes meanwhile; who is given a record as soon as it is made has looked in vain once.
    """
    with suppress(KafkaException):
        # Of all topics: one that is named would be made, where brokers make what they are asked for.
        producer.list_topics(timeout=MEET)
    return producer


class Parts:
    """What a producer that is `HELD` is given, in parts that may travel together."""

    def __init__(self) -> None:
        self._bytes = 0

    def counted(self, key: bytes, value: bytes | None) -> bool:
        """Count the next record; True: it begins a part, and the producer is told first to send what it has."""
        size = ROOM + len(key) + len(value or b"")
        begins = self._bytes > 0 and self._bytes + size > AT_ONCE
        self._bytes = size if begins else self._bytes + size
        return begins


_waiting = ThreadPoolExecutor(4, "acknowledgements")


async def flushed(producer: Producer) -> None:
    """Have a producer that is `HELD` send what it was given, and wait until that is acknowledged, or for a while.

    What it tells of records it tells in another thread; it is given none meanwhile.

    Cause: a producer that keeps records in order begins no request for a partition of which five records are under way. While more
    of them are due, its thread asks without a pause whether it may, for as long as the broker takes to answer. Where broker and
    workers share cores it answers the later, the more of them ask, and soon not at all. So what is due together must travel
    together.
    """
    await asyncio.get_running_loop().run_in_executor(_waiting, producer.flush, ROUND)


class ConsumerThread(aiokafka.AIOKafkaConsumerThread):
    """The thread of Faust's consumer, which reads what stands, and ends where no broker answers too.

    Cause: aiokafka waits for the fetches that it has cancelled, and lets their cancellation pass for one of its own. The thread is
    gone by that before it has said so, and Faust waits for its word, for a minute or until it is killed.
    """

    async def on_thread_stop(self) -> None:
        """Close the client, whatever became of its fetches."""
        try:
            await super().on_thread_stop()
        except asyncio.CancelledError:
            if self._consumer is not None:
                await self._consumer._client.close()  # noqa: SLF001 - the one thing that is left to be closed

    async def on_start(self) -> None:
        """Begin; where the member has a name (static membership), it is heard of that being taken."""
        await super().on_start()
        if self.consumer.app.conf.consumer_group_instance_id:
            heed(self._consumer, cast("Transport", self.consumer.transport).taken)

    def _create_worker_consumer(self, transport: aiokafka.Transport) -> Any:
        """A client that reads what stands, and is answered soon.

        Cause: Faust reads what a stranger's transaction has taken back too, unless it writes in transactions itself. And it lets
        the broker keep a fetch for a second and a half, where nothing comes: what else is asked over that connection waits behind
        it (where a partition ends, for every tick), and so does a partition that was not asked for in it.
        """
        client = super()._create_worker_consumer(transport)
        client._isolation_level = "read_committed"  # noqa: SLF001 - Faust has no setting for it
        client._fetch_max_wait_ms = WAIT  # noqa: SLF001 - the same
        return client


async def _begun(rest: CoroutineType[Any, Any, Any], waits_for: Any) -> Any:
    """A coroutine that was begun by hand, from where it waits on."""
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
    """A service that runs what has to wait for nothing at once.

    Cause: Faust has four tasks made for each record, and three of them cancelled, to see what comes first: its delivery, the end of
    the flow, or that of the service.
    """

    async def wait_first(self, *coros: Any, timeout: Any = None) -> Any:  # noqa: ASYNC109 - as Faust's
        """As Faust's; a coroutine that waits for nothing is run to its end here, and the others are never begun."""
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
    """Faust's consumer, which commits all that is done.

    Cause: what lies between two offsets that were read (compacted records, markers of transactions, records read again after a
    recovery) is entered as a gap, and the offset behind the gap with it; that one comes again when its record is done, and what
    was done before a recovery is entered a second time. `_acked` then holds offsets twice, and `_new_offset` stops at each,
    so that one commit moves on by one gap. It also counts a record as done that is only being read.

    And one that gives what it was sent back to. Cause: whoever delivers a record notes its offset once it is delivered, and drops
    in silence what lies below; a seek in between is forgotten.

    And one that takes no record for a hole. Cause: a fetch that began before a recovery comes behind it, from further up than where
    the consumer reads on; all that lies between is entered as a gap, and stays one when it is read after all. The first
    records of it that are done have the whole of it committed, and the next rebalance loses the others.

    And one that knows what the broker has. Cause: a commit that failed in a rebalance counts as one that was made, and what is read
    again below it is never acknowledged: the lag stands until more comes.
    """

    def _new_consumer_thread(self) -> ConsumerThread:
        return ConsumerThread(self, loop=self.loop, beacon=self.beacon)

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._leaving: dict[TP, list[int]] = {}
        """What `_new_offset` took for the commit that is under way."""

    async def getmany(self, timeout: float) -> AsyncIterator[tuple[TP, Message]]:  # noqa: ASYNC109 - as Faust's
        """What was fetched; none of it lies below what is noted as read."""
        async for tp, message in super().getmany(timeout):
            if gaps := self._gap[tp]:
                # Gaps lie below what was read last. Of what lies above, nothing is known: it is read now.
                gaps.chop(message.offset, FAR)
            noted = self._read_offset[tp]
            if noted is not None and message.offset < noted and self.app.topics.acks_enabled_for(message.topic):
                self._read_offset[tp] = message.offset
            yield tp, message

    async def _commit_offsets(self, offsets: Mapping[TP, int], start_new_transaction: bool = True) -> bool:
        """Commit; what the broker did not take is done still, and committed with what comes next."""
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

    def _new_offset(self, tp: TP) -> int | None:
        """The offset to commit. What is entered twice, or committed already, is dropped first."""
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
        """Enter the gaps that end below what is done; those above it wait. One in which anything was done is none: it goes."""
        gaps = self._gap[tp]
        if not acked or not gaps:
            return
        done = sorted(acked)
        for gap in sorted(gaps.overlap(0, done[-1] + 1)):
            gaps.remove(gap)
            if bisect_left(done, gap.begin) == bisect_left(done, gap.end):
                acked.extend(range(gap.begin, gap.end))

    async def _add_gap(self, tp: TP, offset_from: int, offset_to: int) -> None:
        """A gap ends before the record that was read behind it."""
        await super()._add_gap(tp, offset_from, offset_to - 1)


class Transport(aiokafka.Transport):
    """Faust's transport, with the consumer above: `app.transport = Transport([url], app)`."""

    Consumer: ClassVar[type[ConsumerT]] = Consumer

    def taken(self) -> None:
        """Is called, in the consumer's thread, where a member with a name (static membership) is none of its group any more."""


@contextmanager
def current(event: EventT[Any]) -> Iterator[None]:
    """Inside the block, tables are written in the partition of this event; for agents that take batches of a stream (ours do not).

    Cause: `take_events` gives a batch when none of its events is the current one any more; a table then does not know its
    partition and raises TypeError, and the batch is acknowledged all the same.
    """
    token = _current_event.set(weakref.ref(event))
    try:
        yield
    finally:
        _current_event.reset(token)


@contextmanager
def tables(folder: Path, now: float) -> Iterator[None]:
    """The folder that a worker keeps its tables in: empty, unless the last block over it was left in order, and lately.

    Cause: a row is in RocksDB before the broker has it. What a killed worker wrote last may be there alone, ahead of the changelog;
    a redelivery that finds it, and puts nothing, leaves it out of the changelog for good, and it is gone with the next move of
    the partition. A store that was away for longer than the changelog keeps tombstones misses removals. An empty store is filled
    from the changelog, and holds what is committed, no more. (Beside this, law 5 holds: on redelivery put again.)

    `now` is in seconds since the epoch. Leave the block by an exception, and the next one begins empty.
    """
    mark = folder / CLEAN
    if not mark.is_file() or not 0 <= now - mark.stat().st_mtime < LATELY:
        shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    mark.unlink(missing_ok=True)
    _flush(folder)
    yield
    mark.touch()
    _flush(folder)


def _flush(folder: Path) -> None:
    """Make names that came and went in a folder durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
