"""The feed for those who ask for it: filled from the topic of a data folder, or as a worker on Kafka has filled it."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock
from typing import TYPE_CHECKING

from sinks.feed.reader import FeedReader
from streams.operations.feed import feed_file, fill_feed, open_feed
from streams.store import Store
from streams.store.data_folder import gatherer
from streams.topology.flow import SUMMARIES

if TYPE_CHECKING:
    from schemas.records import Rejected
    from streams.config.settings import Settings

LOG = logging.getLogger("harvest")


class FeedAccess:
    """Opens the feed of the settings. For any thread; one at a time fills it."""

    def __init__(self, found: Settings) -> None:
        self._found = found
        self._lock = Lock()
        self._pool = ThreadPoolExecutor(1, "feed")
        self._filling: Future[None] | None = None
        self._ended = False

    def open(self, patience_s: float | None = None) -> FeedReader:
        """Return a reader of the feed, which has all of its topic; the caller closes it.

        `patience_s`: seconds to wait until it is filled; filling goes on behind that. On Kafka it is not filled here. Raises
        TimeoutError, StoreError, OSError (FeedMissing if there is none, FeedPartial if it lacks a part of its topic).
        """
        if not self._found.kafka.brokers:
            with self._lock:
                if self._filling is None or self._filling.done():
                    self._filling = self._pool.submit(self._fill)
                filling = self._filling
            filling.result(patience_s)
        reader = FeedReader(feed_file(self._found.data))
        try:
            reader.require_whole()
        except BaseException:
            reader.close()
            raise
        return reader

    def close(self) -> None:
        """End the thread after the batch that it applies."""
        self._ended = True
        self._pool.shutdown()

    def _fill(self) -> None:
        with Store(self._found.data, readonly=True) as store:
            try:
                feed = open_feed(self._found.data, gatherer(store) or self._found.gatherer, store.ends(SUMMARIES.name))
            except PermissionError:
                # Another user's folder: the feed is read as it is.
                return
            try:
                fill_feed(store, feed, _report, stop=lambda: self._ended)
                feed.touch()
            finally:
                feed.close()


def _report(letters: Sequence[Rejected]) -> None:
    """Log what is left out: those who only ask for the feed write no dead letters."""
    for letter in letters:
        LOG.warning("left out of the stream: %s: %s", letter.key.decode("utf-8", "replace") if letter.key else "", letter.detail)
