"""The classes and the `.avsc` files agree."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
import pytest

import schemas
from schemas import records
from schemas.codec import schema_text
from schemas.records import RECORDS, CrawlEvent, Record, Rejected, Summary

FOLDER = Path(schemas.__file__).parent
PRIMITIVES: dict[type, set[str]] = {
    str: {"string"},
    bytes: {"bytes"},
    int: {"int", "long"},
    bool: {"boolean"},
    type(None): {"null"},
}


def named(schema: Any, known: dict[str, Any]) -> dict[str, Any]:
    """Return every record and enum of an expanded schema by name."""
    if isinstance(schema, list):
        for one in schema:
            named(one, known)
    elif isinstance(schema, dict):
        if schema.get("type") in ("record", "enum"):
            known[schema["name"]] = schema
        for key in ("type", "items", "values", "fields"):
            named(schema.get(key), known)
    return known


def problem(annotation: Any, avro: Any, known: dict[str, Any]) -> str:
    """Return the difference between a Python annotation and an Avro type; "" if there is none."""
    avro = known.get(avro, avro) if isinstance(avro, str) else avro
    origin, inner = get_origin(annotation), get_args(annotation)
    if annotation in PRIMITIVES:
        return "" if isinstance(avro, str) and avro in PRIMITIVES[annotation] else f"{annotation} is {avro}"
    if origin in (Union, UnionType):
        if not isinstance(avro, list) or len(avro) != len(inner):
            return f"{annotation} is {avro}"
        return "".join("" if any(not problem(a, b, known) for b in avro) else f"{a} is not in {avro}" for a in inner)
    if not isinstance(avro, dict):
        return f"{annotation} is {avro}"
    if origin is Literal:
        return "" if avro["type"] == "enum" and set(avro["symbols"]) == set(inner) else f"{annotation} is {avro}"
    if origin is tuple:
        return problem(inner[0], avro["items"], known) if avro["type"] == "array" else f"{annotation} is {avro}"
    if origin is not None and issubclass(origin, Mapping):
        return problem(inner[1], avro["values"], known) if avro["type"] == "map" else f"{annotation} is {avro}"
    return "" if avro["type"] == "record" and avro["name"] == annotation.__name__ else f"{annotation} is {avro}"


def plain(default: Any) -> Any:
    """Return a Python default in Avro's JSON form."""
    return list(default) if isinstance(default, tuple) else dict(default) if isinstance(default, Mapping) else default


@pytest.mark.parametrize("cls", RECORDS, ids=lambda cls: cls.__name__)
def test_class_has_fields_of_schema(cls: type[Record]) -> None:
    """A class has the fields of its schema, in the same order, with the same types and defaults."""
    schema = schema_text(cls.__name__)
    known = named(schema, {})
    hints = get_type_hints(cls)
    ours = msgspec.structs.fields(cls)
    assert schema["namespace"] == "harvest"
    assert [field.name for field in ours] == [field["name"] for field in schema["fields"]]
    for field, avro in zip(ours, schema["fields"], strict=True):
        assert problem(hints[field.name], avro["type"], known) == ""
        assert field.required == ("default" not in avro), field.name
        if not field.required:
            default = field.default if field.default is not msgspec.NODEFAULT else field.default_factory()
            assert plain(default) == avro["default"], field.name


def test_all_schemas_have_a_class() -> None:
    """Every `.avsc` file is the schema of a record class or of a type used by one, and has the name of its file."""
    used: dict[str, Any] = {}
    for cls in RECORDS:
        named(schema_text(cls.__name__), used)
    files = {path.stem: json.loads(path.read_text("utf-8")) for path in FOLDER.glob("*.avsc")}
    assert {name for name, schema in files.items() if schema["type"] == "record"} == {cls.__name__ for cls in RECORDS}
    assert set(files) <= set(used)
    assert all(name == schema["name"] for name, schema in files.items())


def test_enums_have_a_default() -> None:
    """Every enum names a default for unknown symbols, so that it can gain symbols without breaking readers."""
    found: dict[str, Any] = {}
    for cls in RECORDS:
        named(schema_text(cls.__name__), found)
    enums = [schema for schema in found.values() if schema["type"] == "enum"]
    assert len(enums) == 6
    assert all(schema["default"] in schema["symbols"] for schema in enums)


@pytest.mark.parametrize("cls", RECORDS, ids=lambda cls: cls.__name__)
def test_every_schema_is_documented(cls: type[Record]) -> None:
    """Every schema is documented, and in longer ones the fields that need it are, too."""
    assert len(schema_text(cls.__name__)["doc"]) > 20


def test_values_beyond_bounds_are_refused() -> None:
    """Reasons, details and links beyond their bounds are refused when the record is built."""
    link = records.Link(url="http://a/")
    CrawlEvent(kind="failed", host="h", time=0, reason="x" * 200, links=(link,) * 1000)
    Rejected(stage="s", reason="x" * 200, time=0, detail="x" * 2000)
    with pytest.raises(ValueError, match="200"):
        CrawlEvent(kind="failed", host="h", time=0, reason="x" * 201)
    with pytest.raises(ValueError, match="1,000"):
        CrawlEvent(kind="discovered", host="h", time=0, links=(link,) * 1001)
    with pytest.raises(ValueError, match="reason"):
        Rejected(stage="s", reason="x" * 201, time=0)
    with pytest.raises(ValueError, match="detail"):
        Rejected(stage="s", reason="", time=0, detail="x" * 2001)


def test_content_digest_joins_three_digests() -> None:
    """The content digest joins MD5, length and SHA-256; empty files and those without a digest have none."""
    summary = Summary(oid="o", url="u", object_url="u", gatherer="g", version=1, time=1, type="HTML", size=3, md5="m", sha256="s")
    assert summary.content == "m-3-s"
    assert msgspec.structs.replace(summary, size=0).content == ""
    assert msgspec.structs.replace(summary, sha256="").content == ""


@pytest.mark.parametrize("cls", RECORDS, ids=lambda cls: cls.__name__)
def test_record_is_immutable(cls: type[Record]) -> None:
    """A record cannot be changed after it is built."""
    assert cls.__struct_config__.frozen
