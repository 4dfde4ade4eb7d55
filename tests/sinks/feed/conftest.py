"""A feed with a clock of its own, and readers of its streams."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from schemas.records import Removed, Summary
from schemas.soif import parse
from schemas.soif_summary import to_record
from sinks.feed.feed import Feed
from sinks.feed.reader import FeedReader

DAY = 86_400_000


def oid(name: str) -> str:
    """Return the OID of a name."""
    return hashlib.sha256(name.encode()).hexdigest()


def made(name: str, version: int = 1, **more: Any) -> Summary:
    """Return a summary."""
    url = f"http://example.org/{name}"
    attributes = {"title": (more.pop("title", name),)}
    return Summary(
        oid=oid(name),
        url=url,
        object_url=url,
        gatherer="g",
        version=version,
        time=version,
        type="HTML",
        attributes=attributes,
        **more,
    )


def gone(name: str, version: int) -> Removed:
    """Return a removal."""
    url = f"http://example.org/{name}"
    return Removed(oid=oid(name), url=url, object_url=url, version=version, time=version, reason="gone")


class Clock:
    """A clock that is set."""

    def __init__(self) -> None:
        self.ms = 1_000 * DAY

    def __call__(self) -> int:
        return self.ms


class Stream:
    """A stream as a reader understands it: of each OID the last template counts, and removals are removals."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        # One member, as clients of HTTP expect it; this raises for a wrong checksum, and for anything behind it.
        text = zlib.decompress(b"".join(pieces), 31)
        head, *found, end = parse(text)
        self.head = {a.name: a.value.decode() for a in head.attributes}
        self.end = {a.name: a.value.decode() for a in end.attributes}
        assert head.type == "GATHERER"
        assert end.type == "END"
        self.templates = [to_record(one) for one in found if one.url]
        self.count = int(self.end["count"])
        self.live: dict[str, Summary] = {}
        self.removed: set[str] = set()
        for record in self.templates:
            if isinstance(record, Removed):
                self.live.pop(record.oid, None)
                self.removed.add(record.oid)
            else:
                self.live[record.oid] = record
                self.removed.discard(record.oid)

    @property
    def titles(self) -> list[str]:
        """Titles of the summaries, sorted."""
        return sorted(str(one.attributes["title"][0]) for one in self.live.values())


@pytest.fixture
def clock() -> Clock:
    """A clock."""
    return Clock()


@pytest.fixture
def feed(tmp_path: Path, clock: Clock) -> Iterator[Feed]:
    """An empty feed, open for writing."""
    found = Feed(tmp_path / "feed.sqlite", "g", clock=clock)
    yield found
    found.close()


@pytest.fixture
def reader(feed: Feed) -> Iterator[FeedReader]:
    """A reader of the feed."""
    found = FeedReader(feed.path)
    yield found
    found.close()
