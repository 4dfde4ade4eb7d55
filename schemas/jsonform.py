"""Records and templates as JSON objects, for the command line (DESIGN "Command line", JSON lines), and records back.

A record is an object under its Avro names, with all its fields. Bytes go as text where they are UTF-8 and as
{"base64": ...} where they are not, so that nothing is lost and most of it can be read. Laws:

- from_json(type(r), to_json(r)) == r, but that values of attributes that are UTF-8 come back as text.
- A line holds nothing that a terminal obeys: controls, and marks that turn the direction of writing, are escaped. What is read
  back is the same.
- What is no record raises JsonError with the path of the fault; nothing else is raised.
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

from schemas import records
from schemas.ports import Logged
from schemas.records import Record
from schemas.soif_syntax import Template

MISSING = object()

CONTROLS = r"\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"
"""What a terminal may obey beyond C0, as a class of a regular expression: DEL and C1, ends of lines, marks of direction."""
_CONTROL = re.compile(f"[{CONTROLS}]")


class JsonError(ValueError):
    """The JSON is no record of ours: whoever wrote it is at fault. The message is bounded."""


def to_json(value: Any) -> Any:
    """A record, or anything that stands in one, as what `json.dumps` takes."""
    if isinstance(value, bytes):
        return text(value)
    # Most of what stands in a record is text: it is seen here, and nothing is called for it.
    if isinstance(value, tuple | list):
        return [v if type(v) is str else to_json(v) for v in value]
    if isinstance(value, Record):
        value = {name: getattr(value, name) for name in value.__struct_fields__}
    if isinstance(value, Mapping):
        return {name: v if type(v) is str else to_json(v) for name, v in value.items()}
    return value


def text(raw: bytes) -> str | dict[str, str]:
    """Bytes as text where they are UTF-8, otherwise as {"base64": ...}."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(raw).decode()}


def line(value: Any) -> str:
    """A record, or what is JSON already, as one line without its end. Times, sizes and digests stay as they are."""
    encoded = msgspec.json.encode(to_json(value))
    if encoded.isascii() and b"\x7f" not in encoded:
        return encoded.decode("ascii")
    # What can be printed has none of them, and takes a tenth of the time to tell.
    if (whole := encoded.decode()).isprintable():
        return whole
    return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", whole)


def logged(entry: Logged, record: Record | None) -> dict[str, Any]:
    """An entry of the log, with its value decoded (None: a tombstone), as `cat` prints it."""
    place = {"topic": entry.topic, "partition": entry.partition, "offset": entry.offset, "key": text(entry.key), "time": entry.time}
    return {**place, "type": type(record).__name__ if record is not None else None, "value": to_json(record)}


def template(found: Template) -> dict[str, Any]:
    """A SOIF template: type, URL, the collections it stands in, and the values of each attribute in their order."""
    attributes: dict[str, list[Any]] = {}
    for name, value in found.attributes:
        attributes.setdefault(name, []).append(text(value))
    return {"template": found.type, "url": found.url, "within": list(found.within), "attributes": attributes}


def from_json(cls: type[Record], value: Any) -> Record:
    """The record of a class that `to_json` gave; fields with a default may be missing. Raises JsonError."""
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
        # A field that is missing, or a record's own check.
        raise JsonError(f"{path}: {error}"[:200]) from error


def _value(hint: Any, value: Any, path: str) -> Any:
    """A value as its annotation wants it."""
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
    """`X | None`, or `str | bytes`: text is text here."""
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
    # bool is an int to Python, but not to Avro.
    return value if type(value) is kind else _refuse(path, kind.__name__, value)


def _refuse(path: str, expected: str, value: Any) -> Any:
    raise _fault(path, expected, value)


def _fault(path: str, expected: str, value: Any) -> JsonError:
    return JsonError(f"{path[:80]}: expected {expected}, found {value!r:.40}"[:200])


@cache
def _hints(cls: type[Record]) -> dict[str, Any]:
    hints = get_type_hints(cls, vars(records))
    return {name: hints[name] for name in cls.__struct_fields__}
