"""Runners of the fetch and essence edges on Kafka, until SIGTERM or SIGINT."""

from __future__ import annotations

import asyncio
import logging
import signal
import threading
from contextlib import suppress

import uvloop

from streams.edges.base import EdgeBase
from streams.edges.fetching import FetchEdge
from streams.edges.parsing import EssenceEdge
from streams.kafka.client.cluster import cluster_errors, membership
from streams.kafka.client.producer import worker_client
from streams.kafka.edge.edges import EdgeRunner
from streams.kafka.edge.outbox import Outbox
from streams.kafka.edge.source import Buffer
from streams.kafka.worker.stopping import limit_stop
from streams.kafka.worker.worker import Context
from streams.store import BodyStore
from streams.telemetry import Written
from streams.topology.flow import REJECTED
from streams.topology.routing import Router


def run_fetch(context: Context) -> None:
    """Run the fetch edge. Raises ClusterError."""
    settings = context.settings

    async def run() -> None:
        buffer, blobs = Buffer("fetches", context.partitions, context.wire), context.bodies()
        router = Router(context.stage, REJECTED)
        # Created first: the edge identifies the folder by its inode.
        settings.folder.mkdir(parents=True, exist_ok=True)
        edge = FetchEdge(buffer, settings.folder, blobs, settings.fetch, context.partitions, router)
        try:
            with cluster_errors(context.cluster):
                await _run_edge(context, edge, buffer, blobs)
        finally:
            await edge.close()
            blobs.close()

    uvloop.run(run())


def run_essence(context: Context) -> None:
    """Run the essence edge. Raises ClusterError."""
    settings = context.settings

    async def run() -> None:
        buffer, blobs = Buffer("objects", context.partitions, context.wire), context.bodies()
        log = logging.getLogger("harvest").error
        edge = EssenceEdge(
            buffer, blobs, settings.essence, context.partitions, settings.children, settings.limits, log, own=settings.own
        )
        edge.saw = context.telling.ended
        context.telling.needs("sandbox", lambda: "" if edge.ready() else "the children have not started")
        edge.start()
        try:
            with cluster_errors(context.cluster):
                await _run_edge(context, edge, buffer, blobs)
        finally:
            await edge.close()
            blobs.close()

    uvloop.run(run())


async def _run_edge(context: Context, edge: EdgeBase, buffer: Buffer, blobs: BodyStore) -> None:
    """Run an edge until a signal arrives. Raises KafkaException, ClusterError, and what ends the edge."""
    settings = context.settings
    client = {
        "group.id": context.group,
        "auto.offset.reset": "earliest",
        "partition.assignment.strategy": "cooperative-sticky",
        **membership(settings.session, settings.instance),
        "queued.max.messages.kbytes": 32 << 10,
        **worker_client(context.cluster),
        **context.cluster.named(settings.instance),
    }
    topic = settings.prefix + edge.topic
    outbox = Outbox(context.cluster, {}, context.wire)
    runner = EdgeRunner(edge, buffer, outbox, client, topic, settings.commit)
    telling = context.telling
    telling.beats(lambda: telling.since(runner.beat))
    telling.needs("assigned", lambda: "" if runner.places() else "no partitions")
    telling.started()
    outbox.wrote = lambda frame, partition, offset: telling.wrote(
        Written(edge.name, frame.topic, partition, offset, frame.value, frame.record)
    )
    runner.worked = lambda oldest, seconds: telling.worked(edge.topic, oldest, seconds)
    context.watch(runner.places, lambda: runner.excused(settings.stall))
    stopped, loop = threading.Event(), asyncio.get_running_loop()

    def leave(*_: object) -> None:
        limit_stop()
        stopped.set()
        blobs.stop()
        with suppress(RuntimeError):  # the loop is closed: the process is about to exit
            loop.call_soon_threadsafe(edge.wake)

    telling.stopping = stopped.is_set
    for number in (signal.SIGINT, signal.SIGTERM):
        # Not the loop's own handler: the loop may be blocked waiting for the broker.
        signal.signal(number, leave)
    try:
        await runner.run(stopped.is_set)
    finally:
        await runner.close()
