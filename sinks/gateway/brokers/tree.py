"""The tree of views beside the results: its counts, and the search that each view leads to.

Laws:
- The view that a query begins with (`view:sea whale`) is its scope. The counts are those of the query without it, so that each is
  the number of hits of the search that its view leads to, in place of the scope.
- `scoped(*scope(text))` means what `text` means.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from processors.broker.views import key_of, parent_of
from processors.query.terms import view_term
from schemas.ports import FacetValue
from sinks.gateway.state import State

_SCOPE = re.compile(r'\s*view:(?:"([^"\\]+)"|([^\s"()]+))(?:\s+(?:AND\s+)?|\Z)(?!OR\b)', re.IGNORECASE)
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"?|[()]|[^\s"()]+', re.DOTALL)


class Scope(NamedTuple):
    """The view that a query begins with."""

    path: str
    """Empty: it begins with none."""
    rest: str
    """The query without it."""


class Branch(NamedTuple):
    """A view in the tree, with those right below it."""

    path: str
    name: str
    total: int
    state: State
    """The search for what is found in the view."""
    is_current: bool
    """Whether it is the scope."""
    is_open: bool
    """Whether the scope is below it, or is it."""
    below: Sequence[Branch]


class Shown(NamedTuple):
    """The tree of an answer."""

    scope: str
    """Path of the view that is the scope; empty: none."""
    without: State
    """The search without the scope."""
    top: Sequence[Branch]


def scope(text: str) -> Scope:
    """Return the view that a query begins with, if all of the rest is looked for in it."""
    found = _SCOPE.match(text)
    rest = text[found.end() :].strip() if found else ""
    if found is None or _has_or(rest):
        return Scope("", text)
    return Scope((found[1] or found[2]).strip("/"), rest)


def scoped(path: str, rest: str) -> str:
    """Return the query that looks for another one in a view; an empty path: everywhere."""
    if not path:
        return rest
    return f"{view_term(path)} {f'({rest})' if _has_or(rest) else rest}".rstrip()


def _has_or(text: str) -> bool:
    """Return whether a query is joined by OR, outside of parentheses; one with a closing one too many is taken for such."""
    depth = 0
    for sign in _TOKEN.findall(text):
        depth += (sign == "(") - (sign == ")")
        if depth < 0 or (sign == "OR" and not depth):
            return True
    return False


def shown(state: State, counts: Iterable[FacetValue]) -> Shown:
    """Return the tree of the views that have hits, in order of path; views without a hit are not in `counts`."""
    current, rest = scope(state.text)
    known = {key_of(each.value): each for each in counts}
    below: dict[str, list[str]] = {}
    for key in sorted(known):
        # Between two sweeps a summary may have the tag of a view alone: it is shown below the nearest one that is there.
        above = parent_of(key)
        while above and above not in known:
            above = parent_of(above)
        below.setdefault(above, []).append(key)
    here = key_of(current)

    def branches(above: str) -> list[Branch]:
        return [branch(key, known[key], above) for key in below.get(above, ())]

    def branch(key: str, each: FacetValue, above: str) -> Branch:
        name = "/".join(each.value.split("/")[above.count("/") + 1 if above else 0 :])
        led = state.changed(text=scoped(each.value, rest))
        is_open = here == key or here.startswith(f"{key}/")
        return Branch(each.value, name, each.total, led, here == key, is_open, branches(key))

    return Shown(current, state.changed(text=rest), branches(""))
