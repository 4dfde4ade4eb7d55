"""A tantivy index of words alone: with the fields that Harvest's had before it had forms, places and cells."""

from __future__ import annotations

import msgspec
import tantivy

from processors.query.forms import Analyzer
from processors.query.words import properties, searchable_values
from schemas.query import SETS
from schemas.records import Summary
from sinks.index.document import COPY, WORDED, is_plain, key, linked, name_terms, shown, sortable, words_by_field
from sinks.index.tantivy.schema import OWN, order

_NO_FORMS = Analyzer(())


def schema() -> tantivy.Schema:
    """The fields."""
    builder = tantivy.SchemaBuilder()
    builder.add_bytes_field("key", indexed=True)
    builder.add_unsigned_field("order", fast=True)
    for name in WORDED:
        builder.add_text_field(name, tokenizer_name="whitespace", index_option="basic" if name in SETS else "position")
    for name in ("has", "links"):
        builder.add_text_field(name, tokenizer_name="whitespace", index_option="basic")
    for name in ("exact", "role"):
        builder.add_text_field(name, tokenizer_name="raw", index_option="basic")
    builder.add_text_field("url", tokenizer_name="raw", index_option="basic", fast=True)
    builder.add_unsigned_field("published", fast=True)
    builder.add_bytes_field("shown", stored=True)
    return builder.build()


def document(summary: Summary) -> tantivy.Document:
    """A summary as a document of these fields."""
    made = tantivy.Document()
    made.add_bytes("key", key(summary.oid))
    made.add_unsigned("order", order(summary.oid))
    made.add_unsigned("published", summary.published)
    values, known = searchable_values(summary), properties(summary)
    texts = words_by_field(values, _NO_FORMS)
    for field in WORDED:
        for words in texts[field]:
            made.add_text(field, words)
    for name, value in known.items():
        if name != "oid" or not is_plain(summary.oid):
            same = name == "object-url" and value == known.get("url")
            made.add_text("exact", OWN if same else f"{name}={value}")
    made.add_text("has", " ".join(name_terms(values, known)))
    made.add_text("links", " ".join(linked(values)))
    if summary.copy_of:
        made.add_text("role", COPY)
    made.add_text("url", sortable(summary.url))
    made.add_bytes("shown", msgspec.msgpack.encode(shown(summary, values)))
    return made
