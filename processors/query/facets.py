"""Facets of summaries: properties by which the results of a search are counted and narrowed.

Laws:
- A count is what the choice gives: it is the number of summaries that match the query `refined` by that value.
- A choice in a facet is a part of the query, at its top level. It does not change the counts of its own facet, so that another
  value can be chosen instead.
- Values are what `choice` finds: a host counts for each name above it, as `site:` finds it. Those of VIEW are what `view:PATH`
  finds once the summaries have the tags of the present definitions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from processors.query.places import hosts
from processors.query.values import period, year, year_of
from processors.query.words import MAX_EXACT, exact
from processors.query.words import attribute as known
from schemas.ports import FacetValue
from schemas.query import And, Every, MomentRange, Most, Or, Phrase, Query, Site, Whole, Word
from schemas.records import Summary

FACETS = ("type", "site", "language", "author", "year", "gatherer")
"""The facets, in the order in which they are shown."""
VIEW = "view"
"""Facet of the views that a summary is in, by its tags. `choice` has no query for it: a query `view:PATH` is written out."""
COUNTED = (*FACETS, VIEW)
"""All facets that can be counted."""
BY_VALUE = ("language", "author")
"""Facets of the values of an attribute."""
BY_PROPERTY = ("type", "gatherer")
"""Facets of a property of the summary, which is compared case folded."""
MAX_VALUES = 100
"""Maximum number of values of a summary in one facet; further ones are neither counted nor found as `Whole`."""


def plain(text: str) -> str:
    """Return a value for comparison as a whole: with one blank for each run of white space, none around it."""
    return " ".join(text.split())


def columns(summary: Summary, values: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Return the values of each facet of a summary; `values`: those that `words.searchable_values` returned for it."""
    found = {
        "type": wholes([summary.type]),
        "gatherer": wholes([summary.gatherer]),
        "site": list(hosts(summary.shown_url)),
        "year": [own] if (own := year(values)) else [],
        VIEW: list(summary.views),
    }
    return found | {name: wholes(values.get(name, ())) for name in BY_VALUE}


def wholes(texts: Sequence[str]) -> list[str]:
    """Return the values of an attribute as they are compared as wholes; those that are too long are left out."""
    made = dict.fromkeys(text for text in map(plain, texts) if 0 < len(text) <= MAX_EXACT)
    return list(made)[:MAX_VALUES]


def counted(facet: str, value: str) -> bool:
    """Return whether a value is shown: a name without a dot above hosts (`org`) is not."""
    return facet != "site" or "." in value or value.startswith("[") or value == "localhost"


def choice(facet: str, value: str) -> Query:
    """Return the query for a value of a facet. Raises ValueError if it cannot be one."""
    match facet:
        case "type" | "gatherer":
            return Word(value, facet)
        case "site":
            return Site(value)
        case "language" | "author":
            return Whole(plain(value), facet)
        case "year" if years := period(value):
            return MomentRange("", *years)
    raise ValueError(f"no value of {facet}: {value}")


def chosen(query: Query, facet: str) -> tuple[str, ...]:
    """Return the values of a facet that are chosen at the top level of a query."""
    return tuple(value for part in _parts(query) for value in _values(part, facet))


def without(query: Query, facet: str) -> Query:
    """Return a query without the choices in a facet."""
    kept = tuple(part for part in _parts(query) if not _values(part, facet))
    if len(kept) == len(_parts(query)):
        return query
    if len(kept) > 1:
        return Most(kept) if isinstance(query, Most) else And(kept)
    return kept[0] if kept else Every()


def refined(query: Query, facet: str, value: str) -> Query:
    """Return a query with a value of a facet chosen, in place of others of this facet. Raises ValueError."""
    return narrowed(without(query, facet), choice(facet, value))


def narrowed(query: Query, *conditions: Query) -> Query:
    """Return a query that also asks for some conditions."""
    if not conditions:
        return query
    match query:
        case Every():
            return And(conditions) if len(conditions) > 1 else conditions[0]
        case Most(parts):
            return Most((*parts, *conditions))
        case And(parts):
            return And((*parts, *conditions))
    return And((query, *conditions))


def _parts(query: Query) -> tuple[Query, ...]:
    return query.parts if isinstance(query, And | Most) else (query,)


def _values(part: Query, facet: str) -> tuple[str, ...]:
    """Return the values that a part of a query chooses, joined by OR if there are several; none if it is no choice."""
    if isinstance(part, Or):
        found = [_values(each, facet) for each in part.parts]
        return tuple(value for values in found for value in values) if found and all(found) else ()
    match part:
        case Word(text, attribute) | Phrase(text, attribute) if facet in BY_PROPERTY and known(attribute) == facet:
            return (text,)
        case Site(host) if facet == "site":
            return (host,)
        case Whole(text, attribute) if facet in BY_VALUE and known(attribute) == facet:
            return (text,)
        case MomentRange("", int(low), int(high)) if facet == "year" and period(own := year_of(low)) == (low, high):
            return (own,)
    return ()


def tidied(facet: str, found: Sequence[FacetValue], limit: int) -> tuple[FacetValue, ...]:
    """Return at most `limit` values, the most frequent first.

    Spellings that one choice finds are one value; a host that has no more summaries than one below it is left out.
    """
    spelled: dict[str, FacetValue] = {}
    for each in sorted(found, key=lambda each: (-each.total, each.value)):
        alike = exact(each.value) if facet in BY_PROPERTY else each.value
        if counted(facet, each.value):
            known = spelled.get(alike)
            spelled[alike] = FacetValue(known.value, known.total + each.total) if known else each
    best = sorted(spelled.values(), key=lambda each: (-each.total, each.value))
    if facet == "site":
        below: dict[int, list[str]] = {}
        for each in best:
            below.setdefault(each.total, []).append(each.value)
        best = [each for each in best if not any(value.endswith(f".{each.value}") for value in below[each.total])]
    return tuple(best[:limit])
