"""The gateway in the chart: who may ask it, by which names, and what it reaches."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest

from tests.deploy.conftest import Helm, HelmError
from tests.deploy.manifests import GATEWAY, Manifest, environment, of


@pytest.fixture(scope="module")
def own(rendered: dict[str, list[Manifest]]) -> list[Manifest]:
    """The manifests with the gateway, a token of the chart, and all else as it comes."""
    return rendered["gateway"]


def container_of(manifests: list[Manifest]) -> Manifest:
    """The container of the gateway."""
    (container,) = of(manifests, "Deployment")["gateway"]["spec"]["template"]["spec"]["containers"]
    return dict(container)


def with_gateway(**values: Any) -> dict[str, Any]:
    """Values with the gateway of `GATEWAY` and some of its own values."""
    return {"gateway": {**GATEWAY["gateway"], **values}}


def test_gateway_is_off_by_default(plain: list[Manifest]) -> None:
    """The gateway is a decision: without it, nothing in the cluster can read the index through the chart."""
    assert not [m["kind"] for m in plain if m["metadata"]["labels"].get("app.kubernetes.io/component") == "gateway"]
    assert "demo-harvest-gateway" not in of(plain, "NetworkPolicy")


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"gateway": {"enabled": True}}, "gateway.existingSecret, gateway.token or gateway.public=true"),
        ({"gateway": {"enabled": True, "token": "short"}}, "token"),
        (with_gateway(rootPath="search"), "rootPath"),
        (with_gateway(rootPath="/search/"), "rootPath"),
        (with_gateway(hosts=["a,b"]), "hosts"),
        (with_gateway(ingress={"enabled": True}), "gateway.ingress.hosts"),
        (with_gateway() | {"index": {"url": ""}, "stages": {"index": {"enabled": False}}}, "the gateway needs OpenSearch"),
    ],
)
def test_gateway_with_invalid_values_is_rejected(helm: Helm, values: Mapping[str, Any], text: str) -> None:
    """A gateway that would not start, or that would be open by oversight, is rejected before anything is rendered."""
    with pytest.raises(HelmError, match=re.escape(text)):
        helm.template(values)


def test_gateway_listens_for_other_pods(own: list[Manifest], settings_of: Any) -> None:
    """The gateway listens on all addresses, and accepts the names of its service; it gets no setting of workers."""
    container = container_of(own)
    variables = environment(container)
    found = settings_of({name: value for name, value in variables.items() if value is not None})
    assert container["args"] == ["serve"]
    assert (found.serve.host, found.serve.port, found.serve.public, found.serve.root_path) == ("0.0.0.0", 8380, False, "")
    service = "demo-harvest-gateway"
    names = (service, f"{service}.prod", f"{service}.prod.svc", f"{service}.prod.svc.cluster.local")
    assert tuple(found.serve.hosts) == names
    assert found.index.url == "http://opensearch:9200"
    assert not [name for name in variables if name.startswith("HARVEST_WORKER_")]
    assert container["ports"] == [{"name": "http", "containerPort": 8380}]


def test_token_comes_from_a_secret(helm: Helm, own: list[Manifest], full: list[Manifest]) -> None:
    """The token is in a secret, of the chart or an existing one, never in a workload; a changed token restarts the pods."""
    for manifests, secret in ((own, "demo-harvest-gateway"), (full, "search")):
        (token,) = [entry for entry in container_of(manifests)["env"] if entry["name"] == "HARVEST_SERVE_TOKEN"]
        assert token["valueFrom"] == {"secretKeyRef": {"name": secret, "key": "token"}}
        assert GATEWAY["gateway"]["token"] not in str(of(manifests, "Deployment"))
    assert of(own, "Secret")["gateway"]["stringData"] == {"token": GATEWAY["gateway"]["token"]}
    assert not of(full, "Secret")
    other = helm.template(with_gateway(token="fedcba9876543210"))
    notes = [of(each, "Deployment")["gateway"]["spec"]["template"]["metadata"]["annotations"] for each in (own, other)]
    assert notes[0]["checksum/token"] != notes[1]["checksum/token"]


def test_public_gateway_has_no_token(helm: Helm, settings_of: Any) -> None:
    """A gateway that is public by decision has neither token nor secret, and the notes say that everybody reads the index."""
    values = {"gateway": {"enabled": True, "public": True}}
    made = helm.template(values)
    variables = environment(container_of(made))
    assert settings_of(variables).serve.public is True
    assert "HARVEST_SERVE_TOKEN" not in variables
    assert not of(made, "Secret")
    assert "everybody who reaches the gateway" in helm.notes(values)


def test_gateway_has_no_volume_but_a_bounded_tmp(own: list[Manifest]) -> None:
    """The gateway keeps nothing: all that it can write to is a bounded /tmp, and its memory is limited."""
    spec = of(own, "Deployment")["gateway"]["spec"]["template"]["spec"]
    assert spec["volumes"] == [{"name": "tmp", "emptyDir": {"sizeLimit": "512Mi"}}]
    assert container_of(own)["volumeMounts"] == [{"name": "tmp", "mountPath": "/tmp"}]
    assert container_of(own)["resources"]["limits"]["memory"] == "1Gi"


def test_probes_of_the_gateway_are_on_its_port(own: list[Manifest]) -> None:
    """A gateway without its index gets no requests but goes on; only one that does not answer is started anew."""
    container = container_of(own)
    probes = {name: container[f"{name}Probe"]["httpGet"] for name in ("startup", "liveness", "readiness")}
    assert {name: probe["path"] for name, probe in probes.items()} == {
        "startup": "/livez",
        "liveness": "/livez",
        "readiness": "/readyz",
    }
    assert {probe["port"] for probe in probes.values()} == {"http"}


def test_service_sends_requests_to_ready_pods_only(own: list[Manifest], full: list[Manifest]) -> None:
    """The service balances over pods that are ready, and is no address outside of the cluster unless that is asked for."""
    spec = of(own, "Service")["gateway"]["spec"]
    assert (spec["type"], spec["ports"]) == ("ClusterIP", [{"name": "http", "port": 8380, "targetPort": "http"}])
    assert "publishNotReadyAddresses" not in spec
    assert of(full, "Service")["gateway"]["spec"]["ports"][0]["port"] == 80


def test_ingress_and_guard_have_the_same_names(own: list[Manifest], full: list[Manifest], settings_of: Any) -> None:
    """The ingress is off by default; with it, its names and its path are those that the gateway accepts."""
    assert not of(own, "Ingress")
    spec = of(full, "Ingress")["gateway"]["spec"]
    values = {name: value for name, value in environment(container_of(full)).items() if value is not None}
    found = settings_of(values).serve
    (rule,) = spec["rules"]
    (path,) = rule["http"]["paths"]
    assert {rule["host"], "harvest.internal"} <= set(found.hosts)
    assert (path["path"], path["pathType"], found.root_path) == ("/search", "Prefix", "/search")
    assert path["backend"]["service"] == {"name": "demo-harvest-gateway", "port": {"name": "http"}}
    assert spec["tls"] == [{"secretName": "search-tls", "hosts": ["search.example.org"]}]
    assert spec["ingressClassName"] == "nginx"


def test_autoscaling_of_the_gateway_begins_at_its_replicas(own: list[Manifest], full: list[Manifest]) -> None:
    """Autoscaling is off by default; if on, it begins at the replicas, and the deployment names no number of its own."""
    assert not of(own, "HorizontalPodAutoscaler")
    assert of(own, "Deployment")["gateway"]["spec"]["replicas"] == 1
    spec = of(full, "HorizontalPodAutoscaler")["gateway"]["spec"]
    assert (spec["minReplicas"], spec["maxReplicas"]) == (2, 4)
    assert spec["scaleTargetRef"] == {"apiVersion": "apps/v1", "kind": "Deployment", "name": "demo-harvest-gateway"}


def test_policy_lets_requests_in_and_reaches_opensearch_only(helm: Helm, own: list[Manifest]) -> None:
    """The gateway's policy opens its own port only, to who may be named, and adds OpenSearch to what every pod reaches."""
    spec = of(own, "NetworkPolicy")["demo-harvest-gateway"]["spec"]
    assert spec["podSelector"]["matchLabels"]["app.kubernetes.io/component"] == "gateway"
    assert spec["egress"] == [{"to": [{"namespaceSelector": {}}], "ports": [{"protocol": "TCP", "port": 9200}]}]
    (into,) = spec["ingress"]
    assert into["ports"] == [{"protocol": "TCP", "port": 8380}]
    few = [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": name}}} for name in ("ingress", "monitoring")]
    made = helm.template({**GATEWAY, "networkPolicy": {"gatewayFrom": few[:1], "metricsFrom": few[1:]}})
    (into,) = of(made, "NetworkPolicy")["demo-harvest-gateway"]["spec"]["ingress"]
    assert into["from"][1:] == few
    assert list(into["from"][0]) == ["podSelector"]


def test_helm_test_and_notes_name_the_gateway(own: list[Manifest], full: list[Manifest], helm: Helm) -> None:
    """`helm test` asks whether the gateway is ready, and the notes say where the page is."""
    for manifests, port in ((own, 8380), (full, 80)):
        (pod,) = of(manifests, "Pod").values()
        assert f"http://demo-harvest-gateway:{port}/readyz" in pod["spec"]["containers"][1]["args"]
    assert "gateway.enabled=true" in helm.notes()
    assert "port-forward service/demo-harvest-gateway 8380:8380" in helm.notes(GATEWAY)
    ingress = {"enabled": True, "hosts": ["search.example.org"], "tlsSecret": "tls"}
    assert "https://search.example.org/search/" in helm.notes(with_gateway(ingress=ingress, rootPath="/search"))
