"""Typed access to the rows of the frontier, without its decisions.

| row | holds |
| --- | --- |
| `t`, `k` | time seen, last version minted, last event with rows in `e|`; the last tick |
| `g|root`, `x|root` | the Root, as its newest event stated it; the run that ended it |
| `p|root` | the root is paused |
| `v|root` | Losses of the root in its last run |
| `s|host` | Host: robots, address, requests in flight, next allowed |
| `u|host NUL digest` | Known: the only bulk rows with a changelog |
| `e|c offset host NUL digest` | the removal of a URL that this event ended (`e|t`: this tick), until its delivery is certain |
| `l|root` | some URL of the root was refused by its limit of URLs |
| `q|host NUL rank digest` | due now (derived) |
| `w|due|host NUL digest` | later: refresh, retry, or a host to be woken (derived) |
| `c|root` | number of URLs of a root in this partition (derived) |
| `m|host NUL listing NUL digest` | a listing from the network has the URL: `listed_rows.py` (derived) |
| `n|host NUL bucket` | number of URLs of a host that look like traps, by their pattern's bucket (derived) |

Derived rows can be rebuilt by scanning `u|` and `s|`; every method that changes a URL's row keeps them consistent. For the rows of
the limits of roots see `budget_rows.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import cast

import msgspec

from processors.frontier.listed_rows import ListedRows
from processors.frontier.state import Clock, HostState, Losses, UrlState
from processors.identity import frontier_key, url_digest
from processors.urls import suspicion
from schemas.codec import DecodeError, decode, encode
from schemas.ports import Rows
from schemas.records import FetchedObject, Root

HOST_WAKE = b"\0" * 16
"""Digest in a row `w|` that stands for the host itself instead of one of its URLs."""

DERIVED = (b"q|", b"w|", b"c|", b"n|", b"m|")
"""Prefixes of rows that need no changelog."""

BUCKETS = 64
"""Rows `n|` of one host at most: patterns share them by digest, since a trap may have a new pattern for each URL."""

LATEST = 10**13 - 1
"""Latest due time in ms since the epoch; later ones are cut to it, since keys sort by 13 digits."""

_pack = msgspec.msgpack.encode
_known = msgspec.msgpack.Decoder(UrlState).decode
_host = msgspec.msgpack.Decoder(HostState).decode
_losses = msgspec.msgpack.Decoder(Losses).decode
_clock = msgspec.msgpack.Decoder(Clock).decode


class Table:
    """Typed access to the rows of one partition."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self.listed = ListedRows(rows)

    # ---- time and versions ---------------------------------------------------------------------------------------

    def advance(self, time: int) -> Clock:
        """Advance the partition's clock to `time` if that is later, and return the clock."""
        clock = self._clock()
        if time > clock.seen:
            clock = self._put_clock(clock.but(seen=time))
        return clock

    def tick_once(self, origin: int) -> bool:
        """Return whether a tick (its origin, below 0) is new, and note it."""
        value = self.rows.get(b"k")
        if value is not None and int(value) <= origin:
            return False
        self.rows.put(b"k", str(origin).encode())
        return True

    def mint(self, now: int) -> int:
        """Return a version above all that this partition has minted: max(last + 1, now)."""
        clock = self._clock()
        return self._put_clock(clock.but(minted=max(clock.minted + 1, now))).minted

    def _clock(self) -> Clock:
        value = self.rows.get(b"t")
        return _clock(value) if value is not None else Clock()

    def _put_clock(self, clock: Clock) -> Clock:
        self.rows.put(b"t", _pack(clock))
        return clock

    # ---- removals ------------------------------------------------------------------------------------------------

    def tell(self, origin: int, host: str, digest: bytes, removal: FetchedObject) -> None:
        """Store the removal of a URL before its row is deleted."""
        clock = self._clock()
        if origin > clock.ending:
            self._put_clock(clock.but(ending=origin))
        self.rows.put(_removal_prefix(origin) + host.encode() + b"\0" + digest, encode(removal))

    def stored_removals(self, origin: int) -> list[tuple[str, bytes, FetchedObject]]:
        """Return the removals of an event or a tick: host, digest, removal."""
        prefix = _removal_prefix(origin)
        found = self.rows.scan(prefix)
        return [(_text(key[len(prefix) : -17]), key[-16:], cast("FetchedObject", decode(value))) for key, value in found]

    def delivered(self, origin: int, committed: int) -> None:
        """Delete the stored removals of events (or of ticks, if `origin` is one) before `committed`."""
        kind = _removal_prefix(origin)[:3]
        while batch := [key for key, _ in self.rows.scan(kind, limit=64)]:
            for key in batch:
                if int(key[3:23]) >= committed:
                    return
                self.rows.delete(key)
        if origin >= 0:
            self._put_clock(self._clock().but(ending=-1))

    # ---- URLs ----------------------------------------------------------------------------------------------------

    def get(self, host: str, digest: bytes) -> UrlState | None:
        """Return the row of a URL, or None."""
        value = self.rows.get(b"u|" + host.encode() + b"\0" + digest)
        return _known(value) if value is not None else None

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
            yield _text(key[2:-17]), key[-16:], _known(value)

    def urls_of_root(self, root: str, origin: int | None = None) -> Iterator[tuple[str, bytes, UrlState]]:
        """Iterate over every URL of a root, and every URL that the event of `origin` requested."""
        return (found for found in self.all() if root in found[2].roots or (found[2].state, found[2].origin) == ("asked", origin))

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
        while batch := list(self.rows.scan(prefix, after=after, limit=64)):
            for key, _ in batch:
                known = self.get(host, key[-16:])
                if known is not None and known.state == "queued":
                    yield key[-16:], known
                else:
                    self.rows.delete(key)
            after = batch[-1][0]

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
            found.append((_text(key[16:-17]), key[-16:]))
        return found

    def next_due(self) -> int | None:
        """Return the next due time in ms since the epoch, or None."""
        for key, _ in self.rows.scan(b"w|", limit=1):
            return int(key[2:15])
        return None

    def busy(self, until: int) -> bool:
        """Return whether, by `until` ms, a host with a queue may be requested, or a retry or a host is due."""
        after = b""
        while queued := next(iter(self.rows.scan(b"q|", after=after, limit=1)), None):
            host = queued[0][2:-18]
            if self.host(_text(host)).next_allowed <= until:
                return True
            after = b"q|" + host + b"\x01"
        for key, _ in self.rows.scan(b"w|"):
            if int(key[2:15]) > until:
                return False
            known = self.get(_text(key[16:-17]), key[-16:])
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
            if known.state == "queued":
                self.rows.put(_queued(host, digest, known), b"")
            if known.due:
                self.rows.put(_due_key(known.due, host, digest), b"")
            self.listed.put(host, digest, known.listed_in)
            if known.counts:
                self.count_similar(known.url, 1)
                for root in known.roots:
                    self.count(root, 1)
        for key, value in list(self.rows.scan(b"s|")):
            host, site = _text(key[2:]), _host(value)
            if site.next_allowed:
                self.wake_at(host, HOST_WAKE, site.next_allowed)

    # ---- hosts and roots -----------------------------------------------------------------------------------------

    def host(self, host: str) -> HostState:
        """Return the row of a host; a new one if the host is unknown."""
        value = self.rows.get(b"s|" + host.encode())
        return _host(value) if value is not None else HostState()

    def put_host(self, host: str, site: HostState) -> None:
        """Write the row of a host."""
        self.rows.put(b"s|" + host.encode(), _pack(site))

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
        return frozenset(_text(key[2:]) for key, _ in self.rows.scan(b"p|"))

    def ended(self, root: Root) -> bool:
        """Return whether a root was ended since its run began."""
        value = self.rows.get(b"x|" + root.url.encode())
        return value is not None and root.run <= _text(value)

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
        return int(self.rows.get(b"c|" + root.encode()) or 0)

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
        key = _similar_key(url)
        return int(self.rows.get(key) or 0) if key else 0

    def count_similar(self, url: str, change: int) -> None:
        """Change the number of URLs that look like the same trap as this one, if it looks like one."""
        key = _similar_key(url)
        if not key:
            return
        count = int(self.rows.get(key) or 0) + change
        if count > 0:
            self.rows.put(key, str(count).encode())
        else:
            self.rows.delete(key)


@lru_cache(256)
def _root(value: bytes) -> Root:
    """Decode a root; cached, since every URL of the root needs it and it hardly ever changes."""
    return cast("Root", decode(value))


def _text(part: bytes) -> str:
    """Decode part of a key, or a value, as text. Raises DecodeError if it is not UTF-8: the row was altered from outside."""
    try:
        return part.decode()
    except UnicodeDecodeError as error:
        raise DecodeError(f"a key of the frontier: {error}") from error


def _removal_prefix(origin: int) -> bytes:
    return b"e|c%020d" % origin if origin >= 0 else b"e|t%020d" % (-1 - origin)


def _similar_key(url: str) -> bytes:
    found = suspicion(url)
    if found is None:
        return b""
    bucket = url_digest(found.pattern)[0] % BUCKETS
    return b"n|" + frontier_key(url).encode() + b"\0%02d" % bucket


def _queue(host: str) -> bytes:
    return b"q|" + host.encode() + b"\0"


def _queued(host: str, digest: bytes, known: UrlState) -> bytes:
    # Listings come before what has their depth: their marks are known when the pages are requested.
    rank = min(max(known.depth - (known.kind == "listing"), 0), 255)
    return _queue(host) + rank.to_bytes(1, "big") + digest


def _due_key(due: int, host: str, digest: bytes) -> bytes:
    return b"w|%013d|" % min(due, LATEST) + host.encode() + b"\0" + digest
