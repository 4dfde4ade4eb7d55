"""Rebuild of an index from a Broker's topic, or from a part of it, while the old index serves.

Strategy: the topic is read from its beginning to its current end, then to the new end, and so on until little is left. The number
of summaries in the new index is compared with that of the topic, and the new index replaces the old one in one step. Records that
were written to the old index meanwhile are in the topic: a sink that finds the new index continues from the offsets that this one
holds.

Laws:
- The old index serves until the new one is complete. During the exchange no search fails, and no write is lost.
- An index whose number of summaries differs from that of its topic never serves.
- An index made from a part of its topic holds no offsets, so that no sink skips the records that were left out.
- The remains of a killed rebuild do no harm: the next rebuild removes them, once no search uses them any more.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import time
from collections.abc import Collection, Sequence
from contextlib import ExitStack, closing
from pathlib import Path

from processors.query.forms import DEFAULT_LANGUAGES, Analyzer
from schemas.ports import BrokerIndex
from schemas.query import Every
from schemas.records import Summary
from sinks.index.errors import IndexDamaged, IndexMissing, IndexMoved
from sinks.index.opensearch.aliases import NEVER, begin_rebuild, behind, drop, pace, rebuild_replaced, searched, swap, sweep
from sinks.index.opensearch.index import OpenSearchIndex
from sinks.index.opensearch.node import Node
from sinks.index.opensearch.server import Server
from sinks.index.tantivy.index import TantivyIndex
from streams.faults import fault
from streams.operations.index_changes import Change
from streams.operations.latest_versions import LatestVersions
from streams.operations.selection import ReplayProgress, Selection, Selector, Source, Watch, batches

BATCH = 2_000
"""Records of one batch; also the backlog below which a rebuild stops catching up."""
LOOK, LOOKS = 1.0, 300
"""Seconds between two checks whether the old index is still searched, and the largest number of checks."""
REMOVAL, SUMMARY = 0, 1
"""Kind of the newest record of an OID."""
AT_FDCWD = -100
RENAME_EXCHANGE = 2


class MismatchError(Exception):
    """The numbers of summaries in the new index and in its topic differ: the old index stays."""


LOST = (IndexDamaged, IndexMissing, IndexMoved, MismatchError)
"""Errors of a rebuild whose index was removed by another rebuild."""


class Filler:
    """Fills an index from the selected part of a topic, and tracks what that part holds."""

    def __init__(self, log: Source, index: BrokerIndex, selection: Selection, watch: Watch = lambda _: None) -> None:
        self.log = log
        self.index = index
        self.tally = ReplayProgress()
        self._selection = selection
        self._chooser = Selector(selection)
        self._watch = watch
        self._at = selection.begins(log)
        self._newest = LatestVersions()

    def close(self) -> None:
        """Release the memory of the topic's content."""
        self._chooser.close()
        self._newest.close()

    def fill(self, ends: Sequence[int]) -> int:
        """Apply all records below these offsets; return how many were read."""
        before = self.tally.read
        self.tally.left = sum(max(0, end - at) for at, end in zip(self._at, ends, strict=True))
        for partition, end in enumerate(ends):
            self._fill(partition, end)
        return self.tally.read - before

    def catch_up(self) -> None:
        """Apply all records, then those that arrived meanwhile, until the backlog is small or no longer shrinks by half."""
        before, read = 0, self.fill(self.log.ends(self._selection.topic))
        # If records arrive as fast as they are read, no pass is the last: the sinks then read the rest.
        while read > BATCH and (not before or read < before / 2):
            before, read = read, self.fill(self.log.ends(self._selection.topic))

    def count(self) -> None:
        """Count the summaries of the index. Raises MismatchError if its topic holds another number."""
        self.tally.held = count = self.index.count(Every())
        held = self._newest.count(SUMMARY)
        if count != held:
            raise MismatchError(f"the new index has {count:,} summaries, its topic {held:,}: the old one stays")

    def _fill(self, partition: int, end: int) -> None:
        start = self._at[partition]
        for batch, at in batches(self.log, self._selection.topic, partition, start, end, BATCH):
            changes = [made for logged in batch if (made := self._chooser.choose(logged)) is not None]
            # A part differs from what a sink would build: a sink that finds no offsets starts at the beginning, and completes the
            # index.
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
        """Track the content of the topic after a batch; for a refused change the index keeps its former entry."""
        taken = (made for made in changes if made.oid not in refused)
        self._newest.note((made.oid, made.published, SUMMARY if isinstance(made, Summary) else REMOVAL) for made in taken)


def on_server(
    log: Source,
    selection: Selection,
    server: str | Server,
    alias: str,
    stamp: str,
    watch: Watch = lambda _: None,
    languages: Sequence[str] = DEFAULT_LANGUAGES,
) -> ReplayProgress:
    """Rebuild the index behind an alias on OpenSearch from the selection, for some languages.

    `stamp`: suffix of the new index's name.

    Raises MismatchError, IndexUnreachable, IndexMoved (another rebuild has begun).
    """
    made = f"{alias}-{stamp}"
    with closing(Node(server)) as node, ExitStack() as held:
        sweep(node, alias)
        building = begin_rebuild(node, alias, stamp, languages)
        try:
            with closing(OpenSearchIndex(server, building, fresh=False, make=False)) as index:
                filler = held.enter_context(closing(Filler(log, index, selection, watch)))
                pace(node, building, NEVER)
                filler.catch_up()
                pace(node, building, None)
                index.refresh()
                filler.count()
            old = swap(node, alias, stamp)
        except BaseException as error:
            if made not in behind(node, alias):
                # A rebuild that began after this one may have removed its index.
                taken = isinstance(error, LOST) and behind(node, building) != [made]
                drop(node, made)
                if taken:
                    raise rebuild_replaced(node, alias) from error
            raise
        fault("rebuild.swapped")
        # Running sinks continue from here by themselves; this only shortens the time in which a search finds less than before.
        with closing(OpenSearchIndex(server, alias)) as filler.index:
            filler.fill(log.ends(selection.topic))
        for name in old:
            _retire(node, name)
    return filler.tally


def _retire(node: Node, index: str) -> None:
    """Delete an index that no longer serves, once no search is running on it."""
    for _ in range(LOOKS):
        time.sleep(LOOK)
        if not searched(node, index):
            break
    drop(node, index)


def in_folder(
    log: Source,
    selection: Selection,
    path: Path,
    watch: Watch = lambda _: None,
    languages: Sequence[str] = DEFAULT_LANGUAGES,
) -> ReplayProgress:
    """Rebuild the index in a folder from the selection, for some languages; nobody else may write there.

    Raises MismatchError, OSError.
    """
    fresh = path.with_name(f"{path.name}.new")
    shutil.rmtree(fresh, ignore_errors=True)
    try:
        with (
            closing(TantivyIndex(fresh, analyzer=Analyzer(languages))) as index,
            closing(Filler(log, index, selection, watch)) as filler,
        ):
            filler.catch_up()
            filler.count()
        _exchange(fresh, path)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return filler.tally


def _exchange(fresh: Path, path: Path) -> None:
    """Exchange the new folder with the old one, in one step if the file system can; `fresh` is then the old one."""
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
