"""Unnesting: what a file holds, as a stream of members (Essence, seed 003, "Presentation Unnesting"). One module a format.

Laws:
- A container gives its members in the order it stores them, from one forward read where the format allows it; nothing is
  ever extracted to a path. Names, links and devices are metadata: bytes, never followed.
- Formats count nothing: whoever reads a member's body pays for it out of the one `Budget` of the root object.
- Memory is bounded by constants, never by a number that the input states.
- A damaged file gives the members that can be read, and then raises Damaged. No other exception is meant to escape.

A plug-in is a module of a sub-package whose name does not begin with an underscore, and which names its `UNNESTER`; it is
found by listing the sub-packages. Its golden sample lies in tests/samples/unnest.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import NamedTuple

from processors.essence.formats.container import Budget, Member, Reader


class Container(NamedTuple):
    """An unnester of files that hold members."""

    types: tuple[str, ...]
    """Essence's names of the types that it opens."""
    open: Callable[[Reader, Budget], Iterator[Member]]
    about: Callable[[bytes], Iterable[tuple[str, str]]] | None = None
    """Attributes that the first bytes of a file (64 kB) tell of the file itself. Raises nothing, whatever they are."""
    summarized: bool = False
    """It is a document too, and is summarized by its type before its members are: a message, with its attachments."""
    entries: bool = False
    """Its members are entries of a list, parts of its text: nothing is opened in them, and they are no copies of anything."""


class Encoding(NamedTuple):
    """An unnester of files that are another file, compressed."""

    types: tuple[str, ...]
    name: str
    """What the attribute `encoding` says."""
    suffixes: Mapping[bytes, bytes]
    """What the suffix of the name becomes: {b".tgz": b".tar"}."""
    open: Callable[[Reader, Budget], Reader]


Unnester = Container | Encoding


@cache
def modules() -> Sequence[str]:
    """Return the full names of the modules of this package that are unnesters, in the order of their last parts."""
    found = (m.name for m in pkgutil.walk_packages(__path__, f"{__name__}.") if not m.ispkg)
    named = {name.rpartition(".")[2]: name for name in found}
    return [named[last] for last in sorted(named) if not last.startswith("_")]


@cache
def plugins() -> Mapping[str, Unnester]:
    """Every unnester by the name of its module."""
    return {name.rpartition(".")[2]: import_module(name).UNNESTER for name in modules()}


@cache
def unnesters() -> Mapping[str, Unnester]:
    """The unnester of each type. Raises ValueError where two claim one type."""
    found: dict[str, Unnester] = {}
    for name, plugin in plugins().items():
        for kind in plugin.types:
            if found.setdefault(kind, plugin) is not plugin:
                raise ValueError(f"processors.essence.unnest.{name}: {kind} has an unnester already")
    return found


def stripped(name: bytes, encoding: Encoding) -> bytes:
    """The name of the file inside an encoding: x.1.gz is x.1, a.tgz is a.tar."""
    lower = name.lower()
    for suffix, inner in encoding.suffixes.items():
        if lower.endswith(suffix) and len(name) > len(suffix):
            return name[: -len(suffix)] + inner
    return name
