"""Fields of a Broker's tantivy index, and documents made from changes.

Strategy: text comes as words between spaces (`sinks/index/document.py`), which tantivy's whitespace tokenizer splits again.

| field | holds |
| --- | --- |
| key | the OID: as bytes if it is hex, else as text |
| order | the first 8 bytes of the OID's text, so that a scroll can go in order of OID |
| title, description, abstract, keywords, author, partial-text, full-text, terms | the attributes of these names |
| rest | the text of all other attributes except those found BY_NAME alone, one value after the other |
| forms, title-forms, named-forms | forms of words (`document.py`), without positions |
| attributes | the text of all other attributes, each word prefixed by the `mark` of its name, as if each were a field of its own |
| places | the folders and archives that the summary lies in, outermost first |
| cells | numbers and moments of all attributes, as columns (`processors.query.values`) |
| has | the names of the attributes present |
| exact | `name=value` for each of EXACT_FIELDS, without an OID that is in `key`; OWN if both URLs are the same |
| facet-NAME | the values of each of COUNTED, as columns, too (`processors.query.facets`) |
| date, size | the document's own date in seconds since the epoch, and its size in bytes, as columns |
| suggestions | words of titles, keywords and authors, each once |
| url | the URL as a column, for order among equal scores |
| links | the terms of LINKS, which are not text: each URL, and its host |
| role | `copy` for a copy; `hidden` for documents that are no summaries: stored removals, and the state |
| published, removed | the counter of the last change applied; time of a stored removal (ms) |
| shown | msgpack of StoredHit: the data of a hit, its text cut to SHOWN_TEXT characters |
| state | msgpack of State, in one document only |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec
from tantivy import Document, Schema, SchemaBuilder

from processors.query.facets import COUNTED, columns
from processors.query.forms import DEFAULT_LANGUAGES, Analyzer
from processors.query.places import segment_terms, segments
from processors.query.values import cells, own_date, size
from processors.query.words import Recent, properties
from schemas.query import SETS
from schemas.records import Removed, Summary
from sinks.index import document as documents
from sinks.index.document import (
    ABSENT,
    COPY,
    FORMED,
    HIDDEN,
    UNCOUNTED,
    WORDED,
    facet_field,
    is_plain,
    key,
    linked,
    name_terms,
    shown,
    sortable,
    suggestions,
    words_by_field,
)

FORMAT = f"{documents.FORMAT}.1"
"""Version of the documents and of these fields; an index with another version is rebuilt by replay."""
OWN = "own-url"
"""Exact value of a summary whose URL is its object's URL. One shared term: a second copy of the URL would be one more distinct

term for each.
"""
STATE_KEY, NO_KEY = b"state", b"none"
"""Keys of the state, and of no document: shorter than the key of any OID."""


class State(msgspec.Struct, frozen=True, array_like=True):
    """State of the index, committed with every batch."""

    format: str
    offsets: Mapping[int, int] = {}
    clock: int = 0
    """Latest time of a removal applied, in ms."""
    swept: int = 0
    """Clock in ms when removals were last deleted."""
    languages: tuple[str, ...] = DEFAULT_LANGUAGES
    """Languages that the forms of words were made for."""


def schema() -> Schema:
    """Return the fields of the index."""
    builder = SchemaBuilder()
    builder.add_bytes_field("key", indexed=True)
    builder.add_unsigned_field("order", fast=True)
    for name in WORDED:
        option: Literal["basic", "position"] = "basic" if name in SETS else "position"
        builder.add_text_field(name, tokenizer_name="whitespace", index_option=option)
    for name in FORMED:
        builder.add_text_field(name, tokenizer_name="whitespace", index_option="basic" if name in UNCOUNTED else "freq")
    builder.add_text_field("places", tokenizer_name="whitespace", index_option="position")
    builder.add_unsigned_field("cells", fast=True)
    for facet in COUNTED:
        builder.add_text_field(facet_field(facet), tokenizer_name="raw", index_option="basic", fast=True)
    builder.add_integer_field("date", fast=True)
    builder.add_unsigned_field("size", fast=True)
    for name in ("has", "links", "suggestions"):
        builder.add_text_field(name, tokenizer_name="whitespace", index_option="basic")
    for name in ("exact", "role"):
        builder.add_text_field(name, tokenizer_name="raw", index_option="basic")
    builder.add_text_field("url", tokenizer_name="raw", index_option="basic", fast=True)
    builder.add_unsigned_field("published", fast=True)
    builder.add_unsigned_field("removed", fast=True)
    builder.add_bytes_field("shown", stored=True)
    builder.add_bytes_field("state", stored=True)
    return builder.build()


_recent = Recent[tuple[dict[str, list[str]], dict[str, list[str]]]]()
"""Values of recent summaries, and their words by field."""


def order(oid: str) -> int:
    """Return a number that orders OIDs by their first 8 bytes."""
    return int.from_bytes(oid.encode("utf-8", "surrogatepass")[:8].ljust(8, b"\0"), "big")


def summary_document(summary: Summary, analyzer: Analyzer) -> Document:
    """Return the document of a summary, with the forms that an Analyzer makes."""
    document = _identified(summary)
    add = document.add_text
    values, worded = _recent.of(summary, analyzer.languages, lambda found: (found, words_by_field(found, analyzer)))
    for field, texts in worded.items():
        for words in texts:
            add(field, words)
    if suggested := suggestions(worded):
        add("suggestions", " ".join(suggested))
    known = properties(summary)
    for name, value in known.items():
        if name == "oid" and is_plain(summary.oid):
            continue
        add("exact", OWN if name == "object-url" and value == known.get("url") else f"{name}={value}")
    _add_columns(document, summary, values)
    add("places", " ".join(segment_terms(segments(summary.shown_url))))
    # One text for all names: each call into the engine costs a microsecond.
    add("has", " ".join(name_terms(values, known)))
    if links := linked(values):
        add("links", " ".join(links))
    if summary.copy_of:
        add("role", COPY)
    add("url", sortable(summary.shown_url))
    document.add_bytes("shown", msgspec.msgpack.encode(shown(summary, values)))
    return document


def _add_columns(document: Document, summary: Summary, values: Mapping[str, Sequence[str]]) -> None:
    for facet, chosen in columns(summary, values).items():
        for value in chosen:
            document.add_text(facet_field(facet), value)
    if (own := own_date(values)) is not None:
        document.add_integer("date", own)
    document.add_unsigned("size", size(values))
    for cell in cells(values):
        document.add_unsigned("cells", cell)


def removal_document(removal: Removed) -> Document:
    """Return the document of a removal, stored so that an older summary does not return."""
    document = _identified(removal)
    document.add_text("role", HIDDEN)
    for field in (*WORDED, *FORMED):
        document.add_text(field, ABSENT)
    document.add_unsigned("removed", max(removal.time, 0))
    return document


def state_document(state: State) -> Document:
    """Return the document of the state, stored beside the summaries."""
    document = Document()
    document.add_bytes("key", STATE_KEY)
    document.add_text("role", HIDDEN)
    document.add_bytes("state", msgspec.msgpack.encode(state))
    return document


def _identified(change: Summary | Removed) -> Document:
    document = Document()
    document.add_bytes("key", key(change.oid))
    document.add_unsigned("order", order(change.oid))
    document.add_unsigned("published", max(change.published, 0))
    return document
