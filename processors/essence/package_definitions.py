"""Definitions of a software package: the names that its sources define, from the summaries of its files.

Strategy: the summarizers of source code have found the names already. Those of each file are kept by the place of the file, and
those of the least interesting files are dropped once too much is kept. The types of all files are chosen first (classes, modules),
then functions, then macros and private names, as far as there is room; tests and examples come after all others.

Laws:
- At most KEPT bytes are kept, and MAX_FILE of one file, however many files and names there are.
- A name is in the text once, with the first of its files.
- The text depends on the files and their order alone.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

DEFINES = "defines"
"""Attribute of a package: lines of the form "PATH: NAME NAME ..."."""
KEPT, MAX_FILE = 262_144, 8_192
"""Bytes of names and paths that are kept of all files, and of one."""
SHORTEST, LONGEST, MAX_PATH = 3, 100, 200
"""Characters of a name, and of a path. Compressed scripts have names of two letters; a longer path loses its folders."""
_TIERS = (
    ("classes", "types", "modules", "namespaces", "packages", "units", "programs"),
    ("functions", "procedures"),
    ("macros",),
)
"""Attributes of definitions, as the summarizers of source code name them, in order of importance."""
_PRIVATE = len(_TIERS) - 1
_ASIDE = re.compile(
    r"(?i)(?:^|/)t/|(?:^|[/_.-])(?:tests?|testsuite|specs?|examples?|samples?|demos?|docs?|bench(?:marks?)?|third_?party|"
    r"vendor(?:ed)?|node_modules|min)(?:[/_.-]|$)"
)
"""Files that are not what a package is searched for: tests, examples, copies of other packages, compressed scripts."""


class _Source(NamedTuple):
    """Names that one file defines. The first three fields order files; the greatest is the most interesting."""

    central: bool
    """Whether it is a part of the program: no test, no example, nothing that builds it."""
    depth: int
    """Negative number of folders around it."""
    order: int
    """Negative number of files before it."""
    path: str
    names: Sequence[Sequence[str]]
    """By importance, as _TIERS."""
    size: int


class Definitions:
    """Collects the names that the files of a package define."""

    def __init__(self) -> None:
        self._sources: list[_Source] = []
        self._count = self._size = 0

    def take(self, path: bytes, attributes: Mapping[str, Sequence[str | bytes]], *, aid: bool = False) -> None:
        """Collect the names in the summary of a source, or of a compiled class of Java.

        `path`: within its package. `aid`: the file builds the program, and is no part of it.
        """
        self._count += 1
        shown = _shown_path(path)
        found = dict(attributes)
        if path.endswith(b".class"):
            # The compiler names the file by its class; a class without a name of its own has a number.
            own = _own_name(shown)
            found["classes"] = () if own.isdigit() else (own,)
        room = MAX_FILE - len(shown.encode())
        names, left = _names(found, room)
        if not any(names):
            return
        central, depth, size = not (aid or _ASIDE.search(shown)), -path.count(b"/"), MAX_FILE - left
        heapq.heappush(self._sources, _Source(central, depth, -self._count, shown, names, size))
        self._size += size
        while self._size > KEPT:
            self._size -= heapq.heappop(self._sources).size

    def text(self, limit: int) -> str:
        """Return the most important names in at most `limit` bytes: a line for each place, the most interesting file first.

        The place of a name is its file; that of a class in a file of its own (Java) is the folder, with a slash at its end.
        """
        sources = sorted(self._sources, reverse=True)
        chosen: dict[tuple[int, str], list[str]] = {}
        known: set[str] = set()
        first: dict[str, int] = {}
        for number, tier, name in _ranked(sources):
            place = _place(sources[number].path, name if tier == 0 else "")
            line = first.setdefault(place, number), place
            size = _size(name) + (0 if line in chosen else _size(place) + 1)
            if size <= limit and name not in known:
                chosen.setdefault(line, []).append(name)
                known.add(name)
                limit -= size
        return "\n".join(f"{place}: {' '.join(names)}" for (_, place), names in sorted(chosen.items()))


def _own_name(path: str) -> str:
    """Return the name of the class that a file is named by: "Inner" of "sea/Outer$Inner.class"."""
    return path.rpartition("/")[2].partition(".")[0].rpartition("$")[2]


def _place(path: str, type_name: str) -> str:
    folder, slash, _ = path.rpartition("/")
    return folder + slash if slash and type_name == _own_name(path) else path


def _ranked(sources: Sequence[_Source]) -> Iterator[tuple[int, int, str]]:
    """Yield the number of a source, the tier of a name, and a name that it defines, the most important first."""
    for central in (True, False):
        for tier in range(len(_TIERS)):
            yield from ((n, tier, name) for n, s in enumerate(sources) if s.central == central for name in s.names[tier])


def _shown_path(path: bytes) -> str:
    text = path.decode("utf-8", "replace")
    text = text if len(text) <= MAX_PATH else text.rpartition("/")[2][-MAX_PATH:]
    return text if text.isprintable() else "".join(c if c.isprintable() else " " for c in text)


def _names(attributes: Mapping[str, Sequence[str | bytes]], room: int) -> tuple[Sequence[Sequence[str]], int]:
    """Return the names by importance as far as there is room, and the rest of the room in bytes."""
    found: list[list[str]] = [[] for _ in _TIERS]
    for tier, name in _defined(attributes):
        room -= _size(name)
        if room < 0:
            return found, room + _size(name)
        found[tier].append(name)
    return found, room


def _defined(attributes: Mapping[str, Sequence[str | bytes]]) -> Iterator[tuple[int, str]]:
    """Yield names with their importance, the most important first."""
    private: dict[str, None] = {}
    for tier, kinds in enumerate(_TIERS):
        for name in dict.fromkeys(name for kind in kinds for name in attributes.get(kind, ())):
            if not isinstance(name, str) or not SHORTEST <= len(name) <= LONGEST or " " in name or not name.isprintable():
                continue
            if name.startswith("_"):
                private[name] = None
            else:
                yield tier, name
    yield from ((_PRIVATE, name) for name in private)


def _size(text: str) -> int:
    """Return the bytes of a text and a separator."""
    return len(text.encode()) + 1
