"""Determines the outcome of each path of a tree from a data folder, and reports paths without exactly one outcome.

Outcomes of a path that `find` lists:
- summarized: the compacted topic `summaries` has a summary of its URL, and there is no current rejection of it;
- refused: a `refused` event of the topic `crawl` names it, or a folder above it, with the rule;
- rejected: there is a current rejection of it. Its summary is not counted again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from processors.identity import file_url
from schemas.codec import decode
from schemas.records import CrawlEvent, Record, Rejected, Removed, Summary
from streams.logs import StoreLog
from streams.operations.dead_letters import standing
from streams.store import Store

READ = 1_000


class Outcomes(NamedTuple):
    """Paths by outcome: counts of `refused` by rule and of `rejected` by reason, and lists of URLs with a wrong outcome."""

    summarized: int
    refused: Counter[str]
    rejected: Counter[str]
    nothing: list[str]
    """Paths without an outcome."""
    several: list[str]
    """Paths with more than one outcome."""
    strangers: list[str]
    """Objects that have a summary but no path."""
    unlike: list[str]
    """Objects rejected in essence without a summary that has the reason, or the reverse."""

    @property
    def wrong(self) -> list[str]:
        """The URLs of all violations."""
        return [*self.nothing, *self.several, *self.strangers, *self.unlike]


def outcomes(data: Path, paths: Iterable[bytes]) -> Outcomes:
    """Determine the outcome of each path."""
    with Store(data, readonly=True) as store:
        summaries = _summaries(store)
        rules = _refused(store)
        rejected = {one.url: one for one in standing(StoreLog(store)) if not one.path}
    found = Outcomes(0, Counter(), Counter(), [], [], [], _unlike(summaries, rejected))
    urls = {file_url(path) for path in paths}
    summarized = 0
    for url in sorted(urls):
        rule = _rule(url, rules)
        refusal, letter, summary = bool(rule), url in rejected, url in summaries and url not in rejected
        if refusal + letter + summary != 1:
            (found.several if refusal or letter or summary else found.nothing).append(url)
        elif refusal:
            found.refused[rule] += 1
        elif letter:
            found.rejected[rejected[url].reason] += 1
        summarized += summary
    found.strangers.extend(sorted(summaries.keys() - urls))
    return found._replace(summarized=summarized)


def _summaries(store: Store) -> dict[str, bool]:
    """The URLs of objects with a summary of their own; true if it is the summary of a rejected object."""
    latest: dict[str, bool | None] = {}
    for record in records(store, "summaries"):
        if isinstance(record, Summary) and not record.path:
            latest[record.url] = "reason" in record.attributes
        elif isinstance(record, Removed):
            latest[record.url] = None
    return {url: rejected for url, rejected in latest.items() if rejected is not None}


def _refused(store: Store) -> dict[str, str]:
    """The rule of each URL that was not selected."""
    events = (one for one in records(store, "crawl") if isinstance(one, CrawlEvent) and one.kind == "refused")
    return {url: event.reason for event in events for url in ([link.url for link in event.links] or [event.url])}


def _rule(url: str, rules: dict[str, str]) -> str:
    """The rule that refused a URL or a folder above it; "" if there is none."""
    parts = url.split("/")
    above = ("/".join(parts[:count]) + "/" for count in range(4, len(parts)))
    return rules.get(url) or next((rules[folder] for folder in above if folder in rules), "")


def _unlike(summaries: dict[str, bool], rejected: dict[str, Rejected]) -> list[str]:
    said = {url for url, reason in summaries.items() if reason}
    letters = {url for url, one in rejected.items() if one.stage == "essence" and not url.endswith("/")}
    return sorted(said ^ letters)


def records(store: Store, topic: str) -> Iterator[Record]:
    """All records of a topic, without tombstones."""
    for partition in range(store.topics()[topic]):
        offset = 0
        while batch := store.read(topic, partition, offset, READ):
            yield from (decode(one.value) for one in batch if one.value is not None)
            offset = batch[-1].offset + 1
