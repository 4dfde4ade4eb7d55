"""Streams of another Gatherer, as `sinks/feed` sends them, and what essence makes of them."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

from processors.essence.collected import STREAM
from processors.essence.stage import EssenceSettings, essence
from processors.identity import oid
from schemas.records import UNUSED, CrawlEvent, FetchedObject, Record, Removed, Root, Summary, Withdrawn
from schemas.soif import Attribute, Template, dumps
from schemas.soif_summary import to_template

LIST = "http://source.example/gatherer/soif/"
PART = f"{LIST}3"
ROOT = Root(url=LIST, run="r", ttl=100, refresh=10)
UNUSED_PART = CrawlEvent(kind="failed", host="http://source.example", time=9, url=PART, version=5, root=ROOT, reason=UNUSED)


def foreign(name: str, **more: Any) -> Summary:
    """Return a summary of the other Gatherer."""
    url = f"http://www.example.org/{name}"
    given = {"oid": oid("source", url), "url": url, "object_url": url, "gatherer": "source", "version": 7, "time": 7}
    return Summary(**{**given, "type": "HTML", "attributes": {"title": (name,)}, **more})


def gone(name: str) -> Removed:
    """Return a removal of the other Gatherer."""
    one = foreign(name)
    return Removed(oid=one.oid, url=one.url, object_url=one.object_url, version=8, time=8, reason="gone")


def stream(*records: Summary | Removed, count: int | None = None, coverage: str = "complete", tail: bytes = b"") -> bytes:
    """Return a stream as `sinks/feed` sends it."""
    head = Template("GATHERER", "", (Attribute("gatherer-name", b"source"), Attribute("coverage", coverage.encode())))
    end = Template("END", "", (Attribute("count", str(len(records) if count is None else count).encode()),))
    found = [to_template(one) for one in records]
    return dumps([head, *(one._replace(within=one.within or ("UPDATE",)) for one in found), end]) + tail


def collected(
    body: bytes, media: str = STREAM, url: str = PART, root: Root = ROOT, gatherer: str = "us", status: int = 200, version: int = 5
) -> list[Record]:
    """Return what essence makes of an object."""
    obj = FetchedObject(
        url=url,
        version=version,
        time=9,
        outcome="fetched",
        root=root,
        body=body,
        size=len(body),
        content_type=media,
        status=status,
    )
    return list(essence(obj, io.BytesIO(body), EssenceSettings(gatherer=gatherer)))


def summaries(records: Sequence[Record]) -> list[Summary]:
    """Return the summaries."""
    return [one for one in records if isinstance(one, Summary)]


def withdrawn(records: Sequence[Record]) -> list[str]:
    """Return the foreign OIDs that are withdrawn."""
    return [one.path for one in records if isinstance(one, Withdrawn)]


class Source:
    """A part of another Gatherer's database that changes: names with texts, and the marks of their last changes."""

    def __init__(self) -> None:
        self.epoch = self.number = 0
        self.changes: dict[str, tuple[int, str]] = {}
        """Number of the last change, and the text, by name; a removed one has no text."""

    @property
    def etag(self) -> str:
        """The mark of the last change."""
        return f'"{self.epoch}-{self.number}"'

    @property
    def texts(self) -> dict[str, str]:
        """What exists: texts by name."""
        return {name: text for name, (_, text) in self.changes.items() if text}

    def put(self, name: str, text: str) -> None:
        """Change a summary, or remove it (no text)."""
        if text or name in self.texts:
            self.number += 1
            self.changes[name] = (self.number, text)

    def renew(self) -> None:
        """Lose all marks: the feed is made anew."""
        self.epoch, self.changes = self.epoch + 1, {name: (1, text) for name, text in self.texts.items()}

    def answer(self, etag: str) -> tuple[int, bytes]:
        """Return status and stream for a request for changes since a mark; "": for everything."""
        known = etag.startswith(f'"{self.epoch}-')
        since = int(etag.rpartition("-")[2].rstrip('"')) if known else -1
        found = {name: text for name, (number, text) in self.changes.items() if number > since}
        lives = [foreign(name, attributes={"title": (text,)}) for name, text in found.items() if text]
        removals = [gone(name) for name, text in found.items() if not text] if known else []
        return 226 if known else 200, stream(*lives, *removals, coverage="changes" if known else "complete")
