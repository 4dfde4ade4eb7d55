"""The dashboard and the alerts query only metrics that exist."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, PlatformCollector, ProcessCollector

from streams.telemetry.metrics import STATES, Histogram, Metrics
from tests.deploy.conftest import Helm

GATEWAY: Mapping[str, frozenset[str]] = {
    "harvest_gateway_requests_total": frozenset({"route", "status"}),
    "harvest_gateway_request_seconds_bucket": frozenset({"route", "le"}),
    "harvest_gateway_searches_waiting": frozenset(),
    "harvest_gateway_refused_total": frozenset({"reason"}),
}
"""The metrics of the gateway, which is no stage and has its own, with the labels that may be used here."""


@pytest.fixture
def dashboard(root: Path) -> dict[str, Any]:
    """The dashboard of the chart."""
    return dict(json.loads((root / "helm" / "harvest" / "files" / "dashboard.json").read_text("utf-8")))


@pytest.fixture
def rules(root: Path, helm: Helm) -> list[dict[str, Any]]:
    """The alert rules of the chart."""
    return [rule for group in helm.yaml(root / "helm" / "harvest" / "files" / "alerts.yaml")["groups"] for rule in group["rules"]]


@pytest.fixture
def there() -> Mapping[str, frozenset[str]]:
    """The names of all exported series, with their labels."""
    found: dict[str, frozenset[str]] = {**dict.fromkeys(STATES, frozenset()), **GATEWAY}
    for metric in Metrics():
        labels = frozenset(metric.labels)
        if isinstance(metric, Histogram):
            found |= {f"{metric.name}_bucket": labels | {"le"}, f"{metric.name}_sum": labels, f"{metric.name}_count": labels}
        else:
            found[metric.name] = labels
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    return found | {s.name: frozenset() for family in registry.collect() for s in family.samples}


def asked(expression: str) -> dict[str, set[str]]:
    """The metrics of an expression, with the labels that it filters by."""
    found: dict[str, set[str]] = {}
    for name, filters in re.findall(r"\b((?:harvest|process|python)_\w+)(?:\{([^}]*)\})?", expression):
        found.setdefault(name, set()).update(re.findall(r"(\w+)\s*[=!]~?", filters))
    return found


def grouped(expression: str) -> set[str]:
    """The labels that an expression groups by."""
    return {label.strip() for group in re.findall(r"\bby \(([^)]*)\)", expression) for label in group.split(",")}


def check(expression: str, there: Mapping[str, frozenset[str]]) -> None:
    """Assert that all metrics of an expression exist and have the labels that it uses."""
    metrics = asked(expression)
    assert metrics, expression
    assert set(metrics) <= set(there), expression
    given = frozenset({"instance", "job"})
    for name, labels in metrics.items():
        assert labels <= there[name] | given, expression
        assert grouped(expression) <= there[name] | given, expression


def expressions(dashboard: Mapping[str, Any]) -> list[str]:
    """All expressions of the dashboard."""
    return [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])]


def test_dashboard_queries_only_declared_metrics(dashboard: dict[str, Any], there: Mapping[str, frozenset[str]]) -> None:
    """Every panel queries declared metrics, by labels that they have."""
    assert expressions(dashboard)
    for expression in expressions(dashboard):
        check(expression, there)
    variables = [v["query"]["query"] for v in dashboard["templating"]["list"] if v["type"] == "query"]
    assert variables == ["label_values(harvest_lag_records, stage)"]


def test_dashboard_shows_every_declared_metric(dashboard: dict[str, Any]) -> None:
    """Every declared metric is on the dashboard: a metric that no panel shows need not be collected."""
    shown = {name.removesuffix("_bucket") for expression in expressions(dashboard) for name in asked(expression)}
    assert {metric.name for metric in Metrics()} | set(STATES) | {name.removesuffix("_bucket") for name in GATEWAY} <= shown


def test_dashboard_panels_are_unique_and_do_not_overlap(dashboard: dict[str, Any]) -> None:
    """Panels have unique ids and do not overlap; each has a title and queries the selected data source."""
    ids = [panel["id"] for panel in dashboard["panels"]]
    assert len(ids) == len(set(ids))
    taken: set[tuple[int, int]] = set()
    for panel in dashboard["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken, panel["title"]
        assert at["x"] + at["w"] <= 24
        taken |= cells
        assert panel["title"]
        assert panel["type"] == "row" or panel["datasource"]["uid"] == "${datasource}"


def test_alerts_query_only_declared_metrics(rules: list[dict[str, Any]], there: Mapping[str, frozenset[str]]) -> None:
    """Every alert queries declared metrics, and its summary uses labels that its expression keeps."""
    assert len({rule["alert"] for rule in rules}) == len(rules) > 0
    for rule in rules:
        check(rule["expr"], there)
        assert rule["labels"]["severity"] in ("warning", "critical")
        kept = grouped(rule["expr"]) or {"instance"}
        assert set(re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"])) <= kept, rule["alert"]
        assert rule["annotations"]["description"]


@pytest.mark.parametrize(
    "expression", ["rate(harvest_nothing_total[5m])", 'harvest_alive{stage="x"}', "sum by (url) (harvest_lag_records)"]
)
def test_wrong_metric_or_label_is_found(expression: str, there: Mapping[str, frozenset[str]]) -> None:
    """The check itself works: it finds an unknown metric, an unknown label, and grouping by an unknown label."""
    with pytest.raises(AssertionError):
        check(expression, there)
