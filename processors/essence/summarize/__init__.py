"""Summarizing: extracts the few important attributes of a file, by its type (Essence, seed 003, "Summarizing").

Each module of a sub-package is one summarizer: it exposes SUMMARIZER, and adding one needs no other edit. Modules whose names
begin with an underscore are not summarizers. A type without a summarizer of its own is served by that of the nearest type that it
extends (`types.toml`), ultimately by that of Unrecognized, which never fails. An operator's summarizers (`extensions.py`) take
precedence over those of this package.

Several summarizers can run on one file, in this order: the summarizer of its type; that of its markup language, if the whole name
determined the type (README.md); and additional summarizers from an operator. Each adds to the attributes that already exist.

Laws:
- Only SummaryError leaves `summarize`, with a reason that can be stored in a record.
- A summary is bounded (see `Found`), and always has a title.
- After `preload`, summarizing opens no file.
- A file that is empty, or contains only white space, gets its name and size, whatever its type, and does not count as damaged.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import BinaryIO

from processors.essence import types
from processors.essence.formats import FormatError
from processors.essence.formats import text as text_format
from processors.essence.summarize import _general
from processors.essence.summarize._base import Facts, Found, Summarizer, SummaryError
from schemas.records import Link

__all__ = ["Facts", "Found", "Link", "Summarizer", "SummaryError", "preload", "summarize", "summarizer_for", "summarizers", "use"]


BLANK = 4_096
"""Bytes; a file of this size or more is not checked for being blank."""
_own: dict[str, Summarizer] = {}
_beside: list[Summarizer] = []


def summarizers() -> Mapping[str, Summarizer]:
    """Return the summarizer of each type that has its own; an operator's replace those of this package."""
    return {**_shipped(), **_own} if _own else _shipped()


def use(own: Mapping[str, Summarizer], beside: Sequence[Summarizer] = ()) -> None:
    """Install an operator's summarizers in this process: `own` replaces others, by type; `beside` runs after others."""
    _own.clear()
    _own.update(own)
    _beside[:] = beside
    summarizer_for.cache_clear()
    beside_for.cache_clear()
    for plugin in (*own.values(), *beside):
        for name in plugin.modules:
            importlib.import_module(name)


@cache
def modules() -> Sequence[str]:
    """Return the full names of the modules of this package that are summarizers."""
    found = pkgutil.walk_packages(__path__, f"{__name__}.")
    return sorted(m.name for m in found if not m.ispkg and not m.name.rpartition(".")[2].startswith("_"))


@cache
def _shipped() -> Mapping[str, Summarizer]:
    """Return the summarizers of this package by type. Raises TypeError if two claim a type, or one claims an unknown type."""
    found: dict[str, Summarizer] = {}
    for name in modules():
        plugin: Summarizer = importlib.import_module(name).SUMMARIZER
        for kind in plugin.types:
            if kind in found or kind not in types.shipped():
                raise TypeError(f"{name}: the type {kind} is unknown, or has a summarizer already")
            found[kind] = plugin
    return found


@cache
def summarizer_for(kind: str) -> Summarizer:
    """Return the summarizer that serves a type: its own, or that of the nearest type that it extends."""
    own = summarizers()
    return next((own[each] for each in lineage(kind) if each in own), own[types.UNRECOGNIZED])


@cache
def beside_for(kind: str) -> Sequence[Summarizer]:
    """Return the operator's additional summarizers for a type and those that it extends, in the order of installation."""
    line = frozenset(lineage(kind))
    return [plugin for plugin in _beside if line.intersection(plugin.types)]


def lineage(kind: str) -> Iterator[str]:
    """Yield a type, the type that it extends, and so on, to Unrecognized. Stops if an operator's types form a cycle."""
    rules = types.rules()
    seen: set[str] = set()
    while kind in rules and kind not in seen:
        seen.add(kind)
        yield kind
        kind = rules[kind].extends


def readers(facts: Facts, *, blank: bool = False) -> Iterator[Summarizer]:
    """Yield all summarizers of a file, in order. A `blank` file gets only name and size, unless its summarizer is an operator's."""
    plugin = summarizer_for(facts.type)
    if blank and plugin not in _own.values():
        plugin = summarizer_for(types.UNRECOGNIZED)
    yield plugin
    markup = types.markup_of(facts.type, facts.name)
    if markup and not blank:
        yield summarizer_for(markup)
    yield from beside_for(facts.type)


def preload() -> None:
    """Import every summarizer and its lazily imported modules, so that summarizing needs no file system. Takes 1.5 s."""
    types.rules()
    for plugin in (*summarizers().values(), *_beside):
        for name in plugin.modules:
            importlib.import_module(name)
    _general.preload()
    text_format.preload()


def _blank(body: BinaryIO) -> bool:
    """Whether a body is empty, or consists of less than BLANK bytes of white space."""
    body.seek(0)
    start = body.read(BLANK)
    return len(start) < BLANK and not start.removeprefix(b"\xef\xbb\xbf").strip()


def summarize(facts: Facts, body: BinaryIO, found: Found) -> None:
    """Add the attributes of a file to `found`. `body`: seekable, at its start. Raises SummaryError for damaged input.

    Attributes that were found before the damage stay in `found`, title included.
    """
    found.given = frozenset(found.attributes)
    try:
        for plugin in readers(facts, blank=_blank(body)):
            body.seek(0)
            plugin.run(facts, body, found)
    except SummaryError:
        raise
    except FormatError as error:
        raise SummaryError(str(error)) from error
    # Parsers raise arbitrary exceptions from their C code; all of them are caused by the file, and the reason names the exception.
    except Exception as error:
        raise SummaryError(f"{facts.type}: {type(error).__name__}: {error}") from error
    finally:
        if found.full and not found.said and _general.is_text(facts):
            body.seek(0)
            found.body(text_format.read_text(body, facts.charset, max(text_format.MAX_TEXT, found.full)))
        _general.complete(facts, found)
