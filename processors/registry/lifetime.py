"""Event handlers of the frontier for registrations: taken, renewed, withdrawn, and expired when they are not renewed (law 4).

A registration has a row like any URL, in the state "registered", which is due when its time-to-live is over. No root asks for it.

Laws:
- A registration requests nothing: its object is the body of the event, under a version that is minted here.
- A redelivered event sends its object again, with its version and time; the row names the event. A row that a later event has
  written already is written anew, as that later event will be: it is redelivered too.
- One that has lapsed by the time of the partition when it is read changes nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from processors.frontier.requests import Output, RequestScheduler
from processors.frontier.state import UrlState
from processors.identity import url_digest
from processors.registry.template import MEDIA
from schemas.records import CrawlEvent, FetchedObject, Root

REGISTERED = "registered"
"""State of the row of a registration."""


class RegistrationHandlers(RequestScheduler):
    """Handlers of `registered` and `deregistered`."""

    def registered(self, event: CrawlEvent) -> Iterator[Output]:
        """Take a registration, or renew it."""
        root, body = event.root, event.body
        if root is None or body is None:
            raise ValueError("registered without a root and a body")
        due = event.time + root.ttl * 1000
        digest = url_digest(event.url)
        known = self.table.get(event.host, digest)
        if known is None or known.origin != self.origin:
            if due <= self.now:
                return
            before = known.version if known is not None else 0
            known = (known or UrlState(event.url, "unknown", 0, ())).but(
                state=REGISTERED, version=max(self.table.mint(self.now), before + 1), origin=self.origin, confirmed=self.now
            )
            self.table.schedule(event.host, digest, known, due)
        yield _object(known, root, body)

    def deregistered(self, event: CrawlEvent) -> Iterator[Output]:
        """End a registration that its server has withdrawn."""
        digest = url_digest(event.url)
        known = self.table.get(event.host, digest)
        if known is not None and known.state == REGISTERED and (event.host, digest) not in self.ended_before:
            yield from self.end(event.host, digest, known, "gone", "withdrawn")

    def lapse(self, host: str, digest: bytes, known: UrlState) -> Iterator[Output]:
        """End a registration that was not renewed."""
        if known.due <= self.now:
            yield from self.end(host, digest, known, "expired", "past its time-to-live")


def _object(known: UrlState, root: Root, body: bytes) -> FetchedObject:
    return FetchedObject(
        url=known.url,
        version=known.version,
        time=known.confirmed,
        outcome="fetched",
        root=root,
        body=body,
        size=len(body),
        md5=hashlib.md5(body, usedforsecurity=False).hexdigest(),
        sha256=hashlib.sha256(body).hexdigest(),
        content_type=MEDIA,
    )
