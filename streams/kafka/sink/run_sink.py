"""Runner of a sink: its consumer on the calling thread, until SIGTERM or SIGINT."""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar, cast

from schemas.ports import Follower
from sinks.index.errors import IndexUnreachable
from streams.kafka.sink.index_sink import IndexSink, sink_options
from streams.kafka.sink.position import FIRST, LONGEST
from streams.kafka.worker.stopping import limit_stop
from streams.kafka.worker.worker import Context
from streams.operations.feed import open_feed
from streams.operations.indexes import open_index_at
from streams.topology.flow import FEED, Edge

LOOK = 0.1
"""Seconds between two checks of the stop event."""

Target = TypeVar("Target", bound=Follower)


def run_sink(context: Context) -> None:
    """Fill the index of a Broker (on OpenSearch, or in the data folder, for one writer), or the feed of the data folder.

    Raises OSError, IndexDamaged.
    """
    settings, telling, stop = context.settings, context.telling, threading.Event()
    telling.stopping = stop.is_set
    broker = context.stage.name.removeprefix("index.")

    def leave(*_: object) -> None:
        limit_stop()
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, leave)
    note = logging.getLogger("harvest").warning
    ask: Callable[[], Follower] = partial(
        open_index_at, settings.index_url, settings.index_name, settings.folder, broker, languages=settings.languages
    )
    if context.stage.name == FEED:
        ask = partial(open_feed, settings.folder, settings.essence.gatherer)
    index = open_index(ask, stop, note)
    if index is None:
        return
    try:
        sink = IndexSink(
            context.cluster,
            broker,
            index,
            **sink_options(bool(settings.index_url) and context.stage.name != FEED),
            stage=cast("Edge[Any, Any]", context.stage),
            session=settings.session,
            instance=settings.instance,
            note=note,
            plain=context.wire.plain,
            patience=settings.index_timeout,
        )
        sink.applier.saw = lambda outcome, items: telling.indexed(broker, outcome, items)
        telling.needs("assigned", lambda: "" if sink.places() else "no partitions")
        telling.needs("index", sink.trouble)
        telling.started()
        context.watch(sink.places, sink.excused)
        sink.run(stop.is_set)
    finally:
        index.close()


def open_index(ask: Callable[[], Target], stop: threading.Event, note: Callable[[str], None]) -> Target | None:
    """Return the index, once its server is reachable, with retries as in a running sink; None if `stop` was set."""
    pause, waited = FIRST, False
    while not stop.is_set():
        try:
            index = ask()
        except IndexUnreachable as error:
            if not waited:
                note(f"{error}; trying again")
            waited = True
            _rest(stop, pause)
            pause = min(2 * pause, LONGEST)
        else:
            if waited:
                note("the index can be reached again")
            return index
    return None


def _rest(stop: threading.Event, seconds: float) -> None:
    """Sleep, or return early once `stop` is set."""
    until = time.monotonic() + seconds
    # Not by `stop.wait`: a signal handler that sets the event while this thread holds its lock would deadlock.
    while not stop.is_set() and (left := until - time.monotonic()) > 0:
        time.sleep(min(left, LOOK))
