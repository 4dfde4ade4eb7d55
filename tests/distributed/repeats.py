"""How often records were said again, and how often they may have been.

A worker that is killed has done again what it had handled since its last commit; so has one that ends itself, takes or gives up
partitions, or loses the broker. What it says again, those behind it say again too. So of a topic there are at most
    faults of its writer x records that came there within one commit interval, where most did
    + what was repeated in the writer's input x what the writer gives for one record, at the most.
The rates are measured: by the times that the records have.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from schemas.records import FetchedObject, FetchRequest, Record, Summary

SLACK = 1.0
"""Seconds that a commit takes on a machine that others use too: until then it counts for nothing."""


class Line(NamedTuple):
    """A topic, who writes it, what he makes it of, and what is counted there."""

    topic: str
    writer: str
    source: str
    kind: type[Any]


LINES = (
    Line("fetches", "frontier", "", FetchRequest),
    Line("objects", "fetch", "fetches", FetchedObject),
    Line("made", "essence", "objects", Summary),
    Line("summaries", "catalog", "made", Summary),
    Line("broker.main", "register.main", "summaries", Summary),
)
"""The way of an object; in flow order."""


class Repeats(NamedTuple):
    """Of one topic: records, faults of its writer, records said again, and how many of them there may be."""

    topic: str
    records: int
    faults: int
    repeated: int
    most: int


def repeats(
    records: Mapping[str, Sequence[tuple[bytes, Record]]], times: Mapping[str, Sequence[int]], faults: Counter[str], commit: float
) -> Iterator[Repeats]:
    """What was said again in each topic. `faults` by stage; `commit`: seconds between two commits."""
    found: dict[str, int] = {"": 0}
    for line in LINES:
        pairs = zip(records[line.topic], times[line.topic], strict=True)
        kept = [(one, at) for (_, one), at in pairs if isinstance(one, line.kind)]
        said = Counter(_identity(one) for one, _ in kept)
        found[line.topic] = repeated = len(kept) - len(said)
        burst = _burst(sorted(at for _, at in kept), (commit + SLACK) * 1_000)
        most = faults[line.writer] * burst + found[line.source] * _fan(said)
        yield Repeats(line.topic, len(kept), faults[line.writer], repeated, most)


def _identity(one: Any) -> tuple[str, int, str, int]:
    """What two records have in common that say the same: object, version, then what there are several of."""
    return getattr(one, "object_url", one.url), one.version, one.url, getattr(one, "published", 0)


def _burst(times: Sequence[int], span: float) -> int:
    """The most records that came within so many ms."""
    low = most = 0
    for high, at in enumerate(times):
        while at - times[low] > span:
            low += 1
        most = max(most, high - low + 1)
    return most


def _fan(said: Counter[tuple[str, int, str, int]]) -> int:
    """The most that was made of one version of one object."""
    made: dict[tuple[str, int], int] = defaultdict(int)
    for url, version, *_ in said:
        made[url, version] += 1
    return max(made.values(), default=0)
