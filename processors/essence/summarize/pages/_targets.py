"""Which elements of a page lead to other documents: links, frames, embedded documents, further pages, feeds."""

from __future__ import annotations

from collections.abc import Mapping

TARGETS = {"a": "href", "area": "href", "frame": "src", "iframe": "src", "embed": "src", "object": "data"}
"""The attribute with the reference, by element."""
_FEEDS = frozenset(("application/rss+xml", "application/atom+xml", "application/feed+json", "application/rdf+xml"))
"""Types of alternates that list further pages (HTML, 4.6.7.1; JSON Feed 1.1)."""


def relations(attributes: Mapping[str, str | None]) -> list[str]:
    """Return the types of a link, in lower case (HTML, 4.6.7)."""
    return (attributes.get("rel") or "").lower().split()


def is_followed(attributes: Mapping[str, str | None]) -> bool:
    """Return whether a link element leads to the next page, or to a feed of pages."""
    return "next" in relations(attributes) or is_feed(attributes)


def is_feed(attributes: Mapping[str, str | None]) -> bool:
    """Return whether a link element leads to a feed."""
    media = (attributes.get("type") or "").partition(";")[0].strip().lower()
    return media in _FEEDS and "alternate" in relations(attributes)
