"""The protocols that the parts lean on: what a runner, a store or an index must give, and nothing of how.

Dependencies point one way: schemas <- processors <- sinks, streams.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import BinaryIO, NamedTuple, Protocol

from schemas.query import Query
from schemas.records import Record, Removed, Summary


class Origin(NamedTuple):
    """Where a record stands in the log: what a stage remembers, to know a redelivery when it sees one."""

    topic: str
    partition: int
    offset: int
    committed: int = 0
    """The offset that the stage has committed on that partition: whatever earlier records gave is delivered for sure. What a
    row of an origin at or above it gave may be lost, and is given again."""


class Rows(Protocol):
    """The state of one stage in one partition: ordered bytes (law 5)."""

    def get(self, key: bytes) -> bytes | None: ...

    def put(self, key: bytes, value: bytes) -> None: ...

    def delete(self, key: bytes) -> None: ...

    def scan(self, prefix: bytes, after: bytes = b"", limit: int = -1) -> Iterator[tuple[bytes, bytes]]:
        """Rows whose key starts with `prefix` and is greater than `after`, in order of the key; at most `limit` (-1: all).

        The rows may be changed while the scan is being read; whether it sees those changes is not said.
        """
        ...


class Logged(NamedTuple):
    """A record as the log keeps it."""

    topic: str
    partition: int
    offset: int
    time: int
    """ms since the epoch, when it was appended."""
    key: bytes
    value: bytes | None
    """Avro single-object encoding; None is a tombstone."""
    record: Record | None = None
    """What `value` is, where that is known already."""


class Log(Protocol):
    """Topics of partitions of records: what any runner keeps, as far as readers and administration need it."""

    def topics(self) -> Mapping[str, int]:
        """Partition count by topic name."""
        ...

    def ends(self, topic: str) -> Sequence[int]:
        """The next offset of each partition. Raises KeyError for an unknown topic."""
        ...

    def read(self, topic: str, partition: int, offset: int, limit: int, until: int | None = None) -> Sequence[Logged]:
        """At most `limit` records from `offset` on and below `until`, in order; what was trimmed or compacted away is left out."""
        ...

    def append(self, topic: str, records: Iterable[tuple[bytes, Record | None]], partition: int | None = None) -> None:
        """Append durably, each to the partition of its key (murmur2), or all to the one named."""
        ...


class Blobs(Protocol):
    """Bodies too large for the log, by their SHA-256."""

    def put(self, body: BinaryIO) -> tuple[str, str, int]:
        """Store a body durably; gives SHA-256 (hex), MD5 (hex) and length in bytes. Raises OSError, with nothing left behind."""
        ...

    def open(self, digest: str) -> BinaryIO:
        """The body as an open binary file. Raises FileNotFoundError."""
        ...


class Hit(NamedTuple):
    """One answer to a query."""

    oid: str
    url: str
    title: str
    type: str
    score: float
    snippet: str
    """Plain text, at most 300 characters; matched words stand between U+0002 and U+0003."""
    copies: tuple[str, ...] = ()
    copies_count: int = 0


class Page(NamedTuple):
    """A page of answers."""

    hits: tuple[Hit, ...]
    total: int
    """How many summaries match, copies not counted."""


class Refused(NamedTuple):
    """A change that an engine will never take, and why."""

    change: Summary | Removed
    reason: str


class BrokerIndex(Protocol):
    """A Broker's index: what a sink fills and search users ask. One conformance suite holds for every engine."""

    def apply(self, changes: Sequence[Summary | Removed], offsets: Mapping[int, int]) -> Sequence[Refused]:
        """Apply a batch and remember, not before it is applied, the next offset of each partition of the Broker's topic.

        Each change applies only if its `published` is at least the one known for its OID (external_gte), so that a batch
        may be applied twice. Gives the changes that the engine refuses for what they are; all others are applied. Raises OSError
        where the index cannot be written: then the offsets stand as they were, and `offsets` says where to go on.
        """
        ...

    def offsets(self) -> Mapping[int, int]:
        """The next offset to apply by partition; empty for a new index."""
        ...

    def search(self, query: Query, limit: int = 10, offset: int = 0, copies: bool = False) -> Page:
        """Best hits first; equal scores in order of URL. Copies are left out unless asked for."""
        ...

    def scroll(self, query: Query) -> Iterator[str]:
        """The OID of every match, in order of OID, copies included."""
        ...

    def count(self, query: Query) -> int:
        """How many summaries match, copies included."""
        ...

    def close(self) -> None:
        """Let go of files, threads and locks. What was applied stays."""
        ...
