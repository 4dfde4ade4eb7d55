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
    "stages": {"essence": {"maxReplicas": 4, "children": 3}, "fetch": {"maxReplicas": 100}, "feed": {"enabled": True}},
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
OPERATOR: dict[str, Any] = {
    "kafka": {
        "brokers": ["kafka.example.org:9093"],
        "security": {
            "protocol": "SASL_SSL",
            "user": "harvest",
            "passwordSecret": "user",
            "caSecret": "cluster-ca",
            "certificateSecret": "user",
        },
    },
    "index": {"existingSecret": "opensearch"},
    "blobs": {
        "url": "s3://bodies/production",
        "endpoint": "https://s3.example.org:9000",
        "region": "eu",
        "existingSecret": "s3",
        "caSecret": "s3-ca",
        "cache": 5_000_000_000,
        "cacheVolume": "10Gi",
    },
    "serviceAccount": {"name": "gatherer", "annotations": {"example.org/role": "bodies"}},
    "envFrom": [{"secretRef": {"name": "proxies"}}],
    "extraEnv": [{"name": "TZ", "value": "UTC"}],
    "extraVolumes": [{"name": "more", "emptyDir": {}}],
    "extraVolumeMounts": [{"name": "more", "mountPath": "/more"}],
    "stages": {
        "fetch": {
            "extraVolumes": [{"name": "roots", "persistentVolumeClaim": {"claimName": "files", "readOnly": True}}],
            "extraVolumeMounts": [{"name": "roots", "mountPath": "/srv/files", "readOnly": True}],
        }
    },
    "autoscaling": {"enabled": True},
    "networkPolicy": {
        "blobsTo": [{"ipBlock": {"cidr": "198.51.100.0/24"}}],
        "extraEgress": [{"to": [{"ipBlock": {"cidr": "203.0.113.7/32"}}], "ports": [{"protocol": "TCP", "port": 443}]}],
    },
    "monitoring": {"podMonitor": {"enabled": True}, "annotations": True},
    "gateway": {"enabled": True, "existingSecret": "search"},
}
"""Values of an operator with a Kafka, an OpenSearch and an object storage of their own, each with TLS and a login."""
GATEWAY: dict[str, dict[str, Any]] = {"gateway": {"enabled": True, "token": "0123456789abcdef"}}
"""Values that add the gateway with a token of its own, and leave the rest as it comes."""
VALUES: dict[str, Mapping[str, Any]] = {"as it comes": {}, "all": ALL, "least": LEAST, "gateway": GATEWAY, "operator": OPERATOR}


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
        elif m["kind"] == "CronJob":
            yield m["metadata"]["name"], m["spec"]["jobTemplate"]["spec"]["template"]["spec"]
        elif m["kind"] in ("Deployment", "StatefulSet", "Job"):
            yield m["metadata"]["name"], m["spec"]["template"]["spec"]


def environment(container: Manifest) -> dict[str, str | None]:
    """The environment variables of a container; None for a value taken from a secret or a field."""
    return {entry["name"]: entry.get("value") for entry in container.get("env", [])}
