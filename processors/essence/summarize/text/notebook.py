"""Jupyter notebooks (nbformat 3 and 4): title, headings and prose of their text cells, language and imports of their code.

The text is that of the text cells; a full text includes the code. Output of cells is skipped: it is mostly pictures and tables of
numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Any, BinaryIO

import msgspec

from processors.essence.formats.text import read_text
from processors.essence.summarize._base import Facts, Found, Summarizer
from processors.essence.summarize._text import add_references
from processors.essence.summarize.source._source import add_all
from processors.essence.summarize.text.markdown import bare
from processors.essence.summarize.text.rawtext import raw_text

MAX_NOTEBOOK = 16_000_000
CELLS = 2_000
MAX_CELL = 16_384
"""Characters of a cell that are read."""
MAX_PROSE = 131_072
HEADINGS = 100

_HEADING = re.compile(r"^(#{1,4})[ \t]++([^\n]{1,250}+)$|<h[1-4][^>]{0,200}>([^<\n]{1,250})</h", re.MULTILINE)
_IMPORT = re.compile(r"^(?:import|from)[ \t]++([\w.]{1,100})", re.MULTILINE)


class _Cell(msgspec.Struct):
    cell_type: str = ""
    source: Any = ""
    input: Any = ""
    """The source of code in version 3."""
    level: Any = 0


class _Sheet(msgspec.Struct):
    cells: list[_Cell] = msgspec.field(default_factory=list)


class _Notebook(msgspec.Struct):
    cells: list[_Cell] = msgspec.field(default_factory=list)
    worksheets: list[_Sheet] = msgspec.field(default_factory=list)
    metadata: dict[str, Any] = msgspec.field(default_factory=dict)


def run(facts: Facts, body: BinaryIO, found: Found) -> None:
    """Add title, author, headings, programming-language, imports, url-references and partial-text. Else as plain text."""
    text = read_text(body, "utf-8", MAX_NOTEBOOK)
    try:
        book = msgspec.json.decode(text, type=_Notebook)
    # RecursionError: nesting too deep for the decoder.
    except (msgspec.DecodeError, RecursionError):
        raw_text(text, found)
        return
    _metadata(book.metadata, found)
    prose: list[str] = []
    whole: list[str] = []
    code: dict[str, None] = {}
    room = MAX_PROSE
    for cell in islice(_cells(book), CELLS):
        source = _source(cell.source or cell.input)
        whole += [source] if found.full else []
        if cell.cell_type in ("markdown", "heading") and room > 0:
            prose.append("# " + source if cell.cell_type == "heading" else source)
            room -= len(source)
        elif cell.cell_type == "code":
            code |= dict.fromkeys(_IMPORT.findall(source))
    written = "\n\n".join(prose)
    headings = [bare(m[2] or m[3]) for m in islice(_HEADING.finditer(written), HEADINGS)]
    found.set("title", next((h for h in headings if h), ""), 300)
    add_all(found, "headings", headings)
    add_all(found, "imports", code, 100)
    add_references(found, written)
    raw_text(written, found, whole="\n\n".join(whole) if found.full else written)


def _cells(book: _Notebook) -> Iterator[_Cell]:
    yield from book.cells
    for sheet in book.worksheets:
        yield from sheet.cells


def _source(value: Any) -> str:
    """Return the source of a cell, which is a string or a list of its lines."""
    if isinstance(value, list):
        value = "".join(line for line in value[:MAX_CELL] if isinstance(line, str))
    return value[:MAX_CELL] if isinstance(value, str) else ""


def _metadata(metadata: dict[str, Any], found: Found) -> None:
    title, authors = metadata.get("title"), metadata.get("authors")
    found.add("title", title if isinstance(title, str) else "", 300)
    for author in authors[:50] if isinstance(authors, list) else ():
        name = author.get("name") if isinstance(author, dict) else author
        found.add("author", name if isinstance(name, str) else "", 200)
    for key, field in (("kernelspec", "language"), ("language_info", "name")):
        told = metadata.get(key)
        name = told.get(field) if isinstance(told, dict) else ""
        found.set("programming-language", name.lower() if isinstance(name, str) else "", 100)


SUMMARIZER = Summarizer(types=("Notebook",), run=run)
