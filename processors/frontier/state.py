"""Values of the frontier's rows: state of a URL, of a host, and the clock. Their keys: `rows.py`."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from schemas.records import Link, LinkKind, Validators

State = Literal["queued", "asked", "waiting", "ok", "failed", "refused", "gone", "registered"]


class _Row(msgspec.Struct, frozen=True, array_like=True):
    def but(self, **changes: Any) -> Any:
        return msgspec.structs.replace(self, **changes)


class UrlState(_Row, frozen=True, array_like=True):
    """State of one URL."""

    url: str
    kind: LinkKind
    depth: int
    roots: tuple[str, ...]
    """URLs of the roots that ask for it."""
    state: State = "queued"
    run: str = ""
    """The last run that requested it."""
    version: int = 0
    origin: int = 0
    """Offset of the event that caused the last request, below 0 for ticks."""
    validators: Validators | None = None
    confirmed: int = 0
    """Time in ms since the epoch when the URL was last confirmed to exist."""
    tries: int = 0
    rules: str = ""
    due: int = 0
    """Due time in ms since the epoch, as in its row `w|`; 0: none."""
    listing: bool = False
    whole: bool = False
    """Whether the next request is unconditional."""
    moves: int = 0
    """Redirects in a row that led to it."""
    moved: bool = False
    """Gone by a redirect. It counts for its roots until forgotten: otherwise a server could redirect for ever within any limit."""
    since: int = 0
    """Time in ms since the epoch since when the source has reported it as missing."""
    trail: tuple[str, ...] = ()
    """URLs of the longest chain of redirects that led to it in this run."""
    missing: int = 0
    """Time in ms since the epoch since when it is missing without having been removed; 0: it is not."""
    held: bool = False
    """Whether its removal is in doubt."""
    mark: str = ""
    """What a listing stated of its version at or before the last request, such as lastmod; "": nothing. See `listed.py`."""
    mark_of: bytes = b""
    """Digest of the listing that stated it."""
    listed_in: tuple[bytes, ...] = ()
    """Digests of the listings from the network that have it, as in its rows `m|`; of those that roll on (feeds), none."""
    probed: bool = False
    """Whether it is requested although its mark is the same, to verify the marks of its host."""
    visits: int = 0
    """Answers that were compared with the one before; with the next two the data of `change_rate.py`."""
    changes: int = 0
    """Those of them that had another body."""
    first: int = 0
    """Time in ms since the epoch of the answer that the first of them was compared with; 0: none yet."""
    digest: str = ""
    """MD5 of the last body while `validators` are dropped for an unconditional request."""
    exempt: bool = False
    """Whether no rule rewrites it, since its rewritten form redirects to it."""
    whole_at: int = 0
    """Time in ms since the epoch of the last whole answer for a part of another Gatherer's database; 0: unknown, or none."""
    pending: bool = False
    """Whether the mark was stated after the last request: it counts from the next request on."""
    left_mark: str = ""
    """The mark that counted until its listing had it no more, while a request is queued: another listing may state it."""
    passed: int = 0
    """Time in ms since the epoch of the last fetch or confirmation that went on to the catalog; 0: unknown. See `confirming.py`."""
    passed_by: int = 0
    """Offset + 1 of the event that caused that confirmation; 0: it was a fetch."""
    again: bool = False
    """Whether it changed while a request was in flight, and is requested once more when that is answered: see `changes.py`."""

    @property
    def lasts(self) -> bool:
        """Whether it is requested again once gone, because no listing would report its return."""
        return self.kind in ("page", "listing") or not self.depth

    @property
    def counts(self) -> bool:
        """Whether it counts towards the limits of its roots."""
        return self.state != "gone" or self.moved

    def same_file(self, link: Link) -> bool:
        """Return whether a listing's size, times and inode equal those of fstat at the last fetch."""
        return self.validators is not None and link.size >= 0 and self.validators.same_file(link)

    def with_ctime(self, link: Link) -> UrlState:
        """Return this state with the ctime of an unchanged child's listing, where that of the last fetch is unknown."""
        if self.validators is None or self.validators.ctime > 0 or link.ctime <= 0:
            return self
        known: UrlState = self.but(validators=msgspec.structs.replace(self.validators, ctime=link.ctime))
        return known


class HostState(_Row, frozen=True, array_like=True):
    """State of one host (scheme, name and port)."""

    robots: bytes = b""
    """robots.txt in rows of an earlier version; since then in a row of its own."""
    robots_until: int = 0
    """Expiry of robots.txt in ms since the epoch; RFC 9309, 2.4: at most 24 hours."""
    address: str = ""
    delay: int = -1
    """Crawl-delay in ms; -1: none."""
    flying: tuple[bytes, ...] = ()
    """Digests of the URLs in flight."""
    next_allowed: int = 0
    asking: int = 0
    """Version of the resolve request in flight; 0: none."""
    asked: int = 0
    """Origin of that request."""
    tries: int = 0
    failures: int = 0
    """Transient failures in a row."""
    device: int = 0
    inode: int = 0
    """Device number and inode of a folder, as of its last listing that was not in doubt; 0: unknown."""
    marks_until: int = 0
    """Time in ms since the epoch until when marks of listings do not count, since one was wrong; 0: they do."""
    slowed: int = 0
    """Pause in ms because of overload; 0: none. See `politeness.py`."""
    slowed_at: int = 0
    """The last version of any request when that pause last doubled."""
    usual: int = 0
    """Usual time in ms from a request to the header of its answer; 0: unknown."""
    opens: int = 0
    """Time in ms since the epoch at which the hours of the next URL's roots begin; 0: it is not waited for."""
    suspects: tuple[bytes, ...] = ()
    """Digests of URLs that had changed or were gone under an equal mark, until a listing states it; see `listed.py`."""
    suspected: str = ""
    """The run that found them: in it, marks count in spite of `marks_until`."""
    slow: int = 0
    """Slow answers in a row."""
    rests: int = 0
    """Time in ms since the epoch until when its pause, if the edge would not wait for so long, keeps it from requests."""
    begun: str = ""
    """The run in which a look-up that an earlier run had left pending was dropped, or would have been."""


class Budget(_Row, frozen=True, array_like=True):
    """Share of this partition in a root's limit of URLs: its latest claim, and the credits granted to it; see `budget.py`."""

    home: bool = False
    """Whether this is the partition of the root's own key, which grants the credits."""
    awaited: int = 0
    """Home: number of partitions that must have reported before a credit is granted; 0: none, -1: unknown until the next run."""
    granted: int = 0
    """Credits of this partition; home has none, since it counts what the others leave."""
    claim: int = 0
    """Version of the latest claim; 0: none yet."""
    pending: bool = False
    """Whether that claim has no answer yet."""
    until: int = -1
    """Offset of the last event whose URLs the claim covers."""
    origin: int = -1
    """Offset of the event that caused the claim."""
    used: int = 0
    credits: int = 0
    """As the claim states them."""
    settled: int = -1
    """URLs found by events up to this offset were admitted or refused by a grant."""
    settled_at: int = -1
    """Offset of that grant."""
    owes: bool = False
    """Whether home awaits a report, since the root had URLs before it had a limit."""


class Share(_Row, frozen=True, array_like=True):
    """Home's entry for one partition: its latest claim, and the answer."""

    claim: int
    """Version of the claim; 0: none, home itself waits for room."""
    asker: str
    used: int
    credits: int
    granted: int
    answered_at: int = -1
    """Offset of the event at which home answered; -1: not yet."""
    waits: bool = False
    """Whether URLs were refused there, so that it is to be notified of room."""
    noticed_at: int = -1
    """Offset of the event at which home notified it of room."""


class ListingSource(_Row, frozen=True, array_like=True):
    """The listing from the network that has a URL."""

    digest: bytes
    keeps: bool
    """Whether a child that it has no more is removed or requested; False for a listing that rolls on."""
    read: int
    """Time in ms since the epoch when it was fetched."""


class Waiting(_Row, frozen=True, array_like=True):
    """A URL found while its partition had no credit of its root."""

    link: Link
    depth: int
    parent: str
    offset: int
    """Offset of the event that found it."""
    listed: bool = False
    moves: int = 0
    trail: tuple[str, ...] = ()
    source: ListingSource | None = None
    exempt: bool = False


class Losses(_Row, frozen=True, array_like=True):
    """What a root loses in a run, or in a day of it: its URLs in this partition at the first loss, and those removed since."""

    run: str = ""
    base: int = 0
    lost: int = 0
    since: int = 0
    """Time in ms since the epoch of the first loss."""


class Clock(_Row, frozen=True, array_like=True):
    """Clock and version counter of a partition; changes with every event."""

    seen: int = 0
    """Time of the partition in ms since the epoch."""
    minted: int = 0
    """The last version minted."""
    ending: int = -1
    """Offset of the last event that ended a URL; -1: all removals by events are delivered."""
