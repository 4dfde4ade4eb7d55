"""The sources of a Broker: which one a record is from, and in what order they count.

Laws:
- The source of a record is that of its topic: `broker.NAME` is the Broker NAME, `summaries` everything else.
- A URL means the summaries of the topic `summaries` whose object is at or below it.
"""

from __future__ import annotations

from dataclasses import dataclass

from processors.broker.definition import GATHERED, LOCAL, Broker
from schemas.records import Removed, Summary

ARCHIVE = "broker."
"""Begins the name of the topic of a Broker's archive."""
MAX_SOURCES = 16


def at_or_below(url: str, source: str) -> bool:
    """Return whether a URL is that of a source, or below it: a further part of its path, a query or a fragment."""
    if not url.startswith(source):
        return False
    return len(url) == len(source) or source.endswith("/") or url[len(source)] in "/?#"


@dataclass(frozen=True)
class Sources:
    """Sources in order. `names`: Brokers, and "" for the topic `summaries`; `urls`: what counts of that topic; None: all."""

    names: tuple[str, ...] = ("",)
    urls: tuple[str, ...] | None = None

    @classmethod
    def of(cls, defined: Broker) -> Sources:
        """Return the sources of a definition. Raises ValueError if there are more than MAX_SOURCES."""
        if len(defined.sources) > MAX_SOURCES:
            raise ValueError(f"a Broker has at most {MAX_SOURCES} sources")
        names = [source.removeprefix(LOCAL) if source.startswith(LOCAL) else "" for source in defined.sources]
        return cls(tuple(dict.fromkeys(names)), None if GATHERED in defined.sources else defined.collected_sources)

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
        return bool(source) or self.urls is None or any(at_or_below(record.object_url, url) for url in self.urls)


def source_of(topic: str) -> str:
    """Return the source that a topic is: the name of a Broker, or "" for the Gatherer's database."""
    return topic.removeprefix(ARCHIVE) if topic.startswith(ARCHIVE) else ""


def sequence_of(source: str, record: Summary | Removed) -> int:
    """Return the number by which the records of a source about one OID are ordered.

    A Broker may remove and take up again under one version; its publish counter only rises.
    """
    return record.published if source else record.version
