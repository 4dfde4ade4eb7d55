"""State of a search page: what a URL says and nothing else, so that every state can be linked, and Back works.

Laws:
- `read(state.parameters())` is the state. What is the default is left out of a URL.
- No parameter raises an error: an unknown one is ignored, an impossible value is the default.
- A change of what is searched begins on the first page again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import get_args
from urllib.parse import urlencode

import msgspec

from processors.query.facets import FACETS
from schemas.ports import Sort

SORTS: tuple[Sort, ...] = get_args(Sort)
SIZES = (10, 20, 50, 100)
"""Numbers of hits on a page that can be chosen."""
MAX_HIT = 10_000
"""Hits beyond this one are shown on no page: the export has all of them."""
MAX_CHOICES = 50
"""Maximum number of chosen and excluded values."""
MAX_TEXT = 4_000
"""Maximum length of a parameter in characters."""
EXCLUDED = "not-"
"""Prefix of the parameter that excludes a value of a facet: `not-type=PDF`."""

Choice = tuple[str, str]
"""A facet and one of its values."""

_OID = re.compile(r"[0-9a-f]{64}")
_PAGE = re.compile(r"[1-9][0-9]{0,4}")


class State(msgspec.Struct, frozen=True):
    """State of a search page."""

    text: str = ""
    """The query as a user typed it."""
    chosen: tuple[Choice, ...] = ()
    excluded: tuple[Choice, ...] = ()
    since: str = ""
    """The first day, month or year of the documents' own dates; empty: any."""
    until: str = ""
    """The last one."""
    inside: str = ""
    """URL or name of the folder or archive that is searched; empty: all."""
    like: str = ""
    """OID of the summary that others are to be similar to."""
    copies: bool = False
    """Whether each copy is a hit of its own."""
    sort: Sort = "relevance"
    size: int = SIZES[0]
    """Number of hits on a page."""
    page: int = 1

    @property
    def is_empty(self) -> bool:
        """Whether nothing is asked for: then the page shows what there is to search."""
        return not (self.text.strip() or self.chosen or self.excluded or self.since or self.until or self.inside or self.like)

    @property
    def is_refined(self) -> bool:
        """Whether the search is narrowed by anything but the query."""
        return bool(self.chosen or self.excluded or self.since or self.until or self.inside or self.like)

    @property
    def offset(self) -> int:
        """Number of hits before those of the page."""
        return (self.page - 1) * self.size

    def parameters(self) -> Iterator[tuple[str, str]]:
        """Iterate over the parameters of the URL."""
        if self.text:
            yield "q", self.text
        yield from self.chosen
        yield from ((EXCLUDED + facet, value) for facet, value in self.excluded)
        for name, value in (("from", self.since), ("to", self.until), ("in", self.inside), ("like", self.like)):
            if value:
                yield name, value
        if self.copies:
            yield "copies", "1"
        if self.sort != SORTS[0]:
            yield "sort", self.sort
        if self.size != SIZES[0]:
            yield "size", str(self.size)
        if self.page > 1:
            yield "page", str(self.page)

    @property
    def query(self) -> str:
        """The query part of the URL, with its question mark; empty for the default."""
        found = urlencode(list(self.parameters()), errors="replace")
        return f"?{found}" if found else ""

    def changed(self, **values: object) -> State:
        """Return the state with other values, on its first page unless `page` is among them."""
        return msgspec.structs.replace(self, **({"page": 1} | values))

    def toggled(self, facet: str, value: str) -> State:
        """Return the state with a value of a facet chosen, or no longer if it was."""
        each = (facet, value)
        kept = tuple(other for other in self.chosen if other != each)
        chosen = kept if each in self.chosen else (*kept, each)
        return self.changed(chosen=chosen, excluded=tuple(other for other in self.excluded if other != each))

    def without(self, facet: str, value: str) -> State:
        """Return the state with a value of a facet excluded, or no longer if it was."""
        each = (facet, value)
        kept = tuple(other for other in self.excluded if other != each)
        excluded = kept if each in self.excluded else (*kept, each)
        return self.changed(excluded=excluded, chosen=tuple(other for other in self.chosen if other != each))


def read(parameters: Iterable[tuple[str, str]]) -> State:
    """Return the state that the parameters of a URL name; of a parameter that is repeated, the last one counts."""
    single: dict[str, str] = {}
    choices: dict[str, dict[Choice, None]] = {"": {}, EXCLUDED: {}}
    for name, value in ((name, value[:MAX_TEXT]) for name, value in parameters):
        prefix, facet = (EXCLUDED, name[len(EXCLUDED) :]) if name.startswith(EXCLUDED) else ("", name)
        if facet in FACETS and value.strip():
            choices[prefix][facet, value] = None
        else:
            single[name] = value
    chosen = tuple(choices[""])[:MAX_CHOICES]
    size = int(number) if (number := single.get("size", "")) in map(str, SIZES) else SIZES[0]
    return State(
        text=single.get("q", ""),
        chosen=chosen,
        excluded=tuple(each for each in choices[EXCLUDED] if each not in choices[""])[:MAX_CHOICES],
        since=single.get("from", "").strip(),
        until=single.get("to", "").strip(),
        inside=single.get("in", "").strip(),
        like=like if _OID.fullmatch(like := single.get("like", "")) else "",
        copies=single.get("copies", "") not in ("", "0"),
        sort=next((sort for sort in SORTS if sort == single.get("sort")), SORTS[0]),
        size=size,
        page=min(int(page), MAX_HIT // size) if _PAGE.fullmatch(page := single.get("page", "")) else 1,
    )
