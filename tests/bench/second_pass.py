"""Gathers a web site of real pages, which changes between the passes, and compares each pass with the changes, page by page.

Before some passes, 5 per cent of the pages change, 1 per cent are deleted, some move (301), and some answer 503 in one pass, though
they have changed too. Passes, all with one data folder:

- `first`: all pages, found by links.
- `links`, after changes: all known URLs are requested once, by conditional requests.
- `dates`: the site has a sitemap now. Pages that answered 503 have their change found.
- `marks`: pages that the pass before requested earlier than it read the sitemap are requested once more.
- `sitemap`, after changes that the sitemap states: those pages are requested, and samples.
- `lie`, after changes that the sitemap does not state: samples are requested, and all that is still to be requested once a sample
  had changed although a sitemap that was read later states nothing of it.
- `truth`: all is requested, and every change is found.

What a pass did is read from the log (`summaries`), and its requests from the server.
"""

from __future__ import annotations

import hashlib
import os
import random
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, urlsplit

from processors.urls import canonical
from schemas.codec import decode
from schemas.records import Removed, Summary
from streams.store import Store
from tests.bench import corpora
from tests.bench.figures import BenchError, Figure, Goal
from tests.bench.objects import HARVEST, environment
from tests.bench.outcomes import READ
from tests.bench.tree import GIB, Run, gather
from tests.samples.changing_site import MOVED, ChangingSite, made_pages

PACKAGES = (*corpora.PACKAGES, "fp-docs-3.2.2", "cmake-doc")
"""Debian packages with 30,827 pages."""
SEED = 41
TRIES = 3
"""Requests in one pass for a page that answers 503 (`frontier.tries`)."""
SHOWN = 5
"""Maximum number of paths that a line names."""
SETTINGS = """[fetch]
pause = 0
allow = ["127.0.0.0/8"]
[frontier]
credit = 32
"""
ROOT = """[[root]]
url = "{url}"
depth = -1
urls = 0
sitemaps = "yes"
allow = ['/$', '\\.html?$', '\\.xml$']
"""


class Shares(NamedTuple):
    """Shares of the pages that change, are deleted, move, and answer 503 in one pass."""

    changed: float = 0.05
    gone: float = 0.01
    moved: float = 0.002
    failing: float = 0.002


QUICK = Shares(0.05, 0.01, 0.01, 0.01)
HIDDEN = Shares(failing=0)
MOSTLY = Shares(0.7, 0.1, 0.1, 0)
"""What a sitemap of some hundred pages does not state, so that samples discover it."""
SOON = "backoff = 50\n"
"""Settings of `frontier` for a few pages: otherwise the waits before pages that answer 503 are most of the time."""


class Changes(NamedTuple):
    """Paths by what was done to them."""

    changed: frozenset[str] = frozenset()
    gone: frozenset[str] = frozenset()
    moved: frozenset[str] = frozenset()
    """Old paths."""
    failing: frozenset[str] = frozenset()


NONE = Changes()


class Found(NamedTuple):
    """What a pass did: paths of objects by what became of their summaries, and the requests by path and status."""

    added: frozenset[str]
    changed: frozenset[str]
    removed: frozenset[str]
    rewritten: frozenset[str]
    """Objects of the same content whose summary was written again."""
    asked: Counter[tuple[str, int]]
    run: Run

    @property
    def requests(self) -> int:
        """The number of requests."""
        return self.asked.total()

    def by_path(self, *but: int) -> Counter[str]:
        """Return the requests by path, but for those with some statuses."""
        found = Counter[str]()
        for (path, status), count in self.asked.items():
            found[path] += 0 if status in but else count
        return found


class Step(NamedTuple):
    """A pass, and the paths that it treated wrongly, by kind; `unstated`: what had changed before, unknown to the sitemap."""

    name: str
    found: Found
    wrong: Mapping[str, Sequence[str]]
    unstated: Changes = NONE


class Passes:
    """A site and the data folder into which it is gathered; `held` has the MD5 of each object that has a summary, by path."""

    def __init__(self, site: ChangingSite, work: Path, settings: str = "") -> None:
        """Prepare a data folder; `settings`: further lines of harvest.toml, of section `frontier`. Raises BenchError."""
        self.site = site
        self.held: dict[str, str] = {}
        self._data = work / "data"
        self._offsets = Counter[int]()
        (work / "harvest.toml").write_text(SETTINGS + settings)
        (work / "roots.toml").write_text(ROOT.format(url=site.url))
        command: list[str | Path] = [*HARVEST, "roots", "apply", "roots.toml", "--data", self._data]
        done = subprocess.run(command, cwd=work, env=environment(), check=False, capture_output=True, text=True)
        if done.returncode:
            raise BenchError(f"harvest roots apply ended with {done.returncode}: {done.stderr[-2_000:]}")

    def gather(self) -> Found:
        """Gather the site once. Raises BenchError."""
        self.site.asked.clear()
        run = gather([], self._data)
        asked, before = self.site.asked.copy(), self.held.copy()
        written = self._read()
        both = before.keys() & self.held.keys()
        changed = frozenset(path for path in both if before[path] != self.held[path])
        return Found(
            added=frozenset(self.held.keys() - before.keys()),
            changed=changed,
            removed=frozenset(before.keys() - self.held.keys()),
            rewritten=frozenset(written & both - changed),
            asked=asked,
            run=run,
        )

    def _read(self) -> set[str]:
        """Read the records of the last pass; return the paths of all summaries written."""
        written = set()
        with Store(self._data, readonly=True) as store:
            for partition in range(store.topics()["summaries"]):
                while batch := store.read("summaries", partition, self._offsets[partition], READ):
                    self._offsets[partition] = batch[-1].offset + 1
                    for record in (decode(one.value) for one in batch if one.value is not None):
                        if isinstance(record, Summary) and not record.path:
                            self.held[self._path(record.url)] = record.md5
                            written.add(self._path(record.url))
                        elif isinstance(record, Removed):
                            self.held.pop(self._path(record.url), None)
        return written

    def _path(self, url: str) -> str:
        return f"/{url.removeprefix(self.site.url)}"

    def unlike(self, but: frozenset[str] = frozenset()) -> list[str]:
        """Return the paths of pages whose summary is not that of their content, and of summaries without a page."""
        pages = {path: hashlib.md5(page.body).hexdigest() for path, page in self.site.pages.items() if path not in but}
        held = {path: self.held[path] for path in self.pages(self.held)}
        return sorted({path for path, _ in pages.items() ^ held.items()} - but)

    def pages(self, paths: Iterable[str]) -> set[str]:
        """Return those of some paths that are neither listings nor robots.txt."""
        return {path for path in paths if not path.startswith(("/sitemap", "/robots.txt")) and path not in self.site.lists}


def sources(root: Path, count: int = 0) -> dict[str, Path]:
    """Return pages below a folder by the path of their URL, links to pages in it among them; 0: all, else the first ones."""
    found: dict[str, Path] = {}
    for name in sorted(corpora.found([root])):
        path = Path(os.fsdecode(name))
        if path.suffix not in (".html", ".htm") or not path.is_file() or not path.resolve().is_relative_to(root.resolve()):
            continue
        url = canonical(f"http://127.0.0.1/{quote(os.fsencode(path.relative_to(root)))}")
        if url and (not count or len(found) < count):
            found.setdefault(urlsplit(url).path, path)
    return found


def disturb(site: ChangingSite, chance: random.Random, shares: Shares, *, stated: bool = True) -> Changes:
    """Change a site; `stated`: its sitemap states it. Pages that answered 503 answer again, and none of them changes now."""
    names = sorted(path for path in site.pages if path not in site.failing and MOVED not in path)
    counts = [round(share * len(names)) for share in shares]
    chosen = iter(chance.sample(names, sum(counts)))
    changes = Changes(*(frozenset(next(chosen) for _ in range(count)) for count in counts))
    site.change(changes.changed | changes.failing, stated=stated)
    site.delete(changes.gone, stated=stated)
    site.move(changes.moved, stated=stated)
    site.failing = set(changes.failing)
    return changes


def differences(passes: Passes, found: Found, done: Changes, late: Changes = NONE) -> dict[str, list[str]]:
    """Return the paths that a pass wrongly treated as changed or unchanged, by kind; none if it found exactly the changes.

    `done`: before this pass; `late`: what was done before an earlier pass, and has to be found by this one.
    """
    changed, gone, moved = done.changed | late.changed | late.failing, done.gone | late.gone, done.moved | late.moved
    return {
        "changed": sorted(passes.pages(found.changed) ^ changed),
        "removed": sorted(found.removed ^ (gone | moved)),
        "added": sorted(passes.pages(found.added) ^ {passes.site.moved[path] for path in moved}),
        "written again": sorted(passes.pages(found.rewritten)),
        "503 removed": sorted(done.failing - passes.held.keys()),
        "content": passes.unlike(done.failing),
    }


def misrequested(passes: Passes, found: Found, before: frozenset[str], done: Changes) -> list[str]:
    """Return the paths that a pass did not request once: all that was known `before`, where pages moved to, and nothing else.

    A page that answers 503 is requested up to TRIES times.
    """
    once, failed = found.by_path(503), found.by_path(200, 301, 304, 404)
    expected = {path: int(path not in done.failing) for path in before | {passes.site.moved[path] for path in done.moved}}
    wrong = [path for path in passes.pages(expected.keys() | once.keys()) if once[path] != expected.get(path, 0)]
    return sorted(wrong + [path for path in done.failing if not 1 <= failed[path] <= TRIES])


def steps(passes: Passes, shares: Shares, hidden: Shares) -> Iterator[Step]:
    """Make all passes, with changes in between; `hidden`: the shares of what the sitemap does not state."""
    site, chance = passes.site, random.Random(SEED)
    first = passes.gather()
    yield Step("first", first, {"content": passes.unlike()})
    known, failing = frozenset(first.by_path()), NONE
    for name in ("links", "dates", "marks"):
        done = disturb(site, chance, shares) if name == "links" else disturb(site, chance, Shares(0, 0, 0, 0))
        found = passes.gather()
        wrong = differences(passes, found, done, Changes(changed=failing.failing))
        requested = misrequested(passes, found, known, done) if name != "marks" else []
        yield Step(name, found, {**wrong, "requested": requested})
        known, failing = known | frozenset(found.by_path()), done
        site.publish()
    done = disturb(site, chance, shares)
    found = passes.gather()
    yield Step("sitemap", found, differences(passes, found, done))
    lie = disturb(site, chance, hidden, stated=False)
    late = Changes(changed=done.failing)
    found = passes.gather()
    seen = Changes(lie.changed & found.changed, lie.gone & found.removed, lie.moved & found.removed)
    yield Step("lie", found, {**differences(passes, found, seen, late), "content": []}, lie)
    left = Changes(lie.changed - seen.changed, lie.gone - seen.gone, lie.moved - seen.moved)
    found = passes.gather()
    yield Step("truth", found, differences(passes, found, NONE, left))


def measured(passes: Passes, shares: Shares, hidden: Shares) -> Iterator[Figure]:
    """Measure requests, time, memory and mistakes of each pass."""
    plain = 0
    for step in steps(passes, shares, hidden):
        group, run = f"pass: {step.name}", step.found.run
        statuses = Counter[int]()
        for (_, status), count in step.found.asked.items():
            statuses[status] += count
        yield Figure(
            group,
            "requests",
            step.found.requests,
            "requests",
            ", ".join(f"{count:,} x {status}" for status, count in statuses.items()),
        )
        plain = plain or (step.found.requests if step.name == "links" else 0)
        if step.name == "sitemap":
            yield Figure(group, "to the pass without a sitemap", step.found.requests / plain, "ratio", "requests", Goal("<=", 0.1))
        yield Figure(group, "seconds", run.seconds, "s", f"{step.found.requests / run.seconds:,.0f} requests/s")
        yield Figure(group, "memory, most", run.peak / GIB, "GiB", f"PSS of {run.processes} processes", Goal("<=", 1))
        found = step.found
        against = f"{len(found.added):,} added, {len(found.removed):,} removed"
        yield Figure(group, "summaries changed", len(found.changed), "objects", against)
        for kind, paths in step.wrong.items():
            yield Figure(group, f"wrong: {kind}", len(paths), "pages", " ".join(paths[:SHOWN]), Goal("=", 0))


def group(cache: Path, work: Path, *, quick: int) -> Iterator[Figure]:
    """Measure all passes over the pages of the packages; `quick`: over so many small ones instead. Raises BenchError."""
    pages = work / "packages"
    if not quick:
        corpora.unpacked(corpora.packages(cache, PACKAGES), pages)
    with ChangingSite(made_pages(quick) if quick else sources(pages)) as site:
        passes = Passes(site, work, SOON if quick else "")
        yield from measured(passes, *((QUICK, MOSTLY) if quick else (Shares(), HIDDEN)))
