"""The sources of a Broker: which one a record is from, and in what order they count.

Laws:
- The source of a record is that of its topic: `broker.NAME` is the Broker NAME, `summaries` everything else.
- A URL means the summaries of the topic `summaries` that were collected from there, with the query of the URL, if it has one.
"""

from __future__ import annotations

from dataclasses import dataclass

from processors.broker.definition import GATHERED, LOCAL, Broker
from processors.collector import is_part, listing_of
from schemas.records import Removed, Summary

ARCHIVE = "broker."
"""Begins the name of the topic of a Broker's archive."""
MAX_SOURCES = 16


def came_from(object_url: str, listing: str) -> bool:
    """Return whether a summary whose object has a URL came from a stream: its object is a part of the listing that is collected.

    `listing`: as `processors.collector.listing_of` returns it. A stream of what matches a query is another one than the whole.
    """
    return is_part(listing, object_url)


@dataclass(frozen=True)
class Sources:
    """Sources in order. `names`: Brokers, and "" for the topic `summaries`; `urls`: listings of which it counts; None: all."""

    names: tuple[str, ...] = ("",)
    urls: tuple[str, ...] | None = None

    @classmethod
    def of(cls, defined: Broker) -> Sources:
        """Return the sources of a definition. Raises ValueError if there are more than MAX_SOURCES."""
        if len(defined.sources) > MAX_SOURCES:
            raise ValueError(f"a Broker has at most {MAX_SOURCES} sources")
        names = [source.removeprefix(LOCAL) if source.startswith(LOCAL) else "" for source in defined.sources]
        listings = tuple(listing_of(url) or url for url in defined.collected_sources)
        return cls(tuple(dict.fromkeys(names)), None if GATHERED in defined.sources else listings)

    @property
    def topics(self) -> tuple[str, ...]:
        """Names of the topics that they are read from."""
        return tuple(ARCHIVE + name if name else GATHERED for name in self.names)

    @property
    def single(self) -> bool:
        """Whether there is only one, so that nothing need be kept of what it gives and the Broker does not accept."""
        return len(self.names) == 1

    def counts(self, source: str, record: Summary | Removed) -> bool:
        """Return whether what a topic says of an object belongs to the Broker's sources."""
        if source not in self.names:
            return False
        return bool(source) or self.urls is None or any(came_from(record.object_url, url) for url in self.urls)


def source_of(topic: str) -> str:
    """Return the source that a topic is: the name of a Broker, or "" for the Gatherer's database."""
    return topic.removeprefix(ARCHIVE) if topic.startswith(ARCHIVE) else ""


def is_source(topic: str) -> bool:
    """Return whether a topic can be a source of a Broker."""
    return topic == GATHERED or topic.startswith(ARCHIVE)


def sequence_of(source: str, record: Summary | Removed) -> int:
    """Return the number by which the records of a source about one OID are ordered.

    A Broker may remove and take up again under one version; its publish counter only rises.
    """
    return record.published if source else record.version
