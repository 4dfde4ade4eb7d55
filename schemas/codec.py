"""Avro in and out: a record to bytes and back, in Avro's single-object encoding.

Single-object encoding (Avro 1.12 specification, "Single-object encoding"): C3 01, the schema's 64-bit Rabin fingerprint,
little-endian, then the body. It tells the type of a record by itself, so a topic may carry several.

Laws:
- decode(encode(r)) == r for every record.
- Bytes that are no record of ours raise DecodeError, whose message is bounded; nothing else is raised.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from functools import cache
from importlib import resources
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import msgspec
from fastavro import parse_schema, schemaless_reader, schemaless_writer
from fastavro.schema import fingerprint, to_parsing_canonical_form

from schemas import records
from schemas.records import RECORDS, Record

MAGIC = b"\xc3\x01"
HEADER = 10
"""Bytes before the body: the magic and the fingerprint."""


class DecodeError(ValueError):
    """The bytes are no record of ours: whoever wrote them is at fault."""


def schema_text(name: str) -> dict[str, Any]:
    """The schema of a record by its name, self-contained: types that other files define stand in it where first used.

    Raises FileNotFoundError for a name without an `.avsc`.
    """
    inlined: set[str] = set()

    def load(wanted: str) -> dict[str, Any]:
        text = resources.files("schemas").joinpath(f"{wanted}.avsc").read_text("utf-8")
        loaded: dict[str, Any] = json.loads(text)
        return loaded

    def expand(node: Any) -> Any:
        if isinstance(node, str) and node[:1].isupper():
            return node if node in inlined else expand(load(node))
        if isinstance(node, list):
            return [expand(n) for n in node]
        if isinstance(node, dict):
            if node.get("type") in ("record", "enum"):
                inlined.add(node["name"])
            return {k: expand(v) if k in ("type", "items", "values", "fields") else v for k, v in node.items()}
        return node

    expanded: dict[str, Any] = expand(load(name))
    return expanded


@cache
def parsed_schema(name: str) -> Any:
    """The parsed schema of a record, as fastavro takes it."""
    return parse_schema(schema_text(name))


@cache
def rabin(name: str) -> bytes:
    """The 8 bytes that stand for a record's schema in single-object encoding."""
    # fastavro gives the fingerprint as the hex of its little-endian bytes.
    return bytes.fromhex(fingerprint(to_parsing_canonical_form(schema_text(name)), "CRC-64-AVRO"))


def _nested(annotation: Any) -> tuple[type[Record] | None, bool]:
    """The record class inside an annotation, if any, and whether it stands in a tuple."""
    if get_origin(annotation) in (Union, UnionType):
        found = [_nested(a) for a in get_args(annotation)]
        return next((f for f in found if f[0] or f[1]), (None, False))
    if get_origin(annotation) is tuple:
        inner = get_args(annotation)[0]
        return (inner if isinstance(inner, type) and issubclass(inner, Record) else None), True
    if isinstance(annotation, type) and issubclass(annotation, Record):
        return annotation, False
    return None, False


def _dumper(cls: type[Record]) -> Callable[[Any], dict[str, Any]]:
    """A function from a record of `cls` to the dict that fastavro writes."""
    nested = {n: (_dumper(c), many) for n, a in _hints(cls).items() for c, many in [_nested(a)] if c}
    as_dict = msgspec.structs.asdict
    if not nested:
        return as_dict

    def dump(record: Any) -> dict[str, Any]:
        plain = as_dict(record)
        for name, (inner, many) in nested.items():
            value = plain[name]
            if value:
                plain[name] = [inner(v) for v in value] if many else inner(value)
        return plain

    return dump


def _loader(cls: type[Record]) -> Callable[[dict[str, Any]], Any]:
    """A function from the dict that fastavro read to a record of `cls`."""
    hints = _hints(cls)
    nested = {n: (_loader(c) if c else None, many) for n, a in hints.items() for c, many in [_nested(a)] if c or many}
    maps = [n for n, a in hints.items() if a == records.Attributes]

    def load(plain: dict[str, Any]) -> Any:
        for name, (inner, many) in nested.items():
            value = plain[name]
            if many:
                plain[name] = tuple(map(inner, value)) if inner else tuple(value)
            elif value is not None and inner:
                plain[name] = inner(value)
        for name in maps:
            plain[name] = {k: tuple(v) for k, v in plain[name].items()}
        return cls(**plain)

    return load


@cache
def _hints(cls: type[Record]) -> dict[str, Any]:
    hints = get_type_hints(cls, vars(records))
    return {n: hints[n] for n in cls.__struct_fields__}


_SCHEMAS = {cls: parsed_schema(cls.__name__) for cls in RECORDS}
_HEADERS = {cls: MAGIC + rabin(cls.__name__) for cls in RECORDS}
_DUMPERS = {cls: _dumper(cls) for cls in RECORDS}
_READERS = {_HEADERS[cls]: (_SCHEMAS[cls], _loader(cls), cls) for cls in RECORDS}


_REMEMBERED = 2_048
_recent: dict[int, tuple[Record, bytes]] = {}
"""Summaries by identity, with their bytes: one passes through several stages unchanged, and is by far the dearest to encode."""


def _remember(record: Record, data: bytes) -> None:
    if len(_recent) >= _REMEMBERED:
        _recent.clear()
    _recent[id(record)] = (record, data)


def encode(record: Record) -> bytes:
    """A record in single-object encoding."""
    known = _recent.get(id(record))
    if known is not None and known[0] is record:
        return known[1]
    cls = type(record)
    out = io.BytesIO(_HEADERS[cls])
    out.seek(HEADER)
    schemaless_writer(out, _SCHEMAS[cls], _DUMPERS[cls](record))
    data = out.getvalue()
    if cls is records.Summary:
        _remember(record, data)
    return data


def record_type(data: bytes) -> type[Record]:
    """The class of an encoded record, by its header alone. Raises DecodeError."""
    found = _READERS.get(data[:HEADER])
    if found is None:
        raise DecodeError(f"no record of ours: the header is {data[:HEADER].hex() or 'missing'}")
    return found[2]


def decode(data: bytes) -> Record:
    """The record that `encode` wrote. Raises DecodeError for anything else, trailing bytes included."""
    found = _READERS.get(data[:HEADER])
    if found is None:
        raise DecodeError(f"no record of ours: the header is {data[:HEADER].hex() or 'missing'}")
    schema, load, cls = found
    body = io.BytesIO(data)
    body.seek(HEADER)
    try:
        record: Record = load(schemaless_reader(body, schema, None))  # type: ignore[arg-type]
    # fastavro raises what its C code meets (EOFError, IndexError, UnicodeDecodeError ...): all are the writer's fault.
    except Exception as error:
        raise DecodeError(f"{cls.__name__}: {type(error).__name__}: {error}"[:200]) from error
    if body.tell() != len(data):
        raise DecodeError(f"{cls.__name__}: {len(data) - body.tell()} bytes too many")
    if cls is records.Summary:
        _remember(record, data)
    return record
