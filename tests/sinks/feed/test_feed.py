"""The feed: what its streams contain after any sequence of changes, and what a reader with a mark receives."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from schemas.records import Removed, Summary
from sinks.feed import members
from sinks.feed.errors import FeedDamaged, FeedMissing, FeedMoved, StreamInterrupted
from sinks.feed.feed import Feed
from sinks.feed.mark import Mark, parse_mark
from sinks.feed.reader import FeedReader
from tests.sinks.feed.conftest import DAY, Clock, Stream, gone, made, oid


def test_stream_contains_every_summary(feed: Feed, reader: FeedReader) -> None:
    """A complete stream has each summary once; its end states the number of templates and the mark."""
    feed.apply([made("a"), made("b"), made("c")], {0: 3})
    stream = Stream(reader.complete())
    assert stream.titles == ["a", "b", "c"]
    assert stream.count == len(stream.templates) == 3
    assert stream.head["coverage"] == "complete"
    assert stream.head["gatherer-name"] == "g"
    assert stream.end["mark"] == str(reader.state().mark)
    assert stream.live[oid("a")] == made("a")
    assert feed.offsets() == {0: 3}


def test_parts_are_the_whole(feed: Feed, reader: FeedReader) -> None:
    """The sixteen parts have together what the whole stream has, each by the first digit of the OID."""
    feed.apply([made(str(number)) for number in range(100)], {})
    parts = [Stream(reader.complete(part)) for part in range(16)]
    assert all(int(name[0], 16) == number for number, part in enumerate(parts) for name in part.live)
    assert sorted(title for part in parts for title in part.titles) == Stream(reader.complete()).titles
    assert [one.summaries for one in reader.state().parts] == [len(part.live) for part in parts]


def test_redelivery_changes_nothing(feed: Feed, reader: FeedReader) -> None:
    """A change that was applied already moves no mark; neither does one of a lower version."""
    feed.apply([made("a", 5), gone("b", 5)], {0: 2})
    before = reader.state()
    feed.apply([made("a", 5), gone("b", 5), made("a", 4), made("b", 3)], {0: 1})
    assert reader.state() == before
    assert feed.offsets() == {0: 2}


def test_annotation_is_a_change(feed: Feed, reader: FeedReader) -> None:
    """A summary of the same version with other annotations replaces the stored one."""
    feed.apply([made("a", 5)], {})
    since = reader.state().mark
    feed.apply([made("a", 5, annotations={"note": ("n",)})], {})
    stream = Stream(reader.changes(since))
    assert stream.live[oid("a")].annotations == {"note": ("n",)}
    assert Stream(reader.complete()).live == stream.live


def test_collected_again_is_no_change(feed: Feed, reader: FeedReader) -> None:
    """A collected summary has the version and time of its stream: with other ones alone, those who collect here get nothing new."""
    first = replace(made("a"), location="http://there/a", attempt="1")
    feed.apply([first], {})
    mark = reader.state().mark
    feed.apply([replace(first, version=5, time=5, attempt="5")], {})
    assert reader.state().mark == mark
    feed.apply([replace(first, version=4, type="Old")], {})
    assert reader.state().mark == mark
    feed.apply([replace(first, version=6, type="New")], {})
    assert reader.state().mark.number == mark.number + 1
    feed.apply([gone("a", 7)], {})
    feed.apply([replace(first, version=8, type="New")], {})
    assert Stream(reader.changes(mark)).titles == ["a"]


def test_changes_since_a_mark(feed: Feed, reader: FeedReader) -> None:
    """A reader with a mark receives what was changed and removed since then, in the order of the changes."""
    feed.apply([made("a"), made("b"), made("c")], {})
    since = reader.state().mark
    feed.apply([made("c", 2, title="c2"), gone("a", 2), made("d", 2)], {})
    stream = Stream(reader.changes(since))
    assert [one.url for one in stream.templates] == [f"http://example.org/{name}" for name in "cda"]
    assert stream.titles == ["c2", "d"]
    assert stream.removed == {oid("a")}
    assert stream.head["coverage"] == "changes"
    assert stream.head["since"] == str(since)
    assert stream.count == 3
    assert not Stream(reader.changes(reader.state().mark)).templates


def test_update_moves_to_the_end(feed: Feed, reader: FeedReader) -> None:
    """An updated summary has the place of its last change in the order, and only that one."""
    feed.apply([made("a"), made("b")], {})
    feed.apply([made("a", 2)], {})
    assert [one.url[-1] for one in Stream(reader.changes(Mark(reader.state().mark.epoch, 0))).templates] == ["b", "a"]


def test_prefix_of_urls(feed: Feed, reader: FeedReader) -> None:
    """Only URLs that begin with the prefix are in the stream, and their removals."""
    feed.apply([made("x/1"), made("x/2"), made("y/1")], {})
    since = reader.state().mark
    assert Stream(reader.changes(prefix="http://example.org/x/")).titles == ["x/1", "x/2"]
    feed.apply([gone("x/1", 2), gone("y/1", 2)], {})
    assert Stream(reader.changes(since, prefix="http://example.org/x/")).removed == {oid("x/1")}


def test_removed_summary_is_deleted_in_a_complete_stream(feed: Feed, reader: FeedReader) -> None:
    """A removed summary whose template is still in a member is stated as removed; others are not mentioned."""
    part = [name for number in range(400) if oid(name := str(number))[0] == "0"][:10]
    feed.apply([made(name) for name in part], {})
    feed.apply([gone(part[0], 2), gone("never-there", 2)], {})
    stream = Stream(reader.complete())
    assert oid(part[0]) not in stream.live
    assert len(stream.live) == 9
    assert stream.count == len(stream.templates)
    assert oid("never-there") not in stream.removed


@pytest.mark.parametrize("size", [members.MEMBER, 2_000])
def test_members_are_rewritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """However often summaries change, less than a third of the templates of a member is superseded."""
    monkeypatch.setattr(members, "MEMBER", size)
    feed, chance = Feed(tmp_path / "feed", "g"), random.Random(1)
    live: dict[str, Summary] = {}
    for version in range(1, 60):
        names = {str(chance.randrange(300)) for _ in range(40)}
        changes: list[Summary | Removed] = [gone(n, version) if chance.random() < 0.2 else made(n, version) for n in names]
        feed.apply(changes, {0: version})
        live |= {one.oid: one for one in changes if isinstance(one, Summary)}
        for one in changes:
            if isinstance(one, Removed):
                live.pop(one.oid, None)
    reader = FeedReader(feed.path)
    stream = Stream(reader.complete())
    assert stream.live == live
    assert reader.state().summaries == len(live)
    summaries = [one for one in stream.templates if isinstance(one, Summary)]
    assert len(summaries) < 1.5 * len(live) + 1
    reader.close()
    feed.close()


def test_removals_are_dropped_after_the_retention(feed: Feed, reader: FeedReader, clock: Clock) -> None:
    """A mark below the horizon is unknown; a later one is known; streams contain no summary without its removal."""
    feed.apply([made(str(number)) for number in range(200)], {})
    old = reader.state().mark
    feed.apply([gone("7", 2)], {})
    recent = reader.state().mark
    assert reader.is_known(old)
    clock.ms += 60 * DAY
    feed.apply([], {})
    clock.ms += 31 * DAY
    feed.apply([made("new", 3)], {})
    assert not reader.is_known(old)
    assert reader.is_known(recent)
    assert oid("7") not in {one.oid for one in Stream(reader.complete()).templates}
    assert len(Stream(reader.complete()).live) == 200


def test_time_becomes_a_mark(feed: Feed, reader: FeedReader, clock: Clock) -> None:
    """The changes since a time are those that arrived at it or later."""
    feed.apply([made("a")], {})
    clock.ms += 1_000
    feed.apply([made("b")], {})
    assert Stream(reader.changes(reader.mark_at(clock.ms))).titles == ["b"]
    assert Stream(reader.changes(reader.mark_at(clock.ms - 1_000))).titles == ["a", "b"]


def test_unknown_marks(feed: Feed, reader: FeedReader) -> None:
    """A mark of another feed, or above the last change, is unknown."""
    feed.apply([made("a")], {})
    mark = reader.state().mark
    assert reader.is_known(mark)
    assert not reader.is_known(Mark(mark.epoch, mark.number + 1))
    assert not reader.is_known(Mark("0" * 16, mark.number))
    assert parse_mark(str(mark)) == mark
    assert all(parse_mark(text) is None for text in ("", "7", f"{mark}0" * 3, "0" * 16 + "-01", "0" * 16 + "--1"))


def test_unused_feed_is_emptied(tmp_path: Path, clock: Clock) -> None:
    """A feed that may have missed removals begins a new order, as does one of another Gatherer; one in use does not."""
    path = tmp_path / "feed"
    for later, name, kept in ((0, "g", True), (89, "g", True), (91, "g", False), (0, "other", False)):
        feed = Feed(path, "g", clock=clock)
        feed.apply([made("a")], {0: 1})
        epoch = FeedReader(path).state().mark.epoch
        feed.close()
        clock.ms += later * DAY
        again = Feed(path, name, clock=clock)
        assert (again.offsets() == {0: 1}) == kept
        assert (FeedReader(path).state().mark.epoch == epoch) == kept
        again.close()


def test_writer_of_an_emptied_feed_stops(tmp_path: Path, clock: Clock) -> None:
    """A writer whose feed was made anew applies nothing from its old offsets, and continues from the new ones."""
    first = Feed(tmp_path / "feed", "g", clock=clock)
    clock.ms += 91 * DAY
    Feed(tmp_path / "feed", "g", clock=clock).close()
    for _ in range(2):
        with pytest.raises(FeedMoved):
            first.apply([made("a")], {0: 1})
    assert first.offsets() == {}
    first.apply([made("a")], {0: 1})
    assert first.offsets() == {0: 1}
    first.close()


def test_two_writers_agree(tmp_path: Path) -> None:
    """Two processes that apply the same changes leave each change once."""
    one, other = Feed(tmp_path / "feed", "g"), Feed(tmp_path / "feed", "g")
    for feed in (one, other, one):
        feed.apply([made("a"), made("b")], {0: 2})
    reader = FeedReader(one.path)
    assert reader.state().mark.number == 2
    for each in (one, other, reader):
        each.close()


def test_slower_writer_brings_back_nothing(tmp_path: Path) -> None:
    """A batch that another writer has applied long ago does not replace a later content of the same version."""
    fast, slow = (Feed(tmp_path / "feed", "g") for _ in range(2))
    fast.apply([made("a", title="first")], {0: 1, 1: 1})
    fast.apply([made("a", title="annotated")], {0: 2})
    slow.apply([made("a", title="first")], {0: 1, 1: 1})
    assert Stream(FeedReader(fast.path).complete()).titles == ["annotated"]
    slow.apply([made("b")], {0: 1, 1: 2})
    assert Stream(FeedReader(fast.path).complete()).titles == ["annotated", "b"]
    fast.close()
    slow.close()


def test_what_soif_cannot_express_is_refused(feed: Feed, reader: FeedReader) -> None:
    """A URL with a line break, or an OID that is none, is refused with its reason, and the others are applied."""
    bad, odd = replace(made("a"), url="http://a\nb"), replace(made("b"), oid="XY")
    refused = feed.apply([bad, odd, made("c")], {0: 3})
    assert [one.change for one in refused] == [bad, odd]
    assert Stream(reader.complete()).titles == ["c"]


def test_reader_is_closed_while_it_is_read(feed: Feed) -> None:
    """Who ends a stream, because its client has gone, need not wait for the piece that a thread is reading."""
    found, begun, go_on = FeedReader(feed.path), Event(), Event()

    def wait(*_: object) -> int:
        begun.set()
        return int(go_on.wait(30))

    found._db.create_scalar_function("pause", wait, 0)
    thread = Thread(target=lambda: found._db.execute("SELECT pause()").fetchall())
    thread.start()
    assert begun.wait(30)
    found.close()
    go_on.set()
    thread.join(30)
    found.close()


def test_missing_and_damaged_feeds(tmp_path: Path) -> None:
    """A feed that is missing, or is no feed, is reported in one line."""
    with pytest.raises(FeedMissing):
        FeedReader(tmp_path / "none")
    (tmp_path / "text").write_bytes(b"not a database, but a text of some length. " * 100)
    for opened in (FeedReader, lambda path: Feed(path, "g")):
        with pytest.raises(FeedDamaged, match="damaged"):
            opened(tmp_path / "text")


Batch = list[tuple[int, int, bool]]
CHANGES = st.lists(st.lists(st.tuples(st.integers(0, 12), st.integers(1, 9), st.booleans()), max_size=6), max_size=6)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(batches=CHANGES)
def test_reader_with_marks_equals_the_feed(
    tmp_path_factory: pytest.TempPathFactory, batches: list[list[tuple[int, int, bool]]]
) -> None:
    """After any changes in any order, a reader that asks for changes since its mark has what a complete stream has."""
    feed = Feed(tmp_path_factory.mktemp("feed") / "feed", "g")
    reader = FeedReader(feed.path)
    held: dict[str, Summary] = {}
    since = reader.state().mark
    for batch in batches:
        feed.apply([made(str(n), v, title=f"{n} {v}") if live else gone(str(n), v) for n, v, live in batch], {})
        changes = Stream(reader.changes(since))
        held = {name: one for name, one in held.items() if name not in changes.removed} | changes.live
        since = parse_mark(changes.end["mark"]) or since
        assert held == Stream(reader.complete()).live
    feed.close()
    reader.close()


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 10_000), part=st.sampled_from([None, 3]))
def test_writer_during_a_stream(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, seed: int, part: int | None
) -> None:
    """Whatever is written while a stream is sent, the stream and the changes since its mark are together what there is then."""
    monkeypatch.setattr("sinks.feed.reader.READY", 1)  # one member in a transaction
    chance = random.Random(seed)
    names = [name for number in range(60 if part is None else 600) if part in (None, int(oid(name := str(number))[0], 16))]
    feed = Feed(tmp_path_factory.mktemp("feed") / "feed", "g")
    version = 0

    def write() -> None:
        nonlocal version
        version += 1
        feed.apply([gone(n, version) if chance.random() < 0.3 else made(n, version) for n in chance.sample(names, 9)], {})

    def sent(stream: Iterator[bytes]) -> Iterator[bytes]:
        for piece in stream:
            yield piece
            write()

    for _ in range(8):
        write()
    reader, other = FeedReader(feed.path), FeedReader(feed.path)
    stream = Stream(sent(reader.complete(part)))
    changes = Stream(sent(reader.changes(parse_mark(stream.end["mark"]), part)))
    final = Stream(other.changes(parse_mark(changes.end["mark"]), part))
    held = stream.live
    for one in (changes, final):
        held = {name: record for name, record in held.items() if name not in one.removed} | one.live
    assert held == Stream(other.complete(part)).live
    for each in (feed, reader, other):
        each.close()


def test_complete_stream_has_what_changes_meanwhile(feed: Feed, reader: FeedReader, monkeypatch: pytest.MonkeyPatch) -> None:
    """A summary that is changed while a complete stream is sent is in it all the same: what is not in it is taken for removed."""
    names = [str(number) for number in range(40)]
    feed.apply([made(name) for name in names], {})
    stream = reader.complete()
    first = next(stream)
    feed.apply([made(name, 2) for name in names], {})
    assert set(Stream([first, *stream]).live) == {oid(name) for name in names}
    monkeypatch.setattr("sinks.feed.reader.LATER", 10)
    monkeypatch.setattr("sinks.feed.reader.PAGE", 5)
    stream = reader.complete()
    next(stream)
    feed.apply([made(name, 3) for name in names], {})
    with pytest.raises(StreamInterrupted, match="faster"):
        list(stream)


def test_interrupted_batch_leaves_nothing(feed: Feed, reader: FeedReader, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch that fails before its end changes neither summaries nor marks nor offsets, and can be applied again."""
    feed.apply([made("a")], {0: 1})
    before = reader.state()
    with monkeypatch.context() as patched:
        patched.setattr(members.Members, "write", lambda _: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            feed.apply([made("a", 2), made("b", 2)], {0: 3})
    assert reader.state() == before
    assert feed.offsets() == {0: 1}
    feed.apply([made("a", 2), made("b", 2)], {0: 3})
    assert Stream(reader.complete()).titles == ["a", "b"]


WRITER = """
import sys
from pathlib import Path
from sinks.feed.feed import Feed
from tests.sinks.feed.conftest import gone, made
feed = Feed(Path(sys.argv[1]), "g")
at = feed.offsets().get(0, 0)
while at < 160:
    at += 1
    feed.apply([made(str(at % 50), at), made(str(at * 7 % 50), at), gone(str(at * 3 % 50), at)], {0: at})
    print(at, flush=True)
"""


def test_killed_writer_continues(tmp_path: Path, root: Path) -> None:
    """A writer that is killed again and again leaves the same summaries as one that is not."""
    path, chance, reached, kills = tmp_path / "feed", random.Random(2), 0, 0
    while reached < 160:
        with subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, cwd=root) as process:
            assert process.stdout is not None
            for line in process.stdout:
                reached = int(line)
                if kills < 3 and chance.random() < 0.04:
                    kills += 1
                    process.kill()
                    break
    feed = Feed(tmp_path / "other", "g")
    for at in range(1, 161):
        feed.apply([made(str(at % 50), at), made(str(at * 7 % 50), at), gone(str(at * 3 % 50), at)], {0: at})
    assert kills
    assert Stream(FeedReader(path).complete()).live == Stream(FeedReader(feed.path).complete()).live
    feed.close()
