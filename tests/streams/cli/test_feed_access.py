"""The feed of those who ask for it: when it is filled, and when that is not necessary."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from schemas.codec import encode
from schemas.records import Summary
from streams.cli import feed_access
from streams.cli.feed_access import FeedAccess
from streams.config.settings import load
from streams.operations.feed import feed_file, open_feed
from streams.store import Store

PAST_NS = 1_700_000_000 * 10**9


def append(folder: Path, number: int) -> None:
    """Append a summary to the topic."""
    url, oid = f"file:///{number}", f"{number:064x}"
    one = Summary(oid=oid, url=url, object_url=url, gatherer="here", version=1, time=number, type="Text")
    with Store(folder, {"summaries": 1}) as store, store.transaction() as tx:
        tx.append("summaries", 0, oid.encode(), encode(one), number)


def settle(folder: Path) -> None:
    """Make the files of the store and of the feed look as if they had been written long ago."""
    for path in filter(Path.is_file, folder.rglob("*")):
        os.utime(path, ns=(PAST_NS, PAST_NS))


def summaries(access: FeedAccess) -> int:
    """Open the feed; return its number of summaries."""
    reader = access.open()
    try:
        return reader.state().summaries
    finally:
        reader.close()


@pytest.fixture
def access(tmp_path: Path) -> Iterator[FeedAccess]:
    """The feed of a data folder with one summary."""
    append(tmp_path / "data", 1)
    found = FeedAccess(load({"data": tmp_path / "data"}, None, {}))
    yield found
    found.close()


@pytest.fixture
def fills(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The data folders whose feeds were opened to be filled, one for each time."""
    opened: list[Path] = []

    def counted(folder: Path, *more: Any) -> Any:
        opened.append(folder)
        return open_feed(folder, *more)

    monkeypatch.setattr(feed_access, "open_feed", counted)
    return opened


def test_unchanged_store_is_not_read_again(
    access: FeedAccess, tmp_path: Path, fills: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the store does not change, its feed is filled once, and then again only after some time."""
    assert summaries(access) == 1
    settle(tmp_path / "data")
    monkeypatch.setattr(feed_access, "FRESH", 1e9)
    assert summaries(access) == 1
    seen = len(fills)
    assert [summaries(access) for _ in range(3)] == [1, 1, 1]
    assert len(fills) == seen
    monkeypatch.setattr("streams.cli.feed_access.time.monotonic", lambda: 1e12)
    assert summaries(access) == 1
    assert len(fills) == seen + 1


def test_every_change_of_the_store_is_in_the_feed(access: FeedAccess, tmp_path: Path) -> None:
    """A record that was appended before the feed is opened is in it, also if the files were old, or have changed just now."""
    for number in range(2, 8):
        append(tmp_path / "data", number)
        assert summaries(access) == number
        if number % 2:
            settle(tmp_path / "data")
            assert summaries(access) == number


def test_feed_that_was_deleted_is_made_again(access: FeedAccess, tmp_path: Path) -> None:
    """A feed that disappears is filled again, though the store has not changed."""
    assert summaries(access) == 1
    settle(tmp_path / "data")
    assert summaries(access) == 1
    for path in feed_file(tmp_path / "data").parent.iterdir():
        path.unlink()
    assert summaries(access) == 1
