"""The definition of a Broker: what register, dedup, sinks and commands take as data.

Laws:
- A Broker is its name: its topics, rows and index are named after it. Two of one name are one.
- `MAIN` is the only Broker that is always there, and the only place where its name is written.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import msgspec

from processors.query import parse, predicate
from processors.query.forms import DEFAULT_LANGUAGES, Analyzer
from schemas.records import Summary

MAIN = "main"
"""The Broker that exists without a setting, and that commands mean where they name none."""


GATHERED = "summaries"
"""The source of a Broker that is the Gatherer's database."""
LOCAL = "broker:"
"""Begins the source of a Broker that is another Broker of the same topology, followed by its name."""


class Fallback(msgspec.Struct, frozen=True):
    """The Broker that is asked too where a search in this one finds little."""

    broker: str
    below: int = 10
    """It is asked if there are fewer hits than this."""


class Broker(msgspec.Struct, frozen=True):
    """One Broker over the Gatherer's database, over other Brokers, or over both."""

    name: str = MAIN
    query: str = ""
    """The summaries that it accepts, in the query language; empty: all."""
    ttl: int | None = None
    """Seconds: the longest time-to-live that its summaries state; None: their own."""
    languages: tuple[str, ...] = DEFAULT_LANGUAGES
    """Languages whose words the query finds in all their forms, as its index does."""
    title: str = ""
    sources: tuple[str, ...] = (GATHERED,)
    """What it is made from: `summaries`, `broker:NAME`, or the URL of a stream of summaries that the Gatherer collects."""
    facets: tuple[str, ...] = ()
    """Facets that its pages show; none: all."""
    rank: tuple[tuple[str, float], ...] = ()
    """Settings of `search.weights` and `search` (`title`, `exact`, `freshness`, `half_life`, `links`) that differ for it."""
    fallback: Fallback | None = None
    stream: bool = False
    """Whether its archive is kept ready as one stream, for other Gatherers and Brokers."""

    def filter(self) -> Callable[[Summary], bool] | None:
        """Return the predicate that decides which summaries the Broker accepts; None: it accepts all. Raises QueryError."""
        return predicate(parse(self.query), Analyzer(self.languages)) if self.query.strip() else None

    @property
    def local_sources(self) -> tuple[str, ...]:
        """Names of the Brokers that it is made from."""
        return tuple(source.removeprefix(LOCAL) for source in self.sources if source.startswith(LOCAL))

    @property
    def collected_sources(self) -> tuple[str, ...]:
        """URLs of the streams that it is made from."""
        return tuple(source for source in self.sources if source != GATHERED and not source.startswith(LOCAL))

    @property
    def is_whole(self) -> bool:
        """Whether it accepts every summary of the Gatherer's database: its gateway may show all that is gathered."""
        return GATHERED in self.sources and not self.query.strip()

    @property
    def fingerprint(self) -> str:
        """Digest of what decides which summaries it holds and how they are published: a changed one has its sources read again."""
        decides = (self.query, self.ttl, self.languages if self.query.strip() else (), self.sources)
        return hashlib.sha256(msgspec.msgpack.encode(decides)).hexdigest()[:16]
