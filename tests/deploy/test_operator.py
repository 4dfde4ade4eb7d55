"""The chart with an operator's own Kafka, OpenSearch and object storage: logins, accounts, volumes, policies, discovery."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest

from tests.deploy.conftest import Helm, HelmError
from tests.deploy.manifests import GATEWAY, OPERATOR, Manifest, environment, of, pods, stages_of

BODIES = ("fetch", "essence")


@pytest.fixture(scope="module")
def own(rendered: dict[str, list[Manifest]]) -> list[Manifest]:
    """The manifests with the values of an operator."""
    return rendered["operator"]


def container_of(workload: Manifest) -> Manifest:
    """The container of a workload."""
    (container,) = workload["spec"]["template"]["spec"]["containers"]
    return dict(container)


def ours(manifests: list[Manifest]) -> list[tuple[str, Manifest, Manifest]]:
    """Pod name, pod specification and container of every container that runs a command of Harvest."""
    return [(name, spec, one) for name, spec in pods(manifests) for one in spec["containers"] if one.get("env")]


def ports_of(policy: Manifest, rule: int = 0) -> list[int] | None:
    """The ports of an egress rule; None: any."""
    ports = policy["spec"]["egress"][rule].get("ports")
    return None if ports is None else [port["port"] for port in ports]


def test_object_storage_replaces_the_shared_volume(own: list[Manifest]) -> None:
    """With blobs.url no volume is shared: fetch and essence have a cache of bodies each, of the size that is given."""
    assert not of(own, "PersistentVolumeClaim")
    for name in BODIES:
        spec = of(own, "Deployment")[name]["spec"]["template"]["spec"]
        assert {"name": "blobs", "emptyDir": {"sizeLimit": "10Gi"}} in spec["volumes"]
        mounts = {mount["mountPath"]: mount["name"] for mount in spec["containers"][0]["volumeMounts"]}
        assert mounts["/var/lib/harvest/blobs"] == "blobs"


def test_login_of_object_storage_comes_from_secrets(own: list[Manifest], settings_of: Any) -> None:
    """What reads and writes bodies gets the storage's settings; the secret key and the CA as files; other pods get neither."""
    asking = set()
    for pod, spec, container in ours(own):
        variables = environment(container)
        if "HARVEST_BLOBS_URL" not in variables:
            assert not [name for name in variables if name.startswith("HARVEST_BLOBS_")], pod
            assert "blobs-login" not in str(spec), pod
            continue
        asking.add(pod)
        entries = {entry["name"]: entry for entry in container["env"]}
        assert entries["HARVEST_BLOBS_ACCESS_KEY"]["valueFrom"] == {"secretKeyRef": {"name": "s3", "key": "access-key"}}
        (volume,) = (one for one in spec["volumes"] if one["name"] == "blobs-login")
        items = [item for source in volume["projected"]["sources"] for item in source["secret"]["items"]]
        assert items == [{"key": "secret-key", "path": "secret-key"}, {"key": "ca.crt", "path": "ca.pem"}]
        files = variables["HARVEST_BLOBS_SECRET_KEY_FILE"], variables["HARVEST_BLOBS_CA"]
        assert files == ("/etc/harvest/blobs/secret-key", "/etc/harvest/blobs/ca.pem")
        assert {"name": "blobs-login", "mountPath": "/etc/harvest/blobs", "readOnly": True} in container["volumeMounts"]
        assert (variables["HARVEST_BLOBS_CACHE"], variables["HARVEST_BLOBS_REGION"]) == ("5000000000", "eu")
    assert asking == {"demo-harvest-fetch", "demo-harvest-essence", "demo-harvest-bodies"}


def test_object_storage_is_trimmed_every_day(own: list[Manifest], plain: list[Manifest], helm: Helm) -> None:
    """A job trims the object storage, unless that is off; there is none for a volume."""
    (job,) = of(own, "CronJob").values()
    assert job["spec"]["concurrencyPolicy"] == "Forbid"
    (container,) = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    assert container["args"] == ["bodies", "trim"]
    assert not of(plain, "CronJob")
    assert not of(helm.template({**OPERATOR, "blobs": {**OPERATOR["blobs"], "trim": {"enabled": False}}}), "CronJob")


def test_pods_have_an_account_of_their_own_without_token(own: list[Manifest], plain: list[Manifest], helm: Helm) -> None:
    """All pods have the chart's account, or a given one; the job before the installation has none that is yet to be created."""
    for manifests, name in ((own, "gatherer"), (plain, "demo-harvest")):
        (account,) = of(manifests, "ServiceAccount").values()
        assert (account["metadata"]["name"], account["automountServiceAccountToken"]) == (name, False)
        accounts = {pod: spec.get("serviceAccountName") for pod, spec in pods(manifests)}
        assert accounts.pop("demo-harvest-topics") is None
        assert set(accounts.values()) == {name}
    assert of(own, "ServiceAccount")["gatherer"]["metadata"]["annotations"] == {"example.org/role": "bodies"}
    given = helm.template({"serviceAccount": {"create": False, "name": "theirs"}})
    assert not of(given, "ServiceAccount")
    assert {spec["serviceAccountName"] for _, spec in pods(given)} == {"theirs"}


def test_variables_and_volumes_can_be_added(own: list[Manifest]) -> None:
    """`envFrom`, `extraEnv` and `extraVolumes` reach all pods; volumes of a stage reach that stage only."""
    for pod, spec, container in ours(own):
        assert container["envFrom"] == [{"secretRef": {"name": "proxies"}}], pod
        assert {"name": "TZ", "value": "UTC"} in container["env"], pod
        assert {"name": "more", "emptyDir": {}} in spec["volumes"], pod
        assert {"name": "more", "mountPath": "/more"} in container["volumeMounts"], pod
        local = {"name": "roots", "mountPath": "/srv/files", "readOnly": True} in container["volumeMounts"]
        assert local == any(volume["name"] == "roots" for volume in spec["volumes"]) == (pod == "demo-harvest-fetch"), pod


def test_keda_logs_in_as_the_workers_do(own: list[Manifest], full: list[Manifest], helm: Helm) -> None:
    """Triggers refer to an authentication of the same secrets and keys as the workers'; without TLS and login there is none."""
    (login,) = of(own, "TriggerAuthentication").values()
    assert login["spec"]["env"] == [{"parameter": "username", "name": "HARVEST_KAFKA_SECURITY_USER"}]
    given = {one["parameter"]: (one["name"], one["key"]) for one in login["spec"]["secretTargetRef"]}
    assert given == {
        "password": ("user", "password"),
        "ca": ("cluster-ca", "ca.crt"),
        "cert": ("user", "user.crt"),
        "key": ("user", "user.key"),
    }
    for name, scaled in of(own, "ScaledObject").items():
        assert environment(container_of(stages_of(own)[name]))["HARVEST_KAFKA_SECURITY_USER"] == "harvest"
        for trigger in scaled["spec"]["triggers"]:
            assert trigger["authenticationRef"] == {"name": login["metadata"]["name"]}
            assert (trigger["metadata"]["sasl"], trigger["metadata"]["tls"]) == ("scram_sha512", "enable")
    assert not of(full, "TriggerAuthentication")
    assert "authenticationRef" not in str(of(full, "ScaledObject"))
    theirs = helm.template({**OPERATOR, "autoscaling": {"enabled": True, "authenticationRef": "theirs"}})
    assert not of(theirs, "TriggerAuthentication")
    assert "'authenticationRef': {'name': 'theirs'}" in str(of(theirs, "ScaledObject"))


@pytest.mark.parametrize(
    ("security", "words"),
    [
        ({"protocol": "SSL"}, ("none", "enable")),
        ({"protocol": "SASL_PLAINTEXT", "mechanism": "PLAIN", "user": "a", "passwordSecret": "p"}, ("plaintext", "disable")),
        ({"protocol": "SASL_SSL", "mechanism": "SCRAM-SHA-256", "user": "a", "passwordSecret": "p"}, ("scram_sha256", "enable")),
    ],
)
def test_protocol_and_mechanism_have_the_words_of_keda(helm: Helm, security: Mapping[str, str], words: tuple[str, str]) -> None:
    """Each protocol and mechanism is passed on in KEDA's own words."""
    made = helm.template({"autoscaling": {"enabled": True}, "kafka": {"security": security}})
    found = [trigger["metadata"] for one in of(made, "ScaledObject").values() for trigger in one["spec"]["triggers"]]
    assert {(one["sasl"], one["tls"]) for one in found} == {words}


def test_policies_follow_external_addresses(own: list[Manifest], plain: list[Manifest], helm: Helm) -> None:
    """Egress has the ports of the addresses that are known; any port of the peers where the URL is in a secret; further rules."""
    policies = of(own, "NetworkPolicy")
    assert ports_of(of(plain, "NetworkPolicy")["demo-harvest-index"]) == [9200]
    for name in ("demo-harvest-index", "demo-harvest-gateway"):
        assert ports_of(policies[name]) is None
    some = helm.template({**GATEWAY, "index": {"existingSecret": "a"}, "networkPolicy": {"indexPorts": [443, 9200]}})
    assert ports_of(of(some, "NetworkPolicy")["demo-harvest-gateway"]) == [443, 9200]
    storage = policies["demo-harvest-blobs"]["spec"]
    assert storage["egress"] == [
        {"to": [{"ipBlock": {"cidr": "198.51.100.0/24"}}], "ports": [{"protocol": "TCP", "port": 9000}]},
    ]
    (expression,) = storage["podSelector"]["matchExpressions"]
    assert set(expression["values"]) == {*BODIES, "bodies"}
    assert policies["demo-harvest"]["spec"]["egress"][-1] == OPERATOR["networkPolicy"]["extraEgress"][0]
    assert "demo-harvest-blobs" not in of(plain, "NetworkPolicy")


def test_prometheus_finds_each_pod(own: list[Manifest], full: list[Manifest], plain: list[Manifest]) -> None:
    """A PodMonitor selects all stages and the gateway by the ports of their containers; annotations name each pod's port."""
    (monitor,) = of(own, "PodMonitor").values()
    ports = set()
    for workload in of(own, "StatefulSet", "Deployment").values():
        metadata = workload["spec"]["template"]["metadata"]
        assert monitor["spec"]["selector"]["matchLabels"].items() <= metadata["labels"].items()
        (port,) = container_of(workload)["ports"]
        ports.add(port["name"])
        assert metadata["annotations"] == {
            "prometheus.io/scrape": "true",
            "prometheus.io/path": "/metrics",
            "prometheus.io/port": str(port["containerPort"]),
        }
    assert {endpoint["port"] for endpoint in monitor["spec"]["podMetricsEndpoints"]} == ports
    assert not of(full, "PodMonitor")
    assert "prometheus.io" not in str(plain)


def test_gateway_believes_no_proxy_by_default(rendered: dict[str, list[Manifest]], settings_of: Any) -> None:
    """X-Forwarded-For is believed from nobody, unless gateway.proxies names the proxies."""
    variables = environment(container_of(of(rendered["gateway"], "Deployment")["gateway"]))
    assert settings_of({"HARVEST_SERVE_PROXIES": variables["HARVEST_SERVE_PROXIES"]}).serve.proxies == ()


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"blobs": {"url": "bucket"}}, "blobs.url"),
        ({"blobs": {"url": "s3://bucket"}}, "networkPolicy.blobsTo"),
        ({"blobs": {"url": "s3://bucket", "cache": "1Gi"}}, "cache"),
        ({"monitoring": {"podMonitor": {"enabled": True}, "serviceMonitor": {"enabled": True}}}, "monitoring.podMonitor.enabled"),
        ({"extraVolumeMounts": [{"name": "a", "mountPath": "here"}]}, "mountPath"),
        ({"envFrom": [{"secret": "a"}]}, "envFrom"),
        ({"networkPolicy": {"blobsTo": []}}, "blobsTo"),
    ],
)
def test_values_that_cannot_work_are_rejected(helm: Helm, values: Mapping[str, Any], text: str) -> None:
    """Values that contradict each other are rejected by their name before anything is rendered."""
    with pytest.raises(HelmError, match=re.escape(text.rpartition(".")[2])):
        helm.template(values)
