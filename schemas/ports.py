"""Protocols that a runner, a store or an index implements.

Dependencies point one way: schemas <- processors <- sinks, streams.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import BinaryIO, Literal, NamedTuple, Protocol

from schemas.query import Query
from schemas.records import Record, Removed, Summary


class Origin(NamedTuple):
    """Position of a record in the log; a stage stores it to recognize a redelivery."""

    topic: str
    partition: int
    offset: int
    committed: int = 0
    """The offset that the stage has committed on that partition.

    All outputs of earlier records are delivered. Outputs of records at or above it may be lost, and are emitted again.
    """


class Rows(Protocol):
    """State of one stage in one partition: ordered bytes (law 5)."""

    def get(self, key: bytes) -> bytes | None: ...

    def put(self, key: bytes, value: bytes) -> None: ...

    def delete(self, key: bytes) -> None: ...

    def scan(self, prefix: bytes, after: bytes = b"", limit: int = -1) -> Iterator[tuple[bytes, bytes]]:
        """Iterate over rows whose key starts with `prefix` and is above `after`, in order; at most `limit` (-1: all).

        The rows may be changed during the scan; whether it sees those changes is undefined.
        """
        ...


class Logged(NamedTuple):
    """Record as stored in the log."""

    topic: str
    partition: int
    offset: int
    time: int
    """Time in ms since the epoch when it was appended."""
    key: bytes
    value: bytes | None
    """Avro single-object encoding; None is a tombstone."""
    record: Record | None = None
    """The decoded `value`, if it is known already."""


class Log(Protocol):
    """Topics of partitions of records, as far as readers and administration need them from any runner."""

    def topics(self) -> Mapping[str, int]:
        """Return the partition count by topic name."""
        ...

    def ends(self, topic: str) -> Sequence[int]:
        """Return the next offset of each partition. Raises KeyError for an unknown topic."""
        ...

    def read(self, topic: str, partition: int, offset: int, limit: int, until: int | None = None) -> Sequence[Logged]:
        """Return up to `limit` records from `offset` on and below `until`, in order, without those trimmed or compacted away."""
        ...

    def append(self, topic: str, records: Iterable[tuple[bytes, Record | None]], partition: int | None = None) -> None:
        """Append durably, each to the partition of its key (murmur2), or all to the given one."""
        ...


class Blobs(Protocol):
    """Store of bodies too large for the log, by their SHA-256."""

    def put(self, body: BinaryIO) -> tuple[str, str, int]:
        """Store a body durably; return SHA-256 (hex), MD5 (hex) and length in bytes. Raises OSError and leaves nothing behind."""
        ...

    def open(self, digest: str) -> BinaryIO:
        """Open the body as a binary file. Raises FileNotFoundError."""
        ...


Sort = Literal["relevance", "newest", "oldest", "largest", "url"]
"""Orders of hits: by score, by the document's own date, by its size, by its URL."""


class Part(NamedTuple):
    """Part of a score: what a part of the query adds to it."""

    query: str
    score: float


class Hit(NamedTuple):
    """One search result."""

    oid: str
    url: str
    title: str
    type: str
    score: float
    snippet: str
    """Plain text of at most 300 characters; matched words are enclosed in U+0002 and U+0003."""
    copies: tuple[str, ...] = ()
    copies_count: int = 0
    date: int | None = None
    """The document's own date in seconds since the epoch."""


class FacetValue(NamedTuple):
    """Value of a facet, with the number of matches that a search has with this value chosen (`processors.query.facets.refined`)."""

    value: str
    total: int


class Page(NamedTuple):
    """Page of search results."""

    hits: tuple[Hit, ...]
    total: int
    """Number of matching summaries, without copies."""
    facets: Mapping[str, tuple[FacetValue, ...]] = {}
    """The most frequent values of each facet that was asked for, most frequent first."""
    checked: int = 0
    """Number of summaries that were read, because the engine's answer was too wide."""
    left_out: tuple[str, ...] = ()
    """Messages about what was asked for and is not in the page, such as a facet that would need too many summaries to be read."""


class Refused(NamedTuple):
    """Change that an engine will never accept, with the reason."""

    change: Summary | Removed
    reason: str


class Follower(Protocol):
    """What a sink fills from a topic of summaries: an index, or the feed. It stores how far it has followed the topic."""

    def apply(self, changes: Sequence[Summary | Removed], offsets: Mapping[int, int]) -> Sequence[Refused]:
        """Apply a batch, then store the next offset of each partition of the topic.

        A change that is older than what is stored for its OID is ignored, so that a batch may be applied twice. Returns the changes
        that are refused for their content; all others are applied. Raises OSError if nothing can be written: then the offsets are
        unchanged, and `offsets` returns where to continue.
        """
        ...

    def offsets(self) -> Mapping[int, int]:
        """Return the next offset to apply by partition; empty at the beginning."""
        ...

    def close(self) -> None:
        """Release files, threads and locks. Applied changes remain."""
        ...


class BrokerIndex(Follower, Protocol):
    """A Broker's index, filled by a sink and searched by users. One conformance suite holds for every engine.

    A change applies only if its `published` is at least the one stored for its OID (external_gte).
    """

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
        """Return a page of hits, without copies unless `copies` is true.

        By relevance the best come first; by any other order, what has no date comes last; equal ones are in order of URL. A choice
        in one of the `facets` (names of `processors.query.facets.COUNTED`) does not change the counts of that facet.
        """
        ...

    def scroll(self, query: Query) -> Iterator[str]:
        """Iterate over the OID of every match, in order of OID, copies included."""
        ...

    def count(self, query: Query) -> int:
        """Return the number of matching summaries, copies included."""
        ...

    def explain(self, query: Query, oids: Sequence[str]) -> Mapping[str, Sequence[Part]]:
        """Return the parts of the scores of some hits, by OID; those of a hit add up to its score by relevance."""
        ...

    def plan(self, query: Query) -> str:
        """Return the engine's own query for a query, as text for people. Raises QueryRefused."""
        ...

    @property
    def languages(self) -> tuple[str, ...]:
        """Languages that the index was made for."""
        ...

    def record(self, oid: str) -> Summary | Removed | None:
        """Return the newest record with an OID as the Broker has it; None if there is none, or if a removal was not stored."""
        ...

    def records(self, oids: Sequence[str]) -> Mapping[str, Summary]:
        """Return the summaries with some OIDs, copies included, without those that were removed."""
        ...

    def complete(self, beginning: str, limit: int = 10) -> Sequence[tuple[str, int]]:
        """Return words of titles, keywords and authors that begin so, with the numbers of summaries, most frequent first."""
        ...

    def frequencies(self, words: Sequence[str]) -> Sequence[int]:
        """Return how many summaries, copies included, have each of some words in any of its forms."""
        ...
