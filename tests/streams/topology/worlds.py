"""Worlds that change at random, the oracle that walks them, and checks of a simulator's final state."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from processors.frontier.rows import Table
from processors.frontier.state import UrlState
from processors.identity import member_url, oid
from schemas.records import CrawlEvent, Removed, Root, Summary
from streams.simulator import Simulator, rejections

if TYPE_CHECKING:
    from tests.streams.topology.conftest import World

Make = Callable[["World", int, random.Random], Simulator]
Seeded = Callable[..., CrawlEvent]
Found = dict[str, bytes]

TOP = "file:///w/"
SITE = "http://a.test/"


def oracle(world: World, top: str = "", *, anywhere: bool = False) -> Found:
    """Bytes by URL of all that a world has under a folder and on the site; with `anywhere`, on all linked hosts."""
    found: Found = {}
    for name, content in world.files.items():
        if not name.startswith(top):
            continue
        url = TOP + name
        found[url] = world.body(name)
        if isinstance(content, dict):
            for member, data in content.items():
                found[member_url(url, member)] = data
    todo = [SITE] if SITE in world.pages else []
    while todo:
        url = arrived(world, todo.pop())
        if url in found or url not in world.pages or "/private/" in url:
            continue
        found[url] = (world.pages[url][0] + "\n" + "\n".join(world.pages[url][1])).encode()
        todo += [u for u in world.pages[url][1] if anywhere or u.startswith(SITE)]
    return found


def arrived(world: World, url: str) -> str:
    """The final URL of a page that moves; "" in a circle of moves."""
    way: list[str] = []
    while url in world.moves and url not in way:
        way.append(url)
        url = world.moves[url]
    return "" if url in way else url


def circle(world: World, url: str) -> frozenset[str]:
    """The circle of moves that a page leads to; empty if there is none."""
    for _ in world.moves:
        url = world.moves.get(url, url)
    way = {url}
    while (url := world.moves.get(url, url)) not in way:
        way.add(url)
    return frozenset(way if url in world.moves else ())


def frontier(simulator: Simulator) -> dict[str, UrlState]:
    """The states of the frontier's URLs."""
    return {known.url: known for rows in simulator.rows("frontier") for _, _, known in Table(rows).all()}


def check_circles(world: World, simulator: Simulator) -> None:
    """Check that one page of each circle encountered has failed: no page vanishes without a rejection."""
    known = frontier(simulator)
    told = {letter.url for letter in rejections(simulator) if letter.reason == "moved in a circle"}
    for pages in {circle(world, url) for url in world.moves if url in known and SITE in world.pages}:
        failed = [url for url in pages if url in known and known[url].state == "failed"]
        assert not pages or told.intersection(failed), pages


def check_root_index(simulator: Simulator) -> None:
    """Check that the index of the URLs of each root gives what a scan of all URLs gives."""
    for rows in simulator.rows("frontier"):
        table = Table(rows)
        urls = list(table.all())
        for root in {root for _, _, known in urls for root in known.roots}:
            assert list(table.urls_of_root(root)) == [each for each in urls if root in each[2].roots], root


def families(found: Found) -> dict[str, tuple[str, tuple[str, ...], int]]:
    """Role by URL: the OID of the canonical holder, or for that one its first hundred copies by rank and their number."""
    by_content = defaultdict(list)
    for url, body in found.items():
        if body:
            by_content[body].append(url)
    roles: dict[str, tuple[str, tuple[str, ...], int]] = {}
    for urls in by_content.values():
        first, *others = sorted(urls, key=lambda u: ("#" in u, len(u.encode()), u))
        roles[first] = ("", tuple(others[:100]), len(others))
        roles |= {u: (oid("g", first), (), 0) for u in others}
    return roles


def check(simulator: Simulator, found: Found) -> None:
    """Check that the Gatherer's database and the Broker's archive equal the oracle."""
    check_root_index(simulator)
    held = {s.url: s for s in summaries(simulator)}
    assert set(held) == set(found)
    assert all(s.attributes["text"] == (found[u][:40].hex(),) for u, s in held.items())
    latest: dict[str, Summary | Removed] = {}
    for record in archived(simulator):
        # As an index with external_gte versions.
        if record.oid not in latest or record.published >= latest[record.oid].published:
            latest[record.oid] = record
    held = {s.url: s for s in latest.values() if isinstance(s, Summary)}
    assert set(held) == set(found)
    roles = families(found)
    for url, s in held.items():
        assert (s.copy_of, s.copies, s.copies_count) == roles.get(url, ("", (), 0)), url


def summaries(simulator: Simulator) -> list[Summary]:
    """The summaries of the Gatherer's database."""
    return [r for r in simulator.compacted("summaries").values() if isinstance(r, Summary)]


def archived(simulator: Simulator) -> list[Summary | Removed]:
    """The records of the Broker's archive."""
    return [cast("Summary | Removed", r) for _, r in simulator.records("broker.main")]


def gather(
    simulator: Simulator,
    run: str,
    seeded: Seeded,
    roots: tuple[str, ...] = (TOP, SITE),
    crashes: int = 0,
    anywhere: bool = False,
    **limits: Any,
) -> None:
    """Run some roots to the end; they stay on their hosts unless `anywhere`."""
    for url in roots:
        root = Root(url=url, run=run, host="" if anywhere or url.startswith("file:") else url.rstrip("/"), **limits)
        owner = simulator.owner("crawl", seeded(root, 0, owner=True))
        events = [seeded(root, simulator.now, owner=p == owner) for p in range(simulator.partitions)]
        simulator.broadcast("crawl", events.__getitem__)
    simulator.run(crashes=simulator.crashes + crashes)


def furnish(world: World, rng: random.Random, size: int) -> None:
    """Fill a world with files, copies, archives and pages."""
    contents = [f"text {i}".encode() for i in range(size // 2)] + [b""]
    for i in range(size):
        name = rng.choice(["", "d1/", "d2/", "d2/e/"]) + f"f{i}"
        if rng.random() < 0.3:
            world.write(name + ".tar", {f"m{j}": rng.choice(contents) for j in range(rng.randrange(5))})
        else:
            world.write(name, rng.choice(contents))
    urls = [SITE, *(f"{SITE}p{i}" for i in range(size)), f"{SITE}private/x"]
    for url in urls:
        links = rng.sample(urls, min(3, len(urls)))
        world.pages[url] = (f"page {rng.randrange(size)}", (*links, "http://other.test/"))
    world.robots[SITE.rstrip("/")] = b"User-agent: *\nDisallow: /private/\n"


def move(world: World, rng: random.Random) -> None:
    """Move some pages to one another: moves may join or form circles."""
    pages = sorted(url for url in world.pages if url != SITE and "/private/" not in url)
    world.moves = {url: rng.choice([other for other in pages if other != url]) for url in rng.sample(pages, len(pages) // 3)}


def disturb(world: World, rng: random.Random) -> None:
    """Change, remove, add, rename and shrink files and pages, some files under their old size and mtime."""
    names = sorted(world.files)
    for name in rng.sample(names, len(names) // 3):
        content = world.files[name]
        what = rng.randrange(4)
        if what == 0:
            del world.files[name]
        elif what == 1 and isinstance(content, dict):
            world.write(name, dict(list(content.items())[1:]))
        elif what == 2 and isinstance(content, bytes):
            world.files["new/" + name] = content
            world.stamp["new/" + name] = world.changed["new/" + name] = 1
            del world.files[name]
        elif what == 3 and isinstance(content, bytes):
            world.overwrite(name, content[::-1])
        elif isinstance(content, bytes):
            world.write(name, content + b"!")
    for url in rng.sample(sorted(world.pages), len(world.pages) // 4):
        if url != SITE and rng.random() < 0.5:
            del world.pages[url]
        else:
            world.pages[url] = (world.pages[url][0] + "!", world.pages[url][1])


def reachable_only(world: World, found: Found, simulator: Simulator) -> Found:
    """The oracle with pages that nothing links to any more but that still answer, taken from the gathered summaries."""
    for record in summaries(simulator):
        if record.url in world.pages.keys() - world.moves and record.url not in found:
            page = world.pages[record.url]
            found[record.url] = (page[0] + "\n" + "\n".join(page[1])).encode()
    return found
