"""Runner of a stateful stage: a Faust worker around its `Decider`, until SIGTERM or SIGINT."""

from __future__ import annotations

import fcntl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import cast

from streams.kafka.client.admin import Admin
from streams.kafka.client.brokers import written_topics
from streams.kafka.client.cluster import TAKEN, ClusterError, changelog_of, cluster_errors, heartbeat
from streams.kafka.client.topic_identity import TopicIdentities
from streams.kafka.decide.agents import LARGEST, Decider, exit_reason
from streams.kafka.decide.apps import application, runner
from streams.kafka.decide.client_workarounds import Transport, tables
from streams.kafka.decide.credentials import equal_settings
from streams.kafka.worker.worker import Context
from streams.topology.flow import Stage


@contextmanager
def claim_folder(folder: Path) -> Iterator[Path]:
    """Lock and yield a folder that no other process uses: `folder`, or the first free one of `folder~2`, `folder~3`, ...

    No stage has a tilde in its name, so this is the folder of no other stage.
    """
    for number in count(1):
        found = folder if number == 1 else folder.with_name(f"{folder.name}~{number}")
        found.parent.mkdir(parents=True, exist_ok=True)
        with open(found.with_name(f"{found.name}.lock"), "wb") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            yield found
            return


ROOM = 1_048_588 - LARGEST
"""Bytes of `max.message.bytes` (here its default) reserved for headers of a record and of its batch."""


def max_record_bytes(context: Context) -> int:
    """Return the bytes of a record that all topics of the stage accept, changelog included. Raises ClusterError."""
    names = [context.cluster.changelog(context.stage.name), *map(context.cluster.topic, written_topics(context.stage))]
    found = Admin(context.cluster).found(names).values()
    return min((int(topic.settings["max.message.bytes"]) for topic in found), default=LARGEST + ROOM) - ROOM


def topic_id(context: Context) -> str:
    """Return the id of the stage's changelog. Raises ClusterError."""
    with cluster_errors(context.cluster):
        return TopicIdentities(context.cluster, context.stage).present().ids.get(changelog_of(context.stage.name), "")


def run_agent(context: Context) -> None:
    """Run a stateful stage. The next worker reuses its tables only after an orderly exit. Raises ClusterError."""
    settings, stage = context.settings, context.stage
    if not isinstance(stage, Stage):
        raise TypeError(stage.name)
    name = context.cluster.named(settings.instance).get("client.id")
    changelog = topic_id(context)
    with claim_folder(context.tables) as folder, tables(folder, time.time(), changelog):
        app = application(
            context.group,
            context.cluster,
            folder,
            context.partitions,
            broker_commit_interval=settings.commit,
            broker_session_timeout=settings.session,
            broker_heartbeat_interval=heartbeat(settings.session),
            consumer_group_instance_id=settings.instance or None,
            **({"broker_client_id": name} if name else {}),
        )
        telling = context.telling
        # Ends the process before anything of the batch can be committed.
        die = lambda error: telling.end(exit_reason(error))  # noqa: E731 - named for the line below
        decider = Decider(app, stage, context.cluster, die, wire=context.wire, largest=max_record_bytes(context))
        owned = decider.owned
        decider.telling = telling
        cast("Transport", app.transport).taken = lambda: telling.end(TAKEN)  # type: ignore[method-assign]
        telling.beats(lambda: telling.since(owned.beat))
        telling.needs("assigned and recovered", lambda: "" if owned.partitions else "not yet")
        # Faust does not report an absent broker, and keeps its partitions.
        telling.needs("broker", telling.broker)
        telling.started()
        if without := equal_settings(dict(context.cluster.further))[1]:
            names = ", ".join(without)
            telling.logs.say(f"kafka.client: Faust's client has no {names}: the other clients of {stage.name} alone use that")
        context.watch(owned.places, owned.excused)
        try:
            # With JSON logging, Faust's lines are JSON too.
            worker = runner(app, telling.logs.library_level, override_logging=not telling.logs.structured)
            telling.stopping = lambda: worker._signal_stop_time is not None  # noqa: SLF001 - has no public name
            worker.execute_from_commandline()
        except SystemExit as end:
            if end.code:
                raise
        if app.crash_reason is not None:
            raise app.crash_reason
        if left := decider.sender.left:
            # The tables may hold rows that the changelog lacks, so they must not be reused.
            raise ClusterError(f"{context.brokers}: left before the broker had {left:,} records; they will be made again")
