"""The chart, as Helm itself renders it: what it makes is what Kubernetes takes, and as restricted as it says."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from referencing import Registry, Resource

from processors.urls import guard
from streams.topology import Stage, topology
from tests.deploy import tools
from tests.deploy.conftest import Helm, HelmError
from tests.deploy.custom import CUSTOM

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


@pytest.fixture(scope="module")
def rendered(helm: Helm) -> dict[str, list[Manifest]]:
    """The manifests of each set of values."""
    return {name: helm.template(values) for name, values in VALUES.items()}


@pytest.fixture(scope="module")
def plain(rendered: dict[str, list[Manifest]]) -> list[Manifest]:
    """The manifests as they come."""
    return rendered["as it comes"]


@pytest.fixture(scope="module")
def full(rendered: dict[str, list[Manifest]]) -> list[Manifest]:
    """The manifests with all on."""
    return rendered["all"]


@pytest.fixture(scope="module")
def kubernetes() -> Callable[[Manifest], list[str]]:
    """A function from a manifest to what Kubernetes would say against it: fields that it does not know too."""

    def schema(name: str) -> Any:
        return json.loads((tools.SCHEMAS / name).read_text("utf-8"))

    definitions = Resource.from_contents(schema("_definitions.json"))
    registry = Registry().with_resource("https://kubernetes.io/api/_definitions.json", definitions)

    def faults(manifest: Manifest) -> list[str]:
        version, kind = manifest["apiVersion"], manifest["kind"]
        group, _, number = version.rpartition("/")
        parts = [kind.lower(), group.removesuffix(".k8s.io"), number]
        found = CUSTOM.get((version, kind)) or schema("-".join(filter(None, parts)) + ".json")
        errors = Draft202012Validator(found, registry=registry).iter_errors(manifest)
        return [f"{kind} {manifest['metadata']['name']}: {error.json_path}: {error.message[:200]}" for error in errors]

    return faults


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


@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES)
def test_lint(helm: Helm, values: Mapping[str, Any]) -> None:
    """`helm lint --strict` has nothing to say but that an icon would be nice."""
    assert [message["error"] for message in helm.lint(values)] == ["icon is recommended"]


@pytest.mark.parametrize("name", VALUES)
def test_kubernetes_takes_it(rendered: dict[str, list[Manifest]], kubernetes: Callable[[Manifest], list[str]], name: str) -> None:
    """Every manifest keeps the schema of its kind, without a field that the kind does not have; no name comes twice."""
    faults = [fault for manifest in rendered[name] for fault in kubernetes(manifest)]
    assert not faults
    names = [(m["kind"], m["metadata"]["name"]) for m in rendered[name]]
    assert len(names) == len(set(names))


def test_a_mistake_is_seen(plain: list[Manifest], kubernetes: Callable[[Manifest], list[str]]) -> None:
    """A field that a kind does not have is found, deep inside too: the check checks."""
    manifest = json.loads(json.dumps(of(plain, "Deployment")["fetch"]))
    manifest["spec"]["template"]["spec"]["containers"][0]["readinesProbe"] = {}
    assert kubernetes(manifest)


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"kafka": {"brokers": []}}, "brokers"),
        ({"kafka": {"brokers": ["kafka"]}}, "brokers"),
        ({"kafka": {"partitons": 3}}, "partitons"),
        ({"gatherer": "two words"}, "gatherer"),
        ({"image": {"digest": "latest"}}, "digest"),
        ({"settings": {"FETCH_PAUSE": "1"}}, "FETCH_PAUSE"),
        ({"stages": {"fetch": {"replicas": -1}}}, "replicas"),
        ({"stages": {"crawl": {"enabled": True}}}, "crawl"),
        ({"stages": {"catalog": {"replicas": 13}}}, "more than the 12 partitions"),
        ({"index": {"url": ""}}, "the stage index needs OpenSearch"),
    ],
)
def test_wrong_values(helm: Helm, values: Mapping[str, Any], text: str) -> None:
    """A value that is none, or that cannot work, is refused by its name, before anything is made."""
    with pytest.raises(HelmError, match=re.escape(text)):
        helm.template(values)


def test_a_workload_a_stage(plain: list[Manifest]) -> None:
    """Every stage of the topology is a workload of its own: a StatefulSet where it has rows, else a Deployment."""
    stages = {stage.name.partition(".")[0]: isinstance(stage, Stage) for stage in topology().stages}
    assert set(of(plain, "StatefulSet")) == {name for name, rows in stages.items() if rows}
    assert set(of(plain, "Deployment")) == {name for name, rows in stages.items() if not rows}
    for name, workload in of(plain, "StatefulSet", "Deployment").items():
        (container,) = workload["spec"]["template"]["spec"]["containers"]
        assert container["args"] == ["worker", name]


def test_volumes(plain: list[Manifest]) -> None:
    """Tables have a volume for each worker; bodies one that all fetchers and parsers share; nothing else is kept."""
    for name, workload in of(plain, "StatefulSet", "Deployment").items():
        spec = workload["spec"]["template"]["spec"]
        mounts = {mount["mountPath"]: mount["name"] for mount in spec["containers"][0]["volumeMounts"]}
        shared = {"/var/lib/harvest/blobs": "blobs"} if name in ("fetch", "essence") else {}
        assert mounts == {"/var/lib/harvest": "data", "/tmp": "tmp"} | shared
        claims = [v["persistentVolumeClaim"]["claimName"] for v in spec["volumes"] if "persistentVolumeClaim" in v]
        assert claims == (["demo-harvest-blobs"] if shared else [])
        own = [claim["metadata"]["name"] for claim in workload["spec"].get("volumeClaimTemplates", [])]
        assert own == (["data"] if workload["kind"] == "StatefulSet" else [])
    (claim,) = of(plain, "PersistentVolumeClaim").values()
    assert claim["spec"]["accessModes"] == ["ReadWriteMany"]


def test_pods_are_restricted(rendered: dict[str, list[Manifest]]) -> None:
    """Every pod keeps the restricted Pod Security Standard, writes nowhere but into volumes, and has no token of the cluster's."""
    seen = 0
    for name, spec in (pod for manifests in rendered.values() for pod in pods(manifests)):
        seen += 1
        assert spec["automountServiceAccountToken"] is False, name
        assert spec["securityContext"]["runAsNonRoot"] is True, name
        assert spec["securityContext"]["runAsUser"] > 0, name
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}, name
        assert not {"hostNetwork", "hostPID", "hostIPC"} & set(spec), name
        assert all({"emptyDir", "persistentVolumeClaim"} & set(volume) for volume in spec.get("volumes", [])), name
        for container in spec["containers"]:
            wanted = {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}
            assert container["securityContext"] == wanted, name
            assert "memory" in container["resources"]["limits"], name
    assert seen > len(topology().stages)


def test_no_variables_of_services(rendered: dict[str, list[Manifest]]) -> None:
    """Kubernetes adds no variables of services: HARVEST_CATALOG_PORT is no setting, and would be refused."""
    assert all(spec["enableServiceLinks"] is False for manifests in rendered.values() for _, spec in pods(manifests))


@pytest.mark.parametrize("name", VALUES)
def test_settings_exist(rendered: dict[str, list[Manifest]], settings_of: Any, name: str) -> None:
    """What pods are told are settings, with values that are taken, and none of them twice."""
    for pod, spec in pods(rendered[name]):
        for container in spec["containers"]:
            variables = environment(container)
            assert len(variables) == len(container.get("env", [])), pod
            found = settings_of({n: v for n, v in variables.items() if v is not None})
            if container.get("args", [""])[0] == "worker":
                assert found.worker.host == "0.0.0.0"
                assert [port["containerPort"] for port in container["ports"]] == [found.worker.port]


def test_values_reach_the_settings(full: list[Manifest], settings_of: Any) -> None:
    """What values say is what a worker is told; `settings` stands above all; a URL with a password comes from its secret."""
    (container,) = of(full, "Deployment")["essence"]["spec"]["template"]["spec"]["containers"]
    found = settings_of(environment(container))
    assert (found.kafka.brokers, found.kafka.prefix, found.kafka.partitions) == (("a:9092", "b:9093"), "prod.", 6)
    assert (found.kafka.registry, found.kafka.register, found.children) == ("http://registry:8081", False, 3)
    assert (found.fetch.pause, found.log.format) == (2, "text")
    assert container["image"] == "harvest@sha256:" + "0" * 64
    for name, workload in of(full, "StatefulSet", "Deployment").items():
        variables = environment(workload["spec"]["template"]["spec"]["containers"][0])
        assert ("HARVEST_INDEX_URL" in variables) == (name == "index")
        assert settings_of({n: v for n, v in variables.items() if v is not None}).worker.session == 45


def test_static_members(plain: list[Manifest], full: list[Manifest]) -> None:
    """Workers with tables may keep their places by the names of their pods, which stay; others, whose names do not, never do."""
    for manifests, wanted in ((plain, False), (full, True)):
        for workload in of(manifests, "StatefulSet", "Deployment").values():
            (container,) = workload["spec"]["template"]["spec"]["containers"]
            named = [each for each in container["env"] if each["name"] == "HARVEST_WORKER_INSTANCE"]
            told = [{"name": "HARVEST_WORKER_INSTANCE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]
            assert named == (told if wanted and workload["kind"] == "StatefulSet" else [])


def test_probes(plain: list[Manifest]) -> None:
    """Who does not move is started again, who is not ready is told so; each by its own path, at the port that is served."""
    for workload in of(plain, "StatefulSet", "Deployment").values():
        (container,) = workload["spec"]["template"]["spec"]["containers"]
        paths = {name: container[f"{name}Probe"]["httpGet"] for name in ("startup", "liveness", "readiness")}
        assert {name: probe["path"] for name, probe in paths.items()} == {
            "startup": "/livez",
            "liveness": "/livez",
            "readiness": "/readyz",
        }
        assert {probe["port"] for probe in paths.values()} == {"metrics"}


def test_selectors(full: list[Manifest]) -> None:
    """What selects pods selects those of its stage, and Prometheus' operator finds every service."""
    workloads = of(full, "StatefulSet", "Deployment")
    services, budgets = of(full, "Service"), of(full, "PodDisruptionBudget")
    assert set(services) == set(budgets) == set(workloads)
    for name, workload in workloads.items():
        labels = workload["spec"]["template"]["metadata"]["labels"].items()
        assert workload["spec"]["selector"]["matchLabels"].items() <= labels
        assert services[name]["spec"]["selector"].items() <= labels
        assert budgets[name]["spec"]["selector"]["matchLabels"].items() <= labels
        assert budgets[name]["spec"]["maxUnavailable"] == 1
        if workload["kind"] == "StatefulSet":
            assert workload["spec"]["serviceName"] == services[name]["metadata"]["name"]
    (monitor,) = of(full, "ServiceMonitor").values()
    assert all(monitor["spec"]["selector"]["matchLabels"].items() <= s["metadata"]["labels"].items() for s in services.values())
    assert {e["port"] for e in monitor["spec"]["endpoints"]} == {p["name"] for s in services.values() for p in s["spec"]["ports"]}


def test_autoscaling(helm: Helm, plain: list[Manifest], full: list[Manifest]) -> None:
    """Off as it comes; on, each stage is scaled by the lag of its own group on its own topics, never above the partitions."""
    assert not of(plain, "ScaledObject")
    assert all("replicas" in workload["spec"] for workload in of(plain, "StatefulSet", "Deployment").values())
    scaled = of(full, "ScaledObject")
    for stage in topology().stages:
        spec = scaled[stage.name.partition(".")[0]]["spec"]
        triggers = [(t["metadata"]["consumerGroup"], t["metadata"]["topic"]) for t in spec["triggers"]]
        assert triggers == [(f"prod.{stage.name}", f"prod.{topic.name}") for topic in stage.inputs]
    assert all("replicas" not in workload["spec"] for workload in of(full, "StatefulSet", "Deployment").values())
    most = {name: one["spec"]["maxReplicaCount"] for name, one in scaled.items()}
    assert most == dict.fromkeys(most, 6) | {"essence": 4}
    few = helm.template({"autoscaling": {"enabled": True}, "kafka": {"partitions": 1}})
    assert {one["spec"]["maxReplicaCount"] for one in of(few, "ScaledObject").values()} == {1}


def allowed(policy: Manifest, address: str) -> bool:
    """Whether a policy lets its pods go to an address, by its blocks."""
    found = ip_address(address.partition("%")[0])
    for peer in (peer for rule in policy["spec"]["egress"] for peer in rule.get("to", [])):
        block = peer.get("ipBlock")
        if block and found in ip_network(block["cidr"]) and not any(found in ip_network(e) for e in block.get("except", [])):
            return True
    return False


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "10.1.2.3", "172.16.0.1", "172.31.255.255", "192.168.1.1", "169.254.169.254", "100.64.0.1", "168.63.129.16"),
        *(
            "0.0.0.0",
            "192.0.0.192",
            "192.0.2.1",
            "192.88.99.1",
            "198.18.0.1",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "255.255.255.255",
        ),
        *("::1", "::", "fe80::1", "fc00::1", "fd00:ec2::254", "fec0::1", "ff02::1", "2001:db8::1", "3fff::1", "64:ff9b::a9fe:a9fe"),
        *("64:ff9b:1::1", "2002:a9fe:a9fe::", "2001:0:7f00:1::f7f7:f7f7", "::ffff:0:127.0.0.1", "100::1"),
    ],
)
def test_fetchers_are_kept_out(plain: list[Manifest], address: str) -> None:
    """What the fetch edge refuses to dial, its pods cannot reach either: metadata, private ranges, relays into them."""
    assert guard(address, ())
    assert not allowed(of(plain, "NetworkPolicy")["demo-harvest-fetch"], address)


@pytest.mark.parametrize(
    "address", ["93.184.216.34", "8.8.8.8", "172.15.255.255", "100.128.0.1", "2606:4700::1111", "2a00:1450::200e"]
)
def test_fetchers_are_let_out(plain: list[Manifest], address: str) -> None:
    """Public addresses are reached."""
    assert not guard(address, ())
    assert allowed(of(plain, "NetworkPolicy")["demo-harvest-fetch"], address)


def test_blocks_are_well_formed(full: list[Manifest]) -> None:
    """What is excepted of a block is inside it: Kubernetes refuses what is not. An intranet that is meant is let through."""
    policy = of(full, "NetworkPolicy")["demo-harvest-fetch"]
    for peer in (peer for rule in policy["spec"]["egress"] for peer in rule["to"]):
        whole = ip_network(peer["ipBlock"]["cidr"])
        for part in map(ip_network, peer["ipBlock"].get("except", [])):
            assert part.version == whole.version
            assert part.subnet_of(whole)  # type: ignore[arg-type]
    assert allowed(policy, "10.1.2.3")
    assert not allowed(policy, "10.2.2.3")


def test_only_fetchers_go_out(plain: list[Manifest]) -> None:
    """The other stages are let to names, Kafka and what they need, on its port; nobody is let in but to the metrics."""
    policies = of(plain, "NetworkPolicy")
    assert not allowed(policies["demo-harvest"], "8.8.8.8")
    assert not allowed(policies["demo-harvest-index"], "8.8.8.8")
    assert policies["demo-harvest"]["spec"]["policyTypes"] == ["Ingress", "Egress"]
    (into,) = policies["demo-harvest"]["spec"]["ingress"]
    assert into["ports"] == [{"protocol": "TCP", "port": 9108}]
    assert all(rule["ports"] for rule in policies["demo-harvest"]["spec"]["egress"])


def test_ports_of_policies(full: list[Manifest]) -> None:
    """Ports come from the addresses that are configured."""
    ports = {p["port"] for rule in of(full, "NetworkPolicy")["demo-harvest"]["spec"]["egress"] for p in rule["ports"]}
    assert ports == {53, 9108, 9092, 9093, 8081}


def test_topics_are_made_first(plain: list[Manifest]) -> None:
    """A job makes the topics before workers are installed or raised, and its success is waited for."""
    (job,) = of(plain, "Job").values()
    assert job["metadata"]["annotations"]["helm.sh/hook"] == "pre-install,pre-upgrade"
    assert job["spec"]["template"]["spec"]["containers"][0]["args"] == ["topics", "apply"]


def test_helm_test(plain: list[Manifest], rendered: dict[str, list[Manifest]]) -> None:
    """`helm test` fails where a topic that the chart makes is missing, and asks every stage that is enabled whether it is ready."""
    check, ask = ["topics", "apply", "--check"], ["topics", "list"]
    for name, disabled, words in (("as it comes", set(), check), ("least", {"fetch", "essence", "index"}, ask)):
        (pod,) = of(rendered[name], "Pod").values()
        assert pod["metadata"]["annotations"]["helm.sh/hook"] == "test"
        topics, stages = pod["spec"]["containers"]
        assert topics["args"] == words
        wanted = {stage.name.partition(".")[0] for stage in topology().stages} - disabled
        assert set(stages["args"][1:]) == {f"http://demo-harvest-{stage}:9108/readyz" for stage in wanted}
        compile(stages["args"][0], "helm test", "exec")


def test_notes(helm: Helm) -> None:
    """What is told after an installation names what to type next, and warns of what is missing."""
    assert "helm test demo --namespace prod" in helm.notes()
    assert "WARNING" not in helm.notes()
    assert "fetchers may reach" in helm.notes(LEAST)


def test_files_go_along(full: list[Manifest], helm: Helm, root: Path) -> None:
    """The alerts and the dashboard of the chart are in what it makes, as they are; alerts' own templates are left alone."""
    (rule,) = of(full, "PrometheusRule").values()
    assert rule["spec"] == helm.yaml(root / "helm" / "harvest" / "files" / "alerts.yaml")
    (dashboard,) = of(full, "ConfigMap").values()
    assert json.loads(dashboard["data"]["harvest.json"])["uid"] == "harvest"


def test_versions(helm: Helm, root: Path) -> None:
    """The chart's version of the application is that of the project."""
    version = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    assert helm.yaml(root / "helm" / "harvest" / "Chart.yaml")["appVersion"] == version


def test_schema_has_every_value(helm: Helm, root: Path) -> None:
    """values.yaml and its schema have the same keys, all the way down, so that a key that is misspelt is refused."""
    schema = json.loads((root / "helm" / "harvest" / "values.schema.json").read_text("utf-8"))

    def compare(values: Any, part: Mapping[str, Any], where: str) -> None:
        if not isinstance(values, dict) or part.get("additionalProperties") is not False:
            return
        assert set(values) == set(part["properties"]) - {"global", "claims"}, where
        for name, value in values.items():
            compare(value, part["properties"][name], f"{where}.{name}")

    compare(helm.yaml(root / "helm" / "harvest" / "values.yaml"), schema, "")
