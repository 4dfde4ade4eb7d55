"""Robots directives of a document: the header X-Robots-Tag, and the meta elements `robots` and `harvest` of a page.

Both have the syntax that Google documents ("Robots meta tag, data-nosnippet, and X-Robots-Tag specifications"): names between
commas, in any case; one, unavailable_after, has a date. In the header, the name of a user agent and a colon limit the directives
that follow, up to the next such prefix. White space and semicolons between names are accepted too, as pages have them.

Laws:
- All sources are combined, and the strictest wins: no source lifts what another one forbids.
- Directives for other user agents, unknown names and names that forbid nothing (`index`, `all`) have no effect and are not kept.
- A document is unavailable from the given date on; one with a day alone is available on that day. A date without a zone is in UTC,
  and one that cannot be parsed has no effect.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import NamedTuple

from processors.essence.formats.mail.mime import moment

AGENT = "harvest"
"""Name of this user agent in lower case."""
EVERYONE = frozenset(("*", "robots", AGENT))
"""Prefixes in the header that include this user agent."""
MAX_VALUE = 16_384
"""Characters of a header or a meta element that are read."""
MAX_KEPT = 20
"""Directives that are kept as values of an attribute."""
MAX_DATE = 60
"""Characters of a date."""
DAY_MS = 86_400_000

UNAVAILABLE = "unavailable_after"
VALUED = frozenset((UNAVAILABLE, "max-snippet", "max-image-preview", "max-video-preview"))
"""Directives with a value after a colon: they are no prefixes."""
NOINDEX = frozenset(("noindex", "none"))
NOFOLLOW = frozenset(("nofollow", "none"))
NOARCHIVE = frozenset(("noarchive", "nocache"))
RESTRICTIONS = NOINDEX | NOFOLLOW | NOARCHIVE | {"nosnippet", "noimageindex", "notranslate"}
"""Directives without a value that forbid something."""
HARMLESS = frozenset(("index", "follow", "all", "archive", "indexifembedded"))

_PREFIX = re.compile(r"\s*+([\w*][\w.*-]{0,100}+)(?:/[\w.]{0,20}+)?\s*+:", re.ASCII)
_BETWEEN = re.compile(r"[,;\n]")


class Directives(NamedTuple):
    """What the directives of a document forbid."""

    kept: tuple[str, ...] = ()
    """The directives, in lower case (`none` as noindex and nofollow), dates as they were written."""
    noindex: bool = False
    """Only the name of the document may be kept."""
    nofollow: bool = False
    """None of its links may be followed."""
    noarchive: bool = False
    """No copy of it may be kept: its summary has no full text."""

    def stricter(self, other: Directives) -> Directives:
        """Return the directives of both."""
        kept = tuple(dict.fromkeys((*self.kept, *other.kept)))[:MAX_KEPT]
        return Directives(kept, *(mine or theirs for mine, theirs in zip(self[1:], other[1:], strict=True)))


def header_directives(value: str, fetched: int) -> Directives:
    """Return the directives of an X-Robots-Tag that concern this user agent; `fetched`: time of the fetch in ms.

    `value` has all fields of that name, joined by commas (RFC 9110, 5.3).
    """
    return _directives(_own_parts(value[:MAX_VALUE]), fetched) if value else Directives()


def meta_directives(content: str, fetched: int) -> Directives:
    """Return the directives of the content of a meta element; `fetched`: time of the fetch in ms."""
    return _directives(_BETWEEN.split(content[:MAX_VALUE]), fetched)


def _own_parts(value: str) -> Iterator[str]:
    """Yield the parts of a header that have no prefix, or one that includes this user agent, without the prefix."""
    own = True
    for part in _BETWEEN.split(value):
        prefix = _PREFIX.match(part)
        name = prefix[1].lower() if prefix else ""
        if prefix is None or name in VALUED or name in RESTRICTIONS or name.isdigit():
            text = part
        else:
            own, text = name in EVERYONE, part[prefix.end() :]
        if own:
            yield text


def _directives(parts: Iterable[str], fetched: int) -> Directives:
    names: dict[str, None] = {}
    dates: list[str] = []
    for name in _names(parts):
        if name.startswith(UNAVAILABLE):
            dates.append(name)
        elif name == "none":
            names |= {"noindex": None, "nofollow": None}
        else:
            names[name] = None
    ended = any(0 < _until(date.partition(":")[2].strip()) <= fetched for date in dates)
    return Directives(
        kept=tuple(dict.fromkeys((*names, *dates)))[:MAX_KEPT],
        noindex=ended or not NOINDEX.isdisjoint(names),
        nofollow=not NOFOLLOW.isdisjoint(names),
        noarchive=not NOARCHIVE.isdisjoint(names),
    )


def _names(parts: Iterable[str]) -> Iterator[str]:
    """Yield the restrictions in the parts, unavailable_after with its date, which may have commas too."""
    date: list[str] | None = None
    for part in parts:
        words = part.split()
        if date and words and words[0][0].isdigit():
            date[-1] += ","
        elif date is not None:
            yield _dated(date)
            date = None
        for word in words:
            name, colon, rest = word.lower().partition(":")
            if name in RESTRICTIONS or name in HARMLESS or name in VALUED:
                if date is not None:
                    yield _dated(date)
                date = ([word[len(name) + 1 :]] if colon and rest else []) if name == UNAVAILABLE else None
                if name in RESTRICTIONS:
                    yield name
            elif date is not None and word != ":":
                date.append(word)
    if date is not None:
        yield _dated(date)


def _dated(date: list[str]) -> str:
    return f"{UNAVAILABLE}: {' '.join(date)[:MAX_DATE]}"


def _until(date: str) -> int:
    """Return the time in ms from which on a document is unavailable; 0 if the date cannot be parsed.

    Accepts ISO 8601, and the dates of mail and of HTTP (RFC 5322, 3.3; RFC 850).
    """
    day = ":" not in date
    try:
        when = datetime.fromisoformat(date)
        found = int((when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp() * 1000)
    except (ValueError, OverflowError):
        found = moment(f"{date} 00:00:00" if day else date) // 1_000_000
    return found + DAY_MS if found and day else found
