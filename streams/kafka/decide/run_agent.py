"""The runner of a stage that decides: a Faust worker around its `Decider`, until SIGTERM or SIGINT."""

from __future__ import annotations

import fcntl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import cast

from streams.kafka.client.admin import Admin
from streams.kafka.client.brokers import written
from streams.kafka.client.cluster import TAKEN, ClusterError, heartbeat
from streams.kafka.decide.agents import LARGEST, Decider, last_word
from streams.kafka.decide.apps import application, runner
from streams.kafka.decide.client_workarounds import Transport, tables
from streams.kafka.worker.worker import Context
from streams.topology.flow import Stage


@contextmanager
def own(folder: Path) -> Iterator[Path]:
    """A folder that no other process has: this one, or the first free one beside it."""
    for number in count(1):
        found = folder if number == 1 else folder.with_name(f"{folder.name}-{number}")
        found.parent.mkdir(parents=True, exist_ok=True)
        with open(found.with_name(f"{found.name}.lock"), "wb") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            yield found
            return


ROOM = 1_048_588 - LARGEST
"""Bytes of what a topic takes (`max.message.bytes`, here as it comes) that are left to headers: a record's own, and its batch's."""


def largest(context: Context) -> int:
    """Bytes of a record that all topics take which the stage writes, its changelog among them. Raises ClusterError."""
    names = [context.cluster.changelog(context.stage.name), *map(context.cluster.topic, written(context.stage))]
    found = Admin(context.cluster).found(names).values()
    return min((int(topic.settings["max.message.bytes"]) for topic in found), default=LARGEST + ROOM) - ROOM


def decides(context: Context) -> None:
    """Run it. Its tables are believed by the next worker where this one left in order. Raises ClusterError."""
    settings, stage = context.settings, context.stage
    if not isinstance(stage, Stage):
        raise TypeError(stage.name)
    with own(context.tables) as folder, tables(folder, time.time()):
        app = application(
            context.group,
            context.brokers,
            folder,
            context.partitions,
            broker_commit_interval=settings.commit,
            broker_session_timeout=settings.session,
            broker_heartbeat_interval=heartbeat(settings.session),
            consumer_group_instance_id=settings.instance or None,
        )
        telling = context.telling
        # Before anything of the batch can be committed.
        die = lambda error: telling.end(last_word(error))  # noqa: E731 - named for the line below
        decider = Decider(app, stage, settings.prefix, die, wire=context.wire, largest=largest(context))
        owned = decider.owned
        decider.telling = telling
        cast("Transport", app.transport).taken = lambda: telling.end(TAKEN)  # type: ignore[method-assign]
        telling.beats(lambda: telling.since(owned.beat))
        telling.needs("assigned and recovered", lambda: "" if owned.partitions else "not yet")
        # Faust says nothing of a broker that is gone, and keeps its partitions.
        telling.needs("broker", telling.broker)
        telling.started()
        context.watch(owned.places, owned.excused)
        try:
            # Where lines are JSON, Faust's are too.
            runner(app, override_logging=not telling.logs.structured).execute_from_commandline()
        except SystemExit as end:
            if end.code:
                raise
        if app.crash_reason is not None:
            raise app.crash_reason
        if left := decider.sender.left:
            # The tables may hold rows that the changelog has not got: they are not to be believed.
            raise ClusterError(f"{context.brokers}: left before the broker had {left:,} records; they will be made again")
