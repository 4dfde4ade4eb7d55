"""Summarizing: the few attributes of a file that matter, by its type (Essence, seed 003, "Summarizing").

One module of a sub-package is one summarizer; it exposes SUMMARIZER and nothing else is edited to add it. Modules whose
names begin with an underscore are not summarizers. A type without a summarizer of its own is served by that of the
nearest type it extends (`types.toml`), in the end by that of Unrecognized, which never fails. What an operator adds
(`extensions.py`) goes before all.

Several read one file where each knows a part: the summarizer of its type; that of the markup language which it is written in, where
a whole name told the type (README.md); and those that an operator has put beside it. Each adds what those before have not.

Laws:
- Only SummaryError leaves `summarize`, with a reason that is fit for a record.
- A summary is bounded (see `Found`), and always has a title.
- After `preload`, summarizing opens no file.
- A file that holds nothing, or nothing but white space, has its name and size, whatever its type, and is no damaged one.
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
"""Bytes from which on white space is not looked through."""
_own: dict[str, Summarizer] = {}
_beside: list[Summarizer] = []


def summarizers() -> Mapping[str, Summarizer]:
    """The summarizer of each type that has one of its own, those of an operator first."""
    return {**_shipped(), **_own} if _own else _shipped()


def use(own: Mapping[str, Summarizer], beside: Sequence[Summarizer] = ()) -> None:
    """Have an operator's summarizers in force in this process from now on: by type, in place of others; and beside others."""
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
    """The summarizers of this package. Raises TypeError if two claim a type, or one claims an unknown type."""
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
    """The summarizer that serves a type: its own, or that of the nearest type it extends."""
    own = summarizers()
    return next((own[each] for each in lineage(kind) if each in own), own[types.UNRECOGNIZED])


@cache
def beside_for(kind: str) -> Sequence[Summarizer]:
    """Those of an operator that add to what the summarizer of a type says, in the order in which they were given."""
    line = frozenset(lineage(kind))
    return [plugin for plugin in _beside if line.intersection(plugin.types)]


def lineage(kind: str) -> Iterator[str]:
    """A type, the type that it extends, and so on: to Unrecognized, unless an operator's types go round in a circle."""
    rules = types.rules()
    seen: set[str] = set()
    while kind in rules and kind not in seen:
        seen.add(kind)
        yield kind
        kind = rules[kind].extends


def readers(facts: Facts, *, blank: bool = False) -> Iterator[Summarizer]:
    """All that read a file, in order; of one that holds nothing, `blank`, ours say no more than its name and size."""
    plugin = summarizer_for(facts.type)
    if blank and plugin not in _own.values():
        plugin = summarizer_for(types.UNRECOGNIZED)
    yield plugin
    markup = types.markup_of(facts.type, facts.name)
    if markup and not blank:
        yield summarizer_for(markup)
    yield from beside_for(facts.type)


def preload() -> None:
    """Import every summarizer and whatever it would import late, so that summarizing needs no file system. Takes 1.5 s."""
    types.rules()
    for plugin in (*summarizers().values(), *_beside):
        for name in plugin.modules:
            importlib.import_module(name)
    _general.preload()
    text_format.preload()


def _blank(body: BinaryIO) -> bool:
    """Whether a body holds nothing, or a little white space."""
    body.seek(0)
    start = body.read(BLANK)
    return len(start) < BLANK and not start.removeprefix(b"\xef\xbb\xbf").strip()


def summarize(facts: Facts, body: BinaryIO, found: Found) -> None:
    """Add to `found` what matters of a file. `body`: seekable, at its start. Raises SummaryError for damaged input.

    What had been found before the damage stays in `found`, title included.
    """
    try:
        for plugin in readers(facts, blank=_blank(body)):
            body.seek(0)
            plugin.run(facts, body, found)
    except SummaryError:
        raise
    except FormatError as error:
        raise SummaryError(str(error)) from error
    # The parsers raise whatever their C code meets; all of it is the fault of the file, and the reason keeps its name.
    except Exception as error:
        raise SummaryError(f"{facts.type}: {type(error).__name__}: {error}") from error
    finally:
        if found.full and not found.said and _general.is_text(facts):
            body.seek(0)
            found.body(text_format.read_text(body, facts.charset, max(text_format.MAX_TEXT, found.full)))
        _general.complete(facts, found)
