"""Sitemaps (sitemaps.org, protocol 0.9): an index of sitemaps, a set of URLs, or a text of one URL a line; plain or gzip.

Laws:
- The mark of a child is its `lastmod` as written: equal texts mean an unchanged child, whatever calendar they follow.
- Only `loc` and `lastmod` of an entry itself count, not those of extensions (images, videos) in it.
- A sitemap is an open listing: a URL that is missing may exist all the same. A damaged one gives the children before the damage.
"""

from __future__ import annotations

from typing import BinaryIO

from processors.essence.formats.xml import local
from processors.essence.listings._elements import (
    PIECE,
    ListingError,
    Pieces,
    elements,
    opened,
    root_pattern,
    text_of,
)
from processors.essence.listings.listing_format import MAX_CHILDREN, ChildKind, ListedChild, ParsedListing
from processors.urls import MAX_GIVEN, canonical

MAX_MARK = 100
"""Characters of a `lastmod`; a longer one is none."""
ABSOLUTE = ("http://", "https://")
LINES = 5
"""Lines at the beginning of a text that must be URLs."""
_ROOT = root_pattern("urlset|sitemapindex")
KINDS: dict[str, ChildKind] = {"url": "page", "sitemap": "listing"}
"""Kinds of children by the name of their entry."""


def is_sitemap(head: bytes) -> bool:
    """Return whether a document begins as a sitemap in XML."""
    return _ROOT.match(text_of(head)) is not None


def is_url_list(head: bytes) -> bool:
    """Return whether a document begins with lines that are absolute URLs of the network."""
    lines = [line for line in text_of(head).splitlines()[: LINES + 1] if line.strip()]
    # The last of several lines may be cut off where the head ends.
    return bool(lines) and all(line.strip().lower().startswith(ABSOLUTE) for line in lines[:LINES])


def parse(body: BinaryIO, url: str) -> ParsedListing:
    """Return the children of a sitemap. Raises ValueError if it is none."""
    body.seek(0)
    head = body.read(PIECE)
    known = is_sitemap(head)
    if not known and not is_url_list(head):
        raise ValueError("not a sitemap")
    found: dict[str, ListedChild] = {}
    reason = ""
    try:
        (_read_xml if known else _read_lines)(opened(body), url, found)
    except ListingError as error:
        reason = str(error)
    found.pop(url, None)
    return ParsedListing(tuple(found.values()), "open", whole=not reason, reason=reason)


def _read_xml(pieces: Pieces, url: str, found: dict[str, ListedChild]) -> None:
    for root, entry in elements(pieces, frozenset(KINDS)):
        if entry.getparent() is not root:
            continue
        namespace = str(entry.tag).rpartition("}")[0]
        own = (child for child in entry.iterchildren("*", reversed=True) if str(child.tag).rpartition("}")[0] == namespace)
        values = {local(child): (child.text or "").strip() for child in own}  # of several, the first counts
        _add(found, values.get("loc", ""), url, KINDS[local(entry)], values.get("lastmod", ""))


def _read_lines(pieces: Pieces, url: str, found: dict[str, ListedChild]) -> None:
    rest = b""
    while data := pieces.read(PIECE):
        *lines, rest = (rest + data).splitlines(keepends=True)
        for line in lines:
            _add_line(found, line, url)
        rest = rest[: MAX_GIVEN + 1]
    _add_line(found, rest, url)


def _add_line(found: dict[str, ListedChild], line: bytes, url: str) -> None:
    text = line.decode("utf-8", "replace").removeprefix("\ufeff").strip()
    if text.lower().startswith(ABSOLUTE):
        _add(found, text, url, "page", "")


def _add(found: dict[str, ListedChild], text: str, base: str, kind: ChildKind, mark: str) -> None:
    """Add a child once. Raises ListingError if there are too many."""
    target = canonical(text, base) if text else None
    if target is None or target in found:
        return
    if len(found) >= MAX_CHILDREN:
        raise ListingError(f"more than {MAX_CHILDREN:,} children")
    found[target] = ListedChild(target, kind, mark if len(mark) <= MAX_MARK else "")
