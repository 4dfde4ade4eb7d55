"""JSON: top-level keys, values of the common ones (name, description, author ...), a sample of the texts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

import msgspec

from processors.essence.formats.text import read_text
from processors.essence.summarize._base import Facts, Found, Summarizer
from processors.essence.summarize.source._source import add_all
from processors.essence.summarize.text.rawtext import raw_text

MAX_JSON = 2_000_000
"""Bytes that are read; a larger file is summarized as plain text, from these."""
SAMPLE = 2_048
DEPTH = 8

USUAL = {
    "title": "title", "name": "title", "description": "description", "summary": "description", "author": "author",
    "authors": "author", "keywords": "keywords", "tags": "keywords", "version": "version", "license": "license",
    "homepage": "url-references", "lang": "language", "$schema": "schema", "$id": "schema", "@type": "schema",
}  # fmt: skip


def run(facts: Facts, body: BinaryIO, found: Found) -> None:
    """Add keys, attributes of common keys and partial-text; a file that is not JSON is summarized as plain text."""
    text = read_text(body, facts.charset, MAX_JSON)
    try:
        value = msgspec.json.decode(text)
    # RecursionError: nesting too deep for the decoder.
    except (msgspec.DecodeError, RecursionError):
        value = _first_line(text)
    if value is None:
        raw_text(text, found)
        return
    top = value[0] if isinstance(value, list) and value else value
    if isinstance(top, dict):
        add_all(found, "keys", top)
        for key, meant in USUAL.items():
            # The title of the first entry of a list is not the title of the file.
            for each in _strings(top.get(key), 1) if meant != "title" or top is value else ():
                (found.set if meant == "title" else found.add)(meant, each, 1_000)
    sample: list[str] = []
    room = SAMPLE
    for each in _strings(value, DEPTH):
        sample.append(each)
        room -= len(each) + 1
        if room < 0:
            break
    found.body("\n".join(dict.fromkeys(sample)), SAMPLE, whole=text)


def _first_line(text: str) -> Any:
    """Return the first value of JSON Lines; None if there is none."""
    try:
        return msgspec.json.decode(text[: max(text.find("\n"), 0)])
    except (msgspec.DecodeError, RecursionError):
        return None


def _strings(value: Any, depth: int) -> Iterator[str]:
    """Yield the texts in a value, in order, at most `depth` levels down."""
    if isinstance(value, str):
        yield value[:500]
    elif depth and isinstance(value, dict):
        for each in value.values():
            yield from _strings(each, depth - 1)
    elif depth and isinstance(value, list):
        for each in value[:100]:
            yield from _strings(each, depth - 1)


SUMMARIZER = Summarizer(types=("JSON",), run=run)
