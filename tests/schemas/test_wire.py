"""The Confluent wire format, converted from and to single-object encoding."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from fastavro import parse_schema, schemaless_reader, schemaless_writer
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.codec import DecodeError, decode, encode, publish, schema_text, union_text
from schemas.records import RECORDS, Complete, Confirmed, FetchRequest, Partial, Record, Removed, Root, Summary, Tick, Withdrawn
from schemas.wire import SINGLE, ConfluentWire

Anything = Callable[[type[Record]], st.SearchStrategy[Any]]
CARRIES: dict[str, Sequence[type[Record]]] = {
    "made": (Summary, Complete, Partial, Withdrawn, Confirmed),
    **{cls.__name__: (cls,) for cls in RECORDS},
}
NUMBERS = {name: number for number, name in enumerate(CARRIES, 300)}
TEXTS = {NUMBERS[name]: json.dumps(union_text([cls.__name__ for cls in carries])) for name, carries in CARRIES.items()}
TICK = Tick(time=1, ends={"made-0": 7})


def confluent(texts: dict[int, str] = TEXTS) -> ConfluentWire:
    """Return the format over a registry with some schemas."""
    return ConfluentWire(CARRIES, NUMBERS.__getitem__, texts.get)


@pytest.mark.parametrize("topic", CARRIES)
@settings(max_examples=20)
@given(data=st.data())
def test_wire_format_round_trips(topic: str, any_record: Anything, data: st.DataObject) -> None:
    """The bytes follow the documented format, are readable by any Avro reader with the schema, and convert back unchanged."""
    record = data.draw(st.sampled_from(CARRIES[topic]).flatmap(any_record))
    wire = confluent()
    framed = wire.frame(topic, encode(record))
    assert framed[:5] == b"\0" + NUMBERS[topic].to_bytes(4, "big")
    body = io.BytesIO(framed[5:])
    plain: Any = schemaless_reader(body, parse_schema(json.loads(TEXTS[NUMBERS[topic]])), None)
    assert list(plain) == list(type(record).__struct_fields__)
    assert body.read() == b""
    assert wire.plain(framed) == encode(record)
    assert decode(wire.plain(framed)) == record


def test_published_summary_is_framed_alike(any_record: Anything) -> None:
    """A summary spliced by `publish` is framed like one encoded in one piece."""
    summary = Summary(oid="1", url="u", object_url="u", gatherer="g", version=1, time=1, type="Text")
    known = decode(encode(summary))
    assert isinstance(known, Summary)
    made = publish(known, published=9, copies=("a",), copies_count=1)
    wire = confluent()
    assert decode(wire.plain(wire.frame("made", encode(made)))) == made


def test_single_object_encoding_is_accepted() -> None:
    """A reader accepts both formats; other bytes pass unchanged and are rejected by `decode`."""
    wire = confluent()
    assert wire.plain(encode(TICK)) == SINGLE.plain(SINGLE.frame("any", encode(TICK))) == encode(TICK)
    assert wire.frame("Tick", b"junk") == wire.plain(b"junk") == b"junk"
    with pytest.raises(DecodeError, match=r"kafka\.registry is not set"):
        SINGLE.plain(wire.frame("Tick", encode(TICK)))


def test_writer_schema_is_fetched_once() -> None:
    """The writer's schema, if unknown, is fetched once, and the record is converted to ours, also in a union."""
    other = {**schema_text("Tick"), "fields": [{"name": "time", "type": "int"}, {"name": "zone", "type": "string"}]}
    asked = []

    def lookup(number: int) -> str:
        asked.append(number)
        return json.dumps(other if number == 1 else [schema_text("Complete"), other])

    wire = ConfluentWire(CARRIES, NUMBERS.__getitem__, lookup)
    body = io.BytesIO()
    schemaless_writer(body, parse_schema(other), {"time": 7, "zone": "CET"})
    for _ in range(2):
        assert decode(wire.plain(b"\0\0\0\0\1" + body.getvalue())) == Tick(time=7)
        assert decode(wire.plain(b"\0\0\0\0\2" + b"\2" + body.getvalue())) == Tick(time=7)
    assert asked == [1, 2]


def test_branch_may_use_type_of_earlier_branch() -> None:
    """A branch may refer to a type defined in an earlier one, as the specification allows for a schema on its own."""
    classes = ("CrawlEvent", "FetchRequest")
    text = json.dumps(union_text(classes))
    assert text.count('"name": "Root"') == 1
    wire = ConfluentWire({"both": [c for c in RECORDS if c.__name__ in classes]}, lambda _: 1, lambda _: text)
    removed = Removed(oid="o", url="u", object_url="u", version=1, time=2, reason="gone")
    assert wire.frame("both", encode(removed)) == encode(removed)
    record = FetchRequest(url="u", host="h", version=1, time=2, root=Root(url="r", run="1"))
    assert decode(wire.plain(wire.frame("both", encode(record)))) == record


@pytest.mark.parametrize(
    ("data", "match"),
    [
        (b"\0", "cut short"),
        (b"\0\0\0\0\x63", "no schema 99"),
        (b"\0" + NUMBERS["made"].to_bytes(4, "big") + b"\x0a", "branch 5"),
        (b"\0" + NUMBERS["made"].to_bytes(4, "big") + b"\x01", "branch -1"),
        (b"\0" + NUMBERS["made"].to_bytes(4, "big") + b"\xff" * 12, "without an end"),
        (b"\0\0\0\0\1junk", "schema 1"),
        (b"\0\0\0\0\2junk", "schema 2"),
        (b"\0\0\0\0\3junk", "string"),
    ],
)
def test_invalid_record_raises_decode_error(data: bytes, match: str) -> None:
    """An invalid record raises DecodeError with a bounded message, whatever schema the registry has under its number."""
    with pytest.raises(DecodeError, match=match) as raised:
        confluent({**TEXTS, 1: "no json", 2: '{"type": "record"}', 3: '"string"'}).plain(data)
    assert len(str(raised.value)) <= 200


@given(st.binary().map(lambda tail: b"\0" + tail))
def test_any_bytes_raise_only_decode_error(data: bytes) -> None:
    """Any bytes raise nothing but DecodeError."""
    with pytest.raises(DecodeError, match=r"^.{,200}$"):
        decode(confluent().plain(data))
