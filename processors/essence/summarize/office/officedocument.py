"""Office Open XML (ECMA-376): metadata, headings and the first text of documents, workbooks and presentations.

Parts are found by relationships (`_office.py`); the main part's root element tells the kind of document. A part that the document
displays and that is not in the package is damage. Embedded files are members (`processors/essence/unnest/containers/office.py`).
"""

from __future__ import annotations

import re
from typing import BinaryIO

from processors.essence.formats.line_buffer import Text
from processors.essence.formats.package_parts import MAIN, ROOT
from processors.essence.formats.xml import MAX_PART
from processors.essence.summarize._base import Facts, Found, Summarizer, SummaryError
from processors.essence.summarize.office._imports import IMPORT, IMPORTS, KIND, Imports
from processors.essence.summarize.office._office import Office
from processors.essence.summarize.office._package import add_properties, add_reference
from processors.essence.summarize.office._presentation import SLIDES, add_slide, slides_of
from processors.essence.summarize.office._word import Import, add_beside, add_document, style_names
from processors.essence.summarize.office._workbook import MOST_SHEETS, Workbook

MAX_TEXT = 8_192
SMALL = 262_144
MAINS = 4
"""Maximum main parts that are read; a sound package has one."""
DOCUMENT, WORKBOOK, PRESENTATION = "document", "workbook", "presentation"
"""Kinds of documents, which are also the names of their root elements."""
HINTS = {
    "wordprocessing": DOCUMENT, "ms-word": DOCUMENT, "spreadsheet": WORKBOOK, "ms-excel": WORKBOOK,
    "presentation": PRESENTATION, "ms-powerpoint": PRESENTATION,
}  # fmt: skip
"""Kinds by words in content types."""
FOLDERS = {"word": DOCUMENT, "xl": WORKBOOK, "ppt": PRESENTATION}

_ROOT = re.compile(rb"<(?:[\w.-]{1,50}:)?(document|workbook|presentation|VisioDocument)[\s/>]")


def run(facts: Facts, body: BinaryIO, found: Found) -> None:
    """Add metadata, headings (names of sheets, titles of slides), columns, links and partial-text."""
    office = Office(body, facts.size)
    mains, properties = office.mains()[:MAINS], office.properties()
    singles = [office.one(main, kind) for main in mains for kind in ("styles", "sharedStrings")]
    office.load(dict.fromkeys([*mains, *singles], MAX_PART) | dict.fromkeys(properties, SMALL))
    if mains and not any(_kind(office, main) for main in mains):
        # The relationship leads to something else.
        mains = [key for key in office.implied("officeDocument") if key not in mains][:MAINS]
        office.load(dict.fromkeys(mains, MAX_PART))
    for key in properties:
        add_properties(office.parts.get(key, b""), found)
    reader = _Reader(office, found)
    for main in mains or [""]:
        reader.read(main)
    found.body("\n".join(reader.text.lines), MAX_TEXT)
    if not mains and not reader.displayed:
        _no_main(office)
    office.package.close(office.missing)
    if reader.imports.problem:
        raise SummaryError(f"damaged: {reader.imports.problem}")


def _no_main(office: Office) -> None:
    """Report that a package has no main part, unless it is damaged. Raises SummaryError."""
    office.package.close(key for key in office.relations.targets(ROOT, *MAIN) if key not in office.package.names)
    raise SummaryError("OfficeDocument: no known part: no relationship leads to a main part")


def kind_of(raw: bytes, content_type: str, key: str) -> str:
    """Return the kind of document that a main part is of: by its root element, its content type, its folder; "" if unknown."""
    if root := _ROOT.search(raw, 0, 4_096):
        return root[1].decode("ascii")
    stated = next((kind for word, kind in HINTS.items() if word in content_type.lower()), "")
    return stated or FOLDERS.get(key.partition("/")[0], "")


def _kind(office: Office, main: str) -> str:
    return kind_of(office.parts.get(main, b""), office.relations.content_type(main), main)


class _Reader:
    """Adds the text and the links of the parts that a package displays."""

    def __init__(self, office: Office, found: Found) -> None:
        self.office = office
        self.found = found
        self.text = Text(found.most(MAX_TEXT))
        self.imports = Imports(self.text, found)
        self.displayed: list[str] = []
        """Keys of slides and sheets."""

    def read(self, main: str) -> None:
        """Read the document of a main part; "": slides that remain of a damaged package."""
        office, found = self.office, self.found
        kind = _kind(office, main) if main else PRESENTATION
        if kind == DOCUMENT:
            self._document(main)
        elif kind == WORKBOOK:
            book = Workbook(office, main)
            self.displayed = book.all()
            self._load(main, dict.fromkeys(book.displayed(found.most(MOST_SHEETS)), MAX_PART if found.full else SMALL))
            book.add(self.text, found)
        elif kind == PRESENTATION:
            self.displayed = slides_of(office, main)
            slides = self.displayed[:SLIDES]
            self._load(main, dict.fromkeys(slides, SMALL))
            for slide in slides:
                add_slide(office.part(slide), self.text, found)
        self._around(main)

    def _document(self, main: str) -> None:
        names = style_names(self.office.parts.get(self.office.one(main, "styles"), b""))
        self._load(main, {})
        add_document(self.office.part(main), names, self.text, self.found, self._importer(main))

    def _importer(self, source: str) -> Import:
        """Return a function that adds the text of an imported part of one part."""
        return lambda identity: self.imports.add(self.office, source, identity)

    def _load(self, main: str, sizes: dict[str, int]) -> None:
        """Read displayed parts, with the imported ones, and with those beside the main text if the full text is requested."""
        beside = self.office.reached(main, sizes) if self.found.full else []
        imported = [key for source in (main, *beside) for key in self.office.relations.targets(source, KIND)]
        self.office.load(sizes | dict.fromkeys(beside, MAX_PART) | dict.fromkeys(imported[:IMPORTS], IMPORT))

    def _around(self, main: str) -> None:
        """Add the links of all displayed parts, shapes and pictures included, and the text beside the main text."""
        beside = self.office.reached(main, self.displayed)
        for url in self.office.links((*((main,) if main else ()), *self.displayed, *beside)):
            add_reference(url, self.found)
        for key in beside if self.found.full else ():
            add_beside(self.office.parts.get(key, b""), self.text, self.found, self._importer(key))


SUMMARIZER = Summarizer(types=("OfficeDocument",), run=run)
