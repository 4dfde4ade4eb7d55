"""How often records were said again, and how often they may have been.

A worker that is killed has done again what it had handled since its last commit; so has one that ends itself, takes or gives up
partitions, or loses the broker. What it says again, those behind it say again too. So of a topic there are at most, for each fault
of its writer, the records that came there within one commit interval before it and until it was over, by the times that they
have; and for each record that was repeated in the writer's input, as many as were made of that one.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
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


class Fault(NamedTuple):
    """What befell the workers of a stage, or one of them, from when until when (ms since the epoch)."""

    stage: str
    began: int
    over: int


class Repeats(NamedTuple):
    """Of one topic: records, faults of its writer, records said again, and how many of them there may be."""

    topic: str
    records: int
    faults: int
    repeated: int
    most: int


Identity = tuple[str, int, str, int]


def repeats(
    records: Mapping[str, Sequence[tuple[bytes, Record]]],
    times: Mapping[str, Sequence[int]],
    faults: Sequence[Fault],
    commit: float,
) -> Iterator[Repeats]:
    """What was said again in each topic. `commit`: seconds between two commits."""
    again: dict[str, Counter[Identity]] = {"": Counter()}
    for line in LINES:
        pairs = zip(records[line.topic], times[line.topic], strict=True)
        kept = [(one, at) for (_, one), at in pairs if isinstance(one, line.kind)]
        said = Counter(_identity(one) for one, _ in kept)
        again[line.topic] = said - Counter(set(said))
        came, own = sorted(at for _, at in kept), [fault for fault in faults if fault.stage == line.writer]
        direct = sum(_within(came, fault.began - (commit + SLACK) * 1_000, fault.over) for fault in own)
        made = Counter(identity[:2] for identity in said)
        carried = sum(count * made[identity[:2]] for identity, count in again[line.source].items())
        yield Repeats(line.topic, len(kept), len(own), again[line.topic].total(), direct + carried)


def _identity(one: Any) -> Identity:
    """What two records have in common that say the same: object, version, then what there are several of."""
    return getattr(one, "object_url", one.url), one.version, one.url, getattr(one, "published", 0)


def _within(times: Sequence[int], low: float, high: float) -> int:
    """How many of these times, which are in order, are from low to high."""
    return bisect_right(times, high) - bisect_left(times, low)
