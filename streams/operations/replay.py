"""In-place replay: applies records of a Broker's topic again to the index that serves, while it serves.

Strategy: the newest record of each OID in the range is applied; so each partition is read twice, first to find those records. The
newest has the highest counter: a former owner of a partition may write an older record behind it.

Laws:
- Versions absorb what the index has already, or has in a newer version. A record that the topic has since replaced or removed is
  never applied: a replay that is stopped half way leaves nothing in the index that contradicts its topic.
- The offsets of the index stay unchanged. Its sink reads everything that it has not read yet, whatever was applied here.
- Summaries and removals are those of the selected Gatherers: nothing of others is changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

from schemas.ports import BrokerIndex, Logged
from schemas.query import Every, Or, Word
from sinks.index.errors import IndexMoved
from sinks.index.opensearch.server import Server
from streams.faults import fault
from streams.operations.index_changes import Change
from streams.operations.latest_versions import LatestVersions
from streams.operations.selection import ReplayProgress, Selection, Selector, Source, Watch, batches

BATCH = 2_000
"""Records of one batch."""


def on_server(log: Source, selection: Selection, server: str | Server, alias: str, watch: Watch) -> ReplayProgress:
    """Apply the selection to an index on OpenSearch, beside its sinks. Raises IndexMissing, IndexUnreachable, IndexDamaged."""
    from sinks.index.opensearch.index import OpenSearchIndex  # noqa: PLC0415 - loaded by those who have a server

    OpenSearchIndex(server, alias, writable=False).close()  # a missing index is not created
    while True:
        with closing(OpenSearchIndex(server, alias, fresh=False)) as index:
            try:
                tally = apply_selection(log, selection, index, watch)
            except IndexMoved:
                continue  # start again on the index that replaced it: versions absorb what that one has
            index.refresh()
            tally.held = index.count(Every())
            return tally


def in_folder(log: Source, selection: Selection, path: Path, watch: Watch) -> ReplayProgress:
    """Apply the selection to an index in a folder, without other writers. Raises IndexMissing, IndexBusy, IndexDamaged."""
    from sinks.index.tantivy.index import TantivyIndex  # noqa: PLC0415 - loaded by those who have a folder

    TantivyIndex(path, writable=False).close()  # a missing index is not created
    with closing(TantivyIndex(path)) as index:
        tally = apply_selection(log, selection, index, watch)
        tally.held = index.count(Every())
        return tally


def apply_selection(log: Source, selection: Selection, index: BrokerIndex, watch: Watch) -> ReplayProgress:
    """Apply the selection, up to the current ends of the topic. Raises OSError."""
    ranges = list(enumerate(zip(selection.begins(log), log.ends(selection.topic), strict=True)))
    ahead = sum(max(0, end - start) for _, (start, end) in ranges)
    tally = ReplayProgress(left=ahead)
    with closing(Selector(selection, lambda: _of(selection, index))) as chooser:
        for partition, (start, end) in ranges:
            ahead -= max(0, end - start)
            with LatestVersions() as newest:
                for batch, _ in batches(log, selection.topic, partition, start, end, BATCH):
                    # Records that are no change are skipped, so that a malformed one does not count as the newest of its OID.
                    newest.note((made.oid, made.published, offset) for offset, made in _chosen(chooser, batch))
                    watch(tally)
                for batch, at in batches(log, selection.topic, partition, start, end, BATCH):
                    _apply([made for offset, made in _chosen(chooser, batch) if newest.get(made.oid) == offset], index, tally)
                    tally.read += len(batch)
                    tally.left = ahead + max(0, end - at)
                    watch(tally)
    return tally


def _chosen(chooser: Selector, batch: Sequence[Logged]) -> Iterator[tuple[int, Change]]:
    for logged in batch:
        if (made := chooser.choose(logged)) is not None:
            yield logged.offset, made


def _apply(changes: list[Change], index: BrokerIndex, tally: ReplayProgress) -> None:
    if not changes:
        return
    # No offsets: those of the index state what its sink has read, and the sink has not read this.
    refused = len(index.apply(changes, {}))
    fault("replay.applied")
    tally.applied += len(changes) - refused
    tally.refused += refused


def _of(selection: Selection, index: BrokerIndex) -> Iterator[str]:
    return index.scroll(Or(tuple(Word(name, "gatherer") for name in sorted(selection.gatherers))))
