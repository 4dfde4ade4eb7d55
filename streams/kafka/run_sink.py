"""The runner of an index's sink: its consumer on this thread, until SIGTERM or SIGINT."""

from __future__ import annotations

import logging
import signal
import threading

from streams.indexes import at
from streams.kafka.index_sink import IndexSink, manner
from streams.kafka.watchdog import Watchdog
from streams.kafka.worker import Context


def indexes(context: Context) -> None:
    """Fill the index of a Broker: on OpenSearch, or in the data folder, which has one writer. Raises OSError, IndexDamaged."""
    settings, telling, stop = context.settings, context.telling, threading.Event()
    broker = context.stage.name.removeprefix("index.")
    index = at(settings.index_url, settings.index_name, settings.folder, broker, writable=True)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    try:
        sink = IndexSink(
            context.cluster,
            broker,
            index,
            **manner(settings.index_url),
            session=settings.session,
            note=logging.getLogger("harvest").warning,
            plain=context.wire.plain,
        )
        sink.saw = lambda outcome, items: telling.indexed(broker, outcome, items)
        telling.needs("assigned", lambda: "" if sink.places() else "no partitions")
        telling.needs("index", lambda: "" if sink.reaches() else "the index cannot be written")
        telling.started()
        watched = sink.places, sink.excused
        Watchdog(
            context.brokers, context.group, settings.stall, *watched, looked=telling.looked, everywhere=lambda: context.places
        ).start()
        sink.run(stop.is_set)
    finally:
        index.close()
