"""The metrics of a process: all of them are declared here, and counted by stages and runners, which do not know Prometheus.

Strategy: a metric is a small table from the values of its labels to a number. The runner of a stage gets a `Metrics` and adds to
its fields; only `exposition.py` writes them in Prometheus' format.

Laws:
- A label is a stage, a topic, a partition or an outcome: never a URL, an OID or a path. A text from outside passes through
  `reason_class` first.
- A metric has at most `most` series: values beyond that are counted under `other`, so that a crawled server cannot fill the memory
  of the monitoring system.
- Names and units follow Prometheus: seconds, bytes, `_total` for counters.
- Any thread may count.
"""

from __future__ import annotations

import re
import threading
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, Literal, NamedTuple

OTHER = "other"
"""Label value that replaces values beyond the maximum number of series."""
CLASS = re.compile(r"[A-Za-z][A-Za-z0-9 _-]{0,39}")
STATUS = re.compile(r"(?i)^http ([1-5])\d\d\b")
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""Upper bounds of the buckets of times."""

Labels = tuple[str, ...]


def reason_class(reason: str) -> str:
    """Return the class of a reason: the part before its first colon, the class of an HTTP status, or `other`.

    Reasons are our own, but the part after the colon may be quoted from input.
    """
    if status := STATUS.match(reason):
        return f"HTTP {status[1]}xx"
    head = reason.partition(":")[0].strip()
    return head if CLASS.fullmatch(head) else OTHER


class Instrument:
    """Base of all metrics: name, description, names of labels, maximum number of series."""

    kind: ClassVar[Literal["counter", "gauge", "histogram"]]

    def __init__(self, name: str, says: str, *labels: str, most: int = 500) -> None:
        self.name = name
        self.says = says
        self.labels = labels
        self.most = most
        self._lock = threading.Lock()

    def _bounded(self, labels: Labels, there: Mapping[Labels, object]) -> Labels:
        """Return the series of these values. Raises ValueError if their number is not that of the labels."""
        if len(labels) != len(self.labels):
            raise ValueError(f"{self.name}: {len(self.labels)} labels, not {len(labels)}")
        if labels in there or not labels or len(there) < self.most:
            return labels
        return (OTHER,) * len(labels)


class Counter(Instrument):
    """A value that only rises."""

    kind = "counter"

    def __init__(self, name: str, says: str, *labels: str, most: int = 500) -> None:
        super().__init__(name, says, *labels, most=most)
        self._values: dict[Labels, float] = {}

    def add(self, *labels: str, by: float = 1) -> None:
        """Add to a series. Raises ValueError for a value below 0."""
        if by < 0:
            raise ValueError(f"{self.name}: a counter only rises")
        with self._lock:
            series = self._bounded(labels, self._values)
            self._values[series] = self._values.get(series, 0) + by

    def values(self) -> Mapping[Labels, float]:
        """Return the current series."""
        with self._lock:
            return dict(self._values)


class Gauge(Instrument):
    """A value that rises and falls."""

    kind = "gauge"

    def __init__(self, name: str, says: str, *labels: str, most: int = 500) -> None:
        super().__init__(name, says, *labels, most=most)
        self._values: dict[Labels, float] = {}

    def set(self, value: float, *labels: str) -> None:
        """Set the value of a series."""
        with self._lock:
            self._values[self._bounded(labels, self._values)] = value

    def forget(self, *labels: str) -> None:
        """Remove a series: the worker that has taken over the partition reports it."""
        with self._lock:
            self._values.pop(labels, None)

    def values(self) -> Mapping[Labels, float]:
        """Return the current series."""
        with self._lock:
            return dict(self._values)


class Distribution(NamedTuple):
    """A series of a histogram: counts of values up to each bound, those above all bounds last; and the sum of the values."""

    counts: Sequence[int]
    sum: float


class Histogram(Instrument):
    """Distribution of durations."""

    kind = "histogram"

    def __init__(self, name: str, says: str, *labels: str, bounds: Sequence[float] = SECONDS, most: int = 100) -> None:
        super().__init__(name, says, *labels, most=most)
        self.bounds = tuple(bounds)
        self._counts: dict[Labels, list[int]] = {}
        self._sums: dict[Labels, float] = {}

    def observe(self, value: float, *labels: str) -> None:
        """Count one duration."""
        with self._lock:
            series = self._bounded(labels, self._counts)
            counts = self._counts.setdefault(series, [0] * (len(self.bounds) + 1))
            counts[bisect_left(self.bounds, value)] += 1
            self._sums[series] = self._sums.get(series, 0.0) + value

    def values(self) -> Mapping[Labels, Distribution]:
        """Return the current series."""
        with self._lock:
            return {series: Distribution(tuple(counts), self._sums[series]) for series, counts in self._counts.items()}


class Metrics:
    """All metrics of a process. Made once, and passed to everything that counts."""

    def __init__(self) -> None:
        self.records = Counter("harvest_records_total", "Records written, by stage and topic.", "stage", "topic")
        self.rejected = Counter(
            "harvest_rejected_total", "Dead letters written, by stage and class of reason.", "stage", "reason", most=200
        )
        self.fetches = Counter(
            "harvest_fetches_total",
            "What became of requests: fetched, unchanged, gone, failed, refused, deferred.",
            "outcome",
            most=20,
        )
        self.fetched_bytes = Counter("harvest_fetched_bytes_total", "Bytes of the bodies that were fetched.")
        self.pool_kills = Counter(
            "harvest_pool_kills_total",
            "Sandboxed children that died or were killed over an object: crashed, timed out, out of memory, flooded.",
            "cause",
            most=20,
        )
        self.dedup = Counter("harvest_dedup_answers_total", "Answers of dedup: canonical, or copy.", "stage", "role", most=200)
        self.index_items = Counter(
            "harvest_index_items_total",
            "Changes handed to an index, by outcome: applied (or known better), refused, retried (all of a batch that failed).",
            "broker",
            "outcome",
            most=200,
        )
        self.lag = Gauge(
            "harvest_lag_records",
            "Records of an input that a stage has not finished, by partition.",
            *("stage", "topic", "partition"),
            most=20_000,
        )
        self.event_age = Gauge(
            "harvest_event_age_seconds", "Age of the oldest record that a stage has not finished; 0: none.", "stage", "topic"
        )
        self.retention = Gauge(
            "harvest_retention_seconds",
            "Age at which Kafka deletes records of an input, read or not (setting `retention`).",
            *("stage", "topic"),
        )
        self.volume = Gauge("harvest_volume_bytes", "Size of the volume of a folder: data, blobs.", "folder", most=10)
        self.volume_free = Gauge(
            "harvest_volume_free_bytes", "Free space on the volume of a folder that Harvest may use.", "folder", most=10
        )
        self.batch = Histogram("harvest_batch_seconds", "How long a batch, or a turn of the embedded runner, took.", "stage")

    def __iter__(self) -> Iterator[Counter | Gauge | Histogram]:
        yield from (each for each in vars(self).values() if isinstance(each, Counter | Gauge | Histogram))


def table() -> str:
    """Return the metrics as a Markdown table, for the README."""
    rows = [f"| `{m.name}` | {m.kind} | {' '.join(f'`{label}`' for label in m.labels)} | {m.says} |\n" for m in Metrics()]
    rows += [f"| `{name}` | gauge |  | {says} |\n" for name, says in STATES.items()]
    return "| metric | kind | labels | says |\n| --- | --- | --- | --- |\n" + "".join(rows)


STATES = {
    "harvest_alive": "1 where /livez would say so, else 0.",
    "harvest_ready": "1 where /readyz would say so, else 0.",
}
"""Gauges that are read from `Health` when the metrics are collected."""
