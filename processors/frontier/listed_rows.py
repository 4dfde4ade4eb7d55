"""Typed access to the rows `m|`: which URLs of a host each listing from the network had.

A row `m|host NUL listing-digest NUL url-digest` has no value. All are derived from `UrlState.listed_in`, and written after the row
of the URL. A row that is left over from a crash names a URL whose `listed_in` lacks the listing: it is deleted when found.
"""

from __future__ import annotations

from collections.abc import Iterable

from processors.frontier.state import UrlState
from schemas.ports import Rows

PREFIX = b"m|"
DIGEST = 16
MAX_LISTED_IN = 8
"""Listings of one URL that are recorded, so that its row stays small; leaving a further one is not noticed."""


class ListedRows:
    """The rows `m|` of one partition."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows

    def put(self, host: str, digest: bytes, listings: Iterable[bytes]) -> None:
        """Record the listings that have a URL."""
        for listing in listings:
            self.rows.put(_listing(host, listing) + digest, b"")

    def delete(self, host: str, digest: bytes, listings: Iterable[bytes]) -> None:
        """Delete the records of listings that had a URL."""
        for listing in listings:
            self.rows.delete(_listing(host, listing) + digest)

    def between(self, host: str, listing: bytes, low: bytes, high: bytes) -> list[bytes]:
        """Return the digests of the URLs of a host that a listing had, with low < digest <= high, in order."""
        prefix = _listing(host, listing)
        found = []
        for key, _ in self.rows.scan(prefix, after=prefix + low if low else b""):
            if key[-DIGEST:] > high:
                break
            found.append(key[-DIGEST:])
        return found


def with_listing(known: UrlState, listing: bytes) -> UrlState:
    """Return the row of a URL that a listing has; unchanged if it is recorded, or if there are too many."""
    if listing in known.listed_in or len(known.listed_in) >= MAX_LISTED_IN:
        return known
    listed: UrlState = known.but(listed_in=(*known.listed_in, listing))
    return listed


def without_listing(known: UrlState, listing: bytes) -> UrlState:
    """Return the row of a URL that a listing has no more; a mark of that listing is dropped."""
    left = tuple(each for each in known.listed_in if each != listing)
    own = known.mark_of == listing
    rest: UrlState = known.but(listed_in=left, mark="" if own else known.mark, mark_of=b"" if own else known.mark_of)
    return rest


def _listing(host: str, listing: bytes) -> bytes:
    return PREFIX + host.encode() + b"\0" + listing + b"\0"
