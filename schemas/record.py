"""The base of all records."""

from __future__ import annotations

import msgspec


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """Base of all records: frozen, built by keyword, named like its Avro schema."""
