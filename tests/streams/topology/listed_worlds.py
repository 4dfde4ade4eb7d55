"""Worlds with listings from the network for the simulator: what they list, and the edges that read them."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from msgspec.structs import replace

from processors.essence import listing
from processors.essence.listings.listing_format import Coverage, ListedChild, ParsedListing
from processors.frontier.listed_rows import PREFIX
from processors.frontier.rows import Table
from processors.frontier.settings import FrontierSettings
from processors.identity import frontier_key
from schemas.records import FetchedObject, FetchRequest, Record
from streams.simulator import Simulator
from streams.topology.flow import TopologySettings, topology
from tests.streams.topology.conftest import fetcher, plain_essence

if TYPE_CHECKING:
    from tests.streams.topology.conftest import World

HEAD = "LIST"


@dataclass
class Site:
    """Pages with a version each, and listings that state it."""

    world: World
    coverage: Coverage = "open"
    lists: dict[str, list[str]] = field(default_factory=dict)
    """Children by the URL of each listing; a child that is a listing too has an entry of its own."""
    versions: dict[str, int] = field(default_factory=dict)
    lying: bool = False
    """Whether all marks stay as they were."""
    asked: Counter[str] = field(default_factory=Counter)
    """Requests by URL."""

    def page(self, url: str) -> None:
        """Write a page, or change it."""
        self.versions[url] = self.versions.get(url, 0) + 1
        self.world.pages[url] = (f"{url} {self.versions[url]}", ())

    def body(self, url: str) -> bytes:
        """Return the body of a page or listing."""
        text, links = self.world.pages[url]
        return (text + "\n" + "\n".join(links)).encode()

    def write_lists(self) -> None:
        """Write the listings as they are now."""
        for url, children in self.lists.items():
            lines = (f"{child} {0 if self.lying else self.versions.get(child, '')}" for child in children)
            self.world.pages[url] = (f"{HEAD} {self.coverage}", tuple(lines))

    def fetch(self, request: FetchRequest, now: int) -> list[Record]:
        """Answer a request."""
        self.asked[request.url] += 1
        found = fetcher(self.world)(request, now)
        return [replace(r, as_listing=request.as_listing) if isinstance(r, FetchedObject) else r for r in found]

    def essence(self, obj: FetchedObject) -> list[Record]:
        """Summarize an object; a listing gives its children too."""
        if obj.outcome == "fetched" and (obj.body or b"").startswith(HEAD.encode()):
            head, *lines = (obj.body or b"").decode().split("\n")
            named = (line.split(" ") for line in lines if line)
            children = (ListedChild(url, "listing" if url in self.lists else "page", mark) for url, mark in named)
            coverage: Coverage = head.split(" ")[1]  # type: ignore[assignment]
            *summaries, end = plain_essence(replace(obj, body=b""))
            body = obj.body or b""
            summaries = [replace(s, attributes={"text": (body[:40].hex(),)}) for s in summaries]
            return [*summaries, *listing.listed(obj, ParsedListing(tuple(children), coverage)), end]
        made = plain_essence(obj)
        if obj.outcome in ("gone", "expired") and obj.as_listing:
            made = [*listing.covered(obj, frontier_key(obj.url), (), self.coverage), *made]
        return made

    def simulator(self, partitions: int, rng: random.Random, **settings: object) -> Simulator:
        """Return a simulator of this site."""
        decided = TopologySettings(frontier=FrontierSettings(**settings))  # type: ignore[arg-type]
        return Simulator(topology(decided), partitions, rng.randrange, self.fetch, self.essence)


def check_rows(simulator: Simulator) -> None:
    """Check that the rows by listing are exactly those that can be derived from the rows of the URLs."""
    for rows in simulator.rows("frontier"):
        table = Table(rows)
        derived = set()
        for host, digest, known in table.all():
            assert len(set(known.listed_in)) == len(known.listed_in)
            derived |= {PREFIX + host.encode() + b"\0" + each + b"\0" + digest for each in known.listed_in}
        assert {key for key, _ in rows.scan(PREFIX)} == derived
