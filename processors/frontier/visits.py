"""Visits of a URL, as its row counts them: how many answers were compared with the one before, and how many of them differed.

Laws:
- A visit is the first answer to a request. A redelivered answer counts nothing, nor does one of which the body before is unknown.
- An answer with the same body is no change, however it was found: by status 304, or by its MD5 after an unconditional request.
- A URL that was gone, or is new, begins anew. A file has no visits: the listing of its folder tells whether it has changed.

A part of another Gatherer's database is answered by changes alone, as long as its row has the time of a whole answer:
- It is requested as a whole where that time is unknown, and once it is `FrontierSettings.whole_every` ago: no error lasts for
  longer, and a log that retains records for twice as long has a whole stream of each part.
- A second, different answer to one request makes the time unknown: in which order their records arrive elsewhere is unknown.
"""

from __future__ import annotations

from processors.collector import CHANGED, is_part
from processors.frontier.change_rate import change_rate, refresh_interval
from processors.frontier.state import UrlState
from processors.schemes import scheme_of
from schemas.records import CrawlEvent, Root, Validators

SHARE = 4
"""The price of a request where none is stated, as a part of the longest interval: so there are about as many requests as at that
interval, of which more keep a page current (`tests/bench/refresh.py`).
"""


def usual_price(longest: int) -> int:
    """Return the price of a request, in the unit of the longest interval, where none is stated."""
    return longest // SHARE


def visited(known: UrlState, event: CrawlEvent, now: int) -> UrlState:
    """Return the row with an answer counted, of kind `fetched` or `unchanged`; `known`: the row as the request left it."""
    if not scheme_of(known.url).paced:
        return known
    row: UrlState = known.but(digest="")
    if not known.first or not known.confirmed:
        row = row.but(visits=0, changes=0, first=now)
    elif known.state == "asked" and (changed := _has_changed(known, event)) is not None:
        row = row.but(visits=known.visits + 1, changes=known.changes + changed)
    return row


def next_visit(known: UrlState, price: int, shortest: int, longest: int) -> int:
    """Return the time in ms from the last answer to the next request; `price` as in `change_rate.py`, all in ms."""
    rate = change_rate(known.visits, known.changes, known.first, known.confirmed)
    return round(refresh_interval(rate, price, shortest, longest))


def keep_digest(known: UrlState, sent: Validators | None) -> UrlState:
    """Return the row with the MD5 of the last body, if the request that is about to be `sent` drops its validators."""
    if sent is not None or known.validators is None or not scheme_of(known.url).paced:
        return known
    row: UrlState = known.but(digest=known.validators.md5)
    return row


def needs_whole(known: UrlState, root: Root, now: int, every: int) -> bool:
    """Return whether a part of another Gatherer's database is to be requested as a whole; `every`: in ms, as in the settings."""
    return is_part(root.url, known.url) and (not known.whole_at or now > known.whole_at + every)


def answered_whole(known: UrlState, event: CrawlEvent, now: int) -> int:
    """Return the time of the last whole answer with an answer noted, of kind `fetched` or `unchanged`; see `UrlState.whole_at`."""
    if event.kind == "unchanged":
        return known.whole_at
    if event.root is None or not is_part(event.root.url, known.url):
        return 0
    if known.state == "ok" and known.validators != event.validators:
        return 0
    return known.whole_at if event.status == CHANGED else now


def needs_confirmation(known: UrlState, now: int, every: int | None) -> bool:
    """Return whether what is downstream is to know again that a URL is unchanged; `every`: `FrontierSettings.confirm`."""
    return every is not None and now >= known.passed + every


def _has_changed(known: UrlState, event: CrawlEvent) -> bool | None:
    """Return whether the body differs from the one before; None if that one is unknown."""
    before = known.validators.md5 if known.validators else known.digest
    if event.kind == "unchanged":
        return False
    if before and event.validators and event.validators.md5:
        return before != event.validators.md5
    return True if known.validators else None
