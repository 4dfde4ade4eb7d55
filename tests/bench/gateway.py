"""Measures the gateway: a page against the search alone, hits as one types, and searches beside hostile clients.

The gateway runs in a process of its own over made summaries: `python -m tests.bench.gateway FOLDER` serves an index of them. A
client asks over one connection, one request after the other, as a browser does, and has an address of its own.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from statistics import median
from urllib.parse import quote, urlsplit

import msgspec

from processors.query import parse
from processors.query.facets import FACETS
from schemas.codec import decode, encode
from schemas.records import Removed, Summary
from sinks.gateway.options import GatewayOptions
from sinks.gateway.server import serve
from sinks.index.tantivy.index import TantivyIndex
from tests.bench.figures import BenchError, Figure, Goal
from tests.bench.library import Library
from tests.bench.queries import batches
from tests.sinks.gateway.doubles import CollectionDouble

ROOT = Path(__file__).resolve().parents[2]
HOSTILE = 100
OTHERS = 20
"""Clients beside each other."""
BEGUN = 2.0
"""Seconds in which the hostile clients begin."""


class Records:
    """Records of an index in a file, by OID; a data folder has them in its rows."""

    def __init__(self, folder: Path) -> None:
        self._file = os.open(folder / "records", os.O_RDONLY)
        self._places = msgspec.msgpack.decode((folder / "places").read_bytes(), type=dict[str, tuple[int, int]])

    def __call__(self, oids: Sequence[str]) -> Mapping[str, Summary | Removed]:
        """Return the records of some OIDs."""
        return {oid: self._read(oid) for oid in oids if oid in self._places}

    def _read(self, oid: str) -> Summary:
        start, length = self._places[oid]
        record = decode(os.pread(self._file, length, start))
        assert isinstance(record, Summary)
        return record


def build(library: Library, folder: Path) -> None:
    """Make an index of the summaries, and the file of their records."""
    places: dict[str, tuple[int, int]] = {}
    with open(folder / "records", "wb") as file:
        index = TantivyIndex(folder / "index")
        for batch in batches(library):
            index.apply(batch, {0: len(places)})
            for one in batch:
                start = file.tell()
                places[one.oid] = start, file.write(encode(one))
        index.close()
    (folder / "places").write_bytes(msgspec.msgpack.encode(places))


def opened(folder: Path, records: Records) -> TantivyIndex:
    """Open the index for reading."""
    return TantivyIndex(folder / "index", writable=False, records=records)


@contextmanager
def running(folder: Path) -> Iterator[str]:
    """Run a gateway; yields the URL of its search page. Raises BenchError."""
    command = [sys.executable, "-m", "tests.bench.gateway", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        try:
            assert process.stdout is not None
            if not (url := process.stdout.readline().strip()):
                raise BenchError("the gateway did not start")
            yield url
        finally:
            process.terminate()


class Client:
    """Asks over one connection."""

    def __init__(self, url: str, source: str = "127.0.0.1") -> None:
        parts = urlsplit(url)
        self._connection = HTTPConnection(parts.hostname or "", parts.port, timeout=120, source_address=(source, 0))

    def milliseconds(self, path: str) -> float:
        """Ask, read the answer, and return how long it took. Raises BenchError."""
        started = time.perf_counter()
        self._connection.request("GET", path)
        answer = self._connection.getresponse()
        body = answer.read()
        took = (time.perf_counter() - started) * 1_000
        if answer.status != 200:
            raise BenchError(f"{path}: {answer.status}: {body[:200]!r}")
        return took


def measured(count: int, searches: int, rounds: int, work: Path) -> Iterator[Figure]:
    """Measure the figures over `count` summaries, by different searches of one word or two. Raises BenchError."""
    library = Library(count)
    build(library, work)
    chance = random.Random(1994)
    words = [chance.choice(library.words[20:3_000]) for _ in range(2 * searches)]
    asked = [*words[:searches:2], *(" ".join(words[at : at + 2]) for at in range(searches, 2 * searches, 2))]
    with running(work) as url:
        yield from _pages(work, url, asked, rounds)
        yield from _typing(url, asked)
        yield from _beside(url, asked)


def _pages(work: Path, url: str, asked: Sequence[str], rounds: int) -> Iterator[Figure]:
    index = opened(work, Records(work))
    pages, searches = [], []
    for at, text in enumerate(asked):
        client = Client(url, f"127.0.3.{at + 1}")
        tree = parse(text)
        search = partial(index.search, tree, facets=FACETS)
        pages.append(min(client.milliseconds(f"/?q={quote(text)}") for _ in range(rounds)))
        searches.append(min(_milliseconds(search) for _ in range(rounds)))
    index.close()
    how = f"the search with its facets alone: {median(searches):,.1f} ms; {len(asked)} searches, best of {rounds}"
    yield Figure("serve", "a whole page", median(pages), "ms", how)
    yield Figure("serve", "page to the search alone", median(pages) / median(searches), "ratio", "of medians", Goal("<=", 2))


def _milliseconds(run: Callable[[], object]) -> float:
    started = time.perf_counter()
    run()
    return (time.perf_counter() - started) * 1_000


def _typing(url: str, asked: Sequence[str]) -> Iterator[Figure]:
    took: list[float] = []
    for at, text in enumerate(asked):
        client = Client(url, f"127.0.4.{at + 1}")
        took += [client.milliseconds(f"/results?q={quote(text[:end])}") for end in range(1, len(text) + 1)]
    slowest = sorted(took)[-len(took) // 20]
    how = f"{len(took)} beginnings of the searches, letter by letter; the slowest twentieth: {slowest:,.1f} ms and more"
    yield Figure("serve", "hits as one types", median(took), "ms", how, Goal("<=", 50))


def _beside(url: str, asked: Sequence[str]) -> Iterator[Figure]:
    """Measure the searches of some clients, alone and beside hostile ones."""
    alone = _others(url, asked)
    command = [sys.executable, "-m", "tests.sinks.gateway.clients", url, str(HOSTILE)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT) as hostile:
        time.sleep(BEGUN)
        beside = _others(url, asked)
        attacks = int(hostile.communicate()[0])
    how = f"{OTHERS} clients: {alone:,.1f} ms alone, {beside:,.1f} ms beside {HOSTILE} hostile ones ({attacks:,} attacks)"
    yield Figure("serve", "searches beside hostile clients", beside / alone, "ratio", how, Goal("<=", 5))


def _others(url: str, asked: Sequence[str]) -> float:
    """Return the median milliseconds of the searches of several clients at once."""

    def ask(at: int) -> list[float]:
        client = Client(url, f"127.0.2.{at + 1}")
        return [client.milliseconds(f"/results?q={quote(text)}") for text in asked]

    with ThreadPoolExecutor(OTHERS) as clients:
        return median(took for each in clients.map(ask, range(OTHERS)) for took in each)


def main(folder: Path) -> None:
    """Serve the index of a folder until stopped."""
    records = Records(folder)
    options = GatewayOptions(port=0)
    serve(options, partial(opened, folder, records), CollectionDouble(), lambda url: print(url, flush=True))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
