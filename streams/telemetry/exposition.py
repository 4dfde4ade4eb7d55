"""Metrics in Prometheus' text format: the only module that uses Prometheus."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate

from prometheus_client import CollectorRegistry, PlatformCollector, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

from streams.telemetry.health import Health
from streams.telemetry.metrics import STATES, Counter, Gauge, Histogram, Metrics

CONTENT_TYPE = CONTENT_TYPE_LATEST


class _Ours(Collector):
    def __init__(self, metrics: Metrics, health: Health) -> None:
        self._metrics = metrics
        self._health = health

    def collect(self) -> Iterator[Metric]:
        """Yield all declared metrics, and the two states."""
        yield from map(_family, self._metrics)
        for name, verdict in zip(STATES, (self._health.alive(), self._health.ready()), strict=True):
            yield GaugeMetricFamily(name, STATES[name], value=int(verdict.ok))


def _family(instrument: Counter | Gauge | Histogram) -> Metric:
    name, says, labels = instrument.name, instrument.says, instrument.labels
    if isinstance(instrument, Histogram):
        histogram = HistogramMetricFamily(name, says, labels=labels)
        bounds = [*map(str, instrument.bounds), "+Inf"]
        for series, found in instrument.values().items():
            buckets = list(zip(bounds, map(float, accumulate(found.counts)), strict=True))
            histogram.add_metric(series, buckets, found.sum)
        return histogram
    family = (CounterMetricFamily if isinstance(instrument, Counter) else GaugeMetricFamily)(name, says, labels=labels)
    # A metric without labels exists from the start: a missing series cannot be distinguished from 0.
    for series, value in ({(): 0.0} | dict(instrument.values()) if not labels else instrument.values()).items():
        family.add_metric(series, value)
    return family


class Exposition:
    """The metrics of this process as text: our own, and the system's about memory, time and open files."""

    def __init__(self, metrics: Metrics, health: Health) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(_Ours(metrics, health))
        ProcessCollector(registry=self._registry)
        PlatformCollector(registry=self._registry)

    def text(self) -> bytes:
        """Return all metrics as of now."""
        return generate_latest(self._registry)
