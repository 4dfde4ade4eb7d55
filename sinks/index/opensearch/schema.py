"""Mappings and settings of a Broker's OpenSearch index, and documents made from changes.

Strategy: text comes as words between spaces (`sinks/index/document.py`), which the engine's whitespace tokenizer splits again.
Attributes of all names share one field, each word prefixed by the `mark` of its name; the mapping is strict, so that no summary can
add a field.

| field | holds |
| --- | --- |
| oid | the OID as a column, for scrolls in order of OID |
| title, description, abstract, keywords, author, partial-text, full-text, terms, rest, attributes | words (`document.py`) |
| forms, title-forms, named-forms | forms of words (`document.py`), without positions |
| places | the folders and archives that the summary lies in, outermost first |
| cells | numbers and moments of all attributes (`processors.query.values`) |
| has | the names of the attributes present |
| exact | `name=value` for each of EXACT_FIELDS |
| facet-NAME | the values of each of COUNTED (`processors.query.facets`) |
| date, size | the document's own date in seconds since the epoch, and its size in bytes |
| suggestions | words of titles, keywords and authors, each once |
| url | the URL as a column, for order among equal scores |
| links | the terms of links: each URL of LINKS, and its host |
| role | `copy` for a copy; `hidden` for documents that are no summaries: stored removals, and the state |
| published, removed | the counter of the change; time of a stored removal (ms) |
| shown | JSON of StoredHit: the data of a hit |
| record | the whole record as Avro, for `harvest show` |
| state | of a document that holds the offset of a partition: the index that it belongs to (`IndexIdentity.made`) |

The version of a document is its `published` (external_gte); that of an offset the offset itself. There is no `_source`: it would be
a second copy of all text, and an index is rebuilt by replay.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import uuid4

import msgspec

from processors.query.facets import COUNTED, columns
from processors.query.forms import DEFAULT, DEFAULT_LANGUAGES, Analyzer
from processors.query.places import segment_terms, segments
from processors.query.values import cells, own_date, size
from processors.query.words import properties, searchable_values
from schemas.codec import encode
from schemas.query import SETS
from schemas.records import Removed, Summary
from sinks.index.document import (
    ABSENT,
    COPY,
    FORMAT,
    FORMED,
    HIDDEN,
    UNCOUNTED,
    WORDED,
    facet_field,
    linked,
    name_terms,
    shown,
    sortable,
    suggestions,
    words_by_field,
)

LONGEST = 1_024
"""Maximum length of a token in UTF-16 units: longer than any word of `processors.query.words`."""
SWEPT = "swept"
"""Id of the document whose version is the clock when removals were last deleted."""

_HEX = re.compile("[0-9a-f]{64}")
_KEYWORD: Mapping[str, Any] = {"type": "keyword", "doc_values": False}
_COLUMN: Mapping[str, Any] = {"type": "keyword", "index": False}
_STORED: Mapping[str, Any] = {"type": "keyword", "index": False, "doc_values": False, "store": True}


def definition(languages: Sequence[str] = DEFAULT_LANGUAGES) -> dict[str, Any]:
    """Return settings and mappings of a new index, whose forms are made for some languages.

    The cluster and its templates decide the numbers of shards and replicas.
    """
    words = {"type": "text", "analyzer": "spaced"}
    fields: dict[str, Any] = {name: words | ({"index_options": "docs"} if name in SETS else {}) for name in WORDED}
    fields |= {name: words | {"index_options": "docs" if name in UNCOUNTED else "freqs"} for name in FORMED}
    fields |= {facet_field(facet): {"type": "keyword"} for facet in COUNTED}
    fields |= {
        "places": words | {"norms": False},
        "cells": {"type": "long"},
        "date": {"type": "long", "index": False},
        "size": {"type": "long", "index": False},
        "suggestions": {"type": "keyword"},
        "oid": _COLUMN,
        "url": _COLUMN,
        "has": _KEYWORD,
        "exact": _KEYWORD,
        "links": _KEYWORD,
        "role": _KEYWORD,
        "state": _KEYWORD,
    }
    fields |= {"published": {"type": "long", "index": False}, "removed": {"type": "long"}}
    fields |= {"shown": _STORED, "record": {"type": "binary", "store": True}}
    mappings = {
        "dynamic": "strict",
        "_source": {"enabled": False},
        "_meta": {"format": FORMAT, "made": uuid4().hex, "languages": list(languages)},
        "properties": fields,
    }
    analysis = {
        "tokenizer": {"spaces": {"type": "whitespace", "max_token_length": LONGEST}},
        "analyzer": {"spaced": {"type": "custom", "tokenizer": "spaces"}},
    }
    similarity = {"default": {"type": "BM25", "k1": 1.2, "b": 0.75}}
    # Removals are hidden documents, so that no version is forgotten with a deletion; deleted documents are past every replay.
    settings = {"index": {"gc_deletes": "0s", "similarity": similarity}, "analysis": analysis}
    return {"settings": settings, "mappings": mappings}


def identifier(oid: str) -> str:
    """Return the `_id` of an OID: the OID itself if it is a hex digest, else a digest of it (512 bytes are the limit)."""
    return oid if _HEX.fullmatch(oid) else "=" + hashlib.sha256(oid.encode("utf-8", "surrogatepass")).hexdigest()


def summary_document(summary: Summary, analyzer: Analyzer) -> dict[str, Any]:
    """Return the document of a summary, with the forms that an Analyzer makes."""
    values = searchable_values(summary)
    known = properties(summary)
    document: dict[str, Any] = {**words_by_field(values, analyzer)}
    document["has"] = list(name_terms(values, known))
    document["exact"] = [f"{name}={value}" for name, value in known.items()]
    document |= {facet_field(facet): chosen for facet, chosen in columns(summary, values).items() if chosen}
    if (own := own_date(values)) is not None:
        document["date"] = own
    document["size"] = size(values)
    if suggested := suggestions(document):
        document["suggestions"] = suggested
    document["places"] = " ".join(segment_terms(segments(summary.shown_url)))
    if found := cells(values):
        document["cells"] = sorted(found)
    if links := linked(values):
        document["links"] = list(links)
    document["url"] = sortable(summary.shown_url)
    if summary.copy_of:
        document["role"] = COPY
    document["shown"] = msgspec.json.encode(shown(summary, values)).decode()
    return document


def removal_document(removal: Removed) -> dict[str, Any]:
    """Return the document of a removal, stored so that an older summary does not return."""
    return _hidden() | {"removed": max(removal.time, 0)}


def _hidden() -> dict[str, Any]:
    """Return a hidden document. It has all fields of words, as summaries have.

    If one document of a segment lacks a field, Lucene keeps the field's lengths in a sparse table, and looks into that for every
    posting that it writes: a third of all its work.
    """
    return dict.fromkeys((*WORDED, *FORMED), ABSENT) | {"role": HIDDEN}


def item(change: Summary | Removed, analyzer: Analyzer = DEFAULT) -> bytes:
    """Return a change as an item of a bulk."""
    document = removal_document(change) if isinstance(change, Removed) else summary_document(change, analyzer)
    # As bytes: msgspec encodes them in base64, as the mapping requires.
    document |= {"oid": change.oid, "published": change.published, "record": encode(change)}
    return _lines(identifier(change.oid), max(change.published, 0), document)


def offset_item(made: str, partition: int, offset: int) -> bytes:
    """Return the item for a partition's offset in one index (`IndexIdentity.made`); another index ignores it."""
    return _lines(f"offset/{made}/{partition}", offset, _hidden() | {"state": made})


def swept_item(clock: int) -> bytes:
    """Return the item for the clock when removals were last deleted."""
    return _lines(SWEPT, clock, _hidden())


def _lines(name: str, version: int, document: Mapping[str, Any]) -> bytes:
    action = {"index": {"_id": name, "version": version, "version_type": "external_gte"}}
    return msgspec.json.encode(action) + b"\n" + msgspec.json.encode(document) + b"\n"
