"""Events for the frontier about the children of an FTP directory, by the rules of selection that apply to a local folder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import BinaryIO
from urllib.parse import unquote_to_bytes

from msgspec.structs import replace

from processors.essence import listing
from processors.essence.listings import ftp
from processors.essence.listings.listing_format import ListedChild
from processors.essence.selection import Selection, select
from processors.identity import frontier_key, url_digest
from schemas.records import CrawlEvent, FetchedObject, Link


def is_directory(obj: FetchedObject, media: str) -> bool:
    """Return whether an object is the listing of an FTP directory; a web server that sends its media type has none."""
    return media == ftp.MEDIA and obj.url.startswith("ftp://")


def children(obj: FetchedObject, body: BinaryIO, settings: Selection) -> tuple[list[CrawlEvent], str]:
    """Return the events of a listing, and why it was not read to its end, if so. Raises ValueError if it is none."""
    found = ftp.parse(body, obj.url)
    rules = _rules(found.children, settings)
    # A child that is not selected is not a child: one that was selected before is removed, as in a local folder.
    selected = replace(found, children=tuple(child for child in found.children if child.url not in rules))
    return [*listing.listed(obj, selected), *_refused(obj, rules)], found.reason


def _rules(found: tuple[ListedChild, ...], settings: Selection) -> Mapping[str, str]:
    """Return the rule by URL of each child that is not selected."""
    urls = {unquote_to_bytes(child.url.rstrip("/").rpartition("/")[2]): child for child in found}
    dropped = select(((name, child.kind == "listing") for name, child in urls.items()), settings)
    return {urls[name].url: rule for name, rule in dict(dropped).items()}


def _refused(obj: FetchedObject, rules: Mapping[str, str]) -> Iterator[CrawlEvent]:
    for rule in sorted(set(rules.values())):
        links = [Link(url=url) for url in sorted(rules, key=url_digest) if rules[url] == rule]
        yield from listing.refused(obj, frontier_key(obj.url), links, rule)
