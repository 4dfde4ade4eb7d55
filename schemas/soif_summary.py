"""Summaries and removals as SOIF templates, and back.

A summary is `@FILE { URL`, its properties as attributes under their names of 1994 (Harvest report, figure "Example SOIF
Template"; manual, list of common attributes), then the attributes from the summarizers, then the annotations. A removal is the same
with a few properties, in a collection `@DELETE {`. Laws:

- to_record(to_template(r)) == r, except that bytes that are UTF-8 come back as text, and attributes without any value are
  left out (the contract calls these equal).
- Any name can be written: characters that SOIF forbids are percent-encoded, and attributes with the name of a
  property (`md5`, `type` ...) are prefixed by `attribute-`, so that the two are never confused.
- Annotations are attributes like all others, so that every reader of SOIF finds them; `annotated` lists them, one
  line each: name, space, how many of the last values of that name.

Times are written in s since the epoch, with the ms after a point if there are any: a reader of 1994 takes the integer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple, get_args
from urllib.parse import quote, unquote

import msgspec

from schemas.records import Attributes, RemovalReason, Removed, Summary
from schemas.soif_syntax import Attribute, Template

FILE = "FILE"
"""The type of the template of a summary."""
DELETE = "DELETE"
"""The type of the collection that removals stand in."""

ANNOTATED = "annotated"
ESCAPE = "attribute-"

NAMES: Mapping[str, str] = {
    "update-time": "time",
    "time-to-live": "ttl",
    "refresh-rate": "refresh",
    "gatherer-name": "gatherer",
    "type": "type",
    "content-type": "content_type",
    "file-size": "size",
    "md5": "md5",
    "sha256": "sha256",
    "oid": "oid",
    "object-url": "object_url",
    "member-path": "path",
    "summary-version": "version",
    "attempt": "attempt",
    "published": "published",
    "copy-of": "copy_of",
    "copy": "copies",
    "copies-count": "copies_count",
    "location": "location",
    "broker-view": "views",
    "removal-reason": "reason",
}
"""Attributes that are properties of a summary or a removal, with the fields of the record."""

REQUIRED = {field.name for cls in (Summary, Removed) for field in msgspec.structs.fields(cls) if field.required}
ALWAYS = frozenset({"content_type", "size", "ttl", "refresh", *REQUIRED})
"""Properties that are always written: those without a default, and those that every reader of SOIF expects."""

LISTS = frozenset({"copies", "views"})
"""Fields of several values: an attribute for each."""

INTEGERS = frozenset({"ttl", "refresh", "size", "version", "published", "copies_count"})
RESERVED = frozenset({*NAMES, ANNOTATED})
MAX_LONG = 2**63 - 1


class RecordError(ValueError):
    """The template is SOIF, but not a valid summary or removal; the fault is the writer's. The message is bounded."""


class Parts(NamedTuple):
    """Content of a template from any writer: properties by the fields of Summary and Removed, and the rest."""

    properties: dict[str, Any]
    attributes: dict[str, tuple[str | bytes, ...]]
    annotations: dict[str, tuple[str | bytes, ...]]


def to_template(record: Summary | Removed) -> Template:
    """Return the template of a summary or a removal.

    `dumps` checks whether it can be written: a URL with a line break, or a name beyond `Limits.name`, cannot.
    """
    properties = tuple(_properties(record))
    if isinstance(record, Removed):
        return Template(FILE, record.url, properties, (DELETE,))
    annotated = "\n".join(f"{_written(name)} {len(values)}" for name, values in record.annotations.items())
    note = (Attribute(ANNOTATED, annotated.encode()),) if annotated else ()
    found = (*_attributes(record.attributes), *_attributes(record.annotations))
    return Template(FILE, record.url, (*properties, *note, *found))


def parts(template: Template) -> Parts:
    """Return the parts of a template, also of another Gatherer's, which lacks our own properties.

    Names of properties are read in any case (`Time-to-Live`); of a repeated property the first is used, and the others are
    attributes. Raises RecordError for a number or a list of annotations that cannot be read.
    """
    properties: dict[str, Any] = {}
    lists: dict[str, tuple[str, ...]] = {}
    found: dict[str, list[str | bytes]] = {}
    note: bytes = b""
    for name, value in template.attributes:
        field = NAMES.get(name.lower())
        if name.lower() == ANNOTATED and not note:
            note = value
        elif field in LISTS:
            lists[field] = (*lists.get(field, ()), _text(name, value))
        elif field and field not in properties:
            properties[field] = _property(field, name, value)
        else:
            found.setdefault(_read(name), []).append(_value(value))
    annotations = {name: _last(found, name, count) for name, count in _annotated(note)}
    attributes = {name: tuple(values) for name, values in found.items() if values}
    return Parts(properties | lists, attributes, annotations)


def to_record(template: Template) -> Summary | Removed:
    """Return the summary or removal that `to_template` wrote. Raises RecordError for any other template."""
    properties, attributes, annotations = parts(template)
    cls = Removed if DELETE in template.within[-1:] else Summary
    given = {"url": template.url, "attributes": attributes, "annotations": annotations, **properties}
    try:
        return cls(**{name: value for name, value in given.items() if name in cls.__struct_fields__})
    except TypeError as error:
        # The message of msgspec names the first missing field.
        raise RecordError(f"{cls.__name__}: {error}"[:200]) from error


def _properties(record: Summary | Removed) -> Iterator[Attribute]:
    for name, field in NAMES.items():
        value = getattr(record, field, None)
        if value is None or not (value or field in ALWAYS):
            continue
        for one in value if isinstance(value, tuple) else (value,):
            yield Attribute(name, (_seconds(one) if field == "time" else str(one)).encode())


def _attributes(attributes: Attributes) -> Iterator[Attribute]:
    for name, values in attributes.items():
        written = _written(name)
        for value in values:
            yield Attribute(written, value if isinstance(value, bytes) else value.encode())


@lru_cache(maxsize=4_096)
def _written(name: str) -> str:
    """Encode the name of an attribute for SOIF. Cached: a few names are most of all attributes."""
    escaped = ESCAPE + name if name.lower() in RESERVED or name.lower().startswith(ESCAPE) else name
    return "".join(quote(c, safe="") if c <= " " or c in "@{}%\x7f" else c for c in escaped) or "%"


def _read(written: str) -> str:
    """Decode a name that `_written` encoded."""
    if written == "%":
        return ""
    name = unquote(written)
    return name[len(ESCAPE) :] if name.lower().startswith(ESCAPE) else name


def _property(field: str, name: str, value: bytes) -> Any:
    if field == "time":
        return _milliseconds(name, value)
    if field in INTEGERS:
        return _integer(name, value)
    if field == "reason" and _text(name, value) not in get_args(RemovalReason):
        raise RecordError(f"{name}: unknown removal reason: {value[:40]!r}")
    return _text(name, value)


def _value(raw: bytes) -> str | bytes:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw


def _text(name: str, raw: bytes) -> str:
    found = _value(raw)
    if isinstance(found, bytes):
        raise RecordError(f"{name}: not UTF-8: {raw[:40]!r}")
    return found


def _integer(name: str, raw: bytes) -> int:
    digits = raw.strip()
    if not digits.removeprefix(b"-").isdigit() or len(digits) > 20 or not -MAX_LONG <= int(digits) <= MAX_LONG:
        raise RecordError(f"{name}: no number: {raw[:40]!r}")
    return int(digits)


def _seconds(ms: int) -> str:
    sign, (whole, rest) = "-" if ms < 0 else "", divmod(abs(ms), 1000)
    return f"{sign}{whole}.{rest:03}" if rest else f"{sign}{whole}"


def _milliseconds(name: str, raw: bytes) -> int:
    whole, _, rest = raw.strip().partition(b".")
    if rest and not rest.isdigit():
        raise RecordError(f"{name}: no time: {raw[:40]!r}")
    ms = abs(_integer(name, whole)) * 1000 + int(rest[:3].ljust(3, b"0"))
    if ms > MAX_LONG:
        raise RecordError(f"{name}: no time: {raw[:40]!r}")
    return -ms if whole.startswith(b"-") else ms


def _annotated(note: bytes) -> Iterable[tuple[str, int]]:
    """Return the names and counts listed in `annotated`."""
    counts: Counter[str] = Counter()
    for line in _text(ANNOTATED, note).split("\n") if note else ():
        name, _, count = line.rpartition(" ")
        counts[_read(name)] += _integer(ANNOTATED, count.encode())
    return counts.items()


def _last(found: dict[str, list[str | bytes]], name: str, count: int) -> tuple[str | bytes, ...]:
    """Remove and return the last values of an attribute."""
    values = found.get(name, [])
    if not 0 <= count <= len(values):
        raise RecordError(f"{ANNOTATED}: {len(values)} values of {name[:40]!r}, not {count}")
    kept = len(values) - count
    taken, values[kept:] = tuple(values[kept:]), []
    return taken
