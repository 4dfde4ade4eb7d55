"""A Faust worker process for one test, with this project's workarounds or without.

python -m tests.streams.kafka.worker JSON, an object with the fields of `Task`. It reports on standard output. When it is killed, it
leaves the files that any killed worker leaves.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import faust
import msgspec
from aiokafka import AIOKafkaConsumer  # type: ignore[import-untyped]
from aiokafka.errors import CommitFailedError  # type: ignore[import-untyped]
from faust.sensors import Sensor

from streams.kafka.decide import client_workarounds
from streams.kafka.decide.recovering import manager
from streams.kafka.worker.stopping import end_process


class Task(msgspec.Struct, frozen=True):
    """The work of the worker."""

    broker: str
    id: str
    topic: str
    folder: str
    does: str
    count: int
    """Number of records in the topic."""
    mended: bool = False
    """Whether the workarounds replace the plain library's behavior."""
    fresh: bool = False
    """Whether its folder is managed by `client_workarounds.tables`."""
    refused: int = 0
    """Number of commits that fail, as commits do during a rebalance."""
    commit: float = 0.3
    linger: float = 0.0
    partitions: int = 1


def say(*words: object) -> None:
    """Report words to the test, on standard output."""
    print(*words, flush=True)


class Commits(Sensor):
    """Reports each round of commits."""

    def on_commit_completed(self, consumer: Any, state: Any) -> None:
        """Report one round."""
        say("commit")


def make(task: Task) -> Any:
    """Build the application, with its table and its agent."""
    more: dict[str, Any] = {}
    if task.mended:
        more["TableManager"] = manager({"bootstrap.servers": task.broker, "log_level": 0})
    app = faust.App(
        task.id,
        broker=f"kafka://{task.broker}",
        store="rocksdb://",
        datadir=task.folder,
        web_enabled=False,
        topic_disable_leader=True,
        stream_wait_empty=False,
        broker_commit_interval=task.commit,
        broker_session_timeout=3.0,
        broker_heartbeat_interval=0.5,
        producer_linger=task.linger,
        topic_partitions=task.partitions,
        table_standby_replicas=0,
        **more,
    )
    app.sensors.add(Commits())
    if task.mended:
        app.transport = client_workarounds.Transport(app.conf.broker, app)
    table = app.Table("rows", partitions=task.partitions, key_type=bytes, value_type=bytes)
    app.agent(app.topic(task.topic, key_serializer="raw", value_serializer="raw"))(DOES[task.does](task, table))
    return app


Agent = Callable[[Any], Awaitable[None]]


def counted(task: Task) -> Callable[[], bool]:
    """A function to call for each record: at the last one it reports "seen" and returns True."""
    seen = 0

    def one() -> bool:
        nonlocal seen
        seen += 1
        if seen == task.count:
            say("seen")
        return seen == task.count

    return one


def passing(task: Task, table: Any) -> Agent:
    """An agent that does nothing with its records."""
    one = counted(task)

    async def agent(stream: Any) -> None:
        async for _ in stream:
            one()

    return agent


def putting(task: Task, table: Any) -> Agent:
    """An agent that puts the rows that its table lacks; with the workarounds, all rows."""
    one = counted(task)

    async def agent(stream: Any) -> None:
        async for event in stream.events():
            if task.mended or event.key not in table:
                table[event.key] = event.value
            one()

    return agent


def dying(task: Task, table: Any) -> Agent:
    """An agent that puts all rows, then kills its process before the broker has any of them."""
    one = counted(task)

    async def agent(stream: Any) -> None:
        async for event in stream.events():
            table[event.key] = event.value
            if one():
                os.kill(os.getpid(), signal.SIGKILL)

    return agent


def going_back(task: Task, table: Any) -> Agent:
    """An agent that seeks back to the first record during delivery; reports at each last record whether the first came again."""

    async def agent(stream: Any) -> None:
        asked = came = False
        async for event in stream.events():
            if event.message.offset == task.count // 10 and not asked:
                asked = True
                await event.app.consumer.seek(event.message.tp, 0)
            came = came or (asked and event.message.offset == 0)
            if event.message.offset == task.count - 1:
                say("last", came)

    return agent


def counting(task: Task, table: Any) -> Agent:
    """An agent that reports how many rows its table has at the first record, and how many of them Faust handled."""
    handed = 0
    handle = table.on_changelog_event

    async def counted(event: Any) -> None:
        nonlocal handed
        handed += 1
        await handle(event)

    table.on_changelog_event = counted

    async def agent(stream: Any) -> None:
        async for _ in stream:
            say("rows", len(table), handed)

    return agent


def batching(task: Task, table: Any) -> Agent:
    """An agent that puts a batch at a time; with the workarounds, each row under its event as the current one."""
    one = counted(task)

    async def agent(stream: Any) -> None:
        # No variable refers to the generator: one that is still referenced is not closed, and acknowledges nothing.
        async for batch in stream.take_events(task.count, within=1.0):
            for event in batch:
                with client_workarounds.current(event) if task.mended else nullcontext():
                    try:
                        table[event.key] = event.value
                    except TypeError as error:
                        say("error", error)
                        raise
                one()

    return agent


ASKED, SOON = 4, 4.5
"""Number of requests for the end of a partition, and seconds in which all are to be answered: a plain worker takes 1.5 for each."""


def asking(task: Task, table: Any) -> Agent:
    """An agent that asks for the end of its partition while no record arrives; reports whether the answers came in time."""

    async def agent(stream: Any) -> None:
        async for event in stream.events():
            begun = time.monotonic()
            for _ in range(ASKED):
                await event.app.consumer.highwaters(event.message.tp)
            say("asked", time.monotonic() - begun < SOON)

    return agent


DOES: dict[str, Callable[[Task, Any], Agent]] = {
    "pass": passing,
    "put": putting,
    "die": dying,
    "back": going_back,
    "batch": batching,
    "count": counting,
    "ask": asking,
}


def refuse(times: int) -> None:
    """Make the first commits fail with CommitFailedError, as after a rebalance."""
    commits = iter(range(times))
    commit = AIOKafkaConsumer.commit

    async def refused(consumer: Any, offsets: Any) -> None:
        if next(commits, None) is not None:
            raise CommitFailedError("the group has already rebalanced")
        await commit(consumer, offsets)

    AIOKafkaConsumer.commit = refused


def main() -> None:
    """Run the worker until SIGTERM."""
    task = msgspec.json.decode(sys.argv[1], type=Task)
    refuse(task.refused)
    with client_workarounds.tables(Path(task.folder), time.time()) if task.fresh else nullcontext():
        try:
            faust.Worker(make(task), loglevel="WARN", redirect_stdouts=False).execute_from_commandline()
        except SystemExit as end:
            if end.code:
                raise


if __name__ == "__main__":
    main()
    end_process()
