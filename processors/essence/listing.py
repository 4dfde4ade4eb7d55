"""Events for the frontier about the entries of folders and the links of pages, limited in links and bytes, in a fixed order.

The children of a listing are sorted by the digest of their URL and sent in slices that together cover all digests, so that a
child that is in no slice is known to be gone (schemas/Span.avsc).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from processors import identity
from processors.essence.listings.gopher import ParsedMenu
from processors.essence.listings.listing_format import Coverage, ParsedListing
from processors.essence.selection import Selection, select
from processors.urls import canonical
from schemas.records import MAX_LINKS, CrawlEvent, Entry, FetchedObject, Link, Listing, Span

LOW, HIGH = b"", b"\xff" * 16
PLAIN = frozenset(("file", "folder", "symlink"))
"""Kinds of entries that can be selected; sockets, pipes and devices cannot."""
MAX_BYTES = 400_000
"""Maximum number of characters in the links of one event: Kafka in its default configuration refuses messages of more than 1 MB."""

MAX_TEXT = 200
"""Characters of the text of a link (schemas/Link.avsc)."""


def chunks(links: Iterable[Link]) -> Iterator[tuple[Link, ...]]:
    """Split links into the slices that fit into one event each."""
    chunk: list[Link] = []
    size = 0
    for link in links:
        more = len(link.url) + len(link.text) + len(link.mark)
        if chunk and (len(chunk) == MAX_LINKS or size + more > MAX_BYTES):
            yield tuple(chunk)
            chunk, size = [], 0
        chunk.append(link)
        size += more
    if chunk:
        yield tuple(chunk)


def _child(folder: bytes, entry: Entry) -> Link:
    url = identity.file_url(folder + entry.name, folder=entry.kind == "folder")
    return Link(url=url, kind=entry.kind, size=entry.size, mtime=entry.mtime, inode=entry.inode, ctime=entry.ctime)


def children(obj: FetchedObject, listing: Listing, settings: Selection) -> Iterator[CrawlEvent]:
    """Yield the events of a listed folder: its selected entries in slices, then the entries that are not selected.

    Raises ValueError if the URL is not that of a folder, or if a name is impossible in a folder.
    """
    folder = identity.file_path(obj.url)
    if not folder.endswith(b"/") or any(e.name in (b"", b".", b"..") or b"/" in e.name or b"\0" in e.name for e in listing.entries):
        raise ValueError("not the listing of a folder")
    plain = ((e.name, e.kind == "folder") for e in listing.entries if e.kind in PLAIN)
    rules = dict(select(plain, settings)) | {e.name: "special-file" for e in listing.entries if e.kind not in PLAIN}
    for event in slices(obj, [_child(folder, e) for e in listing.entries if e.name not in rules]):
        yield replace(event, device=listing.device, inode=listing.inode)
    for rule in sorted(set(rules.values())):
        dropped = sorted((_child(folder, e) for e in listing.entries if rules.get(e.name) == rule), key=_digest)
        yield from refused(obj, obj.url, dropped, rule)


def _digest(link: Link) -> bytes:
    return identity.url_digest(link.url)


def slices(obj: FetchedObject, links: Sequence[Link]) -> Iterator[CrawlEvent]:
    """Yield the `discovered` events that together cover a whole listing; at least one."""
    low = LOW
    parts = list(chunks(sorted(links, key=_digest))) or [()]
    for number, part in enumerate(parts, 1):
        high = HIGH if number == len(parts) else _digest(part[-1])
        yield _discovered(obj, obj.url, part, Span(low=low, high=high))
        low = high


def listed(obj: FetchedObject, parsed: ParsedListing) -> Iterator[CrawlEvent]:
    """Yield the `discovered` events of a listing from the network: for each host slices that together cover its children.

    Its own host has at least one, so that the loss of all children there is noticed. A listing that was not read to its end rolls
    on: what is missing proves nothing.
    """
    own = identity.frontier_key(obj.url)
    hosts: dict[str, dict[str, Link]] = {own: {}}
    for child in parsed.children:
        link = Link(url=child.url, kind=child.kind, text=child.text[:MAX_TEXT], mark=child.mark)
        hosts.setdefault(identity.frontier_key(child.url), {}).setdefault(child.url, link)
    coverage = parsed.coverage if parsed.whole else "rolling"
    for host, links in hosts.items():
        yield from covered(obj, host, tuple(links.values()), coverage)
    rules: dict[tuple[str, str], list[Link]] = {}
    for url, rule in parsed.refused if isinstance(parsed, ParsedMenu) else ():
        rules.setdefault((identity.frontier_key(url), rule), []).append(Link(url=url))
    for (host, rule), dropped in rules.items():
        yield from refused(obj, host, dropped, rule)


def covered(obj: FetchedObject, host: str, links: Sequence[Link], coverage: Coverage) -> Iterator[CrawlEvent]:
    """Yield the slices of a listing from the network for one host; at least one."""
    for event in slices(obj, links):
        yield replace(event, host=host, coverage=coverage)


def _discovered(obj: FetchedObject, host: str, links: tuple[Link, ...], span: Span | None = None) -> CrawlEvent:
    return CrawlEvent(
        kind="discovered",
        host=host,
        time=obj.time,
        url=obj.url,
        version=obj.version,
        depth=obj.depth,
        root=obj.root,
        links=links,
        span=span,
    )


def refused(obj: FetchedObject, host: str, links: Iterable[Link], rule: str) -> Iterator[CrawlEvent]:
    """Yield `refused` events for links that a rule did not select. They answer no request, so they carry no version."""
    for part in chunks(links):
        yield CrawlEvent(
            kind="refused", host=host, time=obj.time, url=obj.url, depth=obj.depth, root=obj.root, links=part, reason=rule
        )


def references(obj: FetchedObject, links: Iterable[Link]) -> Iterator[CrawlEvent]:
    """Yield `discovered` events for the links of a page: each target once, grouped by host in the order of first occurrence."""
    hosts: dict[str, dict[str, Link]] = {}
    for link in links:
        url = canonical(link.url, obj.url)
        if url and url != obj.url:
            found = Link(url=url, kind=link.kind, text=link.text)
            hosts.setdefault(identity.frontier_key(url), {}).setdefault(url, found)
    for host, targets in hosts.items():
        for part in chunks(targets.values()):
            yield _discovered(obj, host, part)
