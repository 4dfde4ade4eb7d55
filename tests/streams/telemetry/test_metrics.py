"""Metrics: their values, their bounds, and how Prometheus reads them."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from schemas.records import CrawlEvent, Link, Record, Rejected, Role, Validators
from streams.sandbox.values import Crashed, Done, Failed, Flooded, Outcome, OutOfMemory, TimedOut
from streams.telemetry import Health, Metrics, observe, reason_class
from streams.telemetry.exposition import Exposition
from streams.telemetry.metrics import OTHER, STATES, Counter, Histogram
from streams.telemetry.observing import ended


def read(metrics: Metrics, health: Health | None = None) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """Return the samples that a Prometheus reads from the exposition."""
    text = Exposition(metrics, health or Health()).text().decode()
    families = text_string_to_metric_families(text)
    return {(s.name, frozenset(s.labels.items())): s.value for family in families for s in family.samples}


def series(name: str, **labels: str) -> tuple[str, frozenset[tuple[str, str]]]:
    """The key of a series in the result of `read`."""
    return name, frozenset(labels.items())


def test_prometheus_parses_all_metrics() -> None:
    """Prometheus' own parser reads counters, gauges and histograms with their labels."""
    metrics = Metrics()
    metrics.records.add("catalog", "summaries", by=3)
    metrics.lag.set(7, "catalog", "made", "0")
    for seconds in (0.001, 0.3, 99.0):
        metrics.batch.observe(seconds, "catalog")
    found = read(metrics)
    assert found[series("harvest_records_total", stage="catalog", topic="summaries")] == 3
    assert found[series("harvest_lag_records", stage="catalog", topic="made", partition="0")] == 7
    buckets = {
        bound: found[series("harvest_batch_seconds_bucket", stage="catalog", le=bound)] for bound in ("0.005", "0.5", "+Inf")
    }
    assert buckets == {"0.005": 1, "0.5": 2, "+Inf": 3}
    assert found[series("harvest_batch_seconds_sum", stage="catalog")] == pytest.approx(99.301)
    assert found[series("harvest_fetched_bytes_total")] == 0


def test_health_states_are_metrics() -> None:
    """The states of /livez and /readyz are metrics too."""
    health = Health()
    health.ready_when("index", lambda: "not open")
    found = read(Metrics(), health)
    assert [found[series(name)] for name in STATES] == [1, 0]


def test_metric_names_follow_prometheus() -> None:
    """Every metric has the prefix harvest_, counters end in _total, as Prometheus requires, and none is declared twice."""
    names = [metric.name for metric in Metrics()]
    assert len(names) == len(set(names))
    assert all(name.startswith("harvest_") for name in names)
    assert all(metric.name.endswith("_total") == isinstance(metric, Counter) for metric in Metrics())
    assert all(metric.says.endswith(".") for metric in Metrics())


@given(st.lists(st.text(max_size=60), max_size=400))
def test_reason_labels_are_bounded(reasons: list[str]) -> None:
    """Whatever the reasons, labels are one of a limited number of short classes, without URLs or paths."""
    metrics = Metrics()
    for reason in reasons:
        metrics.rejected.add("essence", reason_class(reason))
    values = metrics.rejected.values()
    assert len(values) <= metrics.rejected.most + 1
    assert sum(values.values()) == len(reasons)
    assert all(len(label) <= 40 and not set("/#?&@:.") & set(label) for labels in values for label in labels)


def test_number_of_series_is_bounded() -> None:
    """Labels beyond the limit of a metric are counted together in one more series."""
    counter = Counter("harvest_sample_total", "A sample.", "name", most=3)
    for number in range(10):
        counter.add(f"n{number}")
    counter.add("n0")
    assert counter.values() == {("n0",): 2, ("n1",): 1, ("n2",): 1, (OTHER,): 7}


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("truncated: the directory is missing", "truncated"),
        ("HTTP 503 Service Unavailable", "HTTP 5xx"),
        ("error in essence: ValueError", "error in essence"),
        ("timed out (deadline)", OTHER),
        ("http://example.org/a: refused", "http"),
        ("", OTHER),
        ("a/b", OTHER),
    ],
)
def test_class_of_a_reason(reason: str, expected: str) -> None:
    """The class of a reason is the text before its colon, the class of its HTTP status, or `other`."""
    assert reason_class(reason) == expected


def test_wrong_use_raises_value_error() -> None:
    """A decrease of a counter, or a wrong number of labels, raises ValueError."""
    with pytest.raises(ValueError, match="only rises"):
        Metrics().records.add("a", "b", by=-1)
    with pytest.raises(ValueError, match="2 labels, not 1"):
        Metrics().records.add("a")


def test_threads_lose_no_counts() -> None:
    """Concurrent threads lose no counts."""
    counter, times = Counter("harvest_sample_total", "A sample."), Histogram("harvest_sample_seconds", "A sample.")

    def count() -> None:
        for _ in range(5_000):
            counter.add()
            times.observe(1)

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counter.values() == {(): 20_000}
    assert sum(times.values()[()].counts) == 20_000


@pytest.mark.parametrize(
    ("record", "name", "labels", "value"),
    [
        (CrawlEvent(kind="failed", host="h", time=1), "harvest_fetches_total", {"outcome": "failed"}, 1),
        (
            CrawlEvent(kind="refused", host="h", time=1, links=(Link(url="http://a/"), Link(url="http://b/"))),
            "harvest_fetches_total",
            {"outcome": "refused"},
            2,
        ),
        (
            CrawlEvent(kind="fetched", host="h", time=1, validators=Validators(size=9)),
            "harvest_fetched_bytes_total",
            {},
            9,
        ),
        (
            Rejected(stage="essence", reason="truncated: here", time=1),
            "harvest_rejected_total",
            {"stage": "essence", "reason": "truncated"},
            1,
        ),
        (Role(oid="o", version=1, copy_of="p"), "harvest_dedup_answers_total", {"stage": "essence", "role": "copy"}, 1),
        (Role(oid="o", version=1), "harvest_dedup_answers_total", {"stage": "essence", "role": "canonical"}, 1),
    ],
)
def test_written_records_are_counted(record: Record, name: str, labels: dict[str, str], value: float) -> None:
    """A written record is counted by its content."""
    metrics = Metrics()
    observe(metrics, "essence", "topic", record)
    found = read(metrics)
    assert found[series(name, **labels)] == value
    assert found[series("harvest_records_total", stage="essence", topic="topic")] == 1


@pytest.mark.parametrize(
    ("outcome", "cause"),
    [
        (Crashed(11, 0, "m"), "crashed"),
        (TimedOut("m"), "timed out"),
        (OutOfMemory("m"), "out of memory"),
        (Flooded("m", "frame"), "flooded"),
        (Done(), None),
        (Failed("Traceback", "m"), None),
    ],
)
def test_ended_children_are_counted_by_cause(outcome: Outcome, cause: str | None) -> None:
    """A child that an object ended is counted by its cause; one that continues is not."""
    metrics = Metrics()
    ended(metrics, outcome)
    assert metrics.pool_kills.values() == ({(cause,): 1} if cause else {})
