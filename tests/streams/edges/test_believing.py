"""Validation of frames from the parser processes, limits on buffered frames, and limits on retries."""

from __future__ import annotations

import asyncio
import io
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest

from processors.essence import package_buffer
from processors.essence.member import BEHIND
from processors.essence.stage import EssenceSettings, essence
from processors.identity import frontier_key, oid
from schemas.codec import decode, encode
from schemas.records import Complete, CrawlEvent, FetchedObject, File, Link, Partial, Record, Rejected, Root, Summary, Validators
from streams.config.settings import SettingsError, load
from streams.edges import parsing
from streams.edges.parse_job import DAMAGED, END, HEAD, TOPICS, pack
from streams.edges.parsing import CHUNK_BYTES, CorruptChildError, EssenceEdge
from streams.edges.tries import MEMBERS, PATIENCE, RetryState
from streams.edges.work import ALONE, Work
from streams.sandbox.task import Clock
from streams.sandbox.values import Crashed, Flooded, SandboxLimits, TimedOut
from streams.store import FolderBlobs, Offsets, Store
from streams.store.murmur2 import partition as partition_of
from streams.topology.flow import TopologySettings, topology

PAGE, FOLDER, FILE = "http://a.example/x.pdf", "file:///home/me/docs/", "file:///home/me/docs/a.zip"
ELSE = "http://victim.example/"
LIMITS = SandboxLimits(deadline=10.0, whole=100.0)


@dataclass
class Given:
    """An edge, and the work items that it has started, by URL."""

    edge: EssenceEdge
    works: dict[str, Work]

    def say(self, url: str, topic: str, key: str, record: Record, partition: int = -1, carried: bytes = b"") -> None:
        """Feed the edge a frame with a record, as a child sends it for an object."""
        name = key.encode()
        at = partition_of(name, 3) if partition < 0 else partition
        head = HEAD.pack(TOPICS.index(topic), at, len(name), len(carried))
        self.edge._receiver([self.works[url]])(head + name + carried + encode(record))


def root(url: str) -> Root:
    """Build a root with this URL."""
    return Root(url=url, run="9" * 13, depth=10)


@pytest.fixture
def given(tmp_path: Path) -> Iterator[Given]:
    """One edge with three objects in progress."""
    with Store(tmp_path / "d", {t.name: 3 for t in topology(TopologySettings()).topics}) as store:
        for url, at in ((PAGE, root("http://a.example/")), (FOLDER, root(FOLDER)), (FILE, root(FOLDER))):
            obj = FetchedObject(url=url, version=5, time=1, outcome="fetched", body=b"x", size=1, root=at, depth=2)
            store.append("objects", [(url.encode(), obj)])
        blobs = FolderBlobs(tmp_path / "blobs", owner=True)
        edge = EssenceEdge(store, blobs, EssenceSettings(gatherer="g"), 3, 1, LIMITS, print)
        for partition in range(3):
            edge.open(partition, Offsets())
        works = [work for logged in edge.take(9) if (work := edge._work(logged))]
        yield Given(edge, {work.logged.key.decode(): work for work in works})


def summary(url: str = PAGE, path: str = "", **changed: object) -> Summary:
    """Build a summary of an object or of a member."""
    whole = f"{url}#{path}" if path else url
    made = Summary(
        oid=oid("g", whole), url=whole, object_url=url, path=path, gatherer="g", version=5, time=1, type="PDF", attempt="5"
    )
    return msgspec.structs.replace(made, **changed)


def found(url: str = PAGE, to: str = ELSE, **changed: object) -> CrawlEvent:
    """Build the event of a discovered link."""
    at = root("http://a.example/") if url == PAGE else root(FOLDER)
    made = CrawlEvent(kind="discovered", host=frontier_key(to), time=1, url=url, version=5, depth=2, root=at, links=(Link(url=to),))
    return msgspec.structs.replace(made, **changed)


def test_records_of_its_own_object_are_accepted(given: Given) -> None:
    """Every kind of record that essence produces for an object is accepted: members, links, listings and dead letters included."""
    given.say(PAGE, "made", PAGE, summary())
    given.say(PAGE, "made", PAGE, summary(path="é/b#c.txt"))
    given.say(PAGE, "made", PAGE, Complete(object_url=PAGE, version=5, time=1, attempt="5", count=2))
    given.say(PAGE, "made", PAGE, Partial(object_url=PAGE, version=5, time=1, attempt="5", count=2, reason="cut"))
    given.say(PAGE, "files", PAGE, File(object_url=PAGE, url=PAGE, path="", version=5, type="PDF", evidence="name"))
    given.say(PAGE, "rejected", PAGE, Rejected(stage="essence", reason="no", time=1, url=PAGE, version=5, key=PAGE.encode()))
    given.say(PAGE, "crawl", frontier_key(ELSE), found())
    given.say(FOLDER, "crawl", FOLDER, found(FOLDER, FOLDER + "a", host=FOLDER))
    given.say(FILE, "crawl", FOLDER, found(FILE, FILE, kind="refused", version=0, host=FOLDER))
    assert len(given.works[PAGE].frames) == 7


SECRETS = "file:///home/me/.keys/"
FORGED: tuple[tuple[str, str, str, Record], ...] = (
    (PAGE, "crawl", SECRETS, found(to=SECRETS, kind="seeded", root=root(SECRETS))),
    (PAGE, "crawl", SECRETS, found(to=SECRETS, root=root(SECRETS))),
    (PAGE, "crawl", SECRETS, found(to=SECRETS)),
    (FILE, "crawl", SECRETS, found(FILE, SECRETS)),
    (FOLDER, "crawl", FOLDER, found(FOLDER, SECRETS, host=FOLDER)),
    (PAGE, "crawl", frontier_key(ELSE), found(kind="gone")),
    (PAGE, "crawl", frontier_key(ELSE), found(version=9)),
    (PAGE, "crawl", frontier_key(ELSE), found(url=ELSE)),
    (PAGE, "crawl", frontier_key(ELSE), found(depth=0)),
    (PAGE, "crawl", frontier_key(ELSE), found(robots=b"")),
    (PAGE, "crawl", frontier_key(ELSE), found(validators=Validators(etag="x"))),
    (PAGE, "crawl", "other", found()),
    (PAGE, "made", ELSE, Complete(object_url=ELSE, version=2**62, time=1, attempt="", count=0, reason="gone")),
    (PAGE, "made", PAGE, Complete(object_url=ELSE, version=5, time=1, attempt="", count=0, reason="gone")),
    (PAGE, "made", PAGE, Complete(object_url=PAGE, version=2**62, time=1, attempt="", count=0, reason="gone")),
    (PAGE, "made", PAGE, summary(oid=oid("g", ELSE))),
    (PAGE, "made", PAGE, summary(url=ELSE)),
    (PAGE, "made", PAGE, summary(ELSE)),
    (PAGE, "made", PAGE, summary(version=6)),
    (PAGE, "made", PAGE, summary(gatherer="other")),
    (PAGE, "made", PAGE, summary(path="a", oid=oid("g", PAGE))),
    (PAGE, "made", PAGE, found()),
    (PAGE, "files", PAGE, File(object_url=ELSE, url=ELSE, path="", version=5, type="PDF", evidence="name")),
    (PAGE, "files", PAGE, summary()),
    (PAGE, "rejected", PAGE, Rejected(stage="essence", reason="no", time=1, url=ELSE, version=5, key=PAGE.encode())),
    (PAGE, "rejected", PAGE, Rejected(stage="essence", reason="no", time=1, url=PAGE, version=5, key=PAGE.encode(), topic="crawl")),
    (PAGE, "rejected", PAGE, Rejected(stage="fetch", reason="no", time=1, url=PAGE, version=5, key=PAGE.encode())),
)


def test_damaged_frame_is_accepted_only_first_and_for_a_blob(given: Given) -> None:
    """A DAMAGED frame is accepted only for a body in the blob store, and only before any other frame of the object."""
    work = given.works[PAGE]
    receive = given.edge._receiver([work])
    with pytest.raises(CorruptChildError):
        receive(DAMAGED)
    work.blob = "0" * 64
    receive(DAMAGED)
    with pytest.raises(CorruptChildError):
        given.say(PAGE, "made", PAGE, summary())
    work.damaged = False
    given.say(PAGE, "made", PAGE, summary())
    with pytest.raises(CorruptChildError):
        receive(DAMAGED)


@pytest.mark.parametrize(("url", "topic", "key", "record"), FORGED)
def test_records_of_another_object_are_rejected(given: Given, url: str, topic: str, key: str, record: Record) -> None:
    """A compromised child cannot change anything but the object that it was given."""
    with pytest.raises(CorruptChildError):
        given.say(url, topic, key, record)
    assert not any(work.frames for work in given.works.values())


LISTED = {**msgspec.structs.asdict(summary()), "attributes": {"title": [1]}}
"""A summary with a number as its title."""
DONE = Complete(object_url=PAGE, version=5, time=1, attempt="5", count=2)


def test_msgpack_copy_of_a_record_is_used(given: Given) -> None:
    """A record sent in msgpack too is used as it is, and its Avro bytes are not decoded again; crawl events may not be sent so."""
    made, link = summary(attributes={"title": ("é", b"\xff")}), found()
    given.say(PAGE, "made", PAGE, made, carried=pack(made))
    given.say(PAGE, "made", PAGE, DONE, carried=pack(DONE))
    first, second = given.works[PAGE].frames
    assert (first.record, second.record) == (made, DONE)
    assert first.record is not made
    assert decode(first.value) is first.record
    with pytest.raises(CorruptChildError):
        given.say(PAGE, "crawl", frontier_key(ELSE), link, carried=pack(link))


@pytest.mark.parametrize(
    "changed",
    [
        {"oid": oid("g", ELSE)},
        {"url": ELSE},
        {"object_url": ELSE},
        {"path": "a"},
        {"gatherer": "other"},
        {"version": 6},
        {"published": 7},
        {"copy_of": "x"},
        {"copies": ("x",)},
        {"copies_count": 1},
    ],
)
def test_identity_is_checked_in_avro_and_msgpack(given: Given, changed: dict[str, Any]) -> None:
    """Identity fields and fields set by Brokers are checked both in the Avro bytes and in the msgpack copy of a summary."""
    with pytest.raises(CorruptChildError):
        given.say(PAGE, "made", PAGE, summary(), carried=pack(summary(**changed)))
    if "published" not in changed and not set(changed) & {"copy_of", "copies", "copies_count"}:
        with pytest.raises(CorruptChildError):
            given.say(PAGE, "made", PAGE, summary(**changed), carried=pack(summary()))
    assert not given.works[PAGE].frames


@pytest.mark.parametrize(
    "carried", [b"\xc1", b"\x80", pack(DONE), pack(1), pack(summary())[:-1], pack(summary()) + b"\0", pack(LISTED)]
)
def test_invalid_msgpack_copy_is_rejected(given: Given, carried: bytes) -> None:
    """A msgpack part that is no valid record of the same kind is rejected, and so is the completion of another object's attempt."""
    with pytest.raises(CorruptChildError):
        given.say(PAGE, "made", PAGE, summary(), carried=carried)
    for other in ({"object_url": ELSE}, {"version": 9}):
        with pytest.raises(CorruptChildError):
            given.say(PAGE, "made", PAGE, DONE, carried=pack(msgspec.structs.replace(DONE, **other)))
    assert not given.works[PAGE].frames


def test_truncated_or_random_record_is_rejected(given: Given) -> None:
    """A truncated or random record, or a wrong partition, raises NonsenseError and no other exception."""
    whole, key = encode(summary()), PAGE.encode()
    at = partition_of(key, 3)
    head = HEAD.pack(0, at, len(key), 0) + key
    receive = given.edge._receiver([given.works[PAGE]])
    for value in (b"", whole[:10], whole[:40], whole[:10] + b"\xff" * 40, b"\0" * 40):
        with pytest.raises(CorruptChildError):
            receive(head + value)
    with pytest.raises(CorruptChildError):
        given.say(PAGE, "made", PAGE, summary(), partition=(at + 1) % 3)


def test_full_buffers_hold_children_back(given: Given, monkeypatch: pytest.MonkeyPatch) -> None:
    """A child whose frames exceed the limits of the buffers waits until the runner takes them."""
    monkeypatch.setattr(parsing, "HELD_BYTES", 100_000)
    monkeypatch.setattr(parsing, "STAGED_BYTES", 10_000)

    async def scenario() -> None:
        receive = given.edge._receiver([given.works[PAGE]])
        key = PAGE.encode()
        value = encode(summary(attributes={"partial-text": ("x" * 4_000,)}))
        frame = HEAD.pack(0, partition_of(key, 3), len(key), 0) + key + value
        waits = None
        for _ in range(100):
            if (waits := receive(frame)) is not None:
                break
        assert waits is not None
        assert not waits.done()
        assert sum(len(f.value) for part in given.edge.staging for f in part.frames) < 110_000
        given.edge.drain_staging()
        assert waits.done()
        assert receive(frame) is None
        assert receive(END) is None

    asyncio.run(scenario())


def test_object_fails_after_too_many_slow_members(given: Given) -> None:
    """Members that time out are skipped; after PATIENCE of them the rest is listed only, then not listed, then the object fails."""
    edge, work = given.edge, given.works[FILE]
    for number in range(PATIENCE):
        assert not work.stop
        assert edge._left([work], TimedOut(f"0\nm{number}"), work.clock) == [work]
    assert (sorted(work.skip), work.stop, work.ends) == (sorted(f"m{n}" for n in range(PATIENCE)), f"m{PATIENCE - 1}", {})
    edge._left([work], TimedOut("0\n\nm99"), work.clock)
    assert (list(work.ends), "" in work.skip) == (["m99"], False)
    edge._left([work], TimedOut("0\n\nm99"), work.clock)
    assert "" in work.skip
    assert edge._left([work], TimedOut("0\n"), work.clock) == []
    assert [decode(f.value).reason for f in edge.finished[-1].frames] == ["timed out (deadline)"]  # type: ignore[attr-defined]
    other, clock = given.works[PAGE], Clock()
    clock.spent = LIMITS.whole + 1
    edge._left([other], TimedOut("0\nm", "whole"), clock)
    assert (list(other.skip), other.clock.spent) == ([""], LIMITS.whole - LIMITS.deadline)


def test_half_the_time_ends_the_search_for_slow_members() -> None:
    """Once half of an object's time is spent, the next member that times out is the last one that is skipped separately."""
    tries = RetryState()
    tries.failed_at("m0", TimedOut("m0"), LIMITS)
    tries.clock.spent = LIMITS.whole / 2
    tries.failed_at("m1", Crashed(11, 0, "m1"), LIMITS)
    assert (list(tries.skip), tries.stop) == (["m0", "m1"], "m1")


def test_no_member_is_opened_after_too_many_crashes() -> None:
    """After MEMBERS crashes no further member is opened, but the object itself still is."""
    tries = RetryState()
    for number in range(MEMBERS):
        assert not tries.stop
        tries.failed_at(f"m{number}", Crashed(11, 0, ""), LIMITS)
    assert (len(tries.skip), tries.stop, "" in tries.skip) == (MEMBERS, f"m{MEMBERS - 1}", False)


@pytest.mark.parametrize(("container", "member"), [("", "m"), ("a.7z", "a.7z#m")])
def test_member_that_cannot_be_skipped_ends_its_container(container: str, member: str) -> None:
    """If a member times out even while it is skipped, its container ends there; earlier members keep their summaries."""
    tries = RetryState()
    tries.failed_at(member, TimedOut(member), LIMITS)
    tries.failed_at(BEHIND + member, TimedOut(BEHIND + member), LIMITS)
    assert (list(tries.skip), list(tries.ends), tries.stop) == ([member], [member], "")
    # A container that cannot be ended either is not opened.
    tries.failed_at(BEHIND + member, TimedOut(BEHIND + member), LIMITS)
    assert list(tries.skip) == [member, container]


def test_too_much_output_of_a_chunk_is_attributed_to_no_object(given: Given) -> None:
    """Too much output of several objects in a chunk is attributed to none: one is retried alone, and rejected if it repeats."""
    edge, chunk = given.edge, [given.works[PAGE], given.works[FILE]]
    [alone] = edge._left(chunk, Flooded("0\n", "total"), Clock())
    assert not alone.skip
    assert edge._left([alone], Flooded("0\n", "total"), Clock()) == [alone]
    assert alone.skip == {"": "too much output (total)"}


def test_frame_setting_below_the_chunk_size_is_refused() -> None:
    """A value of sandbox.frame below the size of a chunk is refused in one line."""
    with pytest.raises(SettingsError, match=r"sandbox\.frame: input should be greater than or equal to 4194304"):
        load({"sandbox.frame": 400_000}, environ={})
    assert 2 * CHUNK_BYTES + ALONE < 4 << 20


def test_members_before_the_failure_keep_their_summaries() -> None:
    """If an object is given up at a member, earlier ones keep their summaries, later ones are Unrecognized, and it is Partial."""
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w") as archive:
        for name in "abcd":
            archive.writestr(f"{name}.txt", f"text of {name}")
    obj = FetchedObject(url=FILE, version=5, time=1, outcome="fetched", body=raw.getvalue(), size=raw.tell())
    asked = (obj, None, EssenceSettings(gatherer="g"), {"b.txt": "timed out (deadline)"}, lambda _: None, "b.txt")
    records, ended = list(essence(*asked)), list(essence(*asked, {"b.txt": "timed out (deadline)"}))
    before = [("a.txt", "RawText"), ("b.txt", "Unrecognized")]
    behind = [("c.txt", "Unrecognized"), ("d.txt", "Unrecognized"), ("", "Zip")]
    why = "given up: timed out (deadline)"
    assert [(r.path, r.type) for r in records if isinstance(r, Summary)] == before + behind
    rejected = [(r.path, r.reason) for r in records if isinstance(r, Rejected)]
    assert rejected == [("b.txt", "timed out (deadline)"), ("c.txt", why), ("d.txt", why), ("", why)]
    assert [(r.path, r.type) for r in ended if isinstance(r, Summary)] == before + behind[2:]
    for made in (records, ended):
        assert isinstance(made[-1], Partial)
        assert made[-1].reason == why
    assert len({made[-1].attempt for made in (records, ended) if isinstance(made[-1], Partial)}) == 2


def test_members_after_a_nested_archive_are_listed() -> None:
    """If an object is given up in a nested archive, the members after that archive are listed too, each with the reason."""
    inner, raw = io.BytesIO(), io.BytesIO()
    for out, names in ((inner, "ab"), (raw, "cde")):
        with zipfile.ZipFile(out, "w") as archive:
            for name in names:
                archive.writestr(f"{name}.zip" if name == "d" else f"{name}.txt", inner.getvalue() if name == "d" else name)
    obj = FetchedObject(url=FILE, version=5, time=1, outcome="fetched", body=raw.getvalue(), size=raw.tell())
    records = essence(obj, None, EssenceSettings(gatherer="g"), {"d.zip#a.txt": "slow"}, lambda _: None, "d.zip#a.txt")
    rejected = [(r.path, r.reason) for r in records if isinstance(r, Rejected)]
    why = "given up: slow"
    assert rejected == [("d.zip#a.txt", "slow"), ("d.zip#b.txt", why), ("d.zip", why), ("e.txt", why), ("", why)]


def _zip(members: Mapping[str, str | bytes]) -> bytes:
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w") as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    return raw.getvalue()


def _around() -> FetchedObject:
    """A nested archive with four members, between two documents."""
    inner = _zip({f"m{n}.txt": f"text {n}" for n in range(4)})
    raw = _zip({"a.txt": "before", "x.zip": inner, "z.txt": "behind"})
    return FetchedObject(url=FILE, version=5, time=1, outcome="fetched", body=raw, size=len(raw))


@pytest.mark.parametrize("skip", [{}, {"x.zip#m1.txt": "slow"}], ids=["behind one that was read", "behind one that was skipped"])
def test_documents_around_an_ended_container_are_read(skip: dict[str, str]) -> None:
    """A container that times out ends after its last finished member; the documents around it have their summaries."""
    records = list(essence(_around(), None, EssenceSettings(gatherer="g"), skip, lambda _: None, "", {"x.zip#m1.txt": "slow"}))
    read = [r.path for r in records if isinstance(r, Summary) and r.type == "RawText"]
    assert read == ["a.txt", "x.zip#m0.txt", *([] if skip else ["x.zip#m1.txt"]), "z.txt"]
    assert [(r.path, r.reason) for r in records if isinstance(r, Rejected) and r.path not in skip] == [("x.zip", "given up: slow")]
    assert isinstance(records[-1], Partial)


def test_unread_members_of_a_package_are_rejected_with_reason() -> None:
    """In an archive already recognized as a package, each member that was not opened is rejected with the reason."""
    members = {"a-1/PKG-INFO": "Name: a\nVersion: 1\n", **{f"a-1/{name}.py": f"def {name}(): pass\n" for name in "abcdefgh"}}
    raw = _zip(members)
    obj = FetchedObject(url=FILE, version=5, time=1, outcome="fetched", body=raw, size=len(raw))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(package_buffer, "WAITING", 10)
        records = list(essence(obj, None, EssenceSettings(gatherer="g"), {"a-1/d.py": "slow"}, lambda _: None, "a-1/d.py"))
    told = {r.path: r.reason for r in records if isinstance(r, Rejected)}
    assert told == {"a-1/d.py": "slow", **{f"a-1/{name}.py": "given up: slow" for name in "efgh"}, "": "given up: slow"}
