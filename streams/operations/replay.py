"""Records of a Broker's topic applied once more, in place: to the index that serves, while it serves.

Strategy: of each OID the newest record of the range is applied; so each partition is read twice, first for where those are. Which
is the newest its counter says: whoever was the owner of a partition may write an older one behind it.

Laws:
- Versions absorb what the index has already, or has newer. Nothing that the topic has taken back since is ever put in: whoever
  stops this half way leaves an index that says nothing that its topic does not.
- The offsets of the index stay as they are. What it has not read yet its sink will read, whatever was applied here.
- Summaries are of the Gatherers asked for, and so are removals: nothing of others is touched.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

from schemas.ports import BrokerIndex, Logged
from schemas.query import Every, Or, Word
from sinks.index.errors import IndexMoved
from streams.faults import fault
from streams.operations.index_changes import Change
from streams.operations.latest_versions import Newest
from streams.operations.selection import Chooser, Selection, Source, Tally, Watch, batches

BATCH = 2_000
"""Records of one batch."""


def on_server(log: Source, selection: Selection, url: str, alias: str, watch: Watch) -> Tally:
    """Apply what is asked for to an index on OpenSearch, beside its sinks. Raises IndexMissing, IndexUnreachable, IndexDamaged."""
    from sinks.index.opensearch.index import OpenSearchIndex  # noqa: PLC0415 - loaded by those who have a server

    OpenSearchIndex(url, alias, writable=False).close()  # none is to be made where there is none
    while True:
        with closing(OpenSearchIndex(url, alias, fresh=False)) as index:
            try:
                tally = again(log, selection, index, watch)
            except IndexMoved:
                continue  # to the index that took its place, from the beginning: versions absorb what that one has
            index.refresh()
            tally.held = index.count(Every())
            return tally


def in_folder(log: Source, selection: Selection, path: Path, watch: Watch) -> Tally:
    """Apply what is asked for to an index in a folder, which nobody else writes. Raises IndexMissing, IndexBusy, IndexDamaged."""
    from sinks.index.tantivy.index import TantivyIndex  # noqa: PLC0415 - loaded by those who have a folder

    TantivyIndex(path, writable=False).close()  # none is to be made where there is none
    with closing(TantivyIndex(path)) as index:
        tally = again(log, selection, index, watch)
        tally.held = index.count(Every())
        return tally


def again(log: Source, selection: Selection, index: BrokerIndex, watch: Watch) -> Tally:
    """Apply what is asked for, up to the ends that the topic has now. Raises OSError."""
    ranges = list(enumerate(zip(selection.begins(log), log.ends(selection.topic), strict=True)))
    ahead = sum(max(0, end - start) for _, (start, end) in ranges)
    tally = Tally(left=ahead)
    with closing(Chooser(selection, lambda: _of(selection, index))) as chooser:
        for partition, (start, end) in ranges:
            ahead -= max(0, end - start)
            with Newest() as newest:
                for batch, _ in batches(log, selection.topic, partition, start, end, BATCH):
                    # What is no change is left out, so that junk behind a record does not stand for it.
                    newest.note((made.oid, made.published, offset) for offset, made in _chosen(chooser, batch))
                    watch(tally)
                for batch, at in batches(log, selection.topic, partition, start, end, BATCH):
                    _apply([made for offset, made in _chosen(chooser, batch) if newest.get(made.oid) == offset], index, tally)
                    tally.read += len(batch)
                    tally.left = ahead + max(0, end - at)
                    watch(tally)
    return tally


def _chosen(chooser: Chooser, batch: Sequence[Logged]) -> Iterator[tuple[int, Change]]:
    for logged in batch:
        if (made := chooser.choose(logged)) is not None:
            yield logged.offset, made


def _apply(changes: list[Change], index: BrokerIndex, tally: Tally) -> None:
    if not changes:
        return
    # No offsets: those that the index holds say what its sink has read, and it has not read this.
    refused = len(index.apply(changes, {}))
    fault("replay.applied")
    tally.applied += len(changes) - refused
    tally.refused += refused


def _of(selection: Selection, index: BrokerIndex) -> Iterator[str]:
    return index.scroll(Or(tuple(Word(name, "gatherer") for name in sorted(selection.gatherers))))
