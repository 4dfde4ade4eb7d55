"""Sitemaps that the robots.txt of a root's server names, and feeds that pages name: which are requested as listings.

Laws:
- Only the server that a root is on counts: a sitemap of a server that a page links to would add all of that server.
- The sitemaps are `discovered` events, as links of robots.txt: those on other hosts are in other partitions. A redelivery repeats
  them.
- A feed that a page names is a page unless the root asks for feeds.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import msgspec

from processors.frontier import robots
from processors.frontier.listed import ListedHandlers
from processors.frontier.requests import Output
from processors.frontier.settings import Sitemaps
from processors.identity import frontier_key
from processors.schemes import is_web
from processors.urls import canonical
from schemas.records import MAX_LINKS, CrawlEvent, Link, Root

NAME = "sitemap.xml"
"""The name that is tried where a root asks for it (sitemaps.org, "Sitemap file location")."""


class SitemapHandlers(ListedHandlers):
    """Finds sitemaps and feeds."""

    def sitemaps_of(self, root: Root) -> Sitemaps:
        """Return which sitemaps are read for a root."""
        stated = self.plans.of(root.url).plan.sitemaps
        return cast("Sitemaps", stated) if stated else self.settings.sitemaps

    def feeds_of(self, root: Root) -> bool:
        """Return whether feeds that the pages of a root name are read as listings."""
        feeds = self.plans.of(root.url).plan.feeds
        return self.settings.feeds if feeds is None else feeds

    def links_of(self, event: CrawlEvent, root: Root) -> Iterator[Link]:
        """Yield the links of an event; a feed that a page names is a page unless the root asks for feeds."""
        named = event.moves or event.url == _robots(frontier_key(event.url)) or self.feeds_of(root)
        for link in event.links:
            yield link if named or link.kind != "listing" else msgspec.structs.replace(link, kind="page")

    def find_sitemaps(self, host: str, text: bytes, first: Root | None = None) -> Iterator[Output]:
        """Yield the events for the sitemaps that a robots.txt names, for `first` and all roots on that host."""
        roots = {first.url: first} if first is not None and not self.table.ended(first) else {}
        for key, _ in list(self.table.rows.scan(b"g|" + host.encode() + b"/")):
            root = self.table.root(key[2:].decode())
            if root is not None:
                roots[root.url] = root
        for root in roots.values():
            yield from self.name_sitemaps(host, text, root)

    def known_sitemaps(self, host: str, root: Root) -> Iterator[Output]:
        """Yield the events for the sitemaps of a root whose server has been asked for its robots.txt already."""
        site = self.table.host(host)
        if site.robots_until > self.now:
            yield from self.name_sitemaps(host, self.table.robots(host, site), root)

    def name_sitemaps(self, host: str, text: bytes, root: Root) -> Iterator[Output]:
        """Yield the events for the sitemaps of one root on a host."""
        option = self.sitemaps_of(root)
        if option == "no" or root.depth == 0 or host not in (root.host, frontier_key(root.url)) or not is_web(host):
            return
        urls = [canonical(url, _robots(host)) for url in robots.sitemaps(text)]
        urls += [f"{host}/{NAME}"] if option == "yes" else []
        hosts: dict[str, dict[str, Link]] = {}
        for url in urls:
            if url:
                hosts.setdefault(frontier_key(url), {}).setdefault(url, Link(url=url, kind="listing"))
        for key, found in hosts.items():
            links = tuple(found.values())
            for start in range(0, len(links), MAX_LINKS):
                part = links[start : start + MAX_LINKS]
                yield CrawlEvent(kind="discovered", host=key, time=self.now, url=_robots(host), root=root, links=part)


def _robots(host: str) -> str:
    return f"{host}/robots.txt"
