"""The sets of values that the chart is rendered with, and helpers that read manifests."""

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
    "gateway": {
        "enabled": True,
        "replicas": 2,
        "existingSecret": "search",
        "hosts": ["harvest.internal"],
        "rootPath": "/search",
        "service": {"port": 80, "annotations": {"example.org/a": "b"}},
        "ingress": {
            "enabled": True,
            "className": "nginx",
            "annotations": {"example.org/c": "d"},
            "hosts": ["search.example.org"],
            "tlsSecret": "search-tls",
        },
        "autoscaling": {"enabled": True},
    },
}
"""Values that enable every option."""
LEAST = {
    "stages": {name: {"enabled": False} for name in ("fetch", "essence", "index")},
    "podDisruptionBudget": {"enabled": False},
    "networkPolicy": {"enabled": False},
    "topics": {"apply": False},
    "blobs": {"existingClaim": "bodies"},
    "index": {"url": ""},
}
"""Values that disable every option."""
GATEWAY: dict[str, dict[str, Any]] = {"gateway": {"enabled": True, "token": "0123456789abcdef"}}
"""Values that add the gateway with a token of its own, and leave the rest as it comes."""
VALUES: dict[str, Mapping[str, Any]] = {"as it comes": {}, "all": ALL, "least": LEAST, "gateway": GATEWAY}


def of(manifests: list[Manifest], *kinds: str) -> dict[str, Manifest]:
    """The manifests of some kinds, by their component label, or by name where there is none."""
    found = [m for m in manifests if m["kind"] in kinds]
    return {m["metadata"]["labels"].get("app.kubernetes.io/component", m["metadata"]["name"]): m for m in found}


def stages_of(manifests: list[Manifest]) -> dict[str, Manifest]:
    """The workloads of stages, by component: all but the gateway."""
    return {name: workload for name, workload in of(manifests, "StatefulSet", "Deployment").items() if name != "gateway"}


def pods(manifests: list[Manifest]) -> Iterator[tuple[str, Manifest]]:
    """The name and pod specification of every pod and every workload."""
    for m in manifests:
        if m["kind"] == "Pod":
            yield m["metadata"]["name"], m["spec"]
        elif m["kind"] in ("Deployment", "StatefulSet", "Job"):
            yield m["metadata"]["name"], m["spec"]["template"]["spec"]


def environment(container: Manifest) -> dict[str, str | None]:
    """The environment variables of a container; None for a value taken from a secret or a field."""
    return {entry["name"]: entry.get("value") for entry in container.get("env", [])}
