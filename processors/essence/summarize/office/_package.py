"""Documents that are zips: office documents and books. Their parts are read by name, in bounds, from one pass over the file.

Laws:
- A part gives at most the bytes asked for, all parts of a document at most PARTS, however much is packed in them: what is not
  asked for is not unpacked.
- What a damaged zip has is given; `damage` says what is missing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import BinaryIO

from processors.essence.formats.container import Budget, Limits, Member, Refused, UnnestError
from processors.essence.formats.streams import CHUNK, Counted, partly
from processors.essence.formats.text import squeeze
from processors.essence.formats.xml import attribute, elements, tree
from processors.essence.formats.zip import open_zip
from processors.essence.summarize._base import Found, SummaryError
from processors.essence.summarize._placeholder_titles import spoken

PARTS = 16 << 20
"""Bytes of all parts that are kept at once."""
LIMITS = Limits(entries=20_000, bytes=1 << 30)
"""What a document may cost whose directory is lost, so that it must be unpacked to find where its parts end."""

PROPERTIES = {
    "title": "title", "creator": "author", "initial-creator": "author", "author": "author",
    "description": "description", "keywords": "keywords", "keyword": "keywords", "language": "language", "created": "creation-date",
    "modified": "modification-date",
    "creation-date": "creation-date", "publisher": "publisher", "Company": "organization", "Application": "generator",
    "generator": "generator", "category": "keywords", "rights": "copyright", "Pages": "pages", "Slides": "pages",
}  # fmt: skip
"""Elements of Dublin Core and its like in which a document says what it is, and the attribute that each becomes."""
SCHEMES = ("http://", "https://", "ftp://", "mailto:")
"""What links of documents begin with that are kept."""
PARTED = frozenset(("keywords",))


class Package:
    """A zip whose parts are asked for by their names."""

    def __init__(self, body: BinaryIO, size: int) -> None:
        self._body = body
        self._size = size
        self.damage = ""

    def read(self, wanted: Callable[[str], int]) -> dict[str, bytes]:
        """The parts for whose names `wanted` gives a number of bytes, each cut to it, in their order. Raises SummaryError."""
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
        """Pay for what must be unpacked to find the next part, where no directory tells it. Raises Exhausted."""
        if member.size < 0 and member.body is not None:
            rest = Counted(member.body, budget)
            while rest.read(CHUNK):
                pass

    def close(self) -> None:
        """Tell of damage. Raises SummaryError."""
        if self.damage:
            raise SummaryError(f"damaged: {self.damage}")


def add_properties(raw: bytes, found: Found, subject: str = "description", date: str = "") -> None:
    """Add what a part of properties says: title, author, description, keywords ... `subject`, `date`: what these are here."""
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
    """Add where the hyperlinks of a part lead, each once (ECMA-376-2, 9.3: relationships whose targets are outside)."""
    for name, element, begins in elements(tree(raw)):
        if begins and name == "Relationship" and attribute(element, "Type").endswith("/hyperlink"):
            reference(attribute(element, "Target"), found)


def reference(url: str, found: Found) -> None:
    """Add a link of a document, if it leads out of it to a place that has an address."""
    if url.lower().startswith(SCHEMES):
        found.add("url-references", url, 500)


def relations(raw: bytes, base: str) -> dict[str, tuple[str, str]]:
    """The relationships of a part (ECMA-376-2, 9): by id, the end of their type, and the name of the part they lead to."""
    found: dict[str, tuple[str, str]] = {}
    for name, element, begins in elements(tree(raw)):
        if begins and name == "Relationship" and attribute(element, "TargetMode") != "External":
            kind = attribute(element, "Type").rpartition("/")[2]
            found[attribute(element, "Id")] = (kind, joined(base, attribute(element, "Target")))
    return found


def joined(base: str, target: str) -> str:
    """The name of a part from that of the folder it is told in."""
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
    """The number that a part of many has at its end: xl/worksheets/sheet12.xml."""
    stem = name.rpartition("/")[2].partition(".")[0]
    digits = stem[len(stem.rstrip("0123456789")) :]
    return int(digits[:9] or 0)
