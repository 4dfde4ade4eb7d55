"""The feed for those who ask for it: filled from the topic of a data folder, or as a worker on Kafka has filled it."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from sinks.feed.reader import FeedReader
from streams.operations.feed import feed_file, fill_feed, open_feed, topic_of
from streams.store import Store, schema
from streams.store.data_folder import gatherer

if TYPE_CHECKING:
    from schemas.records import Rejected
    from streams.config.settings import Settings

LOG = logging.getLogger("harvest")
FRESH = 60.0
"""Seconds for which a feed counts as filled while the files of the store do not change."""
SETTLED_NS = 1_000_000_000
"""Age in ns from which a file's time of change is trusted: file systems have clocks of seconds, and two writes may be in one."""
Signature = tuple[tuple[int, int, int], ...]
"""Inode, size and time of change of the files of a store, and of the feed."""


class FeedAccess:
    """Opens a feed of the settings. For any thread; one at a time fills it, unless the store has not changed since."""

    def __init__(self, found: Settings, broker: str = "") -> None:
        """`broker`: that whose archive is meant; "": the Gatherer's database is."""
        self._found = found
        self.broker = broker
        self._lock = Lock()
        self._pool = ThreadPoolExecutor(1, "feed")
        self._filling: Future[None] | None = None
        self._ended = False
        self._filled: tuple[Signature, float] = ((), 0.0)
        """The files as of the last time that the feed was filled, and until when that counts."""

    def open(self, patience_s: float | None = None) -> FeedReader:
        """Return a reader of the feed, which has all of its topic; the caller closes it.

        `patience_s`: seconds to wait until it is filled; filling goes on behind that. On Kafka it is not filled here. Raises
        TimeoutError, StoreError, OSError (FeedMissing if there is none, FeedPartial if it lacks a part of its topic).
        """
        if not self._found.kafka.brokers and not self._is_filled():
            with self._lock:
                if self._filling is None or self._filling.done():
                    self._filling = self._pool.submit(self._fill)
                filling = self._filling
            filling.result(patience_s)
        reader = FeedReader(feed_file(self._found.data, self.broker))
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

    def _is_filled(self) -> bool:
        known, until = self._filled
        return bool(known) and time.monotonic() < until and self._signature() == known

    def _signature(self) -> Signature:
        return _signature(self._found.data, feed_file(self._found.data, self.broker))

    def _fill(self) -> None:
        # Before the store is read: what is written meanwhile changes it again.
        seen = self._signature()
        with Store(self._found.data, readonly=True) as store:
            try:
                name, ends = gatherer(store) or self._found.gatherer, store.ends(topic_of(self.broker))
                feed = open_feed(self._found.data, name, ends, self.broker)
            except PermissionError:
                # Another user's folder: the feed is read as it is.
                return
            try:
                fill_feed(store, feed, _report, stop=lambda: self._ended)
                feed.touch()
            finally:
                feed.close()
        if not self._ended:
            self._filled = (seen, time.monotonic() + FRESH)


def _signature(folder: Path, feed: Path) -> Signature:
    """Return what changes with each write to the store of a data folder; empty: unknown, or it has changed just now."""
    store = folder / schema.FILE
    found = []
    for path in (store, store.with_name(f"{store.name}-wal"), feed):
        try:
            status = os.stat(path)
        except OSError:
            found.append((0, 0, 0))
        else:
            found.append((status.st_ino, status.st_size, status.st_mtime_ns))
    is_settled = max(changed for *_, changed in found) < time.time_ns() - SETTLED_NS
    return tuple(found) if is_settled else ()


def _report(letters: Sequence[Rejected]) -> None:
    """Log what is left out: those who only ask for the feed write no dead letters."""
    for letter in letters:
        LOG.warning("left out of the stream: %s: %s", letter.key.decode("utf-8", "replace") if letter.key else "", letter.detail)
