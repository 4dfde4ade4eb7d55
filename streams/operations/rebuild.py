"""A new index from a Broker's topic, or from a part of it, while the old one serves.

Strategy: the topic is read from its beginning to the end that it has by then, again and again until little is left. The new index
is counted against what the topic holds, and takes the place of the old one in one step. What was written into the old one
meanwhile is in the topic: a sink that finds the new one in the place goes on from the offsets that this one holds.

Laws:
- The old index serves until the new one is whole. Where they are exchanged no search fails, and no write is lost.
- An index that holds another number of summaries than its topic never serves.
- One that was made of a part of its topic holds no offsets: no sink passes for it what was left out.
- What stands behind a rebuild that was killed is in nobody's way: the next one removes it, once nobody searches it any more.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import time
from collections.abc import Collection, Sequence
from contextlib import ExitStack, closing
from pathlib import Path

from schemas.ports import BrokerIndex
from schemas.query import Every
from schemas.records import Summary
from sinks.index.errors import IndexDamaged, IndexMissing, IndexMoved
from sinks.index.opensearch.aliases import NEVER, begin_rebuild, begun, behind, drop, pace, searched, swap, sweep
from sinks.index.opensearch.index import OpenSearchIndex
from sinks.index.opensearch.node import Node
from sinks.index.tantivy.index import TantivyIndex
from streams.faults import fault
from streams.operations.index_changes import Change
from streams.operations.latest_versions import Newest
from streams.operations.selection import Chooser, Selection, Source, Tally, Watch, batches

BATCH = 2_000
"""Records of one batch; and so few that what is still to be read does not matter any more."""
LOOK, LOOKS = 1.0, 300
"""Seconds between looks whether anybody still searches the old index, and how many there are at the most."""
REMOVAL, SUMMARY = 0, 1
"""What the newest of an OID is."""
AT_FDCWD = -100
RENAME_EXCHANGE = 2


class MismatchError(Exception):
    """The new index holds another number of summaries than its topic: the old one stays."""


LOST = (IndexDamaged, IndexMissing, IndexMoved, MismatchError)
"""What a rebuild meets whose index another one has taken from under it."""


class Filler:
    """Fills an index from a topic, and knows what the topic holds of what is asked for."""

    def __init__(self, log: Source, index: BrokerIndex, selection: Selection, watch: Watch = lambda _: None) -> None:
        self.log = log
        self.index = index
        self.tally = Tally()
        self._selection = selection
        self._chooser = Chooser(selection)
        self._watch = watch
        self._at = selection.begins(log)
        self._newest = Newest()

    def close(self) -> None:
        """Forget what the topic holds."""
        self._chooser.close()
        self._newest.close()

    def fill(self, ends: Sequence[int]) -> int:
        """Apply all below these offsets; gives how many records that were."""
        before = self.tally.read
        self.tally.left = sum(max(0, end - at) for at, end in zip(self._at, ends, strict=True))
        for partition, end in enumerate(ends):
            self._fill(partition, end)
        return self.tally.read - before

    def catch_up(self) -> None:
        """Apply all that there is, and of what comes meanwhile as much as is worth waiting for."""
        before, read = 0, self.fill(self.log.ends(self._selection.topic))
        # Where as much comes as is read, no pass is the last: what is left is the sinks' business then.
        while read > BATCH and (not before or read < before / 2):
            before, read = read, self.fill(self.log.ends(self._selection.topic))

    def count(self) -> None:
        """See how many summaries the index holds. Raises MismatchError where its topic holds another number."""
        self.tally.held = count = self.index.count(Every())
        held = self._newest.count(SUMMARY)
        if count != held:
            raise MismatchError(f"the new index has {count:,} summaries, its topic {held:,}: the old one stays")

    def _fill(self, partition: int, end: int) -> None:
        start = self._at[partition]
        for batch, at in batches(self.log, self._selection.topic, partition, start, end, BATCH):
            changes = [made for logged in batch if (made := self._chooser.choose(logged)) is not None]
            # A part is not what a sink would have put there: one that finds no offsets begins at the beginning, and makes it whole.
            refused = self.index.apply(changes, {partition: at} if self._selection.whole else {})
            self._note(changes, {one.change.oid for one in refused})
            fault("rebuild.applied")
            self._at[partition] = at
            self.tally.read += len(batch)
            self.tally.applied += len(changes) - len(refused)
            self.tally.refused += len(refused)
            self.tally.left -= at - start
            start = at
            self._watch(self.tally)

    def _note(self, changes: Sequence[Change], refused: Collection[str]) -> None:
        """What the topic holds behind a batch; of what was refused of it the index has what it had."""
        taken = (made for made in changes if made.oid not in refused)
        self._newest.note((made.oid, made.published, SUMMARY if isinstance(made, Summary) else REMOVAL) for made in taken)


def on_server(log: Source, selection: Selection, url: str, alias: str, stamp: str, watch: Watch = lambda _: None) -> Tally:
    """Make the index behind an alias on OpenSearch anew, of what is asked for. `stamp`: the end of the new one's name.

    Raises MismatchError, IndexUnreachable, IndexMoved (another rebuild has begun).
    """
    made = f"{alias}-{stamp}"
    with closing(Node(url)) as node, ExitStack() as held:
        sweep(node, alias)
        building = begin_rebuild(node, alias, stamp)
        try:
            with closing(OpenSearchIndex(url, building, fresh=False, make=False)) as index:
                filler = held.enter_context(closing(Filler(log, index, selection, watch)))
                pace(node, building, NEVER)
                filler.catch_up()
                pace(node, building, None)
                index.refresh()
                filler.count()
            old = swap(node, alias, stamp)
        except BaseException as error:
            if made not in behind(node, alias):
                # Whoever began behind this one may have taken its index from under it.
                taken = isinstance(error, LOST) and behind(node, building) != [made]
                drop(node, made)
                if taken:
                    raise begun(node, alias) from error
            raise
        fault("rebuild.swapped")
        # Sinks that run go on from here by themselves; this only shortens the time in which a search finds less than before.
        with closing(OpenSearchIndex(url, alias)) as filler.index:
            filler.fill(log.ends(selection.topic))
        for name in old:
            _retire(node, name)
    return filler.tally


def _retire(node: Node, index: str) -> None:
    """Delete an index that serves no more, once nobody is in the middle of a search there."""
    for _ in range(LOOKS):
        time.sleep(LOOK)
        if not searched(node, index):
            break
    drop(node, index)


def in_folder(log: Source, selection: Selection, path: Path, watch: Watch = lambda _: None) -> Tally:
    """Make the index in a folder anew, of what is asked for; nobody else may write there. Raises MismatchError, OSError."""
    fresh = path.with_name(f"{path.name}.new")
    shutil.rmtree(fresh, ignore_errors=True)
    try:
        with closing(TantivyIndex(fresh)) as index, closing(Filler(log, index, selection, watch)) as filler:
            filler.catch_up()
            filler.count()
        _exchange(fresh, path)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return filler.tally


def _exchange(fresh: Path, path: Path) -> None:
    """Put the new folder in the place of the old one, in one step where the file system can; the old one is `fresh` then."""
    if not path.is_dir():
        path.unlink(missing_ok=True)
        fresh.rename(path)
        return
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.renameat2(AT_FDCWD, os.fsencode(fresh), AT_FDCWD, os.fsencode(path), RENAME_EXCHANGE) == 0:
        return
    old = path.with_name(f"{path.name}.old")
    shutil.rmtree(old, ignore_errors=True)
    path.rename(old)
    fresh.rename(path)
    shutil.rmtree(old)
