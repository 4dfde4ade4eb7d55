"""The records of the topics, one frozen class for each `.avsc` beside this file.

The `.avsc` files are the source of truth; a test compares both field by field. Times are ms since the epoch,
durations of policy (time-to-live, refresh-rate) are seconds, sizes are bytes, digests are lower-case hex.
Sequences are tuples, so that a decoded record equals the encoded one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from schemas.plan import LocalMap, Plan
from schemas.record import Record
from schemas.rejected import MAX_DETAIL, MAX_REASON, Rejected

__all__ = ["MAX_DETAIL", "MAX_REASON", "LocalMap", "Plan", "Record", "Rejected"]
# Only what this module imports has to be listed here to be imported from it.

Values = tuple[str | bytes, ...]
"""Values of one attribute, in order: text, or bytes if they are not UTF-8."""

Attributes = Mapping[str, Values]

DEFAULT_TTL = 24 * 7 * 86_400
"""Time-to-live in s: 24 weeks, the example record of the Harvest report (seed 000, section on SOIF)."""
DEFAULT_REFRESH = 4 * 7 * 86_400
"""Refresh-rate in s: 4 weeks (same place), so that several attempts fail before anything expires."""

MAX_LINKS = 1_000
MAX_COPIES = 100
MAX_MOVES = 10
"""Maximum number of redirects in a row that are followed."""
MOVED = "moved"
"""Reason of a URL that is gone because its server redirects elsewhere."""
DOUBT = "removal in doubt"
"""Begins the reason of a removal that is held: see `processors/frontier/doubt.py`."""
REPLACED = ("a folder now", "not a folder")
"""Reasons of a URL that is gone because its path names another kind of object now."""
LOST = "its body is not in the blob store"
"""Reason of an object that could not be summarized because its body was lost: it must be fetched again."""
UNUSED = "its stream was not used to its end"
"""Reason of another Gatherer's stream that did not become summaries: it must be fetched again, as a whole."""
OTHER_BASE = "changes of another stream than the one that was fetched last"
"""Reason of changes that cannot be used: the stream must be fetched as a whole."""
REFETCHED = frozenset({LOST, UNUSED})
"""Reasons of failures that essence reports of objects that were fetched: they end no request."""

CrawlKind = Literal[
    "unknown",
    "seeded",
    "unseeded",
    "discovered",
    "resolved",
    "fetched",
    "unchanged",
    "failed",
    "gone",
    "refused",
    "deferred",
    "paused",
    "resumed",
    "claimed",
    "granted",
    "registered",
    "deregistered",
    "changed",
]
LinkKind = Literal["unknown", "page", "file", "folder", "symlink", "other", "listing"]
Outcome = Literal["fetched", "unchanged", "gone", "expired"]
RequestKind = Literal["object", "resolve"]
RemovalReason = Literal["gone", "expired", "member_missing", "filtered"]
CompleteReason = Literal["whole", "gone", "expired"]


class Root(Record, frozen=True, kw_only=True):
    """A RootNode and its limits (Harvest report, "RootNodes"), carried by every event that it causes."""

    url: str
    run: str
    host: str = ""
    depth: int = 10
    urls: int = 10_000
    ttl: int = DEFAULT_TTL
    refresh: int = DEFAULT_REFRESH
    accept: int = 0


class Link(Record, frozen=True, kw_only=True):
    """A URL found in a page, or a child of a listing with the listing's data about it."""

    url: str
    kind: LinkKind = "unknown"
    size: int = -1
    mtime: int = 0
    inode: int = 0
    text: str = ""
    ctime: int = 0
    mark: str = ""


class Span(Record, frozen=True, kw_only=True):
    """The slice of a listing that one event covers: URL digests in (low, high]."""

    low: bytes
    high: bytes

    @property
    def is_whole(self) -> bool:
        """Whether the slice covers the whole listing."""
        return not self.low and self.is_last

    @property
    def is_last(self) -> bool:
        """Whether the slice is the last one of the listing."""
        return self.high == b"\xff" * 16


class Validators(Record, frozen=True, kw_only=True):
    """Values that a conditional request compares (RFC 9110, 8.8); for files those of fstat."""

    etag: str = ""
    modified: str = ""
    md5: str = ""
    size: int = -1
    mtime: int = 0
    inode: int = 0
    ctime: int = 0

    def same_file(self, other: Validators | Link) -> bool:
        """Return whether size, mtime, inode and ctime are equal; an unknown ctime (0 or below) equals every other."""
        known = (self.size, self.mtime, self.inode) == (other.size, other.mtime, other.inode)
        return known and (self.ctime == other.ctime or self.ctime <= 0 or other.ctime <= 0)


class CrawlEvent(Record, frozen=True, kw_only=True):
    """Input of the frontier: the outcome of a request, discovered URLs, or a change of a root."""

    kind: CrawlKind
    host: str
    time: int
    url: str = ""
    version: int = 0
    depth: int = 0
    root: Root | None = None
    links: tuple[Link, ...] = ()
    span: Span | None = None
    reason: str = ""
    retryable: bool = False
    wait: int = 0
    validators: Validators | None = None
    listing: bool = False
    addresses: tuple[str, ...] = ()
    robots: bytes | None = None
    rules: str = ""
    moves: int = 0
    trail: tuple[str, ...] = ()
    device: int = 0
    inode: int = 0
    partitions: int = 0
    partition: int = 0
    asker: str = ""
    used: int = 0
    credits: int = 0
    coverage: str = ""
    status: int = 0
    latency: int = -1
    plan: Plan | None = None
    body: bytes | None = None

    def __post_init__(self) -> None:
        if len(self.links) > MAX_LINKS or len(self.reason) > MAX_REASON:
            raise ValueError("CrawlEvent: at most 1,000 links and 200 characters of reason")


class Tick(Record, frozen=True, kw_only=True):
    """Time as an event: applied once the stage's inputs are read up to the given end offsets."""

    time: int
    ends: Mapping[str, int] = {}
    held: bool = False
    """Whether confirmations are still to come, as while a run visits its URLs: a Broker expires nothing on such a tick."""


class FetchRequest(Record, frozen=True, kw_only=True):
    """An order to fetch one URL."""

    url: str
    host: str
    version: int
    time: int
    root: Root
    depth: int = 0
    kind: RequestKind = "object"
    address: str = ""
    validators: Validators | None = None
    pause: int = -1
    rules: str = ""
    moves: int = 0
    trail: tuple[str, ...] = ()
    as_listing: bool = False
    local: str = ""
    within: str = ""


class FetchedObject(Record, frozen=True, kw_only=True):
    """A fetched object, or the outcome without one. A body is inline (`body`) or in the blob store (`blob`)."""

    url: str
    version: int
    time: int
    outcome: Outcome
    root: Root | None = None
    depth: int = 0
    reason: str = ""
    body: bytes | None = None
    blob: str = ""
    size: int = 0
    md5: str = ""
    sha256: str = ""
    headers: Mapping[str, str] = {}
    content_type: str = ""
    validators: Validators | None = None
    status: int = 0
    as_listing: bool = False


class Entry(Record, frozen=True, kw_only=True):
    """An entry of a folder as lstat returned it; the name is bytes as in the file system."""

    name: bytes
    kind: LinkKind
    size: int
    mtime: int
    inode: int
    ctime: int = 0


class Listing(Record, frozen=True, kw_only=True):
    """The body of a folder's object (content type inode/directory), Avro-encoded: entries sorted by name."""

    entries: tuple[Entry, ...]
    device: int = 0
    inode: int = 0


class File(Record, frozen=True, kw_only=True):
    """Facts about a file found by unnesting, whether or not it is summarized."""

    object_url: str
    url: str
    path: str
    version: int
    type: str = ""
    evidence: str = ""
    content_type: str = ""
    owner: str = ""
    group: str = ""
    mode: int = 0
    mtime: int = 0
    size: int = 0
    md5: str = ""
    selected: bool = True
    reason: str = ""


class Summary(Record, frozen=True, kw_only=True):
    """A content summary (SOIF): an OID belongs to one gatherer and URL."""

    oid: str
    url: str
    object_url: str
    path: str = ""
    gatherer: str
    version: int
    time: int
    type: str
    content_type: str = "application/octet-stream"
    size: int = 0
    md5: str = ""
    sha256: str = ""
    ttl: int = DEFAULT_TTL
    refresh: int = DEFAULT_REFRESH
    attempt: str = ""
    attributes: Attributes = {}  # noqa: RUF012 - records are frozen
    annotations: Attributes = {}  # noqa: RUF012
    published: int = 0
    copy_of: str = ""
    copies: tuple[str, ...] = ()
    copies_count: int = 0
    location: str = ""
    views: tuple[str, ...] = ()

    @property
    def shown_url(self) -> str:
        """The URL of what is described: `location`, where there is one."""
        return self.location or self.url

    @property
    def content(self) -> str:
        """The content digest (MD5, length and SHA-256 in one), or "" if it takes no part in dedup (empty, no digest)."""
        return f"{self.md5}-{self.size}-{self.sha256}" if self.sha256 and self.size else ""


class Removed(Record, frozen=True, kw_only=True):
    """A removal is a record (law 2)."""

    oid: str
    url: str
    object_url: str
    version: int
    time: int
    reason: RemovalReason
    removed: bool = True
    published: int = 0


class Complete(Record, frozen=True, kw_only=True):
    """End of an object's summaries: those that this attempt did not produce are removed (law 3)."""

    object_url: str
    version: int
    time: int
    attempt: str
    count: int
    reason: CompleteReason = "whole"


class Partial(Record, frozen=True, kw_only=True):
    """End of an object that could only be read in part: nothing is removed (law 3)."""

    object_url: str
    version: int
    time: int
    attempt: str
    count: int
    reason: str = ""


class Withdrawn(Record, frozen=True, kw_only=True):
    """A member that a stream of changes states to be gone: it alone is removed."""

    object_url: str
    version: int
    time: int
    attempt: str
    path: str


class Confirmed(Record, frozen=True, kw_only=True):
    """An object was found unchanged at `time`: its members up to this version are what they were."""

    object_url: str
    version: int
    time: int


class Annotation(Record, frozen=True, kw_only=True):
    """Manual attributes of one URL (member path included)."""

    url: str
    object_url: str
    time: int
    attributes: Attributes


class Holder(Record, frozen=True, kw_only=True):
    """A summary of a Broker joined or left the holders of a content."""

    content: str
    oid: str
    url: str
    member: bool
    version: int
    joined: bool


class Role(Record, frozen=True, kw_only=True):
    """dedup's answer: the role of a summary among the holders of its content."""

    oid: str
    version: int
    copy_of: str = ""
    copies: tuple[str, ...] = ()
    count: int = 0


class View(Record, frozen=True, kw_only=True):
    """The definition of a view (standing query) of a Broker, or its end; every partition has each."""

    path: str
    query: str = ""
    time: int
    removed: bool = False


_FETCHED = (Root, LocalMap, Plan, Link, Span, Validators, CrawlEvent, Tick, FetchRequest, FetchedObject, Entry, Listing, File)
_SUMMARIZED = (Summary, Removed, Complete, Partial, Withdrawn, Confirmed, Annotation, Holder, Role, View, Rejected)
RECORDS: tuple[type[Record], ...] = (*_FETCHED, *_SUMMARIZED)
