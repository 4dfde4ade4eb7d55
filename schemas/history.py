"""The schemas as they were published: what may still be in a topic, and how to read it.

`history/NAME.N.avsc` is version N of a record's schema, self-contained. `python -m schemas.describe` adds a version when the
fingerprint has changed, and never takes one away; tests hold every version to the present one, both ways.
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
    """The 8 bytes that stand for a schema in single-object encoding: CRC-64-AVRO of its canonical form, little-endian."""
    # fastavro gives it as the hex of just these bytes.
    return bytes.fromhex(fingerprint(to_parsing_canonical_form(schema), "CRC-64-AVRO"))


@cache
def published() -> Mapping[tuple[str, int], Any]:
    """Every published schema, by the name of its record and its number, from 1 on, in order."""
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
    """The record and the schema, as fastavro takes it, of a fingerprint; None where no version has it."""
    return _writers().get(header)
