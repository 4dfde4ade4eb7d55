"""Avro codec: records to bytes and back, in Avro's single-object encoding.

Single-object encoding (Avro 1.12 specification, "Single-object encoding"): C3 01, the schema's 64-bit Rabin fingerprint,
little-endian, then the body. It identifies the type of a record by itself, so a topic may carry several.

Laws:
- decode(encode(r)) == r for every record.
- Records written with a published version of a schema (`history/`) are decoded into the present one.
- Bytes that are not a Harvest record raise DecodeError, whose message is bounded; no other error is raised.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from importlib import resources
from types import UnionType
from typing import Any, NamedTuple, Union, get_args, get_origin, get_type_hints

import msgspec
from fastavro import parse_schema, schemaless_reader, schemaless_writer

from schemas import history, records
from schemas.evolution import fitted
from schemas.records import RECORDS, Record

MAGIC = b"\xc3\x01"
NAMESPACE = "harvest"
HEADER = 10
"""Size in bytes of the header: the magic and the fingerprint."""


class DecodeError(ValueError):
    """The bytes are not a Harvest record; the fault is the writer's."""


def schema_text(name: str) -> dict[str, Any]:
    """Return the schema of a record by its name, self-contained: types from other files are inlined where first used.

    Raises FileNotFoundError for a name without an `.avsc`.
    """
    expanded: dict[str, Any] = _expanded(name, set())
    return expanded


def union_text(names: Sequence[str]) -> Any:
    """Return the union schema of several records; of a single one, its own schema."""
    inlined: set[str] = set()
    branches = [_expanded(name, inlined) for name in names]
    return branches if len(branches) > 1 else branches[0]


def _expanded(name: str, inlined: set[str]) -> Any:
    """Return the schema of a record; types in `inlined` are referred to by name."""

    def expand(node: Any) -> Any:
        if isinstance(node, str) and node[:1].isupper():
            return node if node in inlined else expand(_load(node))
        if isinstance(node, list):
            return [expand(n) for n in node]
        if isinstance(node, dict):
            if node.get("type") in ("record", "enum"):
                inlined.add(node["name"])
            return {k: expand(v) if k in ("type", "items", "values", "fields") else v for k, v in node.items()}
        return node

    return expand(name)


def _load(name: str) -> Any:
    return json.loads(resources.files("schemas").joinpath(f"{name}.avsc").read_text("utf-8"))


@cache
def parsed_schema(name: str) -> Any:
    """Return the parsed schema of a record, for fastavro."""
    return parse_schema(schema_text(name))


@cache
def rabin(name: str) -> bytes:
    """Return the 8-byte fingerprint of a record's schema in single-object encoding."""
    return history.fingerprint_of(schema_text(name))


_UNIONS = (Union, UnionType)


def _nested(annotation: Any) -> tuple[type[Record] | None, bool]:
    """Return the record class inside an annotation, if any, and whether it is in a tuple."""
    if get_origin(annotation) in _UNIONS:
        found = [_nested(a) for a in get_args(annotation)]
        return next((f for f in found if f[0] or f[1]), (None, False))
    if get_origin(annotation) is tuple:
        inner = get_args(annotation)[0]
        return (inner if isinstance(inner, type) and issubclass(inner, Record) else None), True
    if isinstance(annotation, type) and issubclass(annotation, Record):
        return annotation, False
    return None, False


def _dumper(cls: type[Record]) -> Callable[[Any], dict[str, Any]]:
    """Return a function from a record of `cls` to the dict that fastavro writes.

    An optional record is passed with its name: otherwise fastavro examines all of it to choose the branch.
    """
    nested = {
        n: (_dumper(c), many, f"{NAMESPACE}.{c.__name__}" if get_origin(a) in _UNIONS else "")
        for n, a in _hints(cls).items()
        for c, many in [_nested(a)]
        if c
    }
    as_dict = msgspec.structs.asdict
    if not nested:
        return as_dict

    def dump(record: Any) -> dict[str, Any]:
        plain = as_dict(record)
        for name, (inner, many, branch) in nested.items():
            value = plain[name]
            if value:
                made = [inner(v) for v in value] if many else inner(value)
                plain[name] = (branch, made) if branch else made
        return plain

    return dump


def _loader(cls: type[Record]) -> Callable[[dict[str, Any]], Any]:
    """Return a function from the dict that fastavro read to a record of `cls`."""
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
    hints = get_type_hints(cls)
    return {n: hints[n] for n in cls.__struct_fields__}


_SCHEMAS = {cls: parsed_schema(cls.__name__) for cls in RECORDS}
_HEADERS = {cls: MAGIC + rabin(cls.__name__) for cls in RECORDS}
_DUMPERS = {cls: _dumper(cls) for cls in RECORDS}
_BY_NAME = {cls.__name__: cls for cls in RECORDS}
_READERS = {_HEADERS[cls]: (_SCHEMAS[cls], _loader(cls), cls) for cls in RECORDS}


PUBLISHED = ("published", "copy_of", "copies", "copies_count", "views")
"""Fields of a Summary that a Broker sets; only `location` is among them."""
_LAST = ("published", "copy_of", "copies", "copies_count", "location", "views")
"""The last fields of a Summary in order: those of PUBLISHED, and `location`, which is among them."""


_TAIL = parse_schema({"type": "record", "name": "Tail", "fields": schema_text("Summary")["fields"][-len(_LAST) :]})
_EMPTY_TAIL = bytes(len(_LAST))
"""Encoded tail of a summary without values of _LAST: each is one zero byte, for 0, an empty string or an empty array."""
_ENDED = bytes(1)
"""Byte before the tail: the end of a map. It proves where the tail begins, even if a number is encoded longer than necessary."""


class _Known(NamedTuple):
    """Summary with its encoded bytes."""

    record: records.Summary
    data: bytes


class _SummaryCache:
    """Cache of recent summaries, by identity and by bytes: each passes several stages, and no record costs more to decode.

    Used from several threads: an entry found is always right, and one that another thread's `keep` drops is made again.
    """

    SIZE = 4_096
    BYTES = 16 << 20
    """Bytes of the present generation; the previous one is kept too, for readers that lag behind or take several batches."""

    def __init__(self) -> None:
        self._bytes = 0
        self._by_id: dict[int, _Known] = {}
        self._by_data: dict[bytes, _Known] = {}
        self._before: tuple[dict[int, _Known], dict[bytes, _Known]] = ({}, {})

    def of(self, record: Record) -> _Known | None:
        """Return the entry of this very object, or None."""
        known = self._by_id.get(id(record)) or self._before[0].get(id(record))
        return known if known is not None and known.record is record else None

    def of_data(self, data: bytes) -> _Known | None:
        """Return the entry of these bytes, or None."""
        return self._by_data.get(data) or self._before[1].get(data)

    def keep(self, record: records.Summary, data: bytes) -> None:
        """Add a summary; a full generation replaces the previous one."""
        if len(self._by_id) >= self.SIZE or self._bytes >= self.BYTES:
            self._before = self._by_id, self._by_data
            self._by_id, self._by_data, self._bytes = {}, {}, 0
        self._bytes += len(data)
        self._by_id[id(record)] = self._by_data[data] = _Known(record, data)


_memory = _SummaryCache()


def encode(record: Record, *, kept: bool = True) -> bytes:
    """Encode a record in single-object encoding; a summary and its bytes are cached, unless `kept` is false."""
    known = _memory.of(record) if isinstance(record, records.Summary) else None
    if known is not None:
        return known.data
    cls = type(record)
    out = io.BytesIO(_HEADERS[cls])
    out.seek(HEADER)
    schemaless_writer(out, _SCHEMAS[cls], _DUMPERS[cls](record))
    data = out.getvalue()
    if kept and isinstance(record, records.Summary):
        _memory.keep(record, data)
    return data


def cache_encoding(summary: records.Summary, data: bytes) -> None:
    """Cache `data` as the encoding of a summary without values of PUBLISHED; ignored if it has any."""
    if data.endswith(_ENDED + (_unpublished_tail(summary.location) if summary.location else _EMPTY_TAIL)):
        _memory.keep(summary, data)


def publish(summary: records.Summary, **said: Any) -> records.Summary:
    """Return a summary with other values of PUBLISHED; if its bytes are cached, only their tail is encoded again."""
    made = msgspec.structs.replace(summary, **said)
    known = _memory.of(summary)
    # Other writers may encode a number or an array differently: then the whole record is encoded again.
    if known is not None and known.data.endswith(_ENDED + (before := _tail(summary))):
        _memory.keep(made, known.data[: -len(before)] + _tail(made))
    return made


def _tail(summary: records.Summary) -> bytes:
    of = summary
    return _encoded_tail(of.published, of.copy_of, of.copies, of.copies_count, of.location, of.views)


@lru_cache(1_024)
def _encoded_tail(*last: int | str | tuple[str, ...]) -> bytes:
    """Encode the values of _LAST; several Brokers publish a summary with the same ones."""
    out = io.BytesIO()
    schemaless_writer(out, _TAIL, dict(zip(_LAST, last, strict=True)))
    return out.getvalue()


def _unpublished_tail(location: str) -> bytes:
    return _encoded_tail(0, "", (), 0, location, ())


def record_type(data: bytes) -> type[Record]:
    """Return the class of an encoded record from its header alone. Raises DecodeError."""
    found = _READERS.get(data[:HEADER])
    if found is not None:
        return found[2]
    former = history.writer(data[:HEADER].removeprefix(MAGIC))
    if former is None or former[0] not in _BY_NAME:
        raise DecodeError(f"not a Harvest record: the header is {data[:HEADER].hex() or 'missing'}")
    return _BY_NAME[former[0]]


def decode(data: bytes, *, kept: bool = True) -> Record:
    """Decode a record written by `encode`; a summary and its bytes are cached, unless `kept` is false.

    Raises DecodeError for anything else, trailing bytes included.
    """
    found = _READERS.get(data[:HEADER])
    if found is not None and found[2] is records.Summary and (known := _memory.of_data(data)) is not None:
        return known.record
    if found is None:
        former = history.writer(data[:HEADER].removeprefix(MAGIC))
        if former is None:
            raise DecodeError(f"not a Harvest record: the header is {data[:HEADER].hex() or 'missing'}")
        return resolve(*former, data, HEADER)
    schema, load, cls = found
    body = io.BytesIO(data)
    body.seek(HEADER)
    try:
        plain: Any = schemaless_reader(body, schema, None)
        record: Record = load(plain)
    # fastavro raises any error of its C code (EOFError, IndexError, UnicodeDecodeError ...): all are the writer's fault.
    except Exception as error:
        raise DecodeError(f"{cls.__name__}: {type(error).__name__}: {error}"[:200]) from error
    if body.tell() != len(data):
        raise DecodeError(f"{cls.__name__}: {len(data) - body.tell()} bytes too many")
    if kept and isinstance(record, records.Summary):
        _memory.keep(record, data)
    return record


def resolve(name: str, written: Any, data: bytes, start: int) -> Record:
    """Decode a record from `start` on, written with the schema `written`, into our schema (Avro, "Schema Resolution").

    Raises DecodeError, also for the name of an unknown record.
    """
    cls = _BY_NAME.get(name)
    if cls is None:
        raise DecodeError(f"not a Harvest record: {name[:100]}")
    body = io.BytesIO(data)
    body.seek(start)
    try:
        written_as: Any = schemaless_reader(body, written, None)
        plain = fitted(written_as, schema_text(name))
        record: Record = _READERS[_HEADERS[cls]][1](plain)
    except Exception as error:
        raise DecodeError(f"{name} of another version: {type(error).__name__}: {error}"[:200]) from error
    if body.tell() != len(data):
        raise DecodeError(f"{name}: {len(data) - body.tell()} bytes too many")
    return record


def dumped(record: Record) -> dict[str, Any]:
    """Return a record as the dict that fastavro writes with its schema."""
    return _DUMPERS[type(record)](record)


def loaded(name: str, plain: dict[str, Any]) -> Record:
    """Return the record of that name from the dict that fastavro read. Raises KeyError, TypeError or ValueError."""
    record: Record = _READERS[_HEADERS[_BY_NAME[name]]][1](plain)
    return record
