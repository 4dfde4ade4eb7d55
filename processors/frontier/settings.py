"""Settings of the frontier, as the stage is made with them."""

from __future__ import annotations

from typing import Literal

import msgspec

Sitemaps = Literal["auto", "yes", "no"]
Lastmod = Literal["auto", "trust", "ignore"]

DAY = 86_400_000


class FrontierSettings(msgspec.Struct, frozen=True):
    """Settings of the frontier; times in ms."""

    agent: str = "Harvest"
    rules: str = ""
    """Fingerprint of the essence rules in force: a URL with another fingerprint is next requested unconditionally."""
    credit: int = 8
    """Maximum number of outstanding requests for one host."""
    tries: int = 3
    backoff: int = 2_000
    patience: int = 60_000
    """A retry that would wait longer than this is left to the next run."""
    robots_ttl: int = DAY
    pause: int = 0
    """Pause of the fetch edge between two requests for a host, in ms (`fetch.pause`)."""
    edge_patience: int = 10_000
    """Longest wait for a host at the fetch edge, in ms (`fetch.patience`)."""
    doubt: bool = True
    """Whether removals that look like an unmounted disk or a broken server are held; see `doubt.py`."""
    doubt_share: float = 0.5
    """Share of its objects that a root may lose in one run, if it has at least `doubt_least`."""
    doubt_least: int = 20
    variants: int = 500
    """Maximum number of queries of one path of a host, where a root's plan states no other; 0: no limit."""
    partitions: int = 1
    """Partitions of the frontier, over which the folders of a root are spread."""
    sitemaps: Sitemaps = "auto"
    """Which sitemaps of a root's server are read: `auto` those that its robots.txt names, `yes` /sitemap.xml too, `no` none."""
    lastmod: Lastmod = "auto"
    """Whether an equal mark of a listing saves a request: `auto` while samples confirm it, `trust`, `ignore`."""
    feeds: bool = False
    """Whether feeds that pages name are read as listings."""
    part: int = 5_000
    """URLs of a root that one event requests at most when a run begins; further ones follow with ticks."""
    paused: tuple[str, ...] = ()
    """URLs of paused roots: URLs that only these ask for are not refreshed."""
    price: int | None = None
    """Time for which a further request must keep a page current; None: a share of its refresh. See `change_rate.py`."""
    refresh_min: int = DAY // 4
    """Shortest time between two refreshes of a page; the longest is that of its root."""
    whole_every: int = 28 * DAY
    """Time from a whole answer for a part of another Gatherer's database to the next one; see `visits.py`."""
    confirm: int | None = None
    """Time from a fetch or confirmation to the next confirmation that goes on to the catalog, in ms; None: none does."""
