"""The dashboard and the alerts: they ask for metrics that there are."""

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


@pytest.fixture
def dashboard(root: Path) -> dict[str, Any]:
    """The dashboard."""
    return dict(json.loads((root / "helm" / "harvest" / "files" / "dashboard.json").read_text("utf-8")))


@pytest.fixture
def rules(root: Path, helm: Helm) -> list[dict[str, Any]]:
    """The alerts."""
    return [rule for group in helm.yaml(root / "helm" / "harvest" / "files" / "alerts.yaml")["groups"] for rule in group["rules"]]


@pytest.fixture
def there() -> Mapping[str, frozenset[str]]:
    """The names of all series, with their labels."""
    found: dict[str, frozenset[str]] = dict.fromkeys(STATES, frozenset())
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
    """The metrics of an expression, with the labels that it filters them by."""
    found: dict[str, set[str]] = {}
    for name, filters in re.findall(r"\b((?:harvest|process|python)_\w+)(?:\{([^}]*)\})?", expression):
        found.setdefault(name, set()).update(re.findall(r"(\w+)\s*[=!]~?", filters))
    return found


def grouped(expression: str) -> set[str]:
    """The labels that an expression groups by."""
    return {label.strip() for group in re.findall(r"\bby \(([^)]*)\)", expression) for label in group.split(",")}


def check(expression: str, there: Mapping[str, frozenset[str]]) -> None:
    """Hold an expression to the metrics that there are, and to their labels."""
    metrics = asked(expression)
    assert metrics, expression
    assert set(metrics) <= set(there), expression
    given = frozenset({"instance", "job"})
    for name, labels in metrics.items():
        assert labels <= there[name] | given, expression
        assert grouped(expression) <= there[name] | given, expression


def expressions(dashboard: Mapping[str, Any]) -> list[str]:
    """All that the dashboard asks."""
    return [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])]


def test_dashboard_asks_for_what_there_is(dashboard: dict[str, Any], there: Mapping[str, frozenset[str]]) -> None:
    """Every panel asks for metrics that are declared, by labels that they have."""
    assert expressions(dashboard)
    for expression in expressions(dashboard):
        check(expression, there)
    variables = [v["query"]["query"] for v in dashboard["templating"]["list"] if v["type"] == "query"]
    assert variables == ["label_values(harvest_lag_records, stage)"]


def test_dashboard_shows_all(dashboard: dict[str, Any]) -> None:
    """Every metric that is declared is on the dashboard: one that nobody looks at need not be counted."""
    shown = {name.removesuffix("_bucket") for expression in expressions(dashboard) for name in asked(expression)}
    assert {metric.name for metric in Metrics()} | set(STATES) <= shown


def test_dashboard_is_whole(dashboard: dict[str, Any]) -> None:
    """Panels have ids of their own and do not lie on each other; each has a title, and asks the source that is chosen."""
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


def test_alerts_ask_for_what_there_is(rules: list[dict[str, Any]], there: Mapping[str, frozenset[str]]) -> None:
    """Every alert asks for metrics that are declared, and says what is wrong by labels that its expression keeps."""
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
def test_a_mistake_is_seen(expression: str, there: Mapping[str, frozenset[str]]) -> None:
    """A metric that is not, a label that it has not, and a group by one, are found: the check checks."""
    with pytest.raises(AssertionError):
        check(expression, there)
