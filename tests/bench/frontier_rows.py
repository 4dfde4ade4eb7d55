"""Memory and time of the frontier over rows in SQLite with many URLs, hosts or roots: a program, so that its peak counts alone.

`python -m tests.bench.frontier_rows FOLDER (urls|hosts|roots) NUMBER` prints one JSON object with a `Load`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from processors.frontier import root_index
from processors.frontier.rows import Table
from processors.frontier.settings import FrontierSettings
from processors.frontier.stage import frontier
from processors.identity import frontier_key
from schemas.ports import Origin
from schemas.records import MAX_LINKS, CrawlEvent, Link, Root, Tick
from streams.store import Store

SPELL = 0.1
"""Seconds of deciding in one transaction, as in the embedded runner; at least one event."""
PER_ROOT = 1_000
"""URLs of each of many roots."""
SETTINGS = FrontierSettings(pause=1_000)


class Load(msgspec.Struct):
    """What a number of URLs cost."""

    urls: int
    seconds: float
    """To discover them all; of CPU, as the other one."""
    begun: float
    """Seconds to begin the next run of all roots."""
    peak: int
    """Most memory of the process, in bytes."""


def found(root: Root, host: str, first: int, number: int) -> Iterator[CrawlEvent]:
    """Yield the events that find some pages of a host, the first time in one run of a root."""
    for start in range(first, first + number, MAX_LINKS):
        links = [Link(url=f"{host}/page/{n}", kind="page") for n in range(start, min(start + MAX_LINKS, first + number))]
        yield CrawlEvent(kind="discovered", host=host, time=1_000, url=root.url, root=root, links=tuple(links))


def begun(roots: Iterable[Root], run: str) -> Iterator[CrawlEvent]:
    """Yield the events that begin a run of some roots."""
    for root in roots:
        links, again = (Link(url=root.url, kind="page"),), msgspec.structs.replace(root, run=run)
        yield CrawlEvent(kind="seeded", host=frontier_key(root.url), time=2_000, url=root.url, root=again, links=links)


def events(kind: str, number: int) -> tuple[list[Root], Iterator[CrawlEvent]]:
    """Return the roots of a load, and the events that find its URLs."""
    if kind == "urls":
        root = Root(url="http://a.test/", run="1", urls=0)
        return [root], found(root, "http://a.test", 0, number)
    if kind == "hosts":
        root = Root(url="http://h0.test/", run="1", urls=0)
        return [root], (event for n in range(number) for event in found(root, f"http://h{n}.test", 0, 1))
    roots = [Root(url=f"http://h{n}.test/", run="1", urls=0) for n in range(number)]
    return roots, (event for root in roots for event in found(root, root.url.rstrip("/"), 0, PER_ROOT))


def decide(store: Store, given: Iterator[CrawlEvent], offset: int) -> int:
    """Give events to the frontier, some in each transaction, as a runner does; return the next offset."""
    event = next(given, None)
    while event is not None:
        with store.transaction() as tx:
            rows = tx.rows("frontier", 0)
            until = time.monotonic() + SPELL
            while event is not None:
                for _output in frontier(rows, event, Origin("crawl", 0, offset, offset), SETTINGS):
                    pass
                offset, event = offset + 1, next(given, None)
                if time.monotonic() >= until:
                    break
    return offset


def begin_rest(store: Store) -> None:
    """Give the frontier ticks until all runs have begun to their end."""
    number = 0
    while True:
        with store.transaction() as tx:
            rows, number = tx.rows("frontier", 0), number + 1
            if not root_index.parts(rows, 1):
                return
            for _output in frontier(rows, Tick(time=2_000), Origin("crawl.ticks", 0, number, number), SETTINGS):
                pass


def load(folder: Path, kind: str, number: int) -> Load:
    """Measure a load."""
    roots, given = events(kind, number)
    with Store(folder, {"crawl": 1}) as store:
        began = time.process_time()
        offset = decide(store, given, 0)
        filled = time.process_time()
        decide(store, begun(roots, "2"), offset)
        begin_rest(store)
        ended = time.process_time()
        rows = store.rows("frontier", 0)
        urls = sum(1 for _ in Table(rows).all()) if rows is not None else 0
    return Load(urls, filled - began, ended - filled, peak())


def peak() -> int:
    """Return the most memory of this process so far in bytes (VmHWM, proc(5)); getrusage counts its parent before exec, too."""
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:")) * 1_024


if __name__ == "__main__":
    sys.stdout.buffer.write(msgspec.json.encode(load(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))) + b"\n")
