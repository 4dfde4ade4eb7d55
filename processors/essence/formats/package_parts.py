"""Parts of documents in zip packages: their names, and the relationships between them (ECMA-376-2, Open Packaging Conventions).

Laws:
- Names are equal without regard to case, percent-encoding and the form of accented letters (ECMA-376-2, 9.1.1; EPUB 3.3, 4.2.2);
  backslashes are slashes, as programs of Windows write them into zips against PKWARE APPNOTE 6.3.10, 4.4.17.
- A part yields at most the requested bytes, all parts of a document at most PARTS, whatever their compression ratio: other data
  is not decompressed.
- At most MAX_RELATIONS relationships of a package are kept, and MAX_RELATED bytes of the parts that declare them.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import BinaryIO, NamedTuple
from urllib.parse import unquote

from lxml import etree

from processors.essence.formats.container import Budget, Member, Refused, UnnestError, UnnestLimits
from processors.essence.formats.streams import CHUNK, Counted, partly
from processors.essence.formats.xml import attribute, elements, tree
from processors.essence.formats.zip import open_zip

PARTS = 16 << 20
"""Maximum bytes of all parts that are kept at once."""
LIMITS = UnnestLimits(entries=20_000, bytes=1 << 30)
"""Bounds for a document without a directory, which must be decompressed to find the ends of its parts."""
MAX_RELATIONS = 50_000
MAX_RELATED, RELATED = 8 << 20, 1 << 20
"""Maximum bytes of all parts with relationships, and of one."""
ROOT = ""
"""Source of the relationships of the package itself."""
TYPES = "[content_types].xml"
MAIN = ("officeDocument", "document")
"""Kinds of the relationship that leads to the main part: of Office, and of Visio."""
MAIN_TYPES = (".main+xml", ".main")
"""Ends of the content types of main parts."""


def part_key(name: str) -> str:
    """Return the form of a part's name in which equal names are the same string, without a leading slash."""
    return _folded(unquote(name).replace("\\", "/").split("/"))


def resolve_part(source: str, target: str) -> str:
    """Return the key of the part that a reference from the part `source` (a key) leads to (ECMA-376-2, 9.2; RFC 3986, 5.2)."""
    path = unquote(target.partition("#")[0]).replace("\\", "/")
    steps = [] if path.startswith("/") else source.split("/")[:-1]
    for step in path.split("/"):
        if step == "..":
            del steps[-1:]
        else:
            steps.append(step)
    return _folded(steps)


def _folded(steps: Iterable[str]) -> str:
    key = "/".join(step for step in steps if step not in ("", "."))
    return key.lower() if key.isascii() else unicodedata.normalize("NFC", unicodedata.normalize("NFD", key).casefold())


def related_id(element: etree._Element) -> str:
    """Return the id of the relationship that an element refers to (r:id); "" if it has none."""
    return next((str(v) for k, v in element.items() if str(k).endswith(("}id", ":id"))), "")


class _Picked(Exception):  # noqa: N818 - a signal, not an error
    """All parts that were wanted are read."""


class Parts:
    """A zip whose parts are read by key; each call of `read` is one pass over it."""

    def __init__(self, body: BinaryIO, size: int, room: int = PARTS) -> None:
        self._body = body
        self._size = size
        self.room = room
        """Bytes of parts that may still be read."""
        self.names: dict[str, None] = {}
        """Keys of all parts, in the order of the file, as far as a pass has come."""
        self.damage = ""
        """Why some parts could not be read."""
        self.given = 0
        """Bytes that had to be decompressed to find the parts."""

    def read(self, wanted: Callable[[str], int], most: int = PARTS) -> dict[str, bytes]:
        """Return the parts for which `wanted` returns a number of bytes, cut to it, in file order; `most` bytes in all.

        Raises Refused for an encrypted part, and for an unknown method of compression.
        """
        self._body.seek(0)
        budget, found = Budget(LIMITS, max(self._size, 0)), dict[str, bytes]()
        try:
            for member in open_zip(self._body, budget):
                budget.enter(member.name)
                if member.kind != "file":
                    continue
                key = part_key(member.name.decode("utf-8", "replace"))
                self.names[key] = None
                limit = 0 if key in found else min(wanted(key), most, self.room)
                if limit > 0:
                    found[key] = self._part(member, limit)
                    most -= len(found[key])
                    self.room -= len(found[key])
                self._pass(member, budget)
        except _Picked:
            pass
        except Refused:
            raise
        except UnnestError as error:
            self.damage = self.damage or error.reason
        self.given += budget.given
        return found

    def pick(self, wanted: Mapping[str, int]) -> dict[str, bytes]:
        """Return parts by their keys, each cut to the number of bytes given for it; after the last, no part is looked at."""
        left = {key for key, limit in wanted.items() if limit > 0 and (key in self.names or self.damage)}

        def limit(key: str) -> int:
            if not left:
                raise _Picked
            if key not in left:
                return 0
            left.remove(key)
            return wanted[key]

        return self.read(limit) if left else {}

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


class Relation(NamedTuple):
    """A relationship of a part (ECMA-376-2, 9.3)."""

    id: str
    kind: str
    """Last component of its type, which the transitional and the strict vocabulary share."""
    target: str
    """Key of a part, or a URL."""
    external: bool


class Relations:
    """The relationships and content types of a package."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = frozenset(names)
        self._of: dict[str, list[Relation]] = {}
        self._by_id: dict[tuple[str, str], str] = {}
        """Targets within the package, by source and id."""
        self._types: dict[str, str] = {}
        """Content types by part, or by suffix: ".xml"."""
        self._room = MAX_RELATIONS

    def add(self, key: str, raw: bytes) -> None:
        """Add the content of a part with relationships, or of the part with content types."""
        for name, element, begins in elements(tree(raw)):
            if not begins or self._room <= 0:
                continue
            if key == TYPES and name in ("Default", "Override"):
                what = part_key(attribute(element, "PartName")) or "." + attribute(element, "Extension").lower()
                self._types.setdefault(what, attribute(element, "ContentType"))
                self._room -= 1
            elif name == "Relationship" and key != TYPES:
                self._relate(_source(key), element)
                self._room -= 1

    def _relate(self, source: str, element: etree._Element) -> None:
        target, kind = attribute(element, "Target"), attribute(element, "Type").rpartition("/")[2]
        external = attribute(element, "TargetMode") == "External" or kind == "hyperlink"
        relation = Relation(attribute(element, "Id"), kind, target if external else self._existing(source, target), external)
        self._of.setdefault(source, []).append(relation)
        if not external:
            self._by_id.setdefault((source, relation.id), relation.target)

    def _existing(self, source: str, target: str) -> str:
        """Return the key of a target; some programs leave out the slash of names that begin at the root."""
        relative, absolute = resolve_part(source, target), resolve_part(ROOT, target)
        return absolute if relative not in self.names and absolute in self.names else relative

    def sources(self) -> list[str]:
        """Return the keys of the parts that have relationships."""
        return list(self._of)

    def of(self, source: str) -> list[Relation]:
        """Return the relationships of a part, in the order of the file."""
        return self._of.get(source, [])

    def targets(self, source: str, *kinds: str) -> list[str]:
        """Return the keys of the parts of some kinds that a part is related to, each once."""
        return list(dict.fromkeys(r.target for r in self.of(source) if r.kind in kinds and not r.external))

    def target(self, source: str, identity: str) -> str:
        """Return the key of the part that a part's relationship leads to, by its id; "" if there is none."""
        return self._by_id.get((source, identity), "")

    def content_type(self, key: str) -> str:
        """Return the content type of a part (ECMA-376-2, 10.1.2); "" if none is declared."""
        return self._types.get(key) or self._types.get("." + key.rpartition(".")[2], "")

    def mains(self) -> list[str]:
        """Return the keys of the main parts in the package: by relationship, else by content type."""
        related = [key for key in self.targets(ROOT, *MAIN) if key in self.names]
        return related or [key for key, kind in self._types.items() if key in self.names and kind.endswith(MAIN_TYPES)]


def _source(key: str) -> str:
    """Return the key of the part that the relationships in a part belong to: xl/_rels/workbook.xml.rels, _rels/.rels."""
    folder, _, name = key.rpartition("/")
    return "/".join(step for step in (folder.removesuffix("_rels").rstrip("/"), name.removesuffix(".rels")) if step)


def read_relations(parts: Parts) -> Relations:
    """Return the relationships of a package, in one pass over it. Raises Refused."""
    raw = parts.read(lambda key: RELATED if key == TYPES or key.endswith(".rels") else 0, MAX_RELATED)
    found = Relations(parts.names)
    for key in sorted(raw, key=_rank):
        found.add(key, raw[key])
    return found


def _rank(key: str) -> tuple[bool, int]:
    """Order of the parts with relationships: those of the package first, then those of parts near its root."""
    return key != TYPES, key.count("/")


def manifest_entries(raw: bytes) -> Iterator[tuple[str, str]]:
    """Yield the paths and media types that the manifest of an OpenDocument lists (OASIS ODF 1.3, part 2, 3.2 and 4.3)."""
    for name, element, begins in elements(tree(raw) if raw else None):
        if begins and name == "file-entry":
            yield attribute(element, "full-path"), attribute(element, "media-type")
