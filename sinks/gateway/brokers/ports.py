"""What the gateway needs to answer for all Brokers; the command line hands it in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from processors.broker.definition import Fallback
from processors.query.routing.in_views import InViews
from processors.query.routing.merging import Answered, Routed
from processors.query.terms import Views
from schemas.query import Query
from sinks.feed.reader import FeedReader


class BrokerFacts(NamedTuple):
    """A Broker in the list of all."""

    name: str
    title: str
    summaries: int
    mark: str = ""
    """Mark of the statistics of its words: equal ones have equal marks; empty: they have not been counted, or are old."""


class StreamSource(NamedTuple):
    """The archive of a Broker as a stream."""

    title: str
    languages: tuple[str, ...]
    """Languages whose words a query finds in all their forms."""
    views: Callable[[], Views]
    """Reads what `view:PATH` is written out as. Raises CollectionError."""
    open: Callable[[], FeedReader]
    """Opens the feed, which has all of the archive; the caller closes it. Raises CollectionError."""


class Brokers(Protocol):
    """The Brokers of this gateway, and those that its searches are routed to. Every method may block, in any thread."""

    def facts(self) -> Sequence[BrokerFacts]:
        """Return the Brokers of this gateway that have an index."""
        ...

    def counted(self, name: str) -> bytes | None:
        """Return the encoded statistics of a Broker's words; None if these have to be counted first. Raises KeyError."""
        ...

    def statistics(self, name: str) -> bytes:
        """As `counted`, but count what is missing, which takes long. Raises KeyError, also if nothing is in the Broker yet."""
        ...

    def search(self, name: str, query: Query, limit: int) -> Answered:
        """Return the best hits of a Broker. Raises KeyError, QueryError, OSError, IndexDamaged."""
        ...

    def views(self, name: str) -> Views:
        """Return what `view:PATH` is written out as in a Broker. Raises KeyError if there is no such Broker, CollectionError."""
        ...

    def routed(self, query: Query, limit: int, scope: InViews | None = None) -> Routed:
        """Return the best hits of the Brokers that answer a query best, here and on other gateways. Raises QueryError.

        `scope`: what each makes of a query that names views; a Broker without them is left out.
        """
        ...

    def stream(self, name: str) -> StreamSource:
        """Return the stream of a Broker. Raises KeyError if there is no such Broker here, or it has no stream."""
        ...

    def fallback(self) -> Fallback | None:
        """Return the Broker that completes few hits of the one that this gateway serves; None if there is none."""
        ...
