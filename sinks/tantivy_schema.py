"""What a tantivy index of a Broker holds: its fields, and how a summary becomes a document.

Strategy: all text is analysed by `processors.query.words` and handed over as words between spaces, which tantivy's
whitespace tokenizer splits again; so engine and predicate cannot disagree.

| field | holds |
| --- | --- |
| key | the OID: as bytes where it is hex, else as text |
| order | the first 8 bytes of the OID's text, so that a scroll can go in order of OID |
| title, description, abstract, keywords, author, partial-text | the attributes of these names |
| rest | the text of all other attributes but those that are found BY_NAME alone, one value after the other |
| attributes | the text of all other attributes, each word behind the `mark` of its name: so any one is a field of its own |
| has | the names of the attributes that are there at all |
| exact | `name=value` for each of EXACT_FIELDS |
| url | the URL as a column, for order among equal scores |
| role | `copy` for a copy; `hidden` for what is no summary: remembered removals, and the state |
| published, removed | the counter of the last change applied; when a remembered removal took place (ms) |
| shown | msgpack of Shown: what a hit needs, its text cut to SHOWN_TEXT characters |
| state | msgpack of State, in one document only |
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping
from functools import lru_cache
from urllib.parse import quote

import msgspec
from tantivy import Document, Schema, SchemaBuilder

from processors.query.words import ANALYSIS, MAX_EXACT, all_spaced, properties, texts
from schemas.query import BY_NAME, EXACT_FIELDS, TEXT_FIELDS
from schemas.records import Removed, Summary

FORMAT = f"2.{ANALYSIS}"
"""Version of the fields and of the analysis; an index of another one is rebuilt by replay."""

SHOWN_TEXT = 2_000
"""Characters of text kept for snippets, of all its attributes together."""
SNIPPET_FIELDS = ("description", "abstract", "partial-text")

MAX_TITLE = 500
"""Characters of a title that are kept to be shown."""

COPY, HIDDEN = "copy", "hidden"
STATE_KEY, NO_KEY = b"state", b"none"
"""Keys of the state, and of nothing: shorter than any that stands for an OID."""

_HEX = re.compile("[0-9a-f]{64}")
_UNSAFE = re.compile(r"[\s%=]")
_NO_HEX = b"=" * 33


class Shown(msgspec.Struct, frozen=True, array_like=True):
    """What is kept of a summary to show it as a hit."""

    oid: bytes
    url: str
    title: str
    type: str
    copies: tuple[str, ...]
    copies_count: int
    text: tuple[str, ...]


class State(msgspec.Struct, frozen=True, array_like=True):
    """What the index knows of itself, committed with every batch."""

    format: str
    offsets: Mapping[int, int] = {}
    clock: int = 0
    """The latest time of a removal applied, ms."""
    swept: int = 0
    """The clock when removals were last forgotten, ms."""


def schema() -> Schema:
    """The fields of the index."""
    builder = SchemaBuilder()
    builder.add_bytes_field("key", indexed=True)
    builder.add_unsigned_field("order", fast=True)
    for name in (*TEXT_FIELDS, "rest", "attributes"):
        builder.add_text_field(name, tokenizer_name="whitespace", index_option="position")
    builder.add_text_field("has", tokenizer_name="whitespace", index_option="basic")
    for name in ("exact", "role"):
        builder.add_text_field(name, tokenizer_name="raw", index_option="basic")
    builder.add_text_field("url", tokenizer_name="raw", index_option="basic", fast=True)
    builder.add_unsigned_field("published", fast=True)
    builder.add_unsigned_field("removed", fast=True)
    builder.add_bytes_field("shown", stored=True)
    builder.add_bytes_field("state", stored=True)
    return builder.build()


def key(oid: str) -> bytes:
    """The OID as it is kept: 32 bytes where it is hex, more where it is not."""
    return bytes.fromhex(oid) if _HEX.fullmatch(oid) else _NO_HEX + oid.encode("utf-8", "surrogatepass")


def oid_of(kept: bytes) -> str:
    """The OID that `key` was given."""
    return kept.hex() if len(kept) == 32 else kept[len(_NO_HEX) :].decode("utf-8", "surrogatepass")


def order(oid: str) -> int:
    """A number that rises with the OID, as far as its first 8 bytes tell."""
    return int.from_bytes(oid.encode("utf-8", "surrogatepass")[:8].ljust(8, b"\0"), "big")


@lru_cache(4_096)
def mark(name: str) -> str:
    """What stands before each word of an attribute: a digest of its name, since long names would be most of the index."""
    return base64.urlsafe_b64encode(hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=4).digest())[:6].decode()


@lru_cache(4_096)
def term(name: str) -> str:
    """The name of an attribute as it stands by itself."""
    return f"{_UNSAFE.sub(lambda found: quote(found.group()), name)}="


def summary_document(summary: Summary) -> Document:
    """A summary as a document."""
    document = _identified(summary)
    add = document.add_text
    given = list(texts(summary))
    for (name, _), words in zip(given, all_spaced([text for _, text in given]), strict=True):
        if not words:
            continue
        if name in TEXT_FIELDS:
            add(name, words)
        else:
            before = mark(name)
            if name not in BY_NAME:
                add("rest", words)
            add("attributes", before + words.replace(" ", f" {before}"))
    known = properties(summary)
    for field, value in known.items():
        add("exact", f"{field}={value}")
    # One text for all the names: each call into the engine costs a microsecond.
    add("has", " ".join(map(term, {name for name, _ in given}.difference(EXACT_FIELDS).union(known))))
    if summary.copy_of:
        add("role", COPY)
    add("url", sortable(summary.url))
    document.add_bytes("shown", msgspec.msgpack.encode(shown(summary, given)))
    return document


def removal_document(removal: Removed) -> Document:
    """A removal to be remembered, so that an older summary does not come back."""
    document = _identified(removal)
    document.add_text("role", HIDDEN)
    document.add_unsigned("removed", max(removal.time, 0))
    return document


def state_document(state: State) -> Document:
    """The state, kept beside the summaries."""
    document = Document()
    document.add_bytes("key", STATE_KEY)
    document.add_text("role", HIDDEN)
    document.add_bytes("state", msgspec.msgpack.encode(state))
    return document


def sortable(url: str) -> str:
    """The URL as it is sorted."""
    return url[:MAX_EXACT].encode("utf-8", "replace").decode()


def shown(summary: Summary, given: list[tuple[str, str]]) -> Shown:
    """What a hit will need of a summary, whose `texts` are given."""
    kept: dict[str, list[str]] = {name: [] for name in ("title", *SNIPPET_FIELDS)}
    for name, text in given:
        if name in kept:
            kept[name].append(text)
    room, text_kept = SHOWN_TEXT, list[str]()
    for text in (text for name in SNIPPET_FIELDS for text in kept[name]):
        if room > 0 and text:
            text_kept.append(text[:room])
            room -= len(text)
    title = next(iter(kept["title"]), "")[:MAX_TITLE]
    return Shown(key(summary.oid), summary.url, title, summary.type, summary.copies, summary.copies_count, tuple(text_kept))


def _identified(change: Summary | Removed) -> Document:
    document = Document()
    document.add_bytes("key", key(change.oid))
    document.add_unsigned("order", order(change.oid))
    document.add_unsigned("published", max(change.published, 0))
    return document
