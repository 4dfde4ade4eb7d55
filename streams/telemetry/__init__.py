"""Metrics, health and logs of a process; see README.md.

`HealthServer` is imported from its module: it loads Prometheus' client, which most commands do not use.
"""

from __future__ import annotations

from streams.telemetry.health import Check, Health, Progress, Pulse, Verdict
from streams.telemetry.logs import Logs, Written
from streams.telemetry.metrics import Metrics, reason_class
from streams.telemetry.observing import observe

__all__ = ["Check", "Health", "Logs", "Metrics", "Progress", "Pulse", "Verdict", "Written", "observe", "reason_class"]
