"""Records and templates as JSON objects, for the command line (DESIGN "Command line", JSON lines), and records back.

A record is an object under its Avro names, with all its fields. Bytes become text if they are UTF-8 and
{"base64": ...} if not, so that nothing is lost and most of it is readable. Laws:

- from_json(type(r), to_json(r)) == r, except that values of attributes that are UTF-8 come back as text.
- A line contains nothing that controls a terminal: controls, and marks of text direction, are escaped. Reading it back gives the
  same value.
- JSON that is not a record raises JsonError with the path of the fault; no other error is raised.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from functools import cache
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

from schemas.ports import Logged
from schemas.records import Record
from schemas.soif_syntax import Template

MISSING = object()

CONTROLS = r"\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"
"""Regular expression class of characters beyond C0 that may control a terminal: DEL and C1, line ends, marks of direction."""
_CONTROL = re.compile(f"[{CONTROLS}]")


class JsonError(ValueError):
    """The JSON is not a Harvest record; the fault is the writer's. The message is bounded."""


def to_json(value: Any) -> Any:
    """Convert a record, or any value inside one, to what `json.dumps` accepts."""
    if isinstance(value, bytes):
        return text(value)
    # Most values are text: they are recognized here, without a call.
    if isinstance(value, tuple | list):
        return [v if type(v) is str else to_json(v) for v in value]
    if isinstance(value, Record):
        value = {name: getattr(value, name) for name in value.__struct_fields__}
    if isinstance(value, Mapping):
        return {name: v if type(v) is str else to_json(v) for name, v in value.items()}
    return value


def text(raw: bytes) -> str | dict[str, str]:
    """Return bytes as text if they are UTF-8, otherwise as {"base64": ...}."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(raw).decode()}


def line(value: Any) -> str:
    """Return a record or JSON value as one line without its end; times, sizes and digests are unchanged."""
    encoded = msgspec.json.encode(to_json(value))
    if encoded.isascii() and b"\x7f" not in encoded:
        return encoded.decode("ascii")
    # Printable text has no such character, and this test takes a tenth of the time.
    if (whole := encoded.decode()).isprintable():
        return whole
    return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", whole)


def logged(entry: Logged, record: Record | None) -> dict[str, Any]:
    """Return an entry of the log with its decoded value (None: a tombstone), as `cat` prints it."""
    place = {"topic": entry.topic, "partition": entry.partition, "offset": entry.offset, "key": text(entry.key), "time": entry.time}
    return {**place, "type": type(record).__name__ if record is not None else None, "value": to_json(record)}


def template(found: Template) -> dict[str, Any]:
    """Return a SOIF template: type, URL, enclosing collections, and the values of each attribute in order."""
    attributes: dict[str, list[Any]] = {}
    for name, value in found.attributes:
        attributes.setdefault(name, []).append(text(value))
    return {"template": found.type, "url": found.url, "within": list(found.within), "attributes": attributes}


def from_json(cls: type[Record], value: Any) -> Record:
    """Return the record that `to_json` converted; fields with a default may be missing. Raises JsonError."""
    return _record(cls, value, cls.__name__)


def _record(cls: type[Record], value: Any, path: str) -> Record:
    if not isinstance(value, dict):
        raise _fault(path, "an object", value)
    hints = _hints(cls)
    if unknown := next((name for name in value if name not in hints), None):
        raise JsonError(f"{path}: unknown field {unknown!r}"[:200])
    try:
        return cls(**{name: _value(hints[name], v, f"{path}.{name}") for name, v in value.items()})
    except JsonError:
        raise
    except (TypeError, ValueError) as error:
        # A missing field, or a failed check of the record itself.
        raise JsonError(f"{path}: {error}"[:200]) from error


def _value(hint: Any, value: Any, path: str) -> Any:
    """Convert a value to the type of its annotation."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return _union(inner, value, path)
    if origin is Literal:
        return value if value in inner else _refuse(path, "one of " + ", ".join(inner), value)
    if origin is tuple:
        return tuple(_value(inner[0], v, f"{path}[{n}]") for n, v in enumerate(_typed(list, value, path)))
    if origin is not None:
        return {k: _value(inner[1], v, f"{path}.{k}") for k, v in _typed(dict, value, path).items()}
    if issubclass(hint, Record):
        return _record(hint, value, path)
    return _bytes(value, path) if hint is bytes else _typed(hint, value, path)


def _union(inner: tuple[Any, ...], value: Any, path: str) -> Any:
    """Convert a value of `X | None` or `str | bytes`; text stays text."""
    if value is None and type(None) in inner:
        return None
    if str in inner and isinstance(value, str):
        return value
    return _value(next(a for a in inner if a not in (type(None), str)), value, path)


def _bytes(value: Any, path: str) -> bytes:
    if isinstance(value, str):
        return value.encode()
    if not isinstance(value, dict) or list(value) != ["base64"]:
        raise _fault(path, "text or base64", value)
    try:
        return base64.b64decode(value["base64"], validate=True)
    except (TypeError, ValueError, binascii.Error) as error:
        raise _fault(path, "base64", value) from error


def _typed(kind: type, value: Any, path: str) -> Any:
    # bool is an int in Python, but not in Avro.
    return value if type(value) is kind else _refuse(path, kind.__name__, value)


def _refuse(path: str, expected: str, value: Any) -> Any:
    raise _fault(path, expected, value)


def _fault(path: str, expected: str, value: Any) -> JsonError:
    return JsonError(f"{path[:80]}: expected {expected}, found {value!r:.40}"[:200])


@cache
def _hints(cls: type[Record]) -> dict[str, Any]:
    hints = get_type_hints(cls)
    return {name: hints[name] for name in cls.__struct_fields__}
