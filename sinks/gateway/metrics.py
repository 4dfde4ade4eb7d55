"""Metrics of the gateway in Prometheus' format: requests and their time by route, searches that wait, refusals."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

CONTENT_TYPE = CONTENT_TYPE_LATEST
BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class GatewayMetrics:
    """Counters of one gateway."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        name = "harvest_gateway_"
        self.requests = Counter(f"{name}requests", "Requests answered.", ["route", "status"], registry=self._registry)
        self.seconds = Histogram(
            f"{name}request_seconds", "Seconds until an answer began.", ["route"], buckets=BUCKETS, registry=self._registry
        )
        self.waiting = Gauge(f"{name}searches_waiting", "Searches that wait for their turn.", registry=self._registry)
        self.refused = Counter(f"{name}refused", "Requests refused before they were answered.", ["reason"], registry=self._registry)

    def text(self) -> bytes:
        """Return the metrics for Prometheus."""
        return generate_latest(self._registry)
