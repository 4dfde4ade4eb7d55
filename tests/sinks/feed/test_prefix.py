"""Streams of the URLs with a prefix: what they contain, and how much one transaction reads for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from sinks.feed import reader as reading
from sinks.feed.feed import Feed
from sinks.feed.reader import FeedReader
from tests.sinks.feed.conftest import Stream, gone, made, oid

PREFIX = "http://example.org/"


def test_matches_far_apart_are_all_in_the_stream(feed: Feed, reader: FeedReader, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever lies between them, all summaries and removals with a prefix are in the stream, and nothing else."""
    monkeypatch.setattr(reading, "SPAN", 7)
    monkeypatch.setattr(reading, "PAGE", 2)
    names = [f"{'x' if number % 23 == 5 else 'y'}/{number:03}" for number in range(100)]
    feed.apply([made(name) for name in names], {})
    wanted = [name for name in names if name.startswith("x/")]
    assert Stream(reader.changes(prefix=f"{PREFIX}x/")).titles == wanted
    since = reader.state().mark
    feed.apply([gone(name, 2) for name in names[:30]], {})
    stream = Stream(reader.changes(since, prefix=f"{PREFIX}x/"))
    assert stream.removed == {oid(name) for name in names[:30] if name.startswith("x/")}
    assert stream.end["mark"] == str(reader.state().mark)


@pytest.mark.parametrize("prefix", ["x%", "x_", "x'", "é", "é/\u4e00", "\U0010ffff", "x/\0"])
def test_characters_of_a_prefix_mean_themselves(prefix: str, feed: Feed, reader: FeedReader) -> None:
    """No character of a prefix is a wildcard, and any may follow it."""
    names = ["x%1", "x_1", "xa1", "x'1", "é1", "é/\u4e00\U0010fffe", "e", "\U0010ffff\U0010ffff", "x/"]
    feed.apply([made(name) for name in names], {})
    found = {one.url.removeprefix(PREFIX) for one in Stream(reader.changes(prefix=PREFIX + prefix)).templates}
    assert found == {name for name in names if name.startswith(prefix)}


def test_prefix_without_matches_returns_no_row(feed: Feed, reader: FeedReader, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows without the prefix are compared by the engine, in spans, and none of them is returned."""
    monkeypatch.setattr(reading, "SPAN", 10)
    feed.apply([made(str(number)) for number in range(35)], {})
    pages: list[Sequence[Any]] = []
    page = reading.Range.page

    def watched(*given: Any) -> list[tuple[Any, ...]]:
        pages.append(found := page(*given))
        return found

    monkeypatch.setattr(reading.Range, "page", watched)
    assert not Stream(reader.changes(prefix="http://elsewhere/")).templates
    assert pages == [[]] * 4
