"""A Broker's index in a folder, by tantivy: the embedded implementation of `schemas.ports.BrokerIndex`.

Laws:
- A batch is applied whole or not at all: its changes and the next offsets are one commit. A process killed before
  the commit leaves the index as it was.
- A change applies if its `published` is at least the one stored for its OID. Removals are retained for 90 days of the
  removals' own time, so that an older summary does not return; older removals are past every replay (law 2).
- Offsets never fall: a batch applied again does not lower them.
- One process writes; any number read concurrently, each search from the last commit.
- An index that cannot be opened or read is IndexDamaged, and is rebuilt by replay of the Broker's topic.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
from tantivy import FieldType, IndexWriter, Searcher
from tantivy import Query as Engine

from processors.query.forms import DEFAULT, Analyzer
from schemas.ports import Page, Part, Refused, Sort
from schemas.query import Query
from schemas.records import Removed, Summary
from sinks.index.compiled import Records
from sinks.index.document import REMEMBERED, SWEEP, key
from sinks.index.errors import IndexBusy, IndexDamaged, IndexMissing, IndexOutdated, QueryRefused
from sinks.index.options import DEFAULT as DEFAULT_OPTIONS
from sinks.index.options import Options
from sinks.index.tantivy.folder import failed, open_folder, reading, share, version, viewed
from sinks.index.tantivy.schema import (
    FORMAT,
    NO_KEY,
    STATE_KEY,
    State,
    order,
    removal_document,
    schema,
    state_document,
    summary_document,
)
from sinks.index.tantivy.search import TantivyReader

__all__ = ["IndexBusy", "IndexDamaged", "IndexMissing", "TantivyIndex"]

HEAP, LEAST_HEAP = 120_000_000, 30_000_000
"""Bytes of memory in which a batch is indexed before it is written to the folder."""


class TantivyIndex:
    """Index in a folder. With `writable`, it is created if there is none, and locked against a second writer."""

    def __init__(
        self,
        path: Path,
        *,
        writable: bool = True,
        heap: int = HEAP,
        records: Records | None = None,
        analyzer: Analyzer | None = None,
        options: Options = DEFAULT_OPTIONS,
    ) -> None:
        """Open the index.

        `records`: where the records are that the predicate is asked about, if an answer is too wide. `analyzer`: that of a new
        index, and the one that an existing index must have been made with; without, an existing index is used as it was made.

        Raises IndexDamaged, IndexOutdated, IndexMissing (not writable, and there is none), IndexBusy, OSError.
        """
        self.path = path
        self._records = records
        self._options = options
        self._asked = analyzer
        self._analyzer = analyzer or DEFAULT
        self._schema = schema()
        self._resources = contextlib.ExitStack()
        try:
            view = None if writable else self._resources.enter_context(viewed(path))
            self._index = open_folder(path, self._schema, writable, view)
            self._begin(heap, writable)
        except BaseException:
            self._resources.close()
            raise

    def _begin(self, heap: int, writable: bool) -> None:
        self._writer: IndexWriter | None = None
        self._heap = heap
        self._writable = writable
        self._seen: object = None
        """Version of the commit that was loaded last."""
        self._read: object = None
        """Version of the commit whose state was read last."""
        self._known: dict[str, int] = {}
        """The `published` of each OID of the current batch, as of the last commit or of the batch itself."""
        self._clock = 0
        """Latest time of a removal in the batch, in ms."""
        self._dirty = False
        self._state = self._read_state()
        self._analyzer = self._made_with(self._state.languages)
        if writable:
            self._writer = self._new_writer()

    def _made_with(self, languages: tuple[str, ...]) -> Analyzer:
        """Return the Analyzer that the index was made with. Raises IndexOutdated if another one was asked for."""
        if languages == self._analyzer.languages:
            return self._analyzer
        if self._asked is not None:
            asked = ", ".join(self._asked.languages) or "none"
            raise IndexOutdated(f"the index was made for the languages {', '.join(languages) or 'none'}, not {asked}: {self.path}")
        return Analyzer(languages)

    def apply(self, changes: Sequence[Summary | Removed], offsets: Mapping[int, int]) -> Sequence[Refused]:
        """Apply a batch: see `BrokerIndex.apply`. The engine refuses nothing. Raises OSError."""
        self.add(changes)
        self.commit(offsets)
        return ()

    def add(self, changes: Sequence[Summary | Removed]) -> None:
        """Add a part of a batch: it is neither visible nor durable before `commit`. Raises OSError."""
        newest: dict[str, Summary | Removed] = {}
        for change in changes:
            known = newest.get(change.oid)
            if change.published >= (known.published if known else self._known.get(change.oid, change.published)):
                newest[change.oid] = change
        with self._writing() as writer:
            self._known |= self._published([oid for oid in newest if oid not in self._known])
            for oid, change in newest.items():
                known_as = self._known.get(oid)
                if known_as is None or change.published >= known_as:
                    self._put(writer, oid, change, anew=known_as is not None)
                    self._known[oid] = change.published
        self._clock = max([self._clock, *(change.time for change in newest.values() if isinstance(change, Removed))])
        self._dirty |= bool(newest)

    def commit(self, offsets: Mapping[int, int]) -> None:
        """Commit the added batch with the next offset of each partition.

        Raises OSError: then nothing of the batch is applied. Raises IndexDamaged: it is committed, but cannot be read.
        """
        state = self._after(offsets)
        if not self._dirty and state == self._state:
            return
        with self._writing() as writer:
            self._forget(writer, state)
            writer.delete_documents_by_query(self._by_key(STATE_KEY))
            writer.add_document(state_document(state))
            writer.commit()
        # Committed, whether or not it can be read at once.
        self._state = state
        self._begin_batch()
        with reading(self.path):
            share(self.path)
            self._index.reload()

    def _begin_batch(self) -> None:
        self._known, self._clock, self._dirty = {}, 0, False

    def _put(self, writer: IndexWriter, oid: str, change: Summary | Removed, *, anew: bool) -> None:
        if anew:
            writer.delete_documents_by_query(self._keyed(oid))
        writer.add_document(removal_document(change) if isinstance(change, Removed) else summary_document(change, self._analyzer))

    def offsets(self) -> Mapping[int, int]:
        """Return the next offset to apply by partition; empty for a new index."""
        if not self._writable:
            self._state = self._read_state()
        return dict(self._state.offsets)

    def search(
        self,
        query: Query,
        limit: int = 10,
        offset: int = 0,
        copies: bool = False,
        *,
        sort: Sort = "relevance",
        facets: Sequence[str] = (),
    ) -> Page:
        """Return a page of hits: see `BrokerIndex.search`. Raises IndexDamaged, QueryRefused."""
        with reading(self.path):
            return self._reader().search(query, limit, offset, copies=copies, sort=sort, names=facets)

    def scroll(self, query: Query) -> Iterator[str]:
        """Iterate over the OID of every match, in order of OID, from one snapshot. Raises IndexDamaged, QueryRefused."""
        with reading(self.path):
            found = self._reader().scroll(query)
        yield from found

    def count(self, query: Query) -> int:
        """Return the number of matches, copies included. Raises IndexDamaged, QueryRefused."""
        with reading(self.path):
            return self._reader().count(query)

    def plan(self, query: Query) -> str:
        """Return the engine's own query: see `BrokerIndex.plan`. Raises IndexDamaged, QueryRefused."""
        with reading(self.path):
            return self._reader().plan(query)

    @property
    def languages(self) -> tuple[str, ...]:
        """Languages that the index was made for."""
        return self._analyzer.languages

    def explain(self, query: Query, oids: Sequence[str]) -> Mapping[str, Sequence[Part]]:
        """Return the parts of the scores of some hits: see `BrokerIndex.explain`. Raises IndexDamaged, QueryRefused."""
        with reading(self.path):
            return self._reader().explain(query, oids)

    def record(self, oid: str) -> Summary | Removed | None:
        """Return the newest record with an OID: see `BrokerIndex.record`. Raises QueryRefused if the records are not here."""
        if self._records is None:
            raise QueryRefused("the records of this index are not here")
        return self._records([oid]).get(oid)

    def records(self, oids: Sequence[str]) -> Mapping[str, Summary]:
        """Return the summaries with some OIDs: see `BrokerIndex.records`. Raises QueryRefused if they are not here."""
        with reading(self.path):
            return self._reader().records(oids)

    def complete(self, beginning: str, limit: int = 10) -> Sequence[tuple[str, int]]:
        """Return words that begin so: see `BrokerIndex.complete`. Raises IndexDamaged."""
        with reading(self.path):
            return self._reader().complete(beginning, limit)

    def frequencies(self, words: Sequence[str]) -> Sequence[int]:
        """Return how many summaries have each word: see `BrokerIndex.frequencies`. Raises IndexDamaged."""
        with reading(self.path):
            return self._reader().frequencies(words)

    def _reader(self) -> TantivyReader:
        searcher = self._searcher()
        if not self._writable and self._read != self._seen:
            # Another index may have taken the place of the one before.
            self._state = self._read_state()
            self._analyzer = self._made_with(self._state.languages)
            self._read, searcher = self._seen, self._searcher()
        return TantivyReader(self._schema, searcher, self._analyzer, self._options, self._records, self.path)

    def close(self) -> None:
        """Wait for merges and release the lock. Applied changes remain."""
        writer, self._writer, self._writable = self._writer, None, False
        self._resources.close()
        if writer is not None:
            writer.wait_merging_threads()
            with contextlib.suppress(OSError):
                share(self.path)

    def _searcher(self) -> Searcher:
        if not self._writable and (now := version(self.path)) != self._seen:
            self._index.reload()
            self._seen = now
        return self._index.searcher()

    def _new_writer(self) -> IndexWriter:
        try:
            return self._begun(self._index.writer(self._heap, 1))
        except ValueError as error:
            if "LockBusy" in str(error):
                raise IndexBusy(f"the index is being written by another process: {self.path}") from error
            raise failed(self.path, error) from error

    def _begun(self, writer: IndexWriter) -> IndexWriter:
        """Return a writer without files of a commit that did not end, its first deletion used up by one that matches nothing.

        A commit that was killed, or failed, leaves files, and the same batch makes files of the same names again.

        Cause: the engine (0.27) gives the first operation of a new writer, and of one that was rolled back, the stamp of the last
        commit. A merge that begins before the next commit skips segments that had deletions at that one, as if they were up to
        date, and loses a deletion of that stamp: two documents of one OID.
        """
        writer.garbage_collect_files()
        writer.delete_documents_by_query(self._by_key(NO_KEY))
        return writer

    @contextlib.contextmanager
    def _writing(self) -> Iterator[IndexWriter]:
        """Yield the writer; an error inside rolls back all that was not committed."""
        if not self._writable:
            raise OSError("the index is read-only or closed")
        if self._writer is None:
            self._writer = self._new_writer()
        try:
            yield self._writer
        except BaseException as error:
            self._take_back()
            # The engine raises plain ValueError for all its failures; a subclass is an error of ours.
            if type(error) is ValueError or type(error).__name__ == "PanicException":
                raise failed(self.path, error) from error
            raise

    def _take_back(self) -> None:
        """Roll back uncommitted changes. A writer that cannot (its threads died) is dropped with its lock."""
        self._begin_batch()
        writer, self._writer = self._writer, None
        if writer is not None:
            with contextlib.suppress(ValueError):
                writer.rollback()
                self._writer = self._begun(writer)

    def _after(self, offsets: Mapping[int, int]) -> State:
        """Return the state after the batch is applied."""
        old = self._state
        clock = max(old.clock, self._clock)
        swept = clock if clock - old.swept >= SWEEP else old.swept
        merged = {part: max(old.offsets.get(part, 0), offsets.get(part, 0)) for part in (*old.offsets, *offsets)}
        return State(FORMAT, merged, clock, swept, self._analyzer.languages)

    def _forget(self, writer: IndexWriter, state: State) -> None:
        """Delete removals that no replay can reach any more, once a day."""
        if state.swept != self._state.swept and state.clock > REMEMBERED:
            old = Engine.range_query(self._schema, "removed", FieldType.Unsigned, 0, state.clock - REMEMBERED)
            writer.delete_documents_by_query(old)

    def _by_key(self, kept: bytes) -> Engine:
        return Engine.term_query(self._schema, "key", kept)

    def _keyed(self, oid: str) -> Engine:
        return self._by_key(key(oid))

    def _published(self, oids: Sequence[str]) -> dict[str, int]:
        """Return the stored `published` of those OIDs that the index has, by one look-up."""
        searcher = self._index.searcher()
        if not oids or not searcher.num_docs:
            return {}
        wanted = Engine.term_set_query(self._schema, "key", [key(oid) for oid in oids])
        found = [at for _, at in searcher.search(wanted, limit=len(oids), count=False).hits]
        if not found:
            return {}
        places = searcher.fast_field_values("order", found)
        known = dict(zip(places, searcher.fast_field_values("published", found), strict=True))
        # All documents found are of this batch, so an `order` that only one OID of the batch has identifies that OID.
        alike = Counter(map(order, oids))
        present = {oid: int(known[order(oid)] or 0) for oid in oids if order(oid) in known and alike[order(oid)] == 1}
        for oid in (oid for oid in oids if alike[order(oid)] > 1):
            hits = searcher.search(self._keyed(oid), limit=1, count=False).hits
            if hits:
                present[oid] = int(searcher.fast_field_values("published", [hits[0][1]])[0] or 0)
        return present

    def _read_state(self) -> State:
        """Return the state of the last commit. Raises IndexDamaged if there are documents without a readable state."""
        with reading(self.path):
            searcher = self._searcher()
            hits = searcher.search(self._by_key(STATE_KEY), limit=1).hits
            if not hits and not searcher.num_docs:
                return State(FORMAT, languages=self._analyzer.languages)
            kept = searcher.doc(hits[0][1]).get_first("state") if hits else b""
            state = msgspec.msgpack.decode(bytes(kept or b""), type=State)
        if state.format != FORMAT:
            raise IndexOutdated(f"the index has format {state.format}, this version has {FORMAT}: {self.path}")
        return state
