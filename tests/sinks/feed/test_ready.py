"""The whole stream as a ready file: when it is written, and what prevents it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sinks.feed.mark import Mark
from sinks.feed.ready import ReadyStreams

FIRST, SECOND = Mark("0123456789abcdef", 1), Mark("0123456789abcdef", 2)
PIECES = [b"one", b"two", b"three"]


@pytest.fixture
def feed(tmp_path: Path) -> Path:
    """The path of a feed, in a folder of its own."""
    path = tmp_path / "feed" / "feed.sqlite"
    path.parent.mkdir()
    path.write_bytes(b"a feed")
    return path


def ask(ready: ReadyStreams, feed: Path, mark: Mark) -> tuple[bytes, bool]:
    """Return the stream of a mark, and whether it is from a file."""
    file = ready.open(feed, mark)
    if file is None:
        return b"".join(ready.kept(feed, mark, iter(PIECES), current)), False
    with file:
        return file.read(), True


def current() -> bool:
    """Return that the feed has not changed."""
    return True


def names(feed: Path) -> list[str]:
    """Return the names of the files beside a feed."""
    return sorted(path.name for path in feed.parent.iterdir() if path != feed)


def test_stream_that_is_asked_for_again_becomes_a_file(feed: Path) -> None:
    """The second time the stream is written, and from the third on it is that file, also after a restart."""
    ready = ReadyStreams()
    assert [ask(ready, feed, FIRST) for _ in range(4)] == [(b"onetwothree", from_file) for from_file in (False, False, True, True)]
    assert ask(ReadyStreams(), feed, FIRST) == (b"onetwothree", True)


def test_file_of_an_earlier_mark_is_deleted(feed: Path) -> None:
    """Once a later mark is asked for, the file of the earlier one is gone; each mark has its own stream."""
    ready = ReadyStreams()
    for _ in range(2):
        ask(ready, feed, FIRST)
    ready.kept(feed, SECOND, iter(PIECES), current)  # never begun: nothing is done where a stream is only asked for
    assert names(feed) == [f"feed.sqlite.{FIRST}.gz"]
    ready = ReadyStreams()
    assert ask(ready, feed, SECOND) == (b"onetwothree", False)
    assert names(feed) == []
    ask(ready, feed, SECOND)
    assert names(feed) == [f"feed.sqlite.{SECOND}.gz"]


@pytest.mark.parametrize("first", [True, False])
def test_what_cannot_be_deleted_keeps_nothing_else(feed: Path, monkeypatch: pytest.MonkeyPatch, first: bool) -> None:
    """A folder with a name like that of a file stays; the files of earlier marks are deleted all the same."""
    ready = ReadyStreams()
    ask(ready, feed, FIRST)
    ask(ready, feed, FIRST)
    foreign = feed.with_name(f"{feed.name}.foreign.gz")
    foreign.mkdir()
    glob = Path.glob
    monkeypatch.setattr(Path, "glob", lambda folder, pattern: iter(sorted(glob(folder, pattern), reverse=first)))
    assert ask(ready, feed, SECOND) == (b"onetwothree", False)
    assert names(feed) == [foreign.name]


def test_stream_that_ends_early_leaves_nothing(feed: Path) -> None:
    """A reader that goes, or an error in the middle, leaves no file; the next one that asks makes it."""
    ready = ReadyStreams()
    ask(ready, feed, FIRST)
    gone = ready.kept(feed, FIRST, iter(PIECES), current)
    assert next(gone) == b"one"
    del gone

    def broken() -> Any:
        yield b"one"
        raise OSError("no more")

    with pytest.raises(OSError, match="no more"):
        list(ready.kept(feed, FIRST, broken(), current))
    ready.kept(feed, FIRST, iter(PIECES), current)  # never begun
    assert names(feed) == []
    ask(ready, feed, FIRST)
    assert ask(ready, feed, FIRST) == (b"onetwothree", True)


def test_stream_with_later_changes_is_not_kept(feed: Path) -> None:
    """If the feed changes while a stream is sent, which then has these changes, there is no file of the earlier mark."""
    ready = ReadyStreams()
    ask(ready, feed, FIRST)
    assert list(ready.kept(feed, FIRST, iter(PIECES), lambda: False)) == PIECES
    assert names(feed) == []


def test_two_at_once_write_one_file(feed: Path) -> None:
    """While one stream is written, others of the same mark are whole all the same."""
    ready = ReadyStreams()
    ask(ready, feed, FIRST)
    both = [ready.kept(feed, FIRST, iter(PIECES), current) for _ in range(2)]
    assert list(zip(*both, strict=True)) == [(piece, piece) for piece in PIECES]
    assert names(feed) == [f"feed.sqlite.{FIRST}.gz"]


@pytest.mark.parametrize("failing", ["open", "write", "flush", "link", "room"])
def test_what_prevents_a_file_prevents_no_stream(feed: Path, monkeypatch: pytest.MonkeyPatch, failing: str) -> None:
    """Where no file can be opened, written or named, or the disk is nearly full, the stream is whole, and there is no file."""
    ready = ReadyStreams()
    ask(ready, feed, FIRST)

    def fail(*_: Any, **__: Any) -> Any:
        raise OSError("as on a full disk")

    match failing:
        case "write" | "flush":
            # /dev/full refuses what is written to it; what waits in a buffer, only when it is flushed or closed.
            size = 0 if failing == "write" else 8_192
            monkeypatch.setattr("sinks.feed.ready._unnamed", lambda _: open("/dev/full", "wb", buffering=size))  # noqa: SIM115 - closed by what is tested
        case "room":
            monkeypatch.setattr("sinks.feed.ready.ROOM", 1 << 62)
        case _:
            monkeypatch.setattr(f"sinks.feed.ready.os.{failing}", fail)
    assert ask(ready, feed, FIRST) == (b"onetwothree", False)
    assert names(feed) == []
    monkeypatch.undo()
    assert ask(ready, feed, FIRST) == (b"onetwothree", False)
    assert names(feed) == [f"feed.sqlite.{FIRST}.gz"], "the next stream is written"


def test_file_is_flushed_while_it_is_written(feed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is flushed when a stream ends, while others wait, is a bounded part of it."""
    flushed: list[int] = []
    monkeypatch.setattr("sinks.feed.ready.FLUSHED", 4)
    monkeypatch.setattr("sinks.feed.ready.os.fdatasync", lambda _: flushed.append(1))
    ready = ReadyStreams()
    ask(ready, feed, FIRST)
    assert ask(ready, feed, FIRST) == (b"onetwothree", False)
    assert flushed == [1, 1]
    assert names(feed) == [f"feed.sqlite.{FIRST}.gz"]


def test_feed_that_cannot_be_read_at_the_end(feed: Path) -> None:
    """If it cannot be known whether the feed has changed, a stream that was made already is whole, and there is no file."""
    ready = ReadyStreams()
    ask(ready, feed, FIRST)

    def busy() -> bool:
        raise OSError("database is locked")

    assert list(ready.kept(feed, FIRST, iter(PIECES), busy)) == PIECES
    assert names(feed) == []
