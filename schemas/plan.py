"""The options of a root, as records: what a file of roots states (`harvest roots apply`)."""

from __future__ import annotations

from schemas.record import Record

NOT_LOCAL = "no such file in its local folder"
"""Reason of a URL that is gone because the folder that it is mapped to does not have its file."""
NO_FOLDER = "its local folder is missing or empty"
"""Reason of a failure to read a mapped URL: a disk is most likely not mounted, so that nothing is gone."""
MAX_PAUSE = 3_600_000
"""Longest pause between two requests to a host in ms: a run waits for it."""


class LocalMap(Record, frozen=True, kw_only=True):
    """A part of a server whose files are read from this machine: the prefix of its URLs, and the `file:` URL of the folder."""

    url: str
    folder: str


class Plan(Record, frozen=True, kw_only=True):
    """The options of one root, as a file of roots states them; None or empty: as the settings say.

    It travels in `seeded` events alone. Times are seconds, except `pause`.
    """

    depth: int | None = None
    urls: int | None = None
    pause: int | None = None
    hours: str = ""
    refresh: int | None = None
    refresh_min: int | None = None
    ttl: int | None = None
    hosts: tuple[str, ...] = ()
    schemes: tuple[str, ...] = ()
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    rewrite: tuple[str, ...] = ()
    map: tuple[LocalMap, ...] = ()
    missing: str = ""
    sitemaps: str = ""
    lastmod: str = ""
    feeds: bool | None = None
    price: int | None = None
    variants: int | None = None
