"""Schemas of the custom resources that the chart can create: the fields that it uses, from their operators' documentation.

KEDA's ScaledObject and TriggerAuthentication (keda.sh/v1alpha1); the Prometheus operator's ServiceMonitor, PodMonitor and
PrometheusRule (monitoring.coreos.com/v1).
"""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]
TEXT: Schema = {"type": "string", "minLength": 1}
COUNT: Schema = {"type": "integer", "minimum": 0}
TEXTS: Schema = {"type": "object", "additionalProperties": {"type": "string"}}


def fields(required: dict[str, Schema], **more: Schema) -> Schema:
    """Schema of an object with these fields and no others."""
    return {"type": "object", "properties": required | more, "required": sorted(required), "additionalProperties": False}


def listed(item: Schema) -> Schema:
    """Schema of a list that is not empty."""
    return {"type": "array", "items": item, "minItems": 1}


def resource(version: str, kind: str, spec: Schema) -> Schema:
    """Schema of a custom resource."""
    metadata = fields({"name": TEXT}, labels=TEXTS, annotations=TEXTS, namespace=TEXT)
    return fields({"apiVersion": {"const": version}, "kind": {"const": kind}, "metadata": metadata, "spec": spec})


TRIGGER = fields(
    {
        "type": {"const": "kafka"},
        "metadata": fields(
            {
                "bootstrapServers": TEXT,
                "consumerGroup": TEXT,
                "topic": TEXT,
                "lagThreshold": {"type": "string", "pattern": r"^[1-9]\d*$"},
            },
            offsetResetPolicy={"enum": ["earliest", "latest"]},
            allowIdleConsumers={"enum": ["true", "false"]},
            sasl={"enum": ["none", "plaintext", "scram_sha256", "scram_sha512"]},
            tls={"enum": ["enable", "disable"]},
        ),
    },
    authenticationRef=fields({"name": TEXT}),
)
PARAMETER: Schema = {"enum": ["username", "password", "ca", "cert", "key"]}
"""Parameters of KEDA's Kafka scaler that an authentication may give."""
ENDPOINT = fields({"port": TEXT}, path=TEXT, interval=TEXT)
RULE = fields({"alert": TEXT, "expr": TEXT, "labels": TEXTS, "annotations": TEXTS}, **{"for": TEXT})
CUSTOM = {
    ("keda.sh/v1alpha1", "ScaledObject"): resource(
        "keda.sh/v1alpha1",
        "ScaledObject",
        fields(
            {"scaleTargetRef": fields({"name": TEXT}, apiVersion=TEXT, kind=TEXT), "triggers": listed(TRIGGER)},
            pollingInterval=COUNT,
            cooldownPeriod=COUNT,
            minReplicaCount=COUNT,
            maxReplicaCount=COUNT,
        ),
    ),
    ("keda.sh/v1alpha1", "TriggerAuthentication"): resource(
        "keda.sh/v1alpha1",
        "TriggerAuthentication",
        fields(
            {"secretTargetRef": {"type": "array", "items": fields({"parameter": PARAMETER, "name": TEXT, "key": TEXT})}},
            env=listed(fields({"parameter": PARAMETER, "name": TEXT}, containerName=TEXT)),
        ),
    ),
    ("monitoring.coreos.com/v1", "PodMonitor"): resource(
        "monitoring.coreos.com/v1",
        "PodMonitor",
        fields({"selector": fields({"matchLabels": TEXTS}), "podMetricsEndpoints": listed(ENDPOINT)}, jobLabel=TEXT),
    ),
    ("monitoring.coreos.com/v1", "ServiceMonitor"): resource(
        "monitoring.coreos.com/v1",
        "ServiceMonitor",
        fields(
            {"selector": fields({"matchLabels": TEXTS}), "endpoints": listed(ENDPOINT)},
            jobLabel=TEXT,
        ),
    ),
    ("monitoring.coreos.com/v1", "PrometheusRule"): resource(
        "monitoring.coreos.com/v1", "PrometheusRule", fields({"groups": listed(fields({"name": TEXT, "rules": listed(RULE)}))})
    ),
}
"""Schemas by apiVersion and kind."""
