"""The index sink of an embedded runner: a thread that applies a Broker's topic to its index.

Strategy: it reads continuously, while written records are still cached as objects, and commits seldom: each commit makes a segment,
and merging segments takes more time than making them. So little is left to do when the last record has arrived.

Delivery: the index stores the offset of each batch in the same commit, and continues from there after a crash. A record that is not
a change becomes a dead letter before that, again after a crash. An index that is damaged, or has another format, is deleted and
rebuilt from the topic.
"""

from __future__ import annotations

import logging
import shutil
import time
from collections.abc import Sequence
from pathlib import Path

from processors.query.forms import DEFAULT_LANGUAGES, Analyzer
from sinks.index.tantivy.index import HEAP, LEAST_HEAP, IndexDamaged, TantivyIndex
from streams.clock import now_ms
from streams.embedded.sink_thread import POLL, SinkThread
from streams.faults import fault
from streams.operations.index_changes import newest_changes
from streams.store import Store
from streams.store.data_folder import index_folder
from streams.topology.flow import archive

BATCH = 10_000
"""Approximate number of records of one commit."""
LULL = 15.0
"""Seconds that fewer records wait for more, unless the runner is idle."""
STEP = 1_000
"""Records per read: a summary that a turn publishes twice, first without its role and then with it, is indexed once."""


NOTE = logging.getLogger("harvest").warning

__all__ = ["HEAP", "IndexSink"]


class IndexSink(SinkThread):
    """Applies `broker.NAME` to the index."""

    def __init__(self, folder: Path, broker: str, heap: int = HEAP, languages: Sequence[str] = DEFAULT_LANGUAGES) -> None:
        super().__init__(folder, f"index.{broker}", archive(broker).name)
        self._heap = max(heap, LEAST_HEAP)
        self._analyzer = Analyzer(languages)
        self._path = index_folder(folder, broker)
        self._reached: dict[int, int] = {}
        """Offsets read, by partition; `_applied` has the committed ones."""

    def _run(self, store: Store) -> None:
        index = self._open(store)
        self._started()
        try:
            self._follow(store, index)
        finally:
            index.close()

    def _open(self, store: Store) -> TantivyIndex:
        ends = store.ends(self.topic)
        try:
            index = TantivyIndex(self._path, heap=self._heap, analyzer=self._analyzer)
            applied = dict(index.offsets())
        except IndexDamaged as error:
            NOTE("%s: it is made anew from %s", error, self.topic)
            return self._anew()
        if any(p >= len(ends) or offset > ends[p] for p, offset in applied.items()):
            # The index is ahead of the log: one of them is an older copy.
            index.close()
            return self._anew()
        self._applied = applied
        return index

    def _anew(self) -> TantivyIndex:
        shutil.rmtree(self._path)
        return TantivyIndex(self._path, heap=self._heap, analyzer=self._analyzer)

    def _follow(self, store: Store, index: TantivyIndex) -> None:
        self._reached = dict(self._applied)
        since = time.monotonic()
        while True:
            nudged = self._nudged.is_set()
            self._nudged.clear()
            stopping = self._stop
            self._read(store, index)
            behind = self._behind()
            late = time.monotonic() - since > LULL
            if behind and (behind >= BATCH or late or nudged or stopping):
                self._commit(index)
                since = time.monotonic()
                self.wake()
            elif stopping:
                return
            elif not self._nudged.is_set():
                self._nudged.wait(POLL)

    def _behind(self) -> int:
        """Return the number of records that were read and not committed."""
        return sum(self._reached.values()) - sum(self._applied.values())

    def _read(self, store: Store, index: TantivyIndex) -> None:
        """Read all records that there are, up to a batch."""
        for p, end in enumerate(store.ends(self.topic)):
            while (start := self._reached.get(p, 0)) < end and self._behind() < BATCH:
                records = store.read(self.topic, p, start, STEP, until=end)
                changes, letters = newest_changes(records, now_ms())
                index.add(changes)
                self.saw(len(changes))
                self._letters += letters
                # A short batch means that the other records were compacted away.
                self._reached[p] = records[-1].offset + 1 if len(records) == STEP else end

    def _commit(self, index: TantivyIndex) -> None:
        self._bury()
        fault("index.apply")
        index.commit(self._reached)
        fault("index.applied")
        self._applied = dict(self._reached)
