"""Typed access to the rows of the frontier, without its decisions.

| row | holds |
| --- | --- |
| `t`, `k`, `j`, `e|` | time, versions, ticks, runs, removals: see `clock_rows.py` |
| `g|root`, `x|root` | the Root, as its newest event stated it; the run that ended it |
| `p|root` | the root is paused |
| `o|root` | Plan of the root, if it has one: see `options.py` |
| `v|root` | Losses of the root in its last run |
| `s|host`, `h|host` | HostState, robots.txt: see `host_rows.py` |
| `u|host NUL digest` | Known: the only bulk rows with a changelog |
| `l|root` | some URL of the root was refused by its limit of URLs |
| `q|host NUL rank digest` | due now (derived) |
| `w|due|host NUL digest` | later: refresh, retry, or a host to be woken (derived) |
| `a|root NUL host NUL digest` | the URL has that root: see `root_index.py` (derived) |
| `f|root` | the start of a run of the root is incomplete: see `root_index.py` |
| `c|root` | number of URLs of a root in this partition (derived) |
| `m|host NUL listing NUL digest` | a listing from the network has the URL: `listed_rows.py` (derived) |
| `n|host NUL bucket` | number of URLs of a host that look like traps, by their pattern's bucket (derived) |
| `j|host NUL digest` | number of URLs with a query that have one path, by the digest of the URL without query (derived) |

Derived rows can be rebuilt by scanning `u|` and `s|`; every method that changes a URL's row keeps them consistent. For the rows of
the limits of roots see `budget_rows.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import cast

import msgspec

from processors.frontier import root_index
from processors.frontier.clock_rows import ClockRows, decode_text
from processors.frontier.host_rows import HostRows
from processors.frontier.listed_rows import ListedRows
from processors.frontier.state import Losses, UrlState
from processors.identity import frontier_key, url_digest
from processors.schemes import scheme_of
from processors.urls import suspicion
from schemas.codec import decode, encode
from schemas.ports import Rows
from schemas.records import Root

HOST_WAKE = b"\0" * 16
"""Digest in a row `w|` that stands for the host itself instead of one of its URLs."""

DERIVED = (b"q|", b"w|", b"c|", b"n|", b"m|", b"j|", root_index.PREFIX)
"""Prefixes of rows that need no changelog."""

BUCKETS = 64
"""Rows `n|` of one host at most: patterns share them by digest, since a trap may have a new pattern for each URL."""

LATEST = 10**13 - 1
"""Latest due time in ms since the epoch; later ones are cut to it, since keys sort by 13 digits."""

_pack = msgspec.msgpack.encode
# Cached: a page is linked from many others, and requests in flight are looked up at every event of their host.
_known = lru_cache(8_192)(msgspec.msgpack.Decoder(UrlState).decode)
_losses = msgspec.msgpack.Decoder(Losses).decode


class Table(ClockRows, HostRows):
    """Typed access to the rows of one partition."""

    def __init__(self, rows: Rows) -> None:
        super().__init__(rows)
        self.listed = ListedRows(rows)

    # ---- URLs ----------------------------------------------------------------------------------------------------

    def get(self, host: str, digest: bytes) -> UrlState | None:
        """Return the row of a URL, or None."""
        value = self.rows.get(b"u|" + host.encode() + b"\0" + digest)
        return _known(value) if value is not None else None

    def prefetch(self, host: str, digests: Iterable[bytes]) -> None:
        """Have the rows of several URLs of a host in memory for `get`, where the store can read them in one statement."""
        if (read := getattr(self.rows, "prefetch", None)) is not None:
            read([b"u|" + host.encode() + b"\0" + digest for digest in digests])

    def put(self, host: str, digest: bytes, known: UrlState) -> None:
        """Write the row of a URL."""
        self.rows.put(b"u|" + host.encode() + b"\0" + digest, _pack(known))

    def forget(self, host: str, digest: bytes, known: UrlState) -> None:
        """Delete the row of a gone URL."""
        if known.moved:
            self.uncount(known)
        self.unschedule(host, digest, known)
        self.rows.delete(b"u|" + host.encode() + b"\0" + digest)
        self.listed.delete(host, digest, known.listed_in)
        for root in known.roots:
            root_index.remove(self.rows, root, host, digest)

    def between(self, host: str, low: bytes, high: bytes) -> Iterator[tuple[bytes, UrlState]]:
        """Iterate over the URLs of a folder with low < digest <= high, in order."""
        prefix = b"u|" + host.encode() + b"\0"
        for key, value in self.rows.scan(prefix, after=prefix + low if low else b""):
            digest = key[-16:]
            if digest > high:
                return
            yield digest, _known(value)

    def count_below(self, folder: str) -> int:
        """Return the number of URLs of this partition below a folder, at any depth."""
        return sum(1 for _ in self.rows.scan(b"u|" + folder.encode()))

    def all(self) -> Iterator[tuple[str, bytes, UrlState]]:
        """Iterate over every URL of the partition: host, digest, row."""
        for key, value in self.rows.scan(b"u|"):
            yield decode_text(key[2:-17]), key[-16:], _known(value)

    def urls_of_root(self, root: str, after: bytes = b"") -> Iterator[tuple[str, bytes, UrlState]]:
        """Iterate over every URL of a root behind `after`, in the order of host NUL digest; rows may be changed meanwhile."""
        if not root_index.is_complete(self.rows):
            root_index.build(self.rows, ((host, digest, known.roots) for host, digest, known in self.all()))
        for key, digest in root_index.urls_of(self.rows, root, after):
            host = decode_text(key)
            known = self.get(host, digest)
            if known is not None and root in known.roots:
                yield host, digest, known
            else:
                root_index.remove(self.rows, root, host, digest)

    # ---- the queue -----------------------------------------------------------------------------------------------

    def enqueue(self, host: str, digest: bytes, known: UrlState) -> None:
        """Queue a URL for its host; URLs of low depth come first."""
        self.rows.put(_queued(host, digest, known), b"")
        self.put(host, digest, known)

    def first(self, host: str) -> tuple[bytes, UrlState] | None:
        """Return the next URL of a host without removing it from the queue."""
        while head := next(self.rows.scan(_queue(host), limit=1), None):
            digest = head[0][-16:]
            known = self.get(host, digest)
            if known is not None and known.state == "queued":
                return digest, known
            self.rows.delete(head[0])
        return None

    def waiting(self, host: str) -> Iterator[tuple[bytes, UrlState]]:
        """Iterate over the queue of a host, in order; the caller may dequeue meanwhile."""
        prefix = after = _queue(host)
        limit = 2  # an answer mostly makes room for one request
        while batch := list(self.rows.scan(prefix, after=after, limit=limit)):
            for key, _ in batch:
                known = self.get(host, key[-16:])
                if known is not None and known.state == "queued":
                    yield key[-16:], known
                else:
                    self.rows.delete(key)
            after, limit = batch[-1][0], 64

    def dequeue(self, host: str, digest: bytes, known: UrlState) -> None:
        """Remove a URL from its host's queue."""
        self.rows.delete(_queued(host, digest, known))

    # ---- what is due later ---------------------------------------------------------------------------------------

    def schedule(self, host: str, digest: bytes, known: UrlState, due: int) -> None:
        """Write the row of a URL with its due time in ms; 0: never due by itself."""
        self.unschedule(host, digest, known)
        self.put(host, digest, known.but(due=due))
        if due:
            self.rows.put(_due_key(due, host, digest), b"")

    def unschedule(self, host: str, digest: bytes, known: UrlState) -> None:
        """Remove the due time of a URL."""
        if known.due:
            self.rows.delete(_due_key(known.due, host, digest))

    def wake_at(self, host: str, digest: bytes, due: int) -> None:
        """Make a host due at `due` ms."""
        self.rows.put(_due_key(due, host, digest), b"")

    def due(self, now: int, limit: int) -> list[tuple[str, bytes]]:
        """Remove and return up to `limit` pairs (host, digest) that are due."""
        found = []
        for key, _ in list(self.rows.scan(b"w|", limit=limit)):
            if int(key[2:15]) > now:
                break
            self.rows.delete(key)
            found.append((decode_text(key[16:-17]), key[-16:]))
        return found

    def next_due(self) -> int | None:
        """Return the next due time in ms since the epoch, or None; the time seen if a run has begun in part."""
        if root_index.parts(self.rows, 1):
            return self.advance(0).seen
        return next((int(key[2:15]) for key, _ in self.rows.scan(b"w|", limit=1)), None)

    def busy(self, until: int) -> bool:
        """Return whether, by `until` ms, a host with a queue may be requested, a retry or a host is due, or a run begins.

        A host that rests for its pause counts as one that may be requested: a run waits for it.
        """
        if root_index.parts(self.rows, 1):
            return True
        after = b""
        while queued := next(iter(self.rows.scan(b"q|", after=after, limit=1)), None):
            key = queued[0]
            host = decode_text(key[2:-18])
            site = self.host(host)
            if max(site.next_allowed, site.opens) > until:
                after = b"q|" + host.encode() + b"\x01"
                continue
            known = self.get(host, key[-16:])
            if known is not None and known.state == "queued":
                return True
            after = key  # left over: nothing asks this host again because of it
        for key, _ in self.rows.scan(b"w|"):
            if int(key[2:15]) > until:
                return False
            known = self.get(decode_text(key[16:-17]), key[-16:])
            if known is None or known.state == "waiting":
                return True
        return False

    def rebuild(self) -> None:
        """Rebuild the derived rows: when a partition is assigned after anything but a clean stop."""
        for prefix in DERIVED:
            for key, _ in list(self.rows.scan(prefix)):
                self.rows.delete(key)
        # The rows written are outside the range scanned, so the scan is not copied to a list: it is too large.
        for host, digest, known in self.all():
            self._derive(host, digest, known)
        self.rows.put(root_index.PREFIX, b"")
        for host, site in self.hosts():
            for due in filter(None, (site.next_allowed, site.opens, site.rests)):
                self.wake_at(host, HOST_WAKE, due)

    def _derive(self, host: str, digest: bytes, known: UrlState) -> None:
        if known.state == "queued":
            self.rows.put(_queued(host, digest, known), b"")
        if known.due:
            self.rows.put(_due_key(known.due, host, digest), b"")
        self.listed.put(host, digest, known.listed_in)
        if known.counts:
            self.count_similar(known.url, 1)
        for root in known.roots:
            root_index.add(self.rows, root, host, digest)
            if known.counts:
                self.count(root, 1)

    # ---- roots ---------------------------------------------------------------------------------------------------

    def root(self, url: str) -> Root | None:
        """Return a root by its URL, or None."""
        value = self.rows.get(b"g|" + url.encode())
        return _root(value) if value is not None else None

    def put_root(self, root: Root) -> None:
        """Write the row of a root."""
        self.rows.put(b"g|" + root.url.encode(), encode(root))

    def end_root(self, root: Root) -> None:
        """Delete a root but note the run that ended it, so that results of its earlier runs are ignored."""
        self.rows.put(b"x|" + root.url.encode(), root.run.encode())
        self.rows.delete(b"g|" + root.url.encode())
        self.rows.delete(b"c|" + root.url.encode())
        self.rows.delete(b"v|" + root.url.encode())
        root_index.put_part(self.rows, root.url, None)
        self.pause(root.url, on=False)

    def pause(self, url: str, *, on: bool) -> None:
        """Pause a root, or resume it."""
        key = b"p|" + url.encode()
        if on:
            self.rows.put(key, b"")
        elif self.rows.get(key) is not None:
            self.rows.delete(key)

    def paused(self) -> frozenset[str]:
        """Return the URLs of the paused roots."""
        return frozenset(decode_text(key[2:]) for key, _ in self.rows.scan(b"p|"))

    def ended(self, root: Root) -> bool:
        """Return whether a root was ended since its run began."""
        value = self.rows.get(b"x|" + root.url.encode())
        return value is not None and root.run <= decode_text(value)

    def limited(self, root: str, *, on: bool | None = None) -> bool:
        """Return whether a root refused URLs for its limit of URLs; `on` sets or clears that flag first."""
        key = b"l|" + root.encode()
        if on:
            self.rows.put(key, b"")
        elif on is False:
            self.rows.delete(key)
        return self.rows.get(key) is not None

    def losses(self, root: str) -> Losses:
        """Return what a root has lost in its last run."""
        value = self.rows.get(b"v|" + root.encode())
        return _losses(value) if value is not None else Losses()

    def put_losses(self, root: str, losses: Losses) -> None:
        """Write what a root has lost."""
        self.rows.put(b"v|" + root.encode(), _pack(losses))

    def counted(self, root: str) -> int:
        """Return the number of URLs of a root in this partition."""
        return self._number(b"c|" + root.encode())

    def count(self, root: str, change: int) -> None:
        """Change the number of URLs of a root."""
        self.rows.put(b"c|" + root.encode(), str(max(0, self.counted(root) + change)).encode())

    def uncount(self, known: UrlState) -> None:
        """Subtract a URL from the counts of its roots and of its pattern."""
        self.count_similar(known.url, -1)
        for url in known.roots:
            self.count(url, -1)

    def similar(self, url: str) -> int:
        """Return the number of URLs of the same host in the bucket of this URL's pattern; 0 if it does not look like a trap."""
        return self._number(_similar_key(url))

    def count_similar(self, url: str, change: int) -> None:
        """Change the number of URLs that look like the same trap as this one, if it looks like one, and of those of its path."""
        for key in filter(None, (_similar_key(url), _variants_key(url))):
            if (count := self._number(key) + change) > 0:
                self.rows.put(key, str(count).encode())
            else:
                self.rows.delete(key)

    def variants(self, url: str) -> int:
        """Return the number of URLs with a query that have the path of this one; 0 if it has no query."""
        return self._number(_variants_key(url))

    def _number(self, key: bytes) -> int:
        return int(self.rows.get(key) or 0) if key else 0


@lru_cache(256)
def _root(value: bytes) -> Root:
    """Decode a root; cached, since every URL of the root needs it and it hardly ever changes."""
    return cast("Root", decode(value))


def _similar_key(url: str) -> bytes:
    found = suspicion(url)
    if found is None:
        return b""
    bucket = url_digest(found.pattern)[0] % BUCKETS
    return b"n|" + frontier_key(url).encode() + b"\0%02d" % bucket


def _variants_key(url: str) -> bytes:
    path, mark, _ = url.partition("?")
    return b"j|" + frontier_key(url).encode() + b"\0" + url_digest(path) if mark and scheme_of(url).limited else b""


def _queue(host: str) -> bytes:
    return b"q|" + host.encode() + b"\0"


def _queued(host: str, digest: bytes, known: UrlState) -> bytes:
    # Listings come before what has their depth: their marks are known when the pages are requested.
    rank = min(max(known.depth - (known.kind == "listing"), 0), 255)
    return _queue(host) + rank.to_bytes(1, "big") + digest


def _due_key(due: int, host: str, digest: bytes) -> bytes:
    return b"w|%013d|" % min(due, LATEST) + host.encode() + b"\0" + digest
