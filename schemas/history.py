"""Published versions of the schemas, to decode records that are still in a topic.

`history/NAME.N.avsc` is version N of a record's schema, self-contained. `python -m schemas.describe` adds a version when the
fingerprint has changed, and never removes one; tests check every version against the present one, both ways.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

from fastavro import parse_schema
from fastavro.schema import fingerprint, to_parsing_canonical_form


def fingerprint_of(schema: Any) -> bytes:
    """Return the 8-byte fingerprint of a schema: CRC-64-AVRO of its canonical form, little-endian."""
    # fastavro returns the hex of exactly these bytes.
    return bytes.fromhex(fingerprint(to_parsing_canonical_form(schema), "CRC-64-AVRO"))


@cache
def published() -> Mapping[tuple[str, int], Any]:
    """Return every published schema by (record name, version from 1 on), in order."""
    found = {}
    for file in resources.files("schemas").joinpath("history").iterdir():
        name, number, kind = file.name.split(".")
        if kind == "avsc":
            found[name, int(number)] = json.loads(file.read_text("utf-8"))
    return dict(sorted(found.items()))


@cache
def _writers() -> Mapping[bytes, tuple[str, Any]]:
    return {fingerprint_of(schema): (name, parse_schema(schema)) for (name, _), schema in published().items()}


def writer(header: bytes) -> tuple[str, Any] | None:
    """Return the record's name and parsed schema for a fingerprint; None if no version has it."""
    return _writers().get(header)
