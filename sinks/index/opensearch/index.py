"""A Broker's index on OpenSearch: implements `schemas.ports.BrokerIndex` for several machines.

Laws:
- A change is a document whose version is its `published` (external_gte): whatever arrives twice, late, or out of order, the
  newest remains. A removal is a hidden document too, since the version of a deletion would be forgotten after a minute
  (`index.gc_deletes`). It is retained for 90 days of the removals' own time (law 2).
- Offsets are written when every change below them was acknowledged, which means that it is on disk, or was refused and returned.
  They never fall. A batch that fails half way is applied in part; it is applied again, from the offsets on.
- Offsets belong to one index. If the alias moves while a batch is applied, they are not written (IndexMoved): changes that the
  batch put into the old index might be missing in the new one. The same holds for an index that was deleted and created again by
  its name.
- Any number of processes write, each its own partitions; the methods may be called from any thread.
"""

from __future__ import annotations

import logging
from base64 import b64decode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from threading import Lock
from typing import Any

from processors.query.forms import DEFAULT_LANGUAGES, Analyzer
from schemas.codec import DecodeError, decode
from schemas.ports import Page, Part, Refused, Sort
from schemas.query import Query
from schemas.records import Removed, Summary
from sinks.index.document import REMEMBERED, SWEEP
from sinks.index.errors import IndexDamaged, IndexMoved, IndexUnreachable
from sinks.index.opensearch.aliases import IndexIdentity, first, served_by
from sinks.index.opensearch.node import TIMEOUT, Node
from sinks.index.opensearch.schema import SWEPT, identifier, item, offset_item, swept_item
from sinks.index.opensearch.search import OpenSearchReader
from sinks.index.opensearch.server import Server
from sinks.index.options import DEFAULT as DEFAULT_OPTIONS
from sinks.index.options import Options

NOTE = logging.getLogger("harvest").warning

ITEMS = 1_000
"""Maximum number of changes per request ..."""
BYTES = 5 << 20
"""... and their approximate size in bytes."""
PARTITIONS = 4_096
"""Maximum number of partitions of a topic."""


class OpenSearchIndex:
    """Index behind an alias. With `writable` it is created if there is none, unless `make` is false.

    With `fresh`, changes are visible when `apply` returns; without, within the engine's refresh interval of a second, which costs
    less.
    """

    def __init__(
        self,
        server: str | Server,
        alias: str,
        *,
        writable: bool = True,
        fresh: bool = True,
        make: bool = True,
        languages: Sequence[str] | None = None,
        options: Options = DEFAULT_OPTIONS,
        timeout: float = TIMEOUT,
    ) -> None:
        """Open the index; `timeout`: seconds for each answer of the server.

        Raises IndexUnreachable, IndexDamaged, IndexMissing (there is none, and it is not to be created).
        """
        self.alias = alias
        self.node = Node(server, timeout)
        self._languages = DEFAULT_LANGUAGES if languages is None else tuple(languages)
        """Languages of an index that is created; any other is used as it was made."""
        self._options = options
        self._writable = writable
        self._fresh = fresh
        self._make = writable and make
        self._making, self._sweeping = Lock(), Lock()
        self._clock = 0
        """Latest time of a removal applied, in ms."""
        self._swept = 0
        """Clock in ms when removals were last deleted, as far as this process knows."""
        self._index = self._behind()
        if languages is not None and self._index.languages != self._languages:
            wanted, made = (", ".join(each) or "none" for each in (self._languages, self._index.languages))
            NOTE(f"the index {alias} was made for the languages {made}, not {wanted}: harvest index rebuild makes it anew")

    def _behind(self) -> IndexIdentity:
        """Return the index behind the alias now."""
        found = first(self.node, self.alias, self._languages) if self._make else served_by(self.node, self.alias)
        self._analyzer = Analyzer(found.languages)
        return found

    def apply(self, changes: Sequence[Summary | Removed], offsets: Mapping[int, int]) -> Sequence[Refused]:
        """Apply a batch: see `BrokerIndex.apply`. Raises IndexUnreachable, IndexMissing, IndexMoved."""
        if not self._writable:
            raise OSError("the index is read-only or closed")
        index = self._index
        newest: dict[str, Summary | Removed] = {}
        for change in changes:
            known = newest.get(change.oid)
            if known is None or change.published >= known.published:
                newest[change.oid] = change
        refused = [one for part in self._parts(newest.values()) for one in self._put(part, index)]
        self._forget(newest.values(), index)
        if offsets and (now := self._behind()) != index:
            raise IndexMoved(f"{self.alias} now names another index: {now.name}")
        self._remember([offset_item(index.made, partition, offset) for partition, offset in offsets.items()], index)
        if self._fresh:
            self.refresh()
        return refused

    def _parts(self, changes: Iterable[Summary | Removed]) -> Iterator[list[tuple[Summary | Removed, bytes]]]:
        """Iterate over changes with their items, in parts of one request each.

        One thread at a time makes items: two would each take twice as long, and the server would be idle meanwhile.
        """
        coming = iter(changes)
        rest = next(coming, None)
        while rest is not None:
            part: list[tuple[Summary | Removed, bytes]] = []
            size = 0
            with self._making:
                while rest is not None and len(part) < ITEMS and size < BYTES:
                    line = item(rest, self._analyzer)
                    part.append((rest, line))
                    size += len(line)
                    rest = next(coming, None)
            yield part

    def _put(self, part: Sequence[tuple[Summary | Removed, bytes]], index: IndexIdentity) -> list[Refused]:
        refused = self._write([line for _, line in part], index)
        return [Refused(part[at][0], reason) for at, reason in refused.items()]

    def _write(self, items: Sequence[bytes], index: IndexIdentity) -> Mapping[int, str]:
        """Apply items; return the refused ones with the reason. Raises IndexMoved if another index took any of them."""
        done = self.node.bulk(self.alias, items)
        if done.indexes - {index.name}:
            raise IndexMoved(f"{self.alias} now names another index: {', '.join(sorted(done.indexes))}")
        return done.refused

    def _remember(self, items: Sequence[bytes], index: IndexIdentity) -> None:
        """Write state documents; a refusal means that the batch was not applied, and raises IndexUnreachable."""
        for reason in self._write(items, index).values():
            raise IndexUnreachable(f"the index cannot be written: {self.node.name}: {reason}")

    def _forget(self, changes: Iterable[Summary | Removed], index: IndexIdentity) -> None:
        """Delete removals that no replay can reach any more, once a day of their own time."""
        times = [change.time for change in changes if isinstance(change, Removed)]
        if not times:
            return
        with self._sweeping:
            self._clock = max(self._clock, *times)
            if self._clock - self._swept >= SWEEP:
                self._sweep(self._clock, index)

    def _sweep(self, clock: int, index: IndexIdentity) -> None:
        self.refresh()
        old = {"range": {"removed": {"lte": clock - REMEMBERED}}}
        # A newer version written meanwhile is kept.
        self.node.ask("POST", f"/{self.alias}/_delete_by_query", {"query": old}, conflicts="proceed", refresh="true")
        self._remember([swept_item(clock)], index)
        self._swept = clock

    def refresh(self) -> None:
        """Make all applied changes visible."""
        self.node.ask("POST", f"/{self.alias}/_refresh")

    def offsets(self) -> Mapping[int, int]:
        """Return the next offset to apply by partition, of the index behind the alias now; empty for a new one.

        Raises IndexUnreachable, IndexDamaged, IndexMissing (there is none, and it is not to be created).
        """
        self._index = index = self._behind()
        self.refresh()
        wanted = {"bool": {"should": [{"term": {"state": index.made}}, {"ids": {"values": [SWEPT]}}]}}
        body = {"query": wanted, "size": PARTITIONS + 1, "version": True, "stored_fields": []}
        found = self.node.ask("POST", f"/{index.name}/_search", body, allow_partial_search_results="false")["hits"]["hits"]
        known = {each["_id"]: int(each["_version"]) for each in found}
        self._swept = known.pop(SWEPT, 0)
        return {int(name.rpartition("/")[2]): offset for name, offset in known.items()}

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
        """Return a page of hits: see `BrokerIndex.search`. Raises IndexUnreachable, IndexMissing, QueryRefused."""
        return self._reader().search(query, limit, offset, copies=copies, sort=sort, names=facets)

    def scroll(self, query: Query) -> Iterator[str]:
        """Iterate over the OIDs of a snapshot's matches, in order of OID. Raises IndexUnreachable, IndexMissing, QueryRefused."""
        return self._reader().scroll(query)

    def count(self, query: Query) -> int:
        """Return the number of matches, copies included. Raises IndexUnreachable, IndexMissing, QueryRefused."""
        return self._reader().count(query)

    def plan(self, query: Query) -> str:
        """Return the engine's own query: see `BrokerIndex.plan`. Raises QueryRefused."""
        return self._reader().plan(query)

    @property
    def languages(self) -> tuple[str, ...]:
        """Languages that the index was made for."""
        return self._analyzer.languages

    def explain(self, query: Query, oids: Sequence[str]) -> Mapping[str, Sequence[Part]]:
        """Return the parts of scores: see `BrokerIndex.explain`. Raises IndexUnreachable, IndexMissing, QueryRefused."""
        return self._reader().explain(query, oids)

    def records(self, oids: Sequence[str]) -> Mapping[str, Summary]:
        """Return the summaries with some OIDs: see `BrokerIndex.records`. Raises QueryRefused if they are not here."""
        return self._reader().records(oids)

    def complete(self, beginning: str, limit: int = 10) -> Sequence[tuple[str, int]]:
        """Return words that begin so: see `BrokerIndex.complete`. Raises IndexUnreachable, IndexMissing."""
        return self._reader().complete(beginning, limit)

    def frequencies(self, words: Sequence[str]) -> Sequence[int]:
        """Return how many summaries have each word: see `BrokerIndex.frequencies`. Raises IndexUnreachable, IndexMissing."""
        return self._reader().frequencies(words)

    def _reader(self) -> OpenSearchReader:
        return OpenSearchReader(self.node, self.alias, self._analyzer, self._options, self._records)

    def _records(self, oids: Sequence[str]) -> Mapping[str, Summary | Removed]:
        """Return the last records applied for some OIDs."""
        found: dict[str, Summary | Removed] = {}
        for start in range(0, len(oids), ITEMS):
            names = [identifier(oid) for oid in oids[start : start + ITEMS]]
            wanted = {"query": {"ids": {"values": names}}, "stored_fields": ["record"], "size": len(names)}
            answer = self.node.ask("POST", f"/{self.alias}/_search", wanted, allow_partial_search_results="false")
            for each in answer["hits"]["hits"]:
                record = _decoded(each, each["_id"])
                if record is not None:
                    found[record.oid] = record
        return found

    def record(self, oid: str) -> Summary | Removed | None:
        """Return the last record applied for an OID, or None. Raises IndexUnreachable, IndexMissing, IndexDamaged."""
        return self._records([oid]).get(oid)

    def close(self) -> None:
        """Close the connections. Applied changes remain."""
        self._writable = False
        self.node.close()


def _decoded(found: Mapping[str, Any], oid: str) -> Summary | Removed | None:
    """Return the record of a document. Raises IndexDamaged."""
    try:
        record = decode(b64decode(found["fields"]["record"][0]))
    except DecodeError as error:
        raise IndexDamaged(f"the index holds a record of another version: {oid}") from error
    return record if isinstance(record, Summary | Removed) else None
