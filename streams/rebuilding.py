"""A new index from a Broker's topic, while the old one serves.

Strategy: the topic is read from its beginning to the end that it has by then, again and again until little is left. The new index
is counted against what the topic holds, and takes the place of the old one in one step. What was written into the old one
meanwhile is in the topic: a sink that finds the new one in the place goes on from the offsets that this one holds.

Laws:
- The old index serves until the new one is whole. Where they are exchanged no search fails, and no write is lost.
- An index that holds another number of summaries than its topic never serves.
- What stands behind a rebuild that was killed is in nobody's way: the next one removes it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing

from schemas.codec import DecodeError
from schemas.ports import BrokerIndex, Log, Logged
from schemas.query import Every
from schemas.records import Summary
from sinks.opensearch_aliases import begin_rebuild, behind, drop, pace, searched, swap, sweep
from sinks.opensearch_index import OpenSearchIndex
from sinks.opensearch_node import Node
from streams.changes import Change, change
from streams.faults import fault

BATCH = 2_000
"""Records of one batch; and so few that what is still to be read does not matter any more."""
LOOK, LOOKS = 1.0, 300
"""Seconds between looks whether anybody still searches the old index, and how many there are at the most."""


class MismatchError(Exception):
    """The new index holds another number of summaries than its topic: the old one stays."""


class Filler:
    """Fills an index from a topic, and knows what the topic holds."""

    def __init__(self, log: Log, topic: str, index: BrokerIndex) -> None:
        self.log = log
        self.topic = topic
        self.index = index
        self._at = [0] * log.topics()[topic]
        self._held: set[bytes] = set()

    def fill(self, ends: Sequence[int]) -> int:
        """Apply all below these offsets; gives how many records that were."""
        return sum(self._fill(partition, end) for partition, end in enumerate(ends))

    def catch_up(self) -> None:
        """Apply all that there is, and of what comes meanwhile as much as is worth waiting for."""
        before, read = 0, self.fill(self.log.ends(self.topic))
        # Where as much comes as is read, no pass is the last: what is left is the sinks' business then.
        while read > BATCH and (not before or read < before / 2):
            before, read = read, self.fill(self.log.ends(self.topic))

    def counted(self) -> int:
        """How many summaries the index holds. Raises MismatchError where its topic holds another number."""
        count = self.index.count(Every())
        if count != len(self._held):
            raise MismatchError(f"the new index has {count:,} summaries, its topic {len(self._held):,}: the old one stays")
        return count

    def _fill(self, partition: int, end: int) -> int:
        read = 0
        while (start := self._at[partition]) < end:
            batch = self.log.read(self.topic, partition, start, BATCH, until=end)
            self._at[partition] = batch[-1].offset + 1 if len(batch) == BATCH else end
            for one in self.index.apply(self._changes(batch), {partition: self._at[partition]}):
                self._held.discard(one.change.oid.encode())
            read += len(batch)
        return read

    def _changes(self, batch: Sequence[Logged]) -> list[Change]:
        """What a batch changes, and what the topic holds behind it."""
        changes: list[Change] = []
        for logged in batch:
            try:
                made = change(logged.value) if logged.value is not None else None
            except DecodeError:
                continue  # the sink that met it has made a dead letter of it
            if isinstance(made, Summary):
                self._held.add(made.oid.encode())
            else:
                self._held.discard(logged.key)
            if made is not None:
                changes.append(made)
        return changes


def rebuild(log: Log, topic: str, url: str, alias: str, stamp: str) -> int:
    """Rebuild an index on OpenSearch from a topic; gives how many summaries it holds. `stamp`: the end of its name.

    Raises MismatchError, IndexUnreachable, IndexMoved (another rebuild has begun).
    """
    with closing(Node(url)) as node:
        sweep(node, alias)
        building = begin_rebuild(node, alias, stamp)
        try:
            with closing(OpenSearchIndex(url, building, fresh=False)) as index:
                filler = Filler(log, topic, index)
                pace(node, building, "-1")
                filler.catch_up()
                pace(node, building, None)
                index.refresh()
                count = filler.counted()
            old = swap(node, alias)
        except BaseException:
            if f"{alias}-{stamp}" not in behind(node, alias):
                drop(node, f"{alias}-{stamp}")
            raise
        fault("rebuild.swapped")
        # Sinks that run go on from here by themselves; this only shortens the time in which a search finds less than before.
        with closing(OpenSearchIndex(url, alias)) as filler.index:
            filler.fill(log.ends(topic))
        for name in old:
            _retire(node, name)
    return count


def _retire(node: Node, index: str) -> None:
    """Delete an index that serves no more, once nobody is in the middle of a search there."""
    for _ in range(LOOKS):
        time.sleep(LOOK)
        if not searched(node, index):
            break
    drop(node, index)
