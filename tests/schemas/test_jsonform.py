"""Records as JSON, and back."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.jsonform import JsonError, from_json, line, logged, template, to_json
from schemas.ports import Logged
from schemas.records import RECORDS, Annotation, CrawlEvent, Entry, FetchedObject, Link, Record, Removed, Summary, Tick
from schemas.soif import Attribute, Template

Anything = Callable[[type[Record]], st.SearchStrategy[Any]]


def readable(value: Any) -> Any:
    """Return attribute values as they are read back: as text if they are UTF-8."""
    if isinstance(value, dict):
        return {k: tuple(v.decode() if isinstance(v, bytes) and utf8(v) else v for v in values) for k, values in value.items()}
    return value


def utf8(value: bytes) -> bool:
    """Return whether bytes are UTF-8 text."""
    return value.decode("utf-8", "replace").encode() == value


@pytest.mark.parametrize("cls", RECORDS, ids=lambda cls: cls.__name__)
@settings(max_examples=25)
@given(data=st.data())
def test_json_round_trip_is_lossless(cls: type[Record], any_record: Anything, data: st.DataObject) -> None:
    """Any record is written as one line of JSON under its Avro names, and is read back unchanged."""
    record = data.draw(any_record(cls))
    written = line(record)
    assert "\n" not in written
    assert list(json.loads(written)) == list(cls.__struct_fields__)
    given_back = {name: readable(getattr(record, name)) for name in ("attributes", "annotations") if hasattr(record, name)}
    assert from_json(cls, json.loads(written)) == msgspec.structs.replace(record, **given_back)


def test_bytes_are_text_or_base64() -> None:
    """Bytes are text if they are UTF-8, and base64 otherwise."""
    entry = Entry(name="é".encode(), kind="file", size=1, mtime=2, inode=3)
    assert to_json(entry)["name"] == "é"
    assert to_json(msgspec.structs.replace(entry, name=b"\xff"))["name"] == {"base64": "/w=="}


def test_control_characters_are_escaped() -> None:
    """Control characters and bidirectional marks are escaped in a line, and read back unchanged."""
    obeyed = "".join(map(chr, (*range(0x20), *range(0x7F, 0xA0), 0x61C, 0x200E, 0x202E, 0x2028, 0x2066, 0x2069)))
    written = line({obeyed: f"Caf\u00e9 {obeyed}"})
    assert written.isprintable()
    assert json.loads(written) == {obeyed: f"Caf\u00e9 {obeyed}"}


def test_log_entry_has_position_key_and_value() -> None:
    """A log entry has its position, key and value; a tombstone's value is null; a removal is marked as one."""
    place = Logged("made", 1, 2, 3, b"http://a/", b"...")
    removed = Removed(oid="o", url="u", object_url="u", version=1, time=2, reason="gone")
    assert logged(place, removed) == {
        "topic": "made",
        "partition": 1,
        "offset": 2,
        "key": "http://a/",
        "time": 3,
        "type": "Removed",
        "value": {
            "oid": "o",
            "url": "u",
            "object_url": "u",
            "version": 1,
            "time": 2,
            "reason": "gone",
            "removed": True,
            "published": 0,
        },
    }
    nothing = json.loads(line(logged(place._replace(key=b"\xff", value=None), None)))
    assert (nothing["type"], nothing["value"]) == (None, None)
    assert logged(place._replace(key=b"\xff"), None)["key"] == {"base64": "/w=="}


def test_template_has_type_url_and_values() -> None:
    """A template has type, URL, collections, and the values of each attribute in order."""
    found = Template("FILE", "u", (Attribute("a", b"1"), Attribute("b", b"\xff"), Attribute("a", b"2")), ("UPDATE",))
    assert template(found) == {
        "template": "FILE",
        "url": "u",
        "within": ["UPDATE"],
        "attributes": {"a": ["1", "2"], "b": [{"base64": "/w=="}]},
    }


def test_fields_with_default_may_be_omitted() -> None:
    """Fields with a default may be omitted."""
    assert from_json(Link, {"url": "u"}) == Link(url="u")


WRONG: list[tuple[type[Record], Any, str]] = [
    (Link, [], "Link: expected an object"),
    (Link, {}, "Link: Missing required argument 'url'"),
    (Link, {"url": "u", "colour": "red"}, "Link: unknown field 'colour'"),
    (Link, {"url": 1}, "Link.url: expected str, found 1"),
    (Link, {"url": "u", "size": True}, "Link.size: expected int, found True"),
    (Link, {"url": "u", "size": 1.0}, "Link.size: expected int"),
    (Link, {"url": "u", "kind": "moon"}, "Link.kind: expected one of unknown, page"),
    (Link, {"url": "u", "kind": {}}, "Link.kind: expected one of"),
    (Tick, {"time": 1, "ends": []}, "Tick.ends: expected dict"),
    (Tick, {"time": 1, "ends": {"a": "b"}}, "Tick.ends.a: expected int"),
    (CrawlEvent, {"kind": "failed", "host": "h", "time": 0, "reason": "x" * 201}, "CrawlEvent: CrawlEvent: at most"),
    (CrawlEvent, {"kind": "failed", "host": "h", "time": 0, "links": [{"url": "u"}, {}]}, r"CrawlEvent.links\[1\]: Missing"),
    (CrawlEvent, {"kind": "failed", "host": "h", "time": 0, "root": 1}, "CrawlEvent.root: expected an object"),
    (FetchedObject, {"url": "u", "version": 1, "time": 1, "outcome": "fetched", "body": 1}, "body: expected text or base64"),
    (FetchedObject, {"url": "u", "version": 1, "time": 1, "outcome": "fetched", "body": {"base64": "?"}}, "body: expected base64"),
    (FetchedObject, {"url": "u", "version": 1, "time": 1, "outcome": "fetched", "body": {"base64": 1}}, "body: expected base64"),
    (Annotation, {"url": "u", "object_url": "u", "time": 1, "attributes": {"a": "b"}}, "attributes.a: expected list"),
    (
        Annotation,
        {"url": "u", "object_url": "u", "time": 1, "attributes": {"a": [1]}},
        r"attributes.a\[0\]: expected text or base64",
    ),
]


@pytest.mark.parametrize(("cls", "value", "message"), WRONG)
def test_invalid_record_is_refused_with_path(cls: type[Record], value: Any, message: str) -> None:
    """An invalid record is refused with the path of the fault, in a message of bounded length."""
    with pytest.raises(JsonError, match=message) as caught:
        from_json(cls, value)
    assert len(str(caught.value)) <= 200


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["url", "kind", "links", "base64", "root"]), inner),
)


@given(st.sampled_from([CrawlEvent, Link, Summary, FetchedObject]), JSON)
def test_any_json_is_a_record_or_json_error(cls: type[Record], value: Any) -> None:
    """Any JSON is a record or raises JsonError, and nothing else."""
    with suppress(JsonError):
        assert type(from_json(cls, value)) is cls
