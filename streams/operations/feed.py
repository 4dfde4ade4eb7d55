"""The feeds of a data folder or of a worker: where they are, how they are opened, and how they are filled.

One is filled from `summaries`, one from the archive of each Broker that has a stream (`broker` names it).

Laws:
- A feed that is damaged, or ahead of its topic (one of them is an older copy), is emptied and filled again.
- A feed is marked whole only after its log was read up to an end that is not much older than the reading (`fill_feed`): of what was
  compacted away meanwhile, later records have the newer content.
- Offsets pass a record that the feed refuses only after `letters` has returned for it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from schemas.codec import DecodeError
from schemas.ports import Log, Logged, Refused
from schemas.records import Rejected
from sinks.feed.errors import FeedDamaged, FeedMissing
from sinks.feed.feed import Feed
from sinks.feed.partitions import lack
from sinks.feed.reader import FeedReader
from streams.clock import now_ms
from streams.operations.index_changes import change, newest_changes
from streams.topology.flow import FEED, STREAM, SUMMARIES, archive
from streams.topology.routing import refused_letter

if TYPE_CHECKING:
    from streams.logs import LogAccess

BATCH = 2_000
"""Records of one transaction at the most."""
NOTE = logging.getLogger("harvest").warning

Letters = Callable[[Sequence[Rejected]], object]


def feed_file(folder: Path, broker: str = "") -> Path:
    """Return the path of a feed in a data folder."""
    return folder / "feed" / (f"broker.{broker}.sqlite" if broker else "feed.sqlite")


def topic_of(broker: str) -> str:
    """Return the name of the topic that a feed is filled from."""
    return archive(broker).name if broker else SUMMARIES.name


def stage_of(broker: str) -> str:
    """Return the name of the stage that fills a feed."""
    return STREAM + broker if broker else FEED


def open_feed(folder: Path, gatherer: str, ends: Sequence[int] | None = None, broker: str = "") -> Feed:
    """Open a feed of a data folder for writing; `ends`: the ends of the topic, if they are known. Raises OSError."""
    path = feed_file(folder, broker)
    try:
        feed = Feed(path, gatherer, broker=broker, clock=now_ms)
    except FeedDamaged as error:
        NOTE("%s: it is made anew from %s", error, topic_of(broker))
        for name in (path, path.with_name(f"{path.name}-wal"), path.with_name(f"{path.name}-shm")):
            name.unlink(missing_ok=True)
        feed = Feed(path, gatherer, broker=broker, clock=now_ms)
    if ends is not None:
        if any(p >= len(ends) or offset > ends[p] for p, offset in feed.offsets().items()):
            feed.empty()
        feed.expect(len(ends), dict(enumerate(ends)))
    return feed


def feed_offsets(folder: Path, broker: str = "") -> Mapping[int, int]:
    """Return the next offsets of a feed of a data folder; empty if there is none. Raises OSError."""
    try:
        reader = FeedReader(feed_file(folder, broker))
    except FeedMissing:
        return {}
    try:
        return reader.offsets()
    finally:
        reader.close()


def feed_report(folder: Path, log: LogAccess, broker: str = "") -> tuple[bool, str]:
    """Return whether a feed of a data folder may be sent, and what there is to say of it. Raises OSError, ClusterError."""
    topic = topic_of(broker)
    try:
        reader = FeedReader(feed_file(folder, broker))
    except FeedMissing:
        return True, "none in this data folder"
    with closing(reader):
        found, count, offsets = lack(reader.positions()), reader.state().summaries, reader.offsets()
    if found:
        return False, f"not complete, so it is not served: {found}"
    ends = log.ends(topic) if topic in log.topics() else ()
    behind = sum(max(0, end - offsets.get(partition, 0)) for partition, end in enumerate(ends))
    return True, f"complete, {count:,} summaries, {behind:,} records behind {topic}"


def fill_feed(log: Log, feed: Feed, letters: Letters, limit: int = 0, stop: Callable[[], bool] = lambda: False) -> int:
    """Apply what the topic has and the feed has not; return the number of records that were read.

    It is repeated while many records arrive meanwhile; then the feed is marked whole. `limit`: records after which to return; 0:
    none. Raises OSError.
    """
    total = 0
    while True:
        ends = log.ends(topic_of(feed.broker))
        count, done = _fill(log, feed, letters, ends, limit - total if limit else 0, stop)
        total += count
        if not done:
            return total
        if count <= BATCH:
            feed.mark_whole(dict(enumerate(ends)))
            return total
        if limit and total >= limit:
            return total


def _fill(log: Log, feed: Feed, letters: Letters, ends: Sequence[int], limit: int, stop: Callable[[], bool]) -> tuple[int, bool]:
    """Apply records up to the ends; return their number, and whether the ends were reached."""
    count, at = 0, dict(feed.offsets())
    topic, stage = topic_of(feed.broker), stage_of(feed.broker).partition(".")[0]
    for partition, end in enumerate(ends):
        while (start := at.get(partition, 0)) < end:
            if stop() or (limit and count >= limit):
                return count, False
            records = log.read(topic, partition, start, BATCH, until=end)
            # A short batch means that the other records were compacted away.
            at[partition] = records[-1].offset + 1 if len(records) == BATCH else end
            changes, poison = newest_changes(records, now_ms(), stage)
            if poison:
                letters(poison)
            if refused := feed.apply(changes, {partition: at[partition]}):
                letters(_refused_letters(stage, records, refused))
                feed.apply([], {partition: at[partition]})
            count += len(records)
    return count, True


def _refused_letters(stage: str, records: Sequence[Logged], refused: Sequence[Refused]) -> list[Rejected]:
    """Return the dead letters of refused changes, each with the last record that has it."""
    found: list[Rejected] = []
    for one in refused:
        for logged in reversed(records):
            with suppress(DecodeError):
                if logged.value is not None and change(logged.value) == one.change:
                    found.append(refused_letter(stage, one.reason, logged))
                    break
    return found
