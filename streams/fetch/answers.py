"""The records that answer one request. All of them carry its version, root, depth and rules; nothing here does I/O.

Laws:
- A transient failure is a CrawlEvent alone: essence hears of an object only when it was fetched, or is gone (law 4).
- What is gone is told twice: to essence, as an outcome behind the data, and to the frontier.
- Texts from the network are bounded, and hold no control characters and no surrogates, before they enter a record.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from processors.identity import frontier_key
from schemas.records import (
    MAX_MOVES,
    MAX_REASON,
    MOVED,
    CrawlEvent,
    CrawlKind,
    FetchedObject,
    FetchRequest,
    Link,
    Record,
    Validators,
)
from streams.fetch.settings import LONGEST_WAIT


class StoreError(OSError):
    """The blob store, or the spool before it, failed: no outcome of an object, but the end of the run."""


class FetchError(Exception):
    """A request failed; whose fault it was is in the reason. It never leaves this package."""

    def __init__(self, reason: str, *, retryable: bool, wait: int = 0, unreachable: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.retryable = retryable
        self.wait = wait
        """ms to wait at least before the next try."""
        self.unreachable = unreachable
        """No connection came about: another address of the host may do."""


class Stored(NamedTuple):
    """A body, inline or in the blob store."""

    body: bytes | None
    blob: str
    size: int
    md5: str
    sha256: str


def bounded(text: str, limit: int = MAX_REASON) -> str:
    """`text` as a record may hold it: at most `limit` characters, anything that is not printable replaced."""
    return "".join(c if c.isprintable() else " " if c.isspace() else "\ufffd" for c in text[:limit])


@dataclass(frozen=True, slots=True)
class Answers:
    """Builds the answers to one request; `now` is ms since the epoch."""

    request: FetchRequest
    now: int

    def event(
        self, kind: CrawlKind, reason: str = "", *, validators: Validators | None = None, listing: bool = False
    ) -> CrawlEvent:
        """What became of the URL, for the frontier."""
        request = self.request
        return CrawlEvent(
            kind=kind,
            host=request.host,
            time=self.now,
            url=request.url,
            version=request.version,
            depth=request.depth,
            root=request.root,
            reason=bounded(reason),
            validators=validators,
            listing=listing,
            rules=request.rules,
        )

    def failed(self, failure: FetchError) -> list[Record]:
        """The attempt failed: the object, if there was one, stays."""
        wait = max(0, min(failure.wait, LONGEST_WAIT))
        event = self.event("failed", failure.reason)
        return [msgspec.structs.replace(event, retryable=failure.retryable, wait=wait)]

    def refused(self, reason: str) -> list[Record]:
        """It is not fetched, for a reason of ours."""
        return [self.event("refused", reason)]

    def deferred(self, wait: int) -> list[Record]:
        """Its host or address is busy: ask again after `wait` ms."""
        return [msgspec.structs.replace(self.event("deferred", "its host is busy"), wait=wait)]

    def gone(self, reason: str, status: int = 0) -> list[Record]:
        """There is no such object any more. `status`: of the response; 0: there is none."""
        request = self.request
        gone = FetchedObject(
            url=request.url,
            version=request.version,
            time=self.now,
            outcome="gone",
            root=request.root,
            depth=request.depth,
            reason=bounded(reason),
            status=status,
        )
        return [gone, self.event("gone", reason)]

    def moved(self, target: str, status: int = 0) -> list[Record]:
        """The object is elsewhere: gone here, discovered there, at the same distance from the root.

        A root that moved stays on the server that it moved to; one that may go anywhere still may. A chain ends after
        MAX_MOVES: a server may make it up as it goes. One that comes back to where it was is a circle.
        """
        request, key = self.request, frontier_key(target)
        if request.moves >= MAX_MOVES:
            return self.failed(FetchError("moved too often", retryable=False))
        if target in request.trail:
            return self.failed(FetchError("moved in a circle", retryable=False))
        root = request.root
        if request.depth == 0 and root.host:
            root = msgspec.structs.replace(root, host=key)
        # The frontier puts links one hop behind the page that they stand in; a redirect is no hop.
        links = (Link(url=target, kind="page"),)
        found = msgspec.structs.replace(
            self.event("discovered"),
            host=key,
            root=root,
            depth=request.depth - 1,
            links=links,
            moves=request.moves + 1,
            trail=(*request.trail, request.url)[-MAX_MOVES:],
        )
        gone, moved = self.gone(MOVED, status)
        return [gone, msgspec.structs.replace(moved, trail=request.trail), found]

    def unchanged(self, validators: Validators, *, listing: bool = False) -> list[Record]:
        """It is what it was; `validators` are those of now."""
        return [self.event("unchanged", validators=validators, listing=listing)]

    def fetched(
        self,
        stored: Stored,
        validators: Validators,
        content_type: str,
        headers: Mapping[str, str],
        *,
        listing: bool = False,
        status: int = 0,
    ) -> list[Record]:
        """The object, and what the frontier remembers of it."""
        request = self.request
        fetched = FetchedObject(
            url=request.url,
            version=request.version,
            time=self.now,
            outcome="fetched",
            root=request.root,
            depth=request.depth,
            body=stored.body,
            blob=stored.blob,
            size=stored.size,
            md5=stored.md5,
            sha256=stored.sha256,
            headers=headers,
            content_type=content_type,
            validators=validators,
            status=status,
        )
        return [fetched, self.event("fetched", validators=validators, listing=listing)]

    def resolved(self, address: str, robots: bytes | None, failure: FetchError | None = None) -> list[Record]:
        """What is known of a host: always this one event, since the frontier waits for it and for no other.

        `robots` None disallows all, for the reason that `failure` gives.
        """
        event = msgspec.structs.replace(
            self.event("resolved"), url=f"{self.request.host}/robots.txt", addresses=(address,) if address else (), robots=robots
        )
        if failure is None:
            return [event]
        wait = max(0, min(failure.wait, LONGEST_WAIT))
        reason = bounded(failure.reason)
        return [msgspec.structs.replace(event, reason=reason, retryable=failure.retryable, wait=wait)]
