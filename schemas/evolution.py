"""Schema resolution by values: fits what another schema version wrote into ours (Avro 1.12, "Schema Resolution").

Strategy: the writer's schema decodes the bytes, and the values are fitted into ours by the names of fields. The library's one-step
resolution is not used: it takes the first branch of a union that fits, and turns bytes into text where both are allowed
(attributes).

Laws:
- A field that the writer lacks gets its default, one that we lack is ignored, an unknown symbol becomes its enum's default.
- A value that does not fit raises ValueError; a record that was written with our own schema fits unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

PRIMITIVES: Mapping[str, Callable[[Any], bool]] = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "string": lambda value: isinstance(value, str),
    "bytes": lambda value: isinstance(value, bytes),
    "int": lambda value: isinstance(value, int) and not isinstance(value, bool) and -(1 << 31) <= value < 1 << 31,
    "long": lambda value: isinstance(value, int) and not isinstance(value, bool) and -(1 << 63) <= value < 1 << 63,
}


def fitted(value: Any, schema: Any, named: dict[str, Any] | None = None) -> Any:
    """Fit a value into a schema, types inlined; `named` are the types defined so far. Raises ValueError."""
    named = {} if named is None else named
    if isinstance(schema, list):
        return _branch(value, schema, named)
    if isinstance(schema, str):
        if schema in PRIMITIVES:
            if not PRIMITIVES[schema](value):
                raise ValueError(f"{value!r:.40} is no {schema}")
            return value
        return fitted(value, named[schema], named)
    if "name" in schema:
        named[schema["name"]] = schema
    kind = schema["type"]
    if kind == "record":
        return _record(value, schema, named)
    if kind == "enum":
        return value if value in schema["symbols"] else _default(schema)
    if kind == "array":
        return [fitted(one, schema["items"], named) for one in _typed(value, list)]
    if kind == "map":
        return {key: fitted(one, schema["values"], named) for key, one in _typed(value, dict).items()}
    return fitted(value, kind, named)


def _record(value: Any, schema: Any, named: dict[str, Any]) -> dict[str, Any]:
    given = _typed(value, dict)
    return {f["name"]: fitted(given[f["name"]] if f["name"] in given else _default(f), f["type"], named) for f in schema["fields"]}


def _branch(value: Any, schema: list[Any], named: dict[str, Any]) -> Any:
    """Return the value in the first branch that it fits without conversion: text never fits bytes, nor bytes text."""
    for branch in schema:
        try:
            return fitted(value, branch, named)
        except ValueError:
            continue
    raise ValueError(f"{value!r:.40} fits no branch")


def _default(schema: Any) -> Any:
    if "default" not in schema:
        raise ValueError(f"{schema['name']}: missing, and without a default")
    return schema["default"]


def _typed(value: Any, kind: type) -> Any:
    if not isinstance(value, kind):
        raise ValueError(f"{value!r:.40} is no {kind.__name__}")  # noqa: TRY004 - the data is wrong, not the caller
    return value
