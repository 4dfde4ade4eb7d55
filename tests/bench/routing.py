"""Measures routed searches: 50 Brokers of different topics behind a gateway on the loopback, against asking all of them.

The Brokers are the judged collections and folders of documentation packages. Queries are topics of the collections, and titles of
pages. The broadcast's hits are the best ten of all 50 Brokers, merged in the same way; one is kept if the routed search has it.
"""

from __future__ import annotations

import multiprocessing
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import mean, median
from typing import NamedTuple

from selectolax.lexbor import LexborHTMLParser

from processors.identity import oid
from processors.query import parse
from processors.query.forms import DEFAULT
from processors.query.routing.choice import choose
from processors.query.routing.in_views import InViews
from processors.query.routing.merging import Answered, Routed, merge
from processors.query.routing.statistics import WordCounts, decode_statistics, encode_statistics
from processors.query.terms import Views
from processors.query.words import words
from schemas.query import Query
from schemas.records import Summary
from sinks.gateway import server
from sinks.gateway.brokers.ports import BrokerFacts, StreamSource
from sinks.gateway.options import GatewayOptions
from sinks.index.tantivy.index import TantivyIndex
from streams.config.settings import load
from streams.fetch.settings import FetchSettings
from streams.logs import LogAccess
from streams.routing.local import LocalBrokers
from streams.routing.search import Options, routed_search
from tests.bench.figures import BenchError, Figure, Goal
from tests.bench.judged import Collection
from tests.sinks.gateway.doubles import CollectionDouble

BEST = 10
MOST = 400
"""Maximum number of pages of a folder that becomes a Broker."""
TEXT = 20_000
"""Maximum characters of a page."""


class Scale(NamedTuple):
    """Size of the measurement."""

    brokers: int = 50
    queries: int = 200
    least: int = 20
    """Minimum number of pages of a folder that becomes a Broker."""


class Material(NamedTuple):
    """What a Broker has, and texts of queries for it."""

    summaries: Sequence[Summary]
    topics: Sequence[str]


class Shelf:
    """Implements `sinks.gateway.brokers.ports.Brokers` over indexes in folders."""

    def __init__(self, folder: Path, names: Sequence[str]) -> None:
        self._open = {name: TantivyIndex(folder / name, writable=False) for name in names}
        self._known = {name: (folder / f"{name}.statistics").read_bytes() for name in names}
        self.decoded = {name: decode_statistics(data) for name, data in self._known.items()}

    def facts(self) -> Sequence[BrokerFacts]:
        """See Brokers."""
        return [BrokerFacts(name, name, 0, str(len(data))) for name, data in self._known.items()]

    def counted(self, name: str) -> bytes | None:
        """See Brokers."""
        return self._known[name]

    def statistics(self, name: str) -> bytes:
        """See Brokers."""
        return self._known[name]

    def search(self, name: str, query: Query, limit: int) -> Answered:
        """See Brokers."""
        page = self._open[name].search(query, limit)
        return Answered(name, page.hits, page.total)

    def stream(self, name: str) -> StreamSource:
        """Refuse: no Broker here has a stream."""
        raise KeyError(name)

    def views(self, name: str) -> Views:
        """Return none: no query of the measurement names a view."""
        return {}

    def routed(self, query: Query, limit: int, scope: InViews | None = None) -> Routed:
        """Refuse: the measurement asks as another gateway does."""
        raise BenchError("not asked for")

    def fallback(self) -> None:
        """See Brokers."""


def folders(root: Path, least: int) -> Iterator[Path]:
    """Yield folders of pages, each with neither too few nor too many of them below it."""
    count = sum(1 for _ in root.rglob("*.html"))
    if least <= count <= MOST:
        yield root
    elif count > MOST:
        for child in sorted(path for path in root.iterdir() if path.is_dir()):
            yield from folders(child, least)


def page(path: Path) -> Summary | None:
    """Return the summary of a page; None if it has no title or no text."""
    tree = LexborHTMLParser(path.read_bytes())
    title = tree.css_first("title")
    if title is None or tree.body is None or not words(title.text()):
        return None
    return _summary(path.as_uri(), title.text().strip(), tree.body.text(separator=" ")[:TEXT])


def _summary(url: str, title: str, text: str) -> Summary:
    about = {"oid": oid("bench", url), "url": url, "object_url": url, "gatherer": "bench", "type": "HTML", "md5": "0" * 32}
    return Summary(**about, version=1, time=1, published=1, attributes={"title": (title,), "partial-text": (text,)})  # type: ignore[arg-type]


def material(collections: Sequence[Collection], roots: Sequence[Path], scale: Scale) -> Mapping[str, Material]:
    """Return what the Brokers are made of, by name. Raises BenchError if there are too few folders."""
    made = {}
    for collection in collections:
        held = [_summary(f"http://{collection.name}/{each.name}", each.title, each.text) for each in collection.documents]
        made[collection.name.lower()] = Material(held, [topic.text for topic in collection.topics])
    chance = random.Random(1995)
    found = [folder for root in roots for folder in folders(root, scale.least)]
    chance.shuffle(found)
    for folder in found[: scale.brokers - len(made)]:
        pages = [each for path in sorted(folder.rglob("*.html")) if (each := page(path)) is not None]
        titles = sorted({str(each.attributes["title"][0]) for each in pages})
        made[f"folder-{len(made)}"] = Material(pages, titles)
    if len(made) < scale.brokers:
        raise BenchError(f"{len(made)} Brokers can be made of the documentation, {scale.brokers} are needed")
    return made


def questions(made: Mapping[str, Material], collections: int, count: int) -> list[Query]:
    """Return the queries: half of them topics of the collections, half of them titles of pages; the same in every run."""
    chance = random.Random(1994)
    names = list(made)
    texts = [chance.choice(made[names[at % collections]].topics) for at in range(count // 2)]
    texts += [chance.choice(made[chance.choice(names[collections:])].topics) for _ in range(count - len(texts))]
    return [parse(" ".join(words(text)[:12])) for text in texts]


def build(made: Mapping[str, Material], folder: Path) -> None:
    """Write the index and the statistics of each Broker."""
    folder.mkdir()
    for name, (summaries, _) in made.items():
        index = TantivyIndex(folder / name, heap=15_000_000)
        index.apply(summaries, {})
        index.close()
        counts = WordCounts(DEFAULT)
        for each in summaries:
            counts.add(each)
        (folder / f"{name}.statistics").write_bytes(encode_statistics(counts.statistics()))


def serve(folder: Path, names: Sequence[str], address: Connection) -> None:
    """Serve the Brokers until stopped; send the URL once requests are answered."""
    shelf = Shelf(folder, names)
    options = GatewayOptions(port=0, rate=0.0)
    first = folder / names[0]
    server.serve(options, lambda: TantivyIndex(first, writable=False), CollectionDouble(), address.send, shelf)


def measured(collections: Sequence[Collection], roots: Sequence[Path], work: Path, scale: Scale) -> Iterator[Figure]:
    """Measure the share of Brokers that are asked, and of the broadcast's best hits that are kept. Raises BenchError."""
    made = material(collections, roots, scale)
    folder = work / "brokers"
    build(made, folder)
    shelf = Shelf(folder, list(made))
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=serve, args=(folder, list(made), theirs))
    process.start()
    try:
        if not ours.poll(60):
            raise BenchError("the gateway has not started")
        yield from _compared(questions(made, len(collections), scale.queries), shelf, list(made), str(ours.recv()), work)
    finally:
        process.terminate()
        process.join()


def _compared(asked: Sequence[Query], shelf: Shelf, names: Sequence[str], url: str, work: Path) -> Iterator[Figure]:
    options = Options((url,), deadline=10.0, fetch=FetchSettings(allow=("127.0.0.0/8",)), data=work)
    local = LocalBrokers(load({"data": str(work)}, environ={}), _no_log, [])
    shares, kept, seconds = [], [], []
    for query in asked:
        best = broadcast(query, shelf, names)
        began = time.perf_counter()
        found = routed_search(local, options, query, BEST)
        seconds.append(time.perf_counter() - began)
        if found.silent:
            raise BenchError(f"a Broker was silent: {found.silent}")
        shares.append(len(found.asked) / len(names))
        if best:
            kept.append(len(best & {each.hit.oid for each in found.hits}) / len(best))
    many = f"{len(names)} Brokers, {len(asked)} queries, {len(kept)} of them with hits"
    yield Figure("routing", "share of the Brokers asked", mean(shares), "share", many, Goal("<=", 0.2))
    yield Figure("routing", "broadcast's best ten kept", mean(kept), "share", many, Goal(">=", 0.95))
    yield Figure("routing", "time of a routed search", 1_000 * median(seconds), "ms", "median, by HTTP, statistics kept")


def _no_log() -> AbstractContextManager[LogAccess]:
    raise BenchError("there is no log")


def broadcast(query: Query, shelf: Shelf, names: Sequence[str]) -> set[str]:
    """Return the OIDs of the best hits of all Brokers."""
    chosen = choose(query, shelf.decoded, len(names), 0)
    rated = {each.name for each in chosen}
    answers = [shelf.search(name, query, BEST) for name in names]
    for answer in answers:
        if answer.hits and answer.broker not in rated:
            raise BenchError(f"{answer.broker} has hits, and its statistics exclude them")
    return {each.hit.oid for each in merge(chosen, [each for each in answers if each.broker in rated], BEST)[0]}
