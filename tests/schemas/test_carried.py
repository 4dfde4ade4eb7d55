"""Records sent to and from a child with their encoded bytes, in msgpack, arrive unchanged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from processors.essence.stage import EssenceSettings
from schemas import codec
from schemas.codec import cache_encoding, decode, encode, publish, record_type
from schemas.records import Complete, FetchedObject, Partial, Record, Summary, Withdrawn
from streams.edges.parse_job import ALONE, END, HEAD, Chunk, Job, pack, single_record, unpack, work

Anything = Callable[[type[Record]], st.SearchStrategy[Any]]
UNSAID: dict[str, Any] = {"published": 0, "copy_of": "", "copies": (), "copies_count": 0, "views": ()}


@pytest.mark.parametrize("kind", [Summary, Complete, Partial, Withdrawn])
@given(data=st.data())
def test_frame_arrives_unchanged(kind: type[Record], any_record: Anything, data: st.DataObject) -> None:
    """A frame has the record, its bytes and its key, all unchanged."""
    record = data.draw(any_record(kind))
    key, carried, value = b"key", pack(record), encode(record)
    frame = unpack(HEAD.pack(0, 3, len(key), len(carried)) + key + carried + value)
    assert frame == ("made", 3, key, value, record)
    assert unpack(HEAD.pack(0, 3, len(key), 0) + key + value) == ("made", 3, key, value, None)


@pytest.mark.parametrize("kind", ALONE)
@given(data=st.data())
def test_record_without_encoded_bytes_arrives_unchanged(kind: type[Record], any_record: Anything, data: st.DataObject) -> None:
    """A record without its encoded bytes arrives unchanged."""
    record = data.draw(any_record(kind))
    assert single_record(bytes((list(ALONE).index(kind),)) + pack(record)) == record


@given(
    st.one_of(st.just(END), st.binary(max_size=64), st.builds(bytes.__add__, st.sampled_from([b"\0", b"\1", b"\2"]), st.binary()))
)
@example(b"\0" + b"\x91" * 100_000)
def test_invalid_frame_is_rejected(frame: bytes) -> None:
    """An invalid frame from a compromised child is rejected, and raises nothing else."""
    with pytest.raises(ValueError, match="not a frame"):
        single_record(frame)


@given(data=st.data())
def test_job_arrives_unchanged(any_record: Anything, data: st.DataObject) -> None:
    """An object sent to a child arrives with its members to skip."""
    chunk = Chunk(b"settings", 2, (Job(data.draw(any_record(FetchedObject)), {"a": "b"}, b"body", "c"),), carry=True)
    assert msgspec.msgpack.decode(pack(chunk), type=Chunk) == chunk


@given(data=st.data(), said=st.integers(1, 1 << 60))
def test_adopted_summary_keeps_its_bytes(any_record: Anything, data: st.DataObject, said: int) -> None:
    """An adopted summary is returned by decode, with its bytes; once published, its bytes equal those of one built at once."""
    made: Summary = msgspec.structs.replace(data.draw(any_record(Summary)), **UNSAID)
    known: Summary = msgspec.structs.replace(made)
    wire = encode(made)
    cache_encoding(known, wire)
    assert decode(wire) is known
    assert encode(known) is wire
    copy: Summary = msgspec.structs.replace(made, published=said, copies=("a",))
    assert encode(publish(known, published=said, copies=("a",))) == encode(copy)


def test_child_keeps_no_summary_in_memory() -> None:
    """A child keeps none of the summaries that it encodes in memory, however many members an object has."""
    obj = FetchedObject(url="file:///d/x.txt", version=7, time=1, outcome="fetched", size=4)
    job = Job(obj, body=b"text")
    frames: list[bytes] = []
    work(pack(Chunk(pack(EssenceSettings(gatherer="g")), 2, (job,))), None, frames.append, lambda _: None)
    values = [unpack(frame).value for frame in frames if frame != END]
    assert Summary in map(record_type, values)
    assert not any(map(codec._memory.of_data, values))


def test_published_bytes_are_not_adopted() -> None:
    """Bytes whose tail differs from that of a fresh summary are not adopted."""
    made = Summary(oid="1", url="u", object_url="u", gatherer="g", version=1, time=1, type="Text", published=7)
    wire = encode(made)
    known = msgspec.structs.replace(made)
    cache_encoding(known, wire)
    assert decode(wire) is made
