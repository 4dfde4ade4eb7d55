"""Views of a Broker (standing queries, as Nebula's): their paths, their tree, and the views that a summary is in.

Laws:
- A view holds what its query and the queries of all views above it accept. A view whose parent is not there holds nothing.
- Definitions of a path are ordered by (time, removal, query), whatever order they are read in: all partitions come to the same.
- Names are compared case folded (`key_of`); a path is shown as it was made.
- A definition that cannot be used, by its path or its query, defines nothing. No command makes one, but an import may have it, or
  the version before.

Cost: a summary is compared with the views at the top, and with those below the views that it is in.
"""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple

from processors.query import QueryError, parse, predicate
from processors.query.forms import DEFAULT_LANGUAGES, Analyzer
from schemas.query import And, Query
from schemas.records import Summary, View

MAX_VIEWS = 1_000
"""Maximum number of views of a Broker: each at the top costs one evaluation of its query for each summary."""
MAX_LEVELS = 16
"""Maximum number of names in a path."""
MAX_NAME = 60
"""Maximum length of a name in characters."""

SIGNS = frozenset("-_ +.&',")
"""Characters of names beside letters and digits; none begins or ends a name but `+`."""


class ViewError(ValueError):
    """A definition cannot be used; the message says why in one line."""


class Rule(NamedTuple):
    """A view with its predicate, and the views right below it."""

    path: str
    accepts: Callable[[Summary], bool]
    below: tuple[Rule, ...] = ()


Tree = tuple[Rule, ...]
"""The views at the top."""


def normal(path: str) -> str:
    """Return a path with one slash between names, composed, without blanks around names. Raises ViewError."""
    names = [" ".join(name.split()) for name in unicodedata.normalize("NFC", path).strip().strip("/").split("/")]
    if len(names) > MAX_LEVELS:
        raise ViewError(f"a path has at most {MAX_LEVELS} names")
    for name in names:
        _check(name)
    return "/".join(names)


def _check(name: str) -> None:
    if not name:
        raise ViewError("a path is names with slashes between, such as computing/unix/shells")
    if len(name) > MAX_NAME:
        raise ViewError(f"{name[:20]}…: a name has at most {MAX_NAME} characters")
    wrong = next((c for c in name if not (_is_letter(c) or c in SIGNS)), "")
    if wrong or not any(map(_is_letter, name)) or name[0] in SIGNS or name[-1] in SIGNS - {"+"}:
        raise ViewError(
            f"{''.join(c if c.isprintable() else ' ' for c in name)}: a name is letters, digits, blanks and - _ + . & ' ,"
        )


def as_name(text: str) -> str:
    """Return a text as the name of a view: what a name may not have becomes a blank, and it is cut; "" if no name is left."""
    text = unicodedata.normalize("NFC", text)
    blanked = " ".join("".join(c if _is_letter(c) or c in SIGNS else " " for c in text).split())
    name = blanked.lstrip("".join(SIGNS))
    if len(name) > MAX_NAME:
        name = name[: MAX_NAME + 1].rpartition(" ")[0] or name[:MAX_NAME]
    name = name.rstrip("".join(SIGNS - {"+"}))
    return name if any(map(_is_letter, name)) else ""


def _is_letter(character: str) -> bool:
    return unicodedata.category(character)[0] in "LNM"


def key_of(path: str) -> str:
    """Return what two paths that differ in case alone have in common."""
    return path.casefold()


def parent_of(path: str) -> str:
    """Return the path of the view right above; "" if there is none."""
    return path.rpartition("/")[0]


def order(view: View) -> tuple[int, bool, str, str]:
    """Return what the later of two definitions of one path is greater in."""
    return view.time, view.removed, view.query, view.path


def latest(events: Iterable[View]) -> dict[str, View]:
    """Return the definitions that hold by key of their path, from events in any order; removed and unusable ones are left out."""
    found: dict[str, View] = {}
    for event in events:
        known = found.get(key_of(event.path))
        if known is None or order(event) > order(known):
            found[key_of(event.path)] = event
    return {key: view for key, view in found.items() if not view.removed and _is_usable(view.path, view.query)}


@lru_cache(4 * MAX_VIEWS)
def _is_usable(path: str, query: str) -> bool:
    try:
        parse(query)
        return normal(path) == path
    except (QueryError, ViewError):
        return False


def joined(queries: tuple[Query, ...]) -> Query:
    """Return queries joined with AND; parts of an AND are not nested in another."""
    parts = tuple(part for query in queries for part in (query.parts if isinstance(query, And) else (query,)))
    return And(parts) if len(parts) > 1 else parts[0]


def queries(views: Mapping[str, View]) -> dict[str, Query]:
    """Return what each view holds by key: the queries of its path, joined. Views without their parent are left out."""
    parsed: dict[str, tuple[Query, ...]] = {}
    for key in sorted(views):
        above = parent_of(key)
        if not above or above in parsed:
            parsed[key] = (*parsed.get(above, ()), parse(views[key].query))
    return {key: joined(parts) for key, parts in parsed.items()}


def tree(views: Mapping[str, View], languages: tuple[str, ...] = DEFAULT_LANGUAGES) -> Tree:
    """Return the views at the top with those below them. Raises QueryError."""
    analyzer = Analyzer(languages)
    below: dict[str, list[str]] = {}
    for key in sorted(views):
        below.setdefault(parent_of(key), []).append(key)

    def rules(key: str) -> Tree:
        return tuple(Rule(views[k].path, predicate(parse(views[k].query), analyzer), rules(k)) for k in below.get(key, ()))

    return rules("")


def tags(rules: Tree, summary: Summary) -> tuple[str, ...]:
    """Return the paths of the views that a summary is in, sorted."""
    return tuple(sorted(_held(rules, summary)))


def _held(rules: Tree, summary: Summary) -> Iterable[str]:
    for rule in rules:
        if rule.accepts(summary):
            yield rule.path
            yield from _held(rule.below, summary)


def created(views: Mapping[str, View], path: str, query: str, now: int) -> View:
    """Return the definition of a new view, or of a known one with another query. Raises ViewError, QueryError."""
    path = normal(path)
    above = parent_of(path)
    parse(query)
    known = views.get(key_of(path))
    if above and key_of(above) not in views:
        raise ViewError(f"{above}: no such view, so that {path} would hold nothing{nearest(views, above)}")
    if known is None and len(views) >= MAX_VIEWS:
        raise ViewError(f"a Broker has at most {MAX_VIEWS:,} views")
    if known is not None and known.query == query:
        raise ViewError(f"{known.path}: is there already, with this query")
    if above:
        path = f"{views[key_of(above)].path}/{path.rpartition('/')[2]}"
    return View(path=known.path if known else path, query=query, time=max(now, known.time + 1 if known else 0))


def removed(views: Mapping[str, View], path: str, now: int) -> View:
    """Return the end of a view. Raises ViewError if there is none, or if it has views below it."""
    known = views.get(key_of(normal(path)))
    if known is None:
        raise ViewError(f"{normal(path)}: no such view{nearest(views, path)}")
    children = [view.path for key, view in views.items() if parent_of(key) == key_of(known.path)]
    if children:
        others = f" and {len(children) - 1:,} others" if len(children) > 1 else ""
        raise ViewError(f"{known.path}: has views below it, to be removed before ({min(children)}{others})")
    return View(path=known.path, time=max(now, known.time + 1), removed=True)


def nearest(views: Mapping[str, View], path: str) -> str:
    """Return a proposal for an unknown path in parentheses, with a blank before; "" if nothing is near."""
    close = difflib.get_close_matches(key_of(path), views, 1)
    return f" (did you mean {views[close[0]].path}?)" if close else ""
