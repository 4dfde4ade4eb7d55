"""What the chart is rendered with, and how its manifests are looked at."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Manifest = dict[str, Any]
ALL = {
    "autoscaling": {"enabled": True},
    "monitoring": {"serviceMonitor": {"enabled": True}, "prometheusRule": {"enabled": True}, "dashboard": {"enabled": True}},
    "kafka": {"brokers": ["a:9092", "b:9093"], "prefix": "prod.", "registry": "http://registry:8081", "partitions": 6},
    "index": {"existingSecret": "opensearch"},
    "image": {"digest": "sha256:" + "0" * 64},
    "settings": {"HARVEST_FETCH_PAUSE": "2", "HARVEST_LOG_FORMAT": "text"},
    "worker": {"session": 45, "static": True},
    "topics": {"register": True},
    "networkPolicy": {"fetchTo": [{"ipBlock": {"cidr": "10.1.0.0/16"}}]},
    "stages": {"essence": {"maxReplicas": 4, "children": 3}, "fetch": {"maxReplicas": 100}},
    "imagePullSecrets": [{"name": "pull"}],
    "nodeSelector": {"disk": "ssd"},
    "brokers": {"pages": {"query": "type:HTML"}},
}
"""All that may be on, on."""
LEAST = {
    "stages": {name: {"enabled": False} for name in ("fetch", "essence", "index")},
    "podDisruptionBudget": {"enabled": False},
    "networkPolicy": {"enabled": False},
    "topics": {"apply": False},
    "blobs": {"existingClaim": "bodies"},
    "index": {"url": ""},
}
"""All that may be off, off."""
VALUES: dict[str, Mapping[str, Any]] = {"as it comes": {}, "all": ALL, "least": LEAST}


def of(manifests: list[Manifest], *kinds: str) -> dict[str, Manifest]:
    """The manifests of some kinds, by the stage or other part that they are for."""
    found = [m for m in manifests if m["kind"] in kinds]
    return {m["metadata"]["labels"].get("app.kubernetes.io/component", m["metadata"]["name"]): m for m in found}


def pods(manifests: list[Manifest]) -> Iterator[tuple[str, Manifest]]:
    """The specifications of all pods, by name."""
    for m in manifests:
        if m["kind"] == "Pod":
            yield m["metadata"]["name"], m["spec"]
        elif m["kind"] in ("Deployment", "StatefulSet", "Job"):
            yield m["metadata"]["name"], m["spec"]["template"]["spec"]


def environment(container: Manifest) -> dict[str, str | None]:
    """The variables of a container; None: from a secret."""
    return {entry["name"]: entry.get("value") for entry in container.get("env", [])}
