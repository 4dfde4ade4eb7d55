"""Rows of the register stage: the entry of one OID, with what each source of the Broker gives.

Rows written before Brokers had several sources lack the later fields: what they hold is from the topic `summaries`.
"""

from __future__ import annotations

from typing import cast

import msgspec
from msgspec.structs import replace

from processors.broker.definition import GATHERED
from schemas.codec import decode
from schemas.ports import Rows
from schemas.records import Summary

SHOWN = b"="
"""In place of a source's summary: it is the one that the entry shows."""


class Cause(msgspec.Struct, frozen=True, array_like=True):
    """The record whose outputs are meant: its topic, its offset, and the reading of the sources (`reading.py`) that it was in."""

    topic: str
    offset: int
    reading: int = 0


class Given(msgspec.Struct, frozen=True, array_like=True):
    """What one source says of an OID."""

    source: str
    """Name of a Broker, or "" for the topic `summaries`."""
    sequence: int
    """The last one seen: `version` of `summaries`, `published` of a Broker's archive."""
    version: int
    time: int
    """ms: when the summary was last confirmed."""
    summary: bytes = b""
    """The summary as the Broker would publish it; SHOWN; empty if the Broker does not accept it."""
    gives: bool = True
    """Whether the source has it; False: it was removed there, or expired here."""


class Left(msgspec.Struct, frozen=True, array_like=True):
    """Content that the entry held before, with the cause of its end."""

    content: str
    cause: Cause


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """Row of one OID."""

    version: int
    """Known to dedup: that of the summary, or one more than the last where that would not rise with version or content."""
    published: int
    content: str
    copy_of: str
    copies: tuple[str, ...]
    count: int
    summary: bytes
    left: tuple[tuple[str, int], ...] = ()
    """As `ended`, in rows written before there were several sources: offsets of `summaries`."""
    given: tuple[Given, ...] = ()
    ended: tuple[Left, ...] = ()
    """Contents that it held before, until the message to dedup is certain."""
    cause: Cause | None = None
    """What caused the last publication; None: not known."""


NOTHING = Entry(-1, 0, "", "", (), 0, b"")

PREFIX = b"r|"
encode_row = msgspec.msgpack.encode
decode_entry = msgspec.msgpack.Decoder(Entry).decode


def key_of(oid: str) -> bytes:
    """Return the key of an OID's entry."""
    return PREFIX + oid.encode()


def load(rows: Rows, key: bytes) -> Entry:
    """Return an entry; NOTHING if there is none."""
    value = rows.get(key)
    return upgraded(decode_entry(value)) if value is not None else NOTHING


def upgraded(entry: Entry) -> Entry:
    """Return an entry with the fields that an old row lacks."""
    if entry.left:
        ended = tuple(Left(content, Cause(GATHERED, offset)) for content, offset in entry.left)
        entry = replace(entry, left=(), ended=ended)
    if entry.given or entry.cause is not None or not entry.published:
        return entry
    if not entry.summary:
        return replace(entry, given=(Given("", entry.version, entry.version, 0, gives=False),))
    summary = cast("Summary", decode(entry.summary))
    return replace(entry, given=(Given("", entry.version, entry.version, summary.time, SHOWN),))


def shown_version(entry: Entry) -> int:
    """Return the version of the summary that an entry shows; -1: it shows none."""
    return next((given.version for given in entry.given if given.gives and given.summary == SHOWN), -1)
