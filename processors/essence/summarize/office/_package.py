"""Documents in zip packages (office documents, books): reads parts by name, and adds metadata and links from them.

The readable parts of a damaged zip are returned; `damage` has the reason for the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from processors.essence.formats.container import Refused
from processors.essence.formats.package_parts import PARTS, Parts
from processors.essence.formats.text import squeeze
from processors.essence.formats.xml import elements, tree
from processors.essence.summarize._base import Found, SummaryError
from processors.essence.summarize._placeholder_titles import spoken

PROPERTIES = {
    "title": "title", "creator": "author", "initial-creator": "author", "author": "author",
    "description": "description", "keywords": "keywords", "keyword": "keywords", "language": "language", "created": "creation-date",
    "modified": "modification-date",
    "creation-date": "creation-date", "publisher": "publisher", "Company": "organization", "Application": "generator",
    "generator": "generator", "category": "keywords", "rights": "copyright", "Pages": "pages", "Slides": "pages",
}  # fmt: skip
"""Attribute of the summary by metadata element (Dublin Core and similar vocabularies)."""
SCHEMES = ("http://", "https://", "ftp://", "mailto:")
"""Schemes of links that are kept."""
PARTED = frozenset(("keywords",))
NAMED = 3
"""Missing parts that a reason names."""


class Package(Parts):
    """A zip whose parts are read by key (`part_key`)."""

    def read(self, wanted: Callable[[str], int], most: int = PARTS) -> dict[str, bytes]:
        """Return the parts for which `wanted` returns a number of bytes; see `Parts`. Raises SummaryError."""
        try:
            return super().read(wanted, most)
        except Refused as error:
            raise SummaryError(f"refused: {error.reason}") from error

    def close(self, missing: Iterable[str] = ()) -> None:
        """Report damage, and missing parts, by their names. Raises SummaryError."""
        if self.damage:
            raise SummaryError(f"damaged: {self.damage}")
        if names := list(missing):
            more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
            raise SummaryError(f"damaged: parts are missing: {', '.join(names[:NAMED])}{more}")


def add_properties(raw: bytes, found: Found, subject: str = "description", date: str = "") -> None:
    """Add metadata from a properties part: title, author, ... `subject`, `date`: the attributes that these elements become."""
    own = PROPERTIES | {"subject": subject, "date": date}
    for name, element, begins in elements(tree(raw)):
        meant = own.get(name, "")
        if begins or not meant:
            continue
        text = spoken(meant, squeeze((element.text or "")[:4_000]))
        if meant == "title":
            found.set("title", text, 500)
        elif meant not in ("pages", "creation-date", "modification-date", "language") or meant not in found.attributes:
            for each in text.replace(";", ",").split(",") if meant in PARTED else (text,):
                found.add(meant, each, 1_000)


def add_reference(url: str, found: Found) -> None:
    """Add a link of a document, if its target is an address outside of the document."""
    if url.lower().startswith(SCHEMES):
        found.add("url-references", url, 500)


def number(name: str) -> int:
    """Return the number at the end of a numbered part's name: xl/worksheets/sheet12.xml."""
    stem = name.rpartition("/")[2].partition(".")[0]
    digits = stem[len(stem.rstrip("0123456789")) :]
    return int(digits[:9] or 0)
