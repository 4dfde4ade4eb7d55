"""The definition of a Broker: what register, dedup, sinks and commands take as data.

Laws:
- A Broker is its name: its topics, rows and index are named after it. Two of one name are one.
- `MAIN` is the only Broker that is always there, and the only place where its name is written.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from processors.query import parse, predicate
from processors.query.forms import DEFAULT_LANGUAGES, Analyzer
from schemas.records import Summary

MAIN = "main"
"""The Broker that exists without a setting, and that commands mean where they name none."""


class Broker(msgspec.Struct, frozen=True):
    """One Broker over the Gatherer's database."""

    name: str = MAIN
    query: str = ""
    """The summaries that it accepts, in the query language; empty: all."""
    ttl: int | None = None
    """Seconds: the longest time-to-live that its summaries state; None: their own."""
    languages: tuple[str, ...] = DEFAULT_LANGUAGES
    """Languages whose words the query finds in all their forms, as its index does."""

    def filter(self) -> Callable[[Summary], bool] | None:
        """Return the predicate that decides which summaries the Broker accepts; None: it accepts all. Raises QueryError."""
        return predicate(parse(self.query), Analyzer(self.languages)) if self.query.strip() else None
