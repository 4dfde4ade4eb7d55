"""When a feed is whole: which partitions it must have read, and what is said while it lacks some."""

from __future__ import annotations

import zlib
from pathlib import Path

import pytest

from sinks.feed.errors import FeedMoved, FeedPartial
from sinks.feed.feed import Feed
from sinks.feed.partitions import Position, lack
from sinks.feed.reader import FeedReader
from tests.sinks.feed.conftest import DAY, Clock, Stream, made


@pytest.mark.parametrize(
    ("positions", "reason"),
    [
        ([], "nothing was read yet"),
        ([Position(0, 9, None, True), Position(1, 0, None, True)], ""),
        (
            [Position(0, 9, None, True), Position(1, 2, 9, False)],
            "1 of 2 partitions are not read to the end yet: partition 1 at 2 of 9",
        ),
        ([Position(0, 9, None, True), Position(1, 0, None, False)], "partition 1 is read elsewhere"),
        ([Position(0, 1_000, None, False)], "partition 0 at 1,000"),
        ([Position(number, 0, 1, False) for number in range(9)], "partition 2 at 0 of 1, 6 more"),
    ],
)
def test_reason_names_what_is_lacking(positions: list[Position], reason: str) -> None:
    """The reason has the number of partitions that are not read to the end, and how far the first ones are."""
    found = lack(positions)
    assert found.endswith(reason)
    assert bool(found) == bool(reason)


def test_feed_is_whole_once_every_partition_was_read_to_its_end(feed: Feed, reader: FeedReader) -> None:
    """A feed that has read a part of its topic is refused; an empty partition counts once it was found empty."""
    for step in (
        lambda: None,
        lambda: feed.apply([made("a")], {0: 1}),
        lambda: feed.expect(3, {0: 2, 2: 0}),
        lambda: feed.mark_whole({0: 2}),
        lambda: feed.mark_whole({2: 0}),
    ):
        step()
        with pytest.raises(FeedPartial):
            reader.require_whole()
    feed.mark_whole({1: 0})
    reader.require_whole()
    assert Stream(reader.complete()).titles == ["a"]
    assert feed.offsets() == {0: 2}


def test_whole_feed_stays_whole(feed: Feed, reader: FeedReader) -> None:
    """A feed that was whole is not refused when its worker has other partitions, or has to read further."""
    feed.expect(2, {0: 1, 1: 1})
    feed.mark_whole({0: 1, 1: 1})
    feed.expect(2, {1: 50})
    feed.apply([made("b")], {1: 20})
    reader.require_whole()


def test_new_partition_must_be_read_first(feed: Feed, reader: FeedReader) -> None:
    """A partition that the topic gets later has to be read before the feed is sent again."""
    feed.expect(1, {0: 0})
    feed.mark_whole({0: 0})
    feed.expect(2, {0: 0, 1: 7})
    with pytest.raises(FeedPartial, match=r"partition 1 at 0 of 7"):
        reader.require_whole()


def test_end_is_raised_until_it_is_reached(feed: Feed) -> None:
    """A feed that is filled after a restart has to be read up to the newer end."""
    feed.expect(1, {0: 5})
    feed.expect(1, {0: 8})
    assert list(feed.positions()) == [Position(0, 0, 8, False)]
    feed.mark_whole({0: 8})
    assert list(feed.positions()) == [Position(0, 8, None, True)]


def test_smaller_number_of_partitions_loses_nothing(feed: Feed, reader: FeedReader) -> None:
    """A broker that does not know of all partitions yet makes a feed neither empty nor whole."""
    feed.expect(2, {0: 1, 1: 1})
    feed.apply([made("a"), made("b")], {0: 1, 1: 1})
    feed.expect(1, {0: 1})
    feed.mark_whole({0: 1})
    assert reader.state().summaries == 2
    assert list(feed.positions()) == [Position(0, 1, None, True), Position(1, 1, 1, False)]


def test_partition_that_was_not_followed_for_too_long_is_read_again(tmp_path: Path, clock: Clock) -> None:
    """One partition without news for the removal retention empties the feed, though others had some; a touched one does not."""
    for touched in (True, False):
        feed = Feed(tmp_path / str(touched), "g", clock=clock)
        feed.apply([made("a"), made("b")], {0: 1, 1: 1})
        for day in range(1, 100):
            clock.ms += DAY
            feed.apply([], {0: 1 + day})
            if touched:
                feed.touch([1])
        feed.expect(2, {0: 100, 1: 1})
        assert feed.offsets() == ({0: 100, 1: 1} if touched else {})
        feed.close()


def test_feed_that_is_emptied_after_the_check_is_not_sent(feed: Feed, reader: FeedReader) -> None:
    """A feed that was whole when it was checked, and is made anew before it is sent, is not sent empty."""
    feed.expect(1, {0: 1})
    feed.apply([made("a")], {0: 1})
    feed.mark_whole({0: 1})
    reader.require_whole()
    feed.empty()
    for send in (reader.complete, reader.changes):
        with pytest.raises(FeedMoved):
            list(send())


def test_expectations_are_written_once(feed: Feed) -> None:
    """What a feed knows already is not written again: those who ask for a stream cost no flush to disk."""
    feed.expect(2, {0: 1, 1: 2})
    feed.mark_whole({0: 1, 1: 2})
    before = zlib.crc32(feed.path.with_name(f"{feed.path.name}-wal").read_bytes())
    feed.expect(2, {0: 1, 1: 5})
    feed.mark_whole({0: 1, 1: 5})
    feed.touch()
    assert zlib.crc32(feed.path.with_name(f"{feed.path.name}-wal").read_bytes()) == before
