"""How often records were said again, and how often they may have been.

A worker that is killed has done again what it had handled since its last commit; so has one that ends itself, takes or gives up
partitions, or loses the broker. What it says again, those behind it say again too. So of a topic there are at most
- for each fault of its writer as many as came there within one commit interval, where most did; and no more than came there from
  one such interval before the faults until they were over, by the times that records have;
- for each record that was repeated in the writer's input, as many as were made of that one.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from schemas.records import FetchedObject, FetchRequest, Record, Summary

SLACK = 1.0
"""Seconds that a commit takes on a machine that others use too: until then it counts for nothing."""


class Line(NamedTuple):
    """What is counted in a topic, who writes it, and the lines that he makes it of."""

    name: str
    topic: str
    writer: str
    sources: tuple[str, ...]
    counted: Callable[[Record], bool]


LINES = (
    Line("fetches", "fetches", "frontier", (), lambda one: isinstance(one, FetchRequest)),
    # The frontier answers no request: what it ends has no root.
    Line("ends", "objects", "frontier", (), lambda one: isinstance(one, FetchedObject) and one.root is None),
    Line("objects", "objects", "fetch", ("fetches",), lambda one: isinstance(one, FetchedObject) and one.root is not None),
    Line("made", "made", "essence", ("ends", "objects"), lambda one: isinstance(one, Summary)),
    Line("summaries", "summaries", "catalog", ("made",), lambda one: isinstance(one, Summary)),
    Line("broker.main", "broker.main", "register.main", ("summaries",), lambda one: isinstance(one, Summary)),
)
"""The way of an object; in flow order."""


class Fault(NamedTuple):
    """What befell the workers of a stage, or one of them, from when until when (ms since the epoch)."""

    stage: str
    began: int
    over: int


class Repeats(NamedTuple):
    """Of one line: records, faults of its writer, records said again, and how many of them there may be."""

    name: str
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
    again: dict[str, Counter[Identity]] = {}
    span = (commit + SLACK) * 1_000
    for line in LINES:
        pairs = zip(records[line.topic], times[line.topic], strict=True)
        kept = [(one, at) for (_, one), at in pairs if line.counted(one)]
        said = Counter(_identity(one) for one, _ in kept)
        again[line.name] = said - Counter(set(said))
        came, own = sorted(at for _, at in kept), [fault for fault in faults if fault.stage == line.writer]
        near = sum(_within(came, fault.began - span, fault.over) for fault in own)
        made = Counter(identity[:2] for identity in said)
        carried = sum(count * made[identity[:2]] for source in line.sources for identity, count in again[source].items())
        most = min(near, len(own) * _burst(came, span)) + carried
        yield Repeats(line.name, len(kept), len(own), again[line.name].total(), most)


def _identity(one: Any) -> Identity:
    """What two records have in common that say the same: object, version, then what there are several of."""
    return getattr(one, "object_url", one.url), one.version, one.url, getattr(one, "published", 0)


def _burst(times: Sequence[int], span: float) -> int:
    """The most of these times, which are in order, within so many ms."""
    return max((high - bisect_left(times, at - span) for high, at in enumerate(times, 1)), default=0)


def _within(times: Sequence[int], low: float, high: float) -> int:
    """How many of these times, which are in order, are from low to high."""
    return bisect_right(times, high) - bisect_left(times, low)
