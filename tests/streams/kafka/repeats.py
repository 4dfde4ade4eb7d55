"""Counts repeated records, and the number of repeats that the faults of a run allow.

A worker that is killed repeats what it had handled since its last commit; so does one that ends itself, takes or gives up
partitions, or loses the broker. The stages behind it repeat their work on repeated records too. The repeats in a topic are
therefore at most
- for each fault of its writer, the largest number of records written within one commit interval; and no more than were written
  from one such interval before the faults until their end, by the timestamps of the records;
- for each repeated record in the writer's input, the number of records made of it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from schemas.records import FetchedObject, FetchRequest, Record, Summary

SLACK = 1.0
"""Seconds that a commit may take on a shared machine: until then it has no effect."""


class Line(NamedTuple):
    """Records counted in one topic, the stage that writes them, and the lines that they are made of."""

    name: str
    topic: str
    writer: str
    sources: tuple[str, ...]
    counted: Callable[[Record], bool]


LINES = (
    Line("fetches", "fetches", "frontier", (), lambda one: isinstance(one, FetchRequest)),
    # These are not answers to requests: objects that the frontier itself ends have no root.
    Line("ends", "objects", "frontier", (), lambda one: isinstance(one, FetchedObject) and one.root is None),
    Line("objects", "objects", "fetch", ("fetches",), lambda one: isinstance(one, FetchedObject) and one.root is not None),
    Line("made", "made", "essence", ("ends", "objects"), lambda one: isinstance(one, Summary)),
    Line("summaries", "summaries", "catalog", ("made",), lambda one: isinstance(one, Summary)),
    Line("broker.main", "broker.main", "register.main", ("summaries",), lambda one: isinstance(one, Summary)),
)
"""The path of an object, in flow order."""


class Fault(NamedTuple):
    """A fault of the workers of a stage, or of one of them, from `began` to `over` (ms since the epoch)."""

    stage: str
    began: int
    over: int


class Repeats(NamedTuple):
    """For one line: records, faults of its writer, repeated records, and the maximum of those allowed."""

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
    """Count the repeats of each line. `times`: ms since the epoch, by topic; `commit`: seconds between two commits."""
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
    """Equal for a record and its repeat: object and version, then the URL and publish counter among records of one object."""
    return getattr(one, "object_url", one.url), one.version, one.url, getattr(one, "published", 0)


def _burst(times: Sequence[int], span: float) -> int:
    """The largest number of these sorted times within a span of ms."""
    return max((high - bisect_left(times, at - span) for high, at in enumerate(times, 1)), default=0)


def _within(times: Sequence[int], low: float, high: float) -> int:
    """The number of these sorted times from low to high."""
    return bisect_right(times, high) - bisect_left(times, low)
