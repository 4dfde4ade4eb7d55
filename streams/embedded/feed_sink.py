"""A feed sink of an embedded runner: a thread that applies `summaries`, or the archive of a Broker, to its feed.

Delivery: the feed stores the offsets of each batch in the same transaction. Records that it refuses become dead letters before the
offsets pass them.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from schemas.records import Rejected
from sinks.feed.errors import FeedMoved
from sinks.feed.feed import Feed
from streams.embedded.sink_thread import POLL, SinkThread
from streams.faults import fault
from streams.operations.feed import BATCH, fill_feed, open_feed, stage_of, topic_of
from streams.store import Store

LULL = 5.0
"""Seconds that fewer records wait for more, unless the runner is idle: each batch is a transaction, and rewrites small members."""


class FeedSink(SinkThread):
    """Applies a topic to the feed of a Gatherer, or of one of its Brokers."""

    def __init__(self, folder: Path, gatherer: str, broker: str = "") -> None:
        super().__init__(folder, stage_of(broker), topic_of(broker))
        self._gatherer = gatherer
        self._broker = broker

    def _run(self, store: Store) -> None:
        while not self._stop:
            feed = open_feed(self._folder, self._gatherer, store.ends(self.topic), self._broker)
            try:
                self._follow(store, feed)
            except FeedMoved:
                continue
            finally:
                feed.close()

    def _follow(self, store: Store, feed: Feed) -> None:
        self._applied = dict(feed.offsets())
        self._started()
        since = time.monotonic()
        while True:
            nudged, stopping = self._nudged.is_set(), self._stop
            self._nudged.clear()
            behind = sum(end - self._applied.get(p, 0) for p, end in enumerate(store.ends(self.topic)))
            if behind and (behind >= BATCH or nudged or stopping or time.monotonic() - since > LULL):
                self._fill(store, feed)
                since = time.monotonic()
                self.wake()
            elif stopping:
                return
            elif not self._nudged.is_set():
                feed.touch()
                self._nudged.wait(POLL)

    def _fill(self, store: Store, feed: Feed) -> None:
        fault("feed.apply")
        count = fill_feed(store, feed, self._reject)
        fault("feed.applied")
        self._applied = dict(feed.offsets())
        self.saw(count)

    def _reject(self, letters: Sequence[Rejected]) -> None:
        self._letters += letters
        self._bury()
