"""Documents in zip packages (office documents, books): reads parts by name, within bounds, in one pass over the file.

Laws:
- A part yields at most the requested bytes, all parts of a document at most PARTS, whatever their compression ratio: other data
  is not decompressed.
- The readable parts of a damaged zip are returned; `damage` has the reason for the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import BinaryIO

from processors.essence.formats.container import Budget, Member, Refused, UnnestError, UnnestLimits
from processors.essence.formats.streams import CHUNK, Counted, partly
from processors.essence.formats.text import squeeze
from processors.essence.formats.xml import attribute, elements, tree
from processors.essence.formats.zip import open_zip
from processors.essence.summarize._base import Found, SummaryError
from processors.essence.summarize._placeholder_titles import spoken

PARTS = 16 << 20
"""Maximum bytes of all parts that are kept at once."""
LIMITS = UnnestLimits(entries=20_000, bytes=1 << 30)
"""Bounds for a document without a directory, which must be decompressed to find the ends of its parts."""

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


class Package:
    """A zip whose parts are read by name."""

    def __init__(self, body: BinaryIO, size: int) -> None:
        self._body = body
        self._size = size
        self.damage = ""

    def read(self, wanted: Callable[[str], int]) -> dict[str, bytes]:
        """Return the parts for which `wanted` returns a number of bytes, cut to it, in file order. Raises SummaryError."""
        self._body.seek(0)
        budget, parts, room = Budget(LIMITS, max(self._size, 0)), dict[str, bytes](), PARTS
        try:
            for member in open_zip(self._body, budget):
                budget.enter(member.name)
                name = member.name.decode("utf-8", "replace").lstrip("/")
                limit = min(wanted(name), room) if member.kind == "file" and name not in parts else 0
                if limit > 0:
                    parts[name] = self._part(member, limit)
                    room -= len(parts[name])
                self._pass(member, budget)
        except Refused as error:
            raise SummaryError(f"refused: {error.reason}") from error
        except UnnestError as error:
            self.damage = self.damage or error.reason
        return parts

    def _part(self, member: Member, limit: int) -> bytes:
        assert member.body is not None  # noqa: S101 - a file has a body
        data, problem = partly(member.body, limit)
        if isinstance(problem, Refused):
            raise problem
        self.damage = self.damage or (problem.reason if problem else "")
        return data

    @staticmethod
    def _pass(member: Member, budget: Budget) -> None:
        """Charge the budget for a part that must be decompressed to find the next one. Raises Exhausted."""
        if member.size < 0 and member.body is not None:
            rest = Counted(member.body, budget)
            while rest.read(CHUNK):
                pass

    def close(self) -> None:
        """Report damage. Raises SummaryError."""
        if self.damage:
            raise SummaryError(f"damaged: {self.damage}")


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


def hyperlinks(raw: bytes, found: Found) -> None:
    """Add the targets of a part's hyperlinks, each once (ECMA-376-2, 9.3: relationships with external targets)."""
    for name, element, begins in elements(tree(raw)):
        if begins and name == "Relationship" and attribute(element, "Type").endswith("/hyperlink"):
            add_reference(attribute(element, "Target"), found)


def add_reference(url: str, found: Found) -> None:
    """Add a link of a document, if its target is an address outside of the document."""
    if url.lower().startswith(SCHEMES):
        found.add("url-references", url, 500)


def relations(raw: bytes, base: str) -> dict[str, tuple[str, str]]:
    """Return a part's relationships (ECMA-376-2, 9): by id, the last component of the type, and the target's part name."""
    found: dict[str, tuple[str, str]] = {}
    for name, element, begins in elements(tree(raw)):
        if begins and name == "Relationship" and attribute(element, "TargetMode") != "External":
            kind = attribute(element, "Type").rpartition("/")[2]
            found[attribute(element, "Id")] = (kind, resolve_part_name(base, attribute(element, "Target")))
    return found


def resolve_part_name(base: str, target: str) -> str:
    """Return the name of a part from a target relative to the folder `base`."""
    if target.startswith("/"):
        return target[1:]
    steps = base.split("/") if base else []
    for step in target.split("/"):
        if step == "..":
            del steps[-1:]
        elif step not in ("", "."):
            steps.append(step)
    return "/".join(steps)


def number(name: str) -> int:
    """Return the number at the end of a numbered part's name: xl/worksheets/sheet12.xml."""
    stem = name.rpartition("/")[2].partition(".")[0]
    digits = stem[len(stem.rstrip("0123456789")) :]
    return int(digits[:9] or 0)
