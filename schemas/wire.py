"""Wire format of Kafka topics: conversion between the Confluent wire format and single-object encoding.

Confluent wire format (Schema Registry documentation, "Wire format"): 00, the schema's number as 4 bytes, big-endian, then the body.
The schema of a topic that carries several records is their union, whose body begins with the number of the branch.

Strategy: a body is the same in both formats, so only the header is exchanged, and nothing is decoded; but a record written with
another version of a schema is decoded into ours, and encoded again. Without a registry, values stay in single-object encoding.

Laws:
- plain(frame(data)) == data for every encoded record that the topic carries; bytes that are no such record pass `frame` unchanged.
- Bytes that are not a Harvest record raise DecodeError from `plain` or from `decode`; errors of the registry are passed on.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from fastavro import parse_schema
from fastavro.schema import SchemaParseException

from schemas.codec import HEADER, MAGIC, DecodeError, encode, rabin, resolve
from schemas.history import fingerprint_of
from schemas.records import RECORDS, Record

CONFLUENT = b"\0"
PREFIX = 5
"""Size in bytes of the header of the Confluent wire format."""
OURS = {cls.__name__: MAGIC + rabin(cls.__name__) for cls in RECORDS}
Lookup = Callable[[int], str | None]
"""Function from the number of a schema to its text; None if the registry does not have it."""


class _Branch(NamedTuple):
    """One record of a writer's schema; `header`: of single-object encoding if the schema is ours, else empty."""

    name: str
    header: bytes
    whole: Any


class Wire:
    """Single-object encoding, used without a registry."""

    def frame(self, topic: str, data: bytes) -> bytes:
        """Convert an encoded record to the topic's format."""
        return data

    def plain(self, data: bytes) -> bytes:
        """Convert a topic's value to single-object encoding. Raises DecodeError."""
        if data[:1] == CONFLUENT:
            raise DecodeError("written through a Schema Registry, and kafka.registry is not set")
        return data


SINGLE = Wire()


class ConfluentWire(Wire):
    """Confluent wire format; `numbers` returns the number of a topic's schema, `lookup` the schema of a number."""

    def __init__(self, carries: Mapping[str, Sequence[type[Record]]], numbers: Callable[[str], int], lookup: Lookup) -> None:
        self._carries = carries
        self._numbers = numbers
        self._lookup = lookup
        self._heads: dict[str, dict[bytes, bytes]] = {}
        self._written: dict[int, list[_Branch] | _Branch] = {}

    def frame(self, topic: str, data: bytes) -> bytes:
        """Convert an encoded record to the topic's format; a record that the topic does not carry is returned unchanged."""
        heads = self._heads.get(topic)
        if heads is None:
            heads = self._heads[topic] = self._headed(topic)
        head = heads.get(data[:HEADER])
        return data if head is None else head + data[HEADER:]

    def _headed(self, topic: str) -> dict[bytes, bytes]:
        """Return the Confluent header for each header of single-object encoding."""
        head = CONFLUENT + self._numbers(topic).to_bytes(4, "big")
        carries = self._carries[topic]
        # A branch's number is an Avro long: zig-zag, one byte below 64.
        return {
            OURS[cls.__name__]: head + (bytes([branch << 1]) if len(carries) > 1 else b"") for branch, cls in enumerate(carries)
        }

    def plain(self, data: bytes) -> bytes:
        """Convert a topic's value, in either wire format, to single-object encoding. Raises DecodeError, and errors of `lookup`."""
        if data[:1] != CONFLUENT:
            return data
        if len(data) < PREFIX:
            raise DecodeError("not a Harvest record: cut short in the number of its schema")
        number = int.from_bytes(data[1:PREFIX], "big")
        written = self._written.get(number)
        if written is None:
            written = self._written[number] = self._known(number)
        start = PREFIX
        if isinstance(written, list):
            branch, start = _long(data, start)
            if not 0 <= branch < len(written):
                raise DecodeError(f"not a Harvest record: branch {branch} of schema {number}")
            written = written[branch]
        if written.header:
            return written.header + data[start:]
        return encode(resolve(written.name, written.whole, data, PREFIX))

    def _known(self, number: int) -> list[_Branch] | _Branch:
        text = self._lookup(number)
        if text is None:
            raise DecodeError(f"not a Harvest record: the registry has no schema {number}")
        try:
            schema = json.loads(text)
            parsed: Any = parse_schema(schema)
            return [_branch(one, parsed) for one in parsed] if isinstance(schema, list) else _branch(parsed, parsed)
        except (ValueError, TypeError, KeyError, SchemaParseException) as error:
            raise DecodeError(f"schema {number}: {type(error).__name__}: {error}"[:200]) from error


def _branch(branch: Any, whole: Any) -> _Branch:
    """Return one branch of a writer's union schema, as a schema that still defines the named types of the whole."""
    if not isinstance(branch, dict):
        return _Branch(str(branch), b"", whole)
    name = str(branch.get("name", "")).rpartition(".")[2]
    same = name in OURS and MAGIC + fingerprint_of(branch) == OURS[name]
    return _Branch(name, OURS[name] if same else b"", whole)


def _long(data: bytes, start: int) -> tuple[int, int]:
    """Decode an Avro long (zig-zag, 7 bits a byte); return it and where it ends. Raises DecodeError."""
    value = 0
    for place, byte in enumerate(data[start : start + 10]):
        value |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), start + place + 1
    raise DecodeError("not a Harvest record: a branch without an end")
