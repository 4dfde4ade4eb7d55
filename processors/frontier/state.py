"""What the frontier knows: of a URL, of a host, of the time. A row holds one of these; where they stand says `rows.py`."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from schemas.records import Link, LinkKind, Validators

State = Literal["queued", "asked", "waiting", "ok", "failed", "refused", "gone"]


class _Row(msgspec.Struct, frozen=True, array_like=True):
    def but(self, **changes: Any) -> Any:
        return msgspec.structs.replace(self, **changes)


class Known(_Row, frozen=True, array_like=True):
    """What is known of one URL."""

    url: str
    kind: LinkKind
    depth: int
    roots: tuple[str, ...]
    """URLs of the roots that ask for it."""
    state: State = "queued"
    run: str = ""
    """The last run that asked."""
    version: int = 0
    origin: int = 0
    """Offset of the event that caused the last request, below 0 for ticks."""
    validators: Validators | None = None
    confirmed: int = 0
    """ms since the epoch: the last time that it was seen to be there."""
    tries: int = 0
    rules: str = ""
    due: int = 0
    """ms since the epoch of its row in `w|`; 0: none."""
    listing: bool = False
    whole: bool = False
    """The next request is unconditional."""
    moves: int = 0
    """Redirects in a row that led to it."""
    moved: bool = False
    """Gone, since it moved: until it is forgotten it counts for its roots, or a server could move for ever within any limit."""
    since: int = 0
    """ms since the epoch: since when its source says that it is not there."""
    trail: tuple[str, ...] = ()
    """The longest way of redirects that led to it in this run."""

    @property
    def lasts(self) -> bool:
        """Whether it is asked for again after it was gone: no listing will say that it is back."""
        return self.kind == "page" or not self.depth

    @property
    def counts(self) -> bool:
        """Whether it is one of the URLs of its roots."""
        return self.state != "gone" or self.moved

    def same_file(self, link: Link) -> bool:
        """Whether a listing says of it what fstat said when it was fetched."""
        v = self.validators
        return v is not None and link.size >= 0 and (v.size, v.mtime, v.inode) == (link.size, link.mtime, link.inode)


class Host(_Row, frozen=True, array_like=True):
    """What is known of one host (scheme, name and port)."""

    robots: bytes = b""
    robots_until: int = 0
    """ms since the epoch; RFC 9309, 2.4: at most 24 hours."""
    address: str = ""
    delay: int = -1
    """Crawl-delay in ms; -1: none."""
    flying: tuple[bytes, ...] = ()
    """Digests of the URLs that are being fetched."""
    next_allowed: int = 0
    asking: int = 0
    """Version of the resolve request on its way; 0: none."""
    asked: int = 0
    """Origin of that request."""
    tries: int = 0
    failures: int = 0
    """Answers in a row that failed and may pass."""


class Clock(_Row, frozen=True, array_like=True):
    """What moves with every event."""

    seen: int = 0
    """ms since the epoch: the partition's time."""
    minted: int = 0
    """The last version."""
    ending: int = -1
    """Offset of the last event that ended a URL; -1: all that events ended is delivered."""
