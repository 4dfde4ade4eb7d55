"""Feeds: RSS 0.9x to 2.0, RSS 1.0 (RDF), Atom (RFC 4287) and Atom 0.3.

Laws:
- A feed rolls on: an entry that is missing is only older. So damage loses nothing, and is read over.
- An entry's address is its link (Atom: `alternate`, RFC 4287, 4.2.7.2), else an identifier that is a permanent link. Relative ones
  are resolved by `xml:base`, else by the URL of the feed. Enclosures are no children.
- The mark of an entry is the time of its last change as written, else that of its publication; without either it has none.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from lxml import etree

from processors.essence.formats.text import squeeze
from processors.essence.formats.xml import attribute, local
from processors.essence.listings._elements import PIECE, ListingError, elements, opened, root_pattern, text_of
from processors.essence.listings.listing_format import MAX_CHILDREN, ListedChild, ParsedListing
from processors.urls import canonical

MAX_MARK, MAX_TITLE = 100, 200
_ROOT = root_pattern("rss|feed|RDF")
_ENTRIES = frozenset(("item", "entry"))
_TIMES = ("updated", "modified", "published", "pubDate", "date", "issued")
"""Elements with a time, those of the last change first."""
_BASE = "{http://www.w3.org/XML/1998/namespace}base"


def is_feed(head: bytes) -> bool:
    """Return whether a document begins as a feed; RDF is one only with the vocabulary of RSS."""
    text = text_of(head)
    found = _ROOT.match(text)
    if found is None:
        return False
    return not found[0].rstrip(" \t\r\n>/").endswith("RDF") or "purl.org/rss/" in text or "my.netscape.com/rdf" in text


def parse(body: BinaryIO, url: str) -> ParsedListing:
    """Return the entries of a feed. Raises ValueError if it is none."""
    body.seek(0)
    if not is_feed(body.read(PIECE)):
        raise ValueError("not a feed")
    found: dict[str, ListedChild] = {}
    reason = ""
    try:
        for root, entry in elements(opened(body), _ENTRIES, recover=True):
            child = _child(root, entry, url)
            if child is not None and child.url != url:
                found.setdefault(child.url, child)
            if len(found) >= MAX_CHILDREN:
                raise ListingError(f"more than {MAX_CHILDREN:,} children")
    except ListingError as error:
        reason = str(error)
    return ParsedListing(tuple(found.values()), "rolling", whole=not reason, reason=reason)


def _child(root: etree._Element, entry: etree._Element, url: str) -> ListedChild | None:
    base = canonical(entry.get(_BASE) or root.get(_BASE) or "", url) or url
    target = next((found for link in _links(entry) if (found := canonical(link, base)) is not None), None)
    if target is None:
        return None
    times = {local(child): (child.text or "").strip() for child in entry.iterchildren("*", reversed=True)}
    mark = next((times[name] for name in _TIMES if times.get(name)), "")
    title = next((each for each in entry.iterchildren("*") if local(each) == "title"), None)
    text = squeeze("".join(map(str, title.itertext()))[: 4 * MAX_TITLE])[:MAX_TITLE] if title is not None else ""
    return ListedChild(target, "page", mark if len(mark) <= MAX_MARK else "", text)


def _links(entry: etree._Element) -> Iterator[str]:
    """Yield the addresses of an entry, the best first."""
    inner = list(entry.iterchildren("*"))
    for link in (each for each in inner if local(each) == "link"):
        href = link.get("href")
        if href and (link.get("rel") or "alternate") == "alternate":
            yield href.strip()
        elif not href and (link.text or "").strip():
            yield (link.text or "").strip()
    for each in inner:
        if local(each) == "guid" and (each.get("isPermaLink") or "true").lower() == "true" and "://" in (each.text or ""):
            yield (each.text or "").strip()
    if about := attribute(entry, "about"):
        yield about
