"""The parts of an Office Open XML package, found by relationships (ECMA-376-1, 8 and 9; ECMA-376-2, 9.3).

Names of parts count only where a part has no relationships of its own: in a damaged package, or one of a careless program. It then
has those that Office's own names of parts imply.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import BinaryIO

from processors.essence.formats.package_parts import PARTS, ROOT, read_relations
from processors.essence.summarize.office._package import Package, number

REACHED = 5_000
"""Maximum parts that are looked at beside the main text."""
BESIDE = ("header", "footer", "footnotes", "endnotes", "comments", "notesSlide", "chart", "diagramData", "drawing")
"""Kinds of parts outside of the main text, which belong to the full text."""
SHEETS = ("worksheet", "chartsheet", "dialogsheet", "xlMacrosheet")
CORE, EXTENDED = ("core-properties",), ("extended-properties", "extendedProperties")
"""Kinds of the properties of a package; the second has a name for each vocabulary."""

_NAMES = tuple(
    (re.compile(pattern), kind)
    for pattern, kind in (
        (r"word/document\d*\.xml|xl/workbook\.(?:xml|bin)|ppt/presentation\.xml", "officeDocument"),
        (r"docprops/app\w*\.xml", "extended-properties"),
        (r"docprops/core\w*\.xml", "core-properties"),
        (r"(?:word|xl)/styles\.xml", "styles"),
        (r"xl/sharedstrings\.(?:xml|bin)", "sharedStrings"),
        (r"xl/worksheets/[^/]+\.(?:xml|bin)", "worksheet"),
        (r"ppt/slides/slide\d+\.xml", "slide"),
        (r"word/(header|footer|footnotes|endnotes|comments)\d*\.xml", ""),
        (r"ppt/comments/comment\d+\.xml|xl/comments\d+\.xml|xl/comments/comment\d+\.xml", "comments"),
        (r"ppt/notesslides/notesslide\d+\.xml", "notesSlide"),
        (r"(?:word|ppt|xl)/charts/chart\d+\.xml", "chart"),
        (r"(?:word|ppt|xl)/diagrams/data\d+\.xml", "diagramData"),
        (r"(?:word|ppt|xl)/drawings/drawing\d+\.xml", "drawing"),
    )
)
"""Kinds of relationships that the names of Office's own parts imply; "": the group of the pattern."""


class Office:
    """A package: its relationships, and the parts that were read. Raises SummaryError."""

    def __init__(self, body: BinaryIO, size: int, room: int = PARTS) -> None:
        self.package = Package(body, size, room)
        self.relations = read_relations(self.package)
        self.parts: dict[str, bytes] = {}
        self.missing: dict[str, None] = {}
        """Keys of parts that the document displays, and that are not in the package."""
        self._implied: dict[str, str] | None = None

    def load(self, sizes: dict[str, int]) -> None:
        """Read parts by their keys, each up to a number of bytes."""
        self.parts |= self.package.pick({key: size for key, size in sizes.items() if key not in self.parts})

    def part(self, key: str) -> bytes:
        """Return a part that was loaded; b"" if it is missing, which is recorded."""
        if key not in self.package.names:
            self.missing[key] = None
        return self.parts.get(key, b"")

    def mains(self) -> list[str]:
        """Return the keys of the main parts."""
        return self.relations.mains() or self.implied("officeDocument")

    def properties(self) -> list[str]:
        """Return the keys of the parts with properties."""
        named = [(self.relations.targets(ROOT, *kinds) or self.implied(kinds[0])) for kinds in (EXTENDED, CORE)]
        return [key for keys in named for key in keys if key in self.package.names]

    def implied(self, *kinds: str, absent: bool = False) -> list[str]:
        """Return the keys of parts whose names imply one of the kinds, in file order; slides and sheets by their numbers.

        `absent`: also parts of which only the relationships are there, as in a truncated package.
        """
        if self._implied is None:
            every = dict.fromkeys((*self.package.names, *self.relations.sources()))
            self._implied = {key: kind for key in every if (kind := _implied_kind(key))}
        keys = [key for key, kind in self._implied.items() if kind in kinds and (absent or key in self.package.names)]
        return sorted(keys, key=number) if kinds in (("slide",), ("worksheet",)) else keys

    def one(self, main: str, kind: str) -> str:
        """Return the key of the only part of its kind, even if the main part is not related to it; "" if there is none."""
        return next(iter(self.relations.targets(main, kind) or self.implied(kind)), "")

    def related(self, main: str, *kinds: str) -> list[str]:
        """Return the keys of the parts of some kinds that a main part ("": none) displays."""
        if main and self.relations.of(main):
            return self.relations.targets(main, *kinds)
        return self.implied(*kinds)

    def reached(self, main: str, displayed: Iterable[str]) -> list[str]:
        """Return the keys of the parts beside the main text, nearest first: notes of slides, charts in drawings of sheets ..."""
        first = dict.fromkeys((main, *displayed) if main else displayed)
        kept = list(first)
        if not (main and self.relations.of(main)):
            kept += [key for key in self.implied(*BESIDE, absent=True) if key not in first]
        seen = set(kept)
        for key in kept:
            for target in self.relations.targets(key, *BESIDE):
                if target not in seen and len(kept) < REACHED:
                    seen.add(target)
                    kept.append(target)
        return [key for key in kept if key not in first]

    def links(self, sources: Iterable[str]) -> Iterator[str]:
        """Yield the targets of the hyperlinks of parts."""
        for source in sources:
            yield from (relation.target for relation in self.relations.of(source) if relation.kind == "hyperlink")


def _implied_kind(key: str) -> str:
    """Return the kind of relationship that the name of a part implies, or ""."""
    for pattern, kind in _NAMES:
        if match := pattern.fullmatch(key):
            return kind or match[1]
    return ""
