"""Unnesting: reads a file as a stream of members (Essence, seed 003, "Presentation Unnesting"). One module per format.

Laws:
- A container yields its members in the order in which they are stored, from one forward read if the format allows it; nothing is
  ever extracted to a path. Names, links and devices are metadata: bytes, never followed.
- Formats count nothing: the reader of a member's body charges it to the one `Budget` of the root object.
- Memory is bounded by constants, never by a number that the input states.
- A damaged file yields the members that can be read, and then raises Damaged. No other exception is meant to escape.
- A container that yields no member has a reason, always: its own, or Empty.

A plug-in is a module of a sub-package whose name does not begin with an underscore and that defines `UNNESTER`. Plug-ins are
found by listing the sub-packages. Their golden samples are in tests/samples/unnest.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import NamedTuple

from processors.essence.formats.container import Budget, Empty, Member, Reader


class Container(NamedTuple):
    """An unnester of files that hold members."""

    types: tuple[str, ...]
    """Names of the types that it opens."""
    open: Callable[[Reader, Budget], Iterator[Member]]
    about: Callable[[bytes], Iterable[tuple[str, str]]] | None = None
    """Returns attributes of the file itself from its first 64 kB. Must not raise, whatever the bytes are."""
    summarized: bool = False
    """Whether the file is also a document, summarized by its type before its members: a message with attachments."""
    entries: bool = False
    """Whether its members are entries of a list, parts of its text: nothing is opened in them, and they are never copies."""


class Encoding(NamedTuple):
    """An unnester of compressed single files."""

    types: tuple[str, ...]
    name: str
    """Value of the attribute `encoding`."""
    suffixes: Mapping[bytes, bytes]
    """Suffixes of names, with their replacements for the decoded file: {b".tgz": b".tar"}."""
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
    """Return every unnester by the name of its module."""
    return {name.rpartition(".")[2]: import_module(name).UNNESTER for name in modules()}


@cache
def unnesters() -> Mapping[str, Unnester]:
    """Return the unnester of each type. Raises ValueError if two claim one type."""
    found: dict[str, Unnester] = {}
    for name, plugin in plugins().items():
        for kind in plugin.types:
            if found.setdefault(kind, plugin) is not plugin:
                raise ValueError(f"processors.essence.unnest.{name}: {kind} has an unnester already")
    return found


def members(container: Container, reader: Reader, budget: Budget) -> Iterator[Member]:
    """Yield the members of a container. Raises UnnestError: Empty if there is none, unless the container is also a document."""
    given = container.summarized
    for member in container.open(reader, budget):
        given = True
        yield member
    if not given:
        raise Empty("no members: the archive is empty")


def stripped(name: bytes, encoding: Encoding) -> bytes:
    """Return the name of the file inside an encoding: x.1.gz becomes x.1, a.tgz becomes a.tar."""
    lower = name.lower()
    for suffix, inner in encoding.suffixes.items():
        if lower.endswith(suffix) and len(name) > len(suffix):
            return name[: -len(suffix)] + inner
    return name
