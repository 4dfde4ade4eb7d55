"""Which format of listing an object has: by its media type where one of our adapters states it, else by its content.

Laws:
- A format of another protocol than HTTP is recognized by the media type of our own that its adapter states. An HTTP server may
  state anything, so its media types do not count.
- An object of HTTP is a sitemap by its root element. A feed, or a text of URLs, is a listing only where one is expected: the root
  itself, or a URL that a robots.txt, a sitemap index or a page names as one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import BinaryIO, NamedTuple

from processors.essence.listings import feed, sitemap
from processors.essence.listings.listing_format import ParsedListing
from processors.schemes import is_web

HEAD = 65_536
"""Bytes of a body by which a format is recognized."""
Parse = Callable[[BinaryIO, str], ParsedListing]


class Format(NamedTuple):
    """A format of listings."""

    name: str
    parse: Parse
    summarized: bool = True
    """Whether the object has a summary too, as a page has; False: it is nothing but a list."""


_STATED = {
    "text/x-harvest-ftp-listing": ("ftp", False),
    "text/x-harvest-gopher-menu": ("gopher", True),
    "text/x-harvest-nntp-overview": ("nntp", False),
}
"""Module of each media type of our own, and whether an object of it has a summary."""


def _load() -> Mapping[str, Format]:
    found = {}
    for media, (name, summarized) in _STATED.items():
        module = f"{__package__}.{name}"
        if find_spec(module) is not None:
            found[media] = Format(name, import_module(module).parse, summarized)
    return found


STATED = _load()
"""Loaded when this module is imported: later, a sandbox may have no file system to import from."""
SITEMAP, FEED = Format("sitemap", sitemap.parse), Format("feed", feed.parse)


def listing_format(url: str, content_type: str, head: bytes, *, expected: bool) -> Format | None:
    """Return the format of an object, None if it is no listing. `head`: its first HEAD bytes; `expected`: see above."""
    if not is_web(url):
        return STATED.get(content_type.partition(";")[0].strip().lower())
    if sitemap.is_sitemap(head) or (expected and sitemap.is_url_list(head)):
        return SITEMAP
    return FEED if expected and feed.is_feed(head) else None
