"""Summaries, an index of them, and a double of the Gatherer's side."""

from __future__ import annotations

import io
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from processors.broker.definition import Fallback
from processors.identity import oid, split_url
from processors.query import parse, predicate
from processors.query.forms import DEFAULT
from processors.query.routing.in_views import InViews
from processors.query.routing.merging import Answered, Routed, RoutedHit
from processors.query.routing.statistics import WordCounts, encode_statistics
from processors.query.terms import Views
from processors.registry.template import Registration
from schemas.ports import BrokerIndex
from schemas.query import Query, Word
from schemas.records import Removed, Summary
from sinks.feed.reader import FeedReader
from sinks.gateway.brokers.ports import BrokerFacts, StreamSource
from sinks.gateway.ports import CollectionError, Event, Finding, Host, ObjectError, Rejection, Root, Stage, Status
from sinks.index.tantivy.index import TantivyIndex

HOSTILE = '<script>alert(1)</script>\x1b[31m\u202egnp.exe" onmouseover="x'
"""Text that must be inert wherever it is shown."""


def summary(url: str, type_: str = "RawText", **attributes: Any) -> Summary:
    """A summary with attributes, each a text or several; `more`: further fields."""
    more = attributes.pop("more", {})
    object_url, path = split_url(url)
    values = {
        name.replace("_", "-"): (value,) if isinstance(value, str | bytes) else tuple(value) for name, value in attributes.items()
    }
    known = {"oid": oid("tests", url), "gatherer": "tests", "version": 1, "time": 1, "published": 1, "md5": "0" * 32}
    return Summary(url=url, object_url=object_url, path=path, type=type_, attributes=values, **(known | more))


VIEWS = {"sea": parse("whale"), "sea/dated": parse("whale AND type:HTML"), "Small animals": parse("krill OR leviathan")}
"""Queries of views by path."""


def tagged(one: Summary) -> Summary:
    """The summary with the views that it is in."""
    return msgspec.structs.replace(one, views=tuple(path for path, query in sorted(VIEWS.items()) if predicate(query)(one)))


SUMMARIES = tuple(map(tagged, (
    summary("http://example.org/whale.html", "HTML", title="The white whale", author="Herman Melville", date="1851-10-18",
            partial_text="Call me Ishmael. The whale swims around the ship."),
    summary("http://example.org/ship.html", "HTML", title="Ships of Nantucket", author="Herman Melville", date="1850",
            partial_text="A ship that hunts the whale has three masts."),
    summary("file:///srv/docs/bundle.zip#papers.tar.gz#whale.txt", title="A member about a whale", keywords=["leviathan", "krill"],
            partial_text="Whales eat krill.", date="1999-05-05"),
    summary("file:///srv/docs/notes.txt", title="Notes", keywords="leviathan", partial_text="Nothing of interest.",
            more={"copies": ("file:///srv/docs/copy%20of%20notes.txt",), "copies_count": 1}),
    summary("http://other.example.net/a.pdf", "PDF", title="Krill in numbers", language="en", date="2024-03-05",
            partial_text="Krill, krill and more krill."),
    summary("javascript:alert(1)", title=HOSTILE, partial_text=f"hostile {HOSTILE}", author=HOSTILE,
            weird="x" * 1_000_000),
)))  # fmt: skip


class CollectionDouble:
    """Implements `sinks.gateway.ports.Collection`."""

    def __init__(self, slow: float = 0.0) -> None:
        self._slow = slow
        """Seconds that a status takes; it is printed when it begins."""
        self.bodies: dict[str, bytes] = {}
        """Bytes of objects, by OID."""
        self.feed_path: Path | None = None
        """File of the feed; None: it is being made."""
        self.views_read = 0

    def status(self) -> Status:
        if self._slow:
            print("answering", flush=True)
            time.sleep(self._slow)
        return Status(
            "tests", "no run", [Root("file:///srv/docs/", "active", "")], [Host("http://example.org", 3, 1, "time-out")],
            [Stage("frontier", 0), Stage("index.main", 7)], [Rejection("damaged", 2, "file:///srv/docs/bad.pdf")],
            ("more hosts: 2",),
        )  # fmt: skip

    def why(self, url: str) -> Sequence[Event]:
        return [Event(1_000, "crawl", "discovered", "found in <b>", 1)] if url.startswith("file:///srv/docs/") else []

    def views(self) -> Views:
        self.views_read += 1
        return {path.casefold(): query for path, query in VIEWS.items()}

    def findings(self) -> Iterable[Finding]:
        return [Finding("python", True, "3.11"), Finding("disk space", False, "5 bytes free")]

    def body(self, summary: Summary) -> tuple[BinaryIO, int]:
        if summary.oid not in self.bodies:
            raise ObjectError("there is no such file any more", 404)
        body = self.bodies[summary.oid]
        return io.BytesIO(body), len(body)

    def feed(self) -> FeedReader:
        if self.feed_path is None:
            raise CollectionError("the stream is being made: try again in a moment")
        return FeedReader(self.feed_path)


class RegistryDouble:
    """Implements `sinks.gateway.brokers.registry.Registry`: keeps what it takes."""

    def __init__(self) -> None:
        self.taken: list[Registration] = []
        self.fails = ""

    def take(self, registration: Registration) -> None:
        if self.fails:
            raise CollectionError(self.fails)
        self.taken.append(registration)


class Made:
    """An index with some summaries, in a folder."""

    def __init__(self, folder: Path, summaries: Sequence[Summary]) -> None:
        self.folder = folder
        self.known: dict[str, Summary | Removed] = {one.oid: one for one in summaries}
        index = TantivyIndex(folder, heap=15_000_000)
        index.apply(summaries, {})
        index.close()

    def records(self, oids: Sequence[str]) -> Mapping[str, Summary | Removed]:
        return {oid: self.known[oid] for oid in oids if oid in self.known}

    def open(self) -> BrokerIndex:
        return TantivyIndex(self.folder, writable=False, records=self.records)


class BrokersDouble:
    """Implements `sinks.gateway.brokers.ports.Brokers` with one Broker."""

    def __init__(self, made: Made) -> None:
        self._made = made
        self.stream_path: Path | None = None
        """File of the feed of `main`; None: it has no stream."""

    def facts(self) -> Sequence[BrokerFacts]:
        return [BrokerFacts("main", HOSTILE, len(self._made.known), "mark")]

    def counted(self, name: str) -> bytes | None:
        self._summaries(name)
        return None

    def statistics(self, name: str) -> bytes:
        counts = WordCounts(DEFAULT)
        for one in self._summaries(name):
            counts.add(one)
        return encode_statistics(counts.statistics())

    def _summaries(self, name: str) -> list[Summary]:
        if name != "main":
            raise KeyError(name)
        return [one for one in self._made.known.values() if isinstance(one, Summary)]

    def search(self, name: str, query: Query, limit: int) -> Answered:
        known = {one.oid: one.md5 for one in self._summaries(name)}
        with closing(self._made.open()) as index:
            page = index.search(query, limit)
        return Answered(name, page.hits, page.total, [known[hit.oid] for hit in page.hits])

    def views(self, name: str) -> Views:
        self._summaries(name)
        return {"sea": Word("whale")}

    def routed(self, query: Query, limit: int, scope: InViews | None = None) -> Routed:
        found = self.search("main", query, limit)
        hits = [RoutedHit("main", hit, (HOSTILE,)) for hit in found.hits]
        return Routed(hits, found.total, found.total, ["main"], {"http://silent.example/": HOSTILE}, 2)

    def stream(self, name: str) -> StreamSource:
        if name != "main" or self.stream_path is None:
            raise KeyError(name)
        path = self.stream_path
        return StreamSource(HOSTILE, ("en",), lambda: self.views(name), lambda: FeedReader(path))

    def fallback(self) -> Fallback | None:
        return None
