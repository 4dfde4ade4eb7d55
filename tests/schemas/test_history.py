"""Published schema versions and the present one can read each other's records."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fastavro import parse_schema, schemaless_reader, schemaless_writer
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas import history
from schemas.codec import HEADER, MAGIC, DecodeError, decode, encode, parsed_schema, rabin, record_type, resolve, schema_text
from schemas.describe import versions
from schemas.evolution import fitted
from schemas.history import fingerprint_of, published, writer
from schemas.records import RECORDS, Record, Tick

Anything = Callable[[type[Record]], st.SearchStrategy[Any]]
ANEW = "run `python -m schemas.describe` and commit what it wrote"
CLASSES = {cls.__name__: cls for cls in RECORDS}


def test_present_schemas_are_published() -> None:
    """The present version of every schema is the last one in history/, verbatim."""
    known = published()
    assert all(name in CLASSES for name, _ in known)
    for name in CLASSES:
        last = max(number for other, number in known if other == name)
        assert known[name, last] == schema_text(name), ANEW
        assert [number for other, number in known if other == name] == list(range(1, last + 1))


@pytest.mark.parametrize(("name", "number"), published())
@settings(max_examples=25)
@given(data=st.data())
def test_published_and_present_versions_read_each_other(name: str, number: int, any_record: Anything, data: st.DataObject) -> None:
    """Records of a published version are read by the present one, and the other way round."""
    old = parse_schema(published()[name, number])
    record = data.draw(any_record(CLASSES[name]))
    wire = encode(record)
    plain: Any = schemaless_reader(io.BytesIO(wire[HEADER:]), parsed_schema(name), None)
    seen = fitted(plain, published()[name, number])
    assert set(seen) == {field["name"] for field in published()[name, number]["fields"]}
    written = io.BytesIO()
    schemaless_writer(written, old, fitted(seen, published()[name, number]))
    former = MAGIC + fingerprint_of(published()[name, number]) + written.getvalue()
    assert record_type(former) is CLASSES[name]
    assert type(decode(former)) is CLASSES[name]
    # The present version is read by the way of other versions, too: then nothing may change.
    if published()[name, number] == schema_text(name):
        assert resolve(name, old, wire, HEADER) == record


def test_each_published_schema_is_read_by_itself() -> None:
    """Any Avro library reads a file of history/ without the others: no record in it is only named."""
    files = sorted(Path(history.__file__).parent.joinpath("history").glob("*.avsc"))
    assert len(files) > 20
    for file in files:
        parse_schema(json.loads(file.read_text("utf-8")), {})


def evolved(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a Tick schema of another version: one field more, one less, a narrower number."""
    fields = [{"name": "time", "type": "int"}, {"name": "zone", "type": "string", "default": "UTC"}]
    return {**schema, "fields": fields}


def test_fields_of_another_version_are_resolved(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unknown fields are skipped, missing ones get their default, and a narrower number is widened."""
    other = evolved(schema_text("Tick"))
    header = fingerprint_of(other)
    monkeypatch.setattr(history, "writer", lambda found: ("Tick", parse_schema(other)) if found == header else writer(found))
    body = io.BytesIO()
    schemaless_writer(body, parse_schema(other), {"time": 7, "zone": "CET"})
    data = MAGIC + header + body.getvalue()
    assert (decode(data), record_type(data)) == (Tick(time=7), Tick)
    for damaged in (data + b"\0", data[:-1]):
        with pytest.raises(DecodeError):
            decode(damaged)


def test_unknown_record_is_not_accepted() -> None:
    """A schema with an unknown record name, or one that cannot be resolved to ours, is not accepted."""
    with pytest.raises(DecodeError, match="Nothing"):
        resolve("Nothing", parse_schema(schema_text("Tick")), b"\0", 0)
    strange = {"type": "record", "name": "harvest.Tick", "fields": [{"name": "time", "type": "string"}]}
    with pytest.raises(DecodeError, match="another version"):
        resolve("Tick", parse_schema(strange), b"\0", 0)


@pytest.mark.parametrize(
    ("value", "schema", "expected"),
    [
        ("new", {"type": "enum", "name": "E", "symbols": ["old"], "default": "old"}, "old"),
        ([b"x", "x"], {"type": "array", "items": ["string", "bytes"]}, [b"x", "x"]),
        ({"a": None, "b": 1}, {"type": "map", "values": ["null", "long"]}, {"a": None, "b": 1}),
        ({}, {"type": "record", "name": "R", "fields": [{"name": "n", "type": "int", "default": 3}]}, {"n": 3}),
        ("new", {"type": "enum", "name": "E", "symbols": ["old"]}, None),
        (True, "long", None),
        (1 << 40, "int", None),
        ({}, {"type": "record", "name": "R", "fields": [{"name": "n", "type": "int"}]}, None),
        ([], {"type": "map", "values": "int"}, None),
        (1.5, ["null", "string"], None),
    ],
)
def test_values_are_fitted_to_schema(value: Any, schema: Any, expected: Any) -> None:
    """Missing symbols and fields get their defaults, text and bytes are kept; anything else does not fit."""
    if expected is not None:
        assert fitted(value, schema) == expected
        return
    with pytest.raises(ValueError, match=r"is no|fits no|without a default"):
        fitted(value, schema)


def test_describe_adds_a_version() -> None:
    """A changed schema is a new version beside the old ones; a change of documentation alone is not."""
    assert set(versions(published())) == {f"{name}.{max(n for o, n in published() if o == name)}.avsc" for name in CLASSES}
    before = {**published(), ("Holder", 1): evolved(schema_text("Holder"))}
    assert "Holder.2.avsc" in versions(before)
    assert "Holder.1.avsc" in versions({**published(), ("Holder", 1): {**schema_text("Holder"), "doc": "otherwise"}})
    assert rabin("Holder") == fingerprint_of({**schema_text("Holder"), "doc": "otherwise"})
