"""Builds the records that answer one request. All carry its version, root, depth and rules. No I/O.

Laws:
- A transient failure is a CrawlEvent alone: essence receives an object only when it was fetched or is gone (law 4).
- What is missing is reported to the frontier, which alone decides whether it is removed. A redirect is reported to both: to essence
  as an outcome in the order of the data.
- Texts from the network are bounded, and cleaned of control characters and surrogates, before they enter a record.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from processors.collector import may_move
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

ALLOW = "local targets have to be allowed (--allow, fetch.allow)"
"""Advice in the reason of an address that is refused."""


class StoreError(OSError):
    """The blob store, or the spool in front of it, failed: not an outcome of an object, but a reason to end the run."""


class FetchError(Exception):
    """A request failed; the reason says whose fault it was. Never raised outside of this package."""

    def __init__(self, reason: str, *, retryable: bool, wait: int = 0, unreachable: bool = False, status: int = 0) -> None:
        super().__init__(reason)
        self.reason = reason
        self.retryable = retryable
        self.wait = wait
        """Minimum wait in ms before the next try."""
        self.unreachable = unreachable
        """No connection was established: another address of the host may work."""
        self.status = status
        """Status of the answer; 0: there was none."""


class Stored(NamedTuple):
    """A body, either inline or in the blob store."""

    body: bytes | None
    blob: str
    size: int
    md5: str
    sha256: str


def bounded(text: str, limit: int = MAX_REASON) -> str:
    """Return at most `limit` characters of `text` for a record, with non-printable characters replaced."""
    text = text[:limit]
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else " " if c.isspace() else "\ufffd" for c in text)


@dataclass(frozen=True, slots=True)
class Answers:
    """Builds the records that answer one request; `now` is ms since the epoch.

    `latency`: ms from the request to the header of its answer, -1 if it is unknown.
    """

    request: FetchRequest
    now: int
    latency: int = -1

    def event(
        self, kind: CrawlKind, reason: str = "", *, validators: Validators | None = None, listing: bool = False
    ) -> CrawlEvent:
        """Return an event for the frontier about the URL of the request."""
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
            latency=self.latency,
        )

    def failed(self, failure: FetchError) -> list[Record]:
        """Return the answer for a failed attempt: a known object stays."""
        wait = max(0, min(failure.wait, LONGEST_WAIT))
        event = self.event("failed", failure.reason)
        return [msgspec.structs.replace(event, retryable=failure.retryable, wait=wait, status=failure.status)]

    def refused(self, reason: str) -> list[Record]:
        """Return the answer for a URL that is not fetched by a rule of this program."""
        return [self.event("refused", reason)]

    def deferred(self, wait: int) -> list[Record]:
        """Return the answer for a busy host or address: the frontier asks again after `wait` ms."""
        return [msgspec.structs.replace(self.event("deferred", "its host is busy"), wait=wait)]

    def gone(self, reason: str) -> list[Record]:
        """Return the answer for an object that no longer exists."""
        return [self.event("gone", reason)]

    def moved(self, target: str, status: int = 0, hops: Sequence[str] = ()) -> list[Record]:
        """Return the answer for a redirect: gone at this URL, discovered at the target, at the same distance from the root.

        A redirected root is bound to the server of its target; a root without a host restriction stays without. A chain ends after
        MAX_MOVES redirects, since a server may generate an endless one. A target that is already in the chain is a circle.
        `hops`: URLs between that of the request and the target, in order, that were requested already.
        """
        request, key = self.request, frontier_key(target)
        trail = (*request.trail, request.url, *hops)
        moves = request.moves + 1 + len(hops)
        if moves > MAX_MOVES:
            return self.failed(FetchError("moved too often", retryable=False))
        if target in trail:
            return self.failed(FetchError("moved in a circle", retryable=False))
        if not may_move(request.root.url, request.url, target):
            return self.failed(FetchError(f"redirected to what is no part of a gateway: {target}", retryable=False))
        root = request.root
        if request.depth == 0 and root.host:
            root = msgspec.structs.replace(root, host=key)
        # The frontier places links one hop behind the page that contains them; a redirect is not a hop.
        links = (Link(url=target, kind="listing" if request.as_listing else "page"),)
        found = msgspec.structs.replace(
            self.event("discovered"),
            host=key,
            root=root,
            depth=request.depth - 1,
            links=links,
            moves=moves,
            trail=trail[-MAX_MOVES:],
        )
        gone = FetchedObject(
            url=request.url,
            version=request.version,
            time=self.now,
            outcome="gone",
            root=request.root,
            depth=request.depth,
            reason=MOVED,
            status=status,
            as_listing=request.as_listing,
        )
        return [gone, msgspec.structs.replace(self.event("gone", MOVED), trail=request.trail), found]

    def unchanged(self, validators: Validators, *, listing: bool = False) -> list[Record]:
        """Return the answer for an object that has not changed; `validators`: the current ones."""
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
        changes: bool = False,
    ) -> list[Record]:
        """Return the object, and the event with the validators that the frontier stores.

        `changes`: whether the body has changes alone; then the event has the status too.
        """
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
            as_listing=request.as_listing,
        )
        event = self.event("fetched", validators=validators, listing=listing)
        return [fetched, msgspec.structs.replace(event, status=status) if changes else event]

    def resolved(self, address: str, robots: bytes | None, failure: FetchError | None = None) -> list[Record]:
        """Return the one event that describes a host: the frontier waits for it and for no other, so it is always sent.

        `robots` None disallows all, for the reason in `failure`.
        """
        event = msgspec.structs.replace(
            self.event("resolved"), url=f"{self.request.host}/robots.txt", addresses=(address,) if address else (), robots=robots
        )
        if failure is None:
            return [event]
        wait = max(0, min(failure.wait, LONGEST_WAIT))
        reason = bounded(failure.reason)
        return [msgspec.structs.replace(event, reason=reason, retryable=failure.retryable, wait=wait, status=failure.status)]
