"""Frames about another Gatherer's stream, and what becomes of one that no child can read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from processors.collector import unused
from processors.essence.stage import EssenceSettings
from schemas.codec import decode, encode
from schemas.ports import Logged
from schemas.records import CrawlEvent, FetchedObject, Record, Rejected, Root, Withdrawn
from streams.edges.frame_validation import FrameValidator
from streams.edges.parse_job import Frame
from streams.edges.parsing import EssenceEdge
from streams.sandbox.values import SandboxLimits
from streams.store import FolderBlobs, Offsets, Store
from streams.store.murmur2 import partition as partition_of
from streams.topology.flow import TopologySettings, topology

LIST = "http://source.example/gatherer/soif/"
STREAM = FetchedObject(url=f"{LIST}3", version=5, time=9, outcome="fetched", root=Root(url=LIST, run="r"), depth=1)
PAGE = replace(STREAM, url="http://source.example/page", root=Root(url="http://source.example/", run="r"))
GONE = Withdrawn(object_url=STREAM.url, version=5, time=9, attempt="a", path="0" * 64)
HOST, OTHER = "http://source.example", "http://other.example"


def frame(topic: str, key: str, record: Record) -> Frame:
    """Return a record as a child sends it."""
    return Frame(topic, partition_of(key.encode(), 3), key.encode(), encode(record), record)


def test_withdrawn_member_and_unused_stream_are_accepted() -> None:
    """A child may report of its own stream what is gone, and that it was not used."""
    validator = FrameValidator(STREAM, "us", 3)
    validator.check(frame("made", STREAM.url, GONE))
    validator.check(frame("crawl", HOST, unused(STREAM)))


@pytest.mark.parametrize(
    ("obj", "topic", "key", "record"),
    [
        (STREAM, "made", STREAM.url, replace(GONE, object_url=f"{LIST}4")),
        (STREAM, "made", STREAM.url, replace(GONE, version=6)),
        (STREAM, "made", f"{LIST}4", GONE),
        (STREAM, "crawl", HOST, replace(unused(STREAM), url=f"{LIST}4")),
        (STREAM, "crawl", HOST, replace(unused(STREAM), version=6)),
        (STREAM, "crawl", HOST, replace(unused(STREAM), reason="no answer")),
        (STREAM, "crawl", HOST, replace(unused(STREAM), retryable=True)),
        (STREAM, "crawl", OTHER, unused(STREAM)),
        (STREAM, "crawl", OTHER, replace(unused(STREAM), host=OTHER)),
        (PAGE, "crawl", HOST, unused(PAGE)),
    ],
)
def test_other_streams_are_not_concerned(obj: FetchedObject, topic: str, key: str, record: Record) -> None:
    """A compromised child withdraws nothing of another stream, and makes no other URL fetched again."""
    with pytest.raises(ValueError, match="not a frame"):
        FrameValidator(obj, "us", 3).check(frame(topic, key, record))


@pytest.fixture
def edge(tmp_path: Path) -> Iterator[EssenceEdge]:
    """An edge whose children are not started."""
    with Store(tmp_path / "d", {topic.name: 3 for topic in topology(TopologySettings()).topics}) as store:
        blobs = FolderBlobs(tmp_path / "blobs", owner=True)
        edge = EssenceEdge(store, blobs, EssenceSettings(gatherer="us"), 3, 1, SandboxLimits(), print)
        for partition in range(3):
            edge.open(partition, Offsets())
        yield edge


@pytest.mark.parametrize(("obj", "kinds"), [(STREAM, [Rejected, CrawlEvent]), (PAGE, [Rejected])])
def test_stream_that_no_child_can_read_is_fetched_again(edge: EssenceEdge, obj: FetchedObject, kinds: list[type]) -> None:
    """A stream that gives nothing but a dead letter is asked for as a whole; a page waits until it has changed."""
    logged = Logged("objects", 0, 0, 1, obj.url.encode(), encode(obj))
    edge.refuse(logged, RuntimeError("it crashes"), "crashed")
    (done,) = edge.finished
    records = [decode(each.value) for each in done.frames]
    assert [type(each) for each in records] == kinds
    assert records[1:] == ([unused(obj)] if obj is STREAM else [])
