"""The chart as Helm renders it: Kubernetes accepts the manifests, and pods are as restricted as documented."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from referencing import Registry, Resource

from streams.topology.flow import Stage, TopologySettings, topology
from tests.deploy import tools
from tests.deploy.conftest import Helm, HelmError
from tests.deploy.custom import CUSTOM
from tests.deploy.manifests import GATEWAY, LEAST, VALUES, Manifest, environment, of, pods, stages_of


@pytest.fixture(scope="module")
def kubernetes() -> Callable[[Manifest], list[str]]:
    """A function from a manifest to its schema errors, unknown fields included."""

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


@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES)
def test_chart_passes_lint(helm: Helm, values: Mapping[str, Any]) -> None:
    """`helm lint --strict` reports only the missing icon."""
    assert [message["error"] for message in helm.lint(values)] == ["icon is recommended"]


@pytest.mark.parametrize("name", VALUES)
def test_manifests_match_kubernetes_schemas(
    rendered: dict[str, list[Manifest]], kubernetes: Callable[[Manifest], list[str]], name: str
) -> None:
    """Every manifest is valid by the schema of its kind, without unknown fields; no kind and name occur twice."""
    faults = [fault for manifest in rendered[name] for fault in kubernetes(manifest)]
    assert not faults
    names = [(m["kind"], m["metadata"]["name"]) for m in rendered[name]]
    assert len(names) == len(set(names))


def test_unknown_field_of_a_manifest_is_found(plain: list[Manifest], kubernetes: Callable[[Manifest], list[str]]) -> None:
    """The check itself works: it finds an unknown field deep inside a manifest."""
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
def test_invalid_values_are_rejected_by_name(helm: Helm, values: Mapping[str, Any], text: str) -> None:
    """An unknown key, or a value that cannot work, is rejected by its name before anything is rendered."""
    with pytest.raises(HelmError, match=re.escape(text)):
        helm.template(values)


def test_each_stage_has_its_own_workload(plain: list[Manifest]) -> None:
    """Every stage of the topology is a workload of its own: a StatefulSet if it has a table, else a Deployment."""
    stages = {stage.name.partition(".")[0]: isinstance(stage, Stage) for stage in topology(TopologySettings()).stages}
    assert set(of(plain, "StatefulSet")) == {name for name, rows in stages.items() if rows}
    assert set(of(plain, "Deployment")) == {name for name, rows in stages.items() if not rows}
    for name, workload in of(plain, "StatefulSet", "Deployment").items():
        (container,) = workload["spec"]["template"]["spec"]["containers"]
        assert container["args"] == ["worker", name]


def test_only_tables_and_bodies_have_persistent_volumes(plain: list[Manifest]) -> None:
    """Each worker with a table has its own volume; all fetchers and parsers share one for bodies; nothing else is persistent."""
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
    """Every pod meets the restricted Pod Security Standard, writes only to volumes, and has no service account token."""
    seen = 0
    for name, spec in (pod for manifests in rendered.values() for pod in pods(manifests)):
        seen += 1
        assert spec["automountServiceAccountToken"] is False, name
        assert spec["securityContext"]["runAsNonRoot"] is True, name
        assert spec["securityContext"]["runAsUser"] > 0, name
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}, name
        assert not {"hostNetwork", "hostPID", "hostIPC"} & set(spec), name
        assert all(
            {"emptyDir", "persistentVolumeClaim", "projected", "configMap"} & set(volume) for volume in spec.get("volumes", [])
        ), name
        for container in spec["containers"]:
            wanted = {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}
            assert container["securityContext"] == wanted, name
            assert "memory" in container["resources"]["limits"], name
    assert seen > len(topology(TopologySettings()).stages)


def test_pods_get_no_service_variables(rendered: dict[str, list[Manifest]]) -> None:
    """Pods get no service environment variables: HARVEST_CATALOG_PORT is not a setting, and would be rejected."""
    assert all(spec["enableServiceLinks"] is False for manifests in rendered.values() for _, spec in pods(manifests))


@pytest.mark.parametrize("name", VALUES)
def test_variables_of_pods_are_valid_settings(rendered: dict[str, list[Manifest]], settings_of: Any, name: str) -> None:
    """All variables of pods are settings with valid values, and none occurs twice."""
    for pod, spec in pods(rendered[name]):
        for container in spec["containers"]:
            variables = environment(container)
            assert len(variables) == len(container.get("env", [])), pod
            if "HARVEST_BLOBS_ACCESS_KEY" in variables:
                variables["HARVEST_BLOBS_ACCESS_KEY"] = "from a secret"
            found = settings_of({n: v for n, v in variables.items() if v is not None})
            if container.get("args", [""])[0] == "worker":
                assert found.worker.host == "0.0.0.0"
                assert [port["containerPort"] for port in container["ports"]] == [found.worker.port]


def test_security_of_kafka_is_mounted_from_secrets(helm: Helm, kubernetes: Callable[[Manifest], list[str]]) -> None:
    """Every container that runs a command of Harvest gets login and certificates as files from secrets, none in its environment."""
    secrets = {"passwordSecret": "user", "caSecret": "cluster-ca", "certificateSecret": "user"}
    manifests = helm.template(GATEWAY | {"kafka": {"security": {"protocol": "SASL_SSL", "user": "harvest", **secrets}}})
    assert not [fault for manifest in manifests for fault in kubernetes(manifest)]
    files, where = {"PASSWORD_FILE", "CA", "CERTIFICATE", "KEY"}, "/etc/harvest/kafka"
    for pod, spec in pods(manifests):
        (volume,) = (one for one in spec["volumes"] if one["name"] == "kafka")
        paths = {f"{where}/{item['path']}" for source in volume["projected"]["sources"] for item in source["secret"]["items"]}
        for container in (one for one in spec["containers"] if one.get("env")):
            told = {name.removeprefix("HARVEST_KAFKA_SECURITY_"): value for name, value in environment(container).items()}
            assert {told[name] for name in files} == paths, pod
            assert (told["PROTOCOL"], told["MECHANISM"], told["USER"]) == ("SASL_SSL", "SCRAM-SHA-512", "harvest")
            assert {"name": "kafka", "mountPath": where, "readOnly": True} in container["volumeMounts"]


def test_login_of_opensearch_is_mounted_from_secrets(helm: Helm, kubernetes: Callable[[Manifest], list[str]]) -> None:
    """Those that ask OpenSearch get its user, and password and CA as files of secrets; other stages get no login."""
    secrets = {"passwordSecret": "login", "caSecret": "authority"}
    manifests = helm.template(GATEWAY | {"index": {"url": "https://search:9200", "user": "harvest", **secrets}})
    assert not [fault for manifest in manifests for fault in kubernetes(manifest)]
    asking = 0
    for pod, spec in pods(manifests):
        for container in (one for one in spec["containers"] if one.get("env")):
            told = environment(container)
            if "HARVEST_INDEX_USER" in told:
                asking += 1
                (volume,) = (one for one in spec["volumes"] if one["name"] == "index")
                items = [item["path"] for source in volume["projected"]["sources"] for item in source["secret"]["items"]]
                assert [f"/etc/harvest/index/{path}" for path in items] == [
                    *(told["HARVEST_INDEX_PASSWORD_FILE"], told["HARVEST_INDEX_CA"])
                ], pod
                assert {"name": "index", "mountPath": "/etc/harvest/index", "readOnly": True} in container["volumeMounts"]
    assert asking >= 2


def test_chart_values_become_worker_settings(full: list[Manifest], settings_of: Any) -> None:
    """Chart values reach the worker's settings; `settings` overrides all others; a URL with a password comes from its secret."""
    (container,) = of(full, "Deployment")["essence"]["spec"]["template"]["spec"]["containers"]
    found = settings_of(environment(container))
    assert (found.kafka.brokers, found.kafka.prefix, found.kafka.partitions) == (("a:9092", "b:9093"), "prod.", 6)
    assert (found.kafka.registry, found.kafka.register, found.children) == ("http://registry:8081", False, 3)
    assert (found.fetch.pause, found.log.format) == (2, "text")
    assert container["image"] == "harvest@sha256:" + "0" * 64
    for name, workload in stages_of(full).items():
        variables = environment(workload["spec"]["template"]["spec"]["containers"][0])
        assert ("HARVEST_INDEX_URL" in variables) == name.startswith("index")
        assert settings_of({n: v for n, v in variables.items() if v is not None}).worker.session == 45


def test_only_workers_with_tables_can_be_static_members(plain: list[Manifest], full: list[Manifest]) -> None:
    """Workers with tables can be static members named after their pods, since those names are stable; other workers never are."""
    for manifests, wanted in ((plain, False), (full, True)):
        for workload in stages_of(manifests).values():
            (container,) = workload["spec"]["template"]["spec"]["containers"]
            named = [each for each in container["env"] if each["name"] == "HARVEST_WORKER_INSTANCE"]
            told = [{"name": "HARVEST_WORKER_INSTANCE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]
            assert named == (told if wanted and workload["kind"] == "StatefulSet" else [])


def test_probes_use_their_paths_on_the_metrics_port(plain: list[Manifest]) -> None:
    """A worker without progress is restarted, one that is not ready gets no traffic; each probe has its path on the served port."""
    for workload in of(plain, "StatefulSet", "Deployment").values():
        (container,) = workload["spec"]["template"]["spec"]["containers"]
        paths = {name: container[f"{name}Probe"]["httpGet"] for name in ("startup", "liveness", "readiness")}
        assert {name: probe["path"] for name, probe in paths.items()} == {
            "startup": "/livez",
            "liveness": "/livez",
            "readiness": "/readyz",
        }
        assert {probe["port"] for probe in paths.values()} == {"metrics"}


def test_selectors_match_the_pods_of_their_stage(full: list[Manifest]) -> None:
    """Selectors match the pods of their stage, and the ServiceMonitor matches every service."""
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


def test_autoscaling_follows_lag_up_to_the_partition_count(helm: Helm, plain: list[Manifest], full: list[Manifest]) -> None:
    """Autoscaling is off by default; if on, each stage scales by its group's lag on its input topics, up to the partition count."""
    assert not of(plain, "ScaledObject")
    assert all("replicas" in workload["spec"] for workload in of(plain, "StatefulSet", "Deployment").values())
    scaled = of(full, "ScaledObject")
    for stage in topology(TopologySettings()).stages:
        spec = scaled[stage.name.partition(".")[0]]["spec"]
        triggers = [(t["metadata"]["consumerGroup"], t["metadata"]["topic"]) for t in spec["triggers"]]
        assert triggers == [(f"prod.{stage.name}", f"prod.{topic.name}") for topic in stage.inputs]
    fixed = {name for name, workload in of(full, "StatefulSet", "Deployment").items() if "replicas" in workload["spec"]}
    assert fixed == {"feed"}
    most = {name: one["spec"]["maxReplicaCount"] for name, one in scaled.items()}
    assert most == dict.fromkeys(most, 6) | {"essence": 4}
    few = helm.template({"autoscaling": {"enabled": True}, "kafka": {"partitions": 1}})
    assert {one["spec"]["maxReplicaCount"] for one in of(few, "ScaledObject").values()} == {1}


def test_topics_are_created_before_workers_start(plain: list[Manifest]) -> None:
    """A hook job creates the topics before workers are installed or upgraded, and Helm waits for its success."""
    (job,) = of(plain, "Job").values()
    assert job["metadata"]["annotations"]["helm.sh/hook"] == "pre-install,pre-upgrade"
    assert job["spec"]["template"]["spec"]["containers"][0]["args"] == ["topics", "apply"]


def test_helm_test_checks_topics_and_readiness(plain: list[Manifest], rendered: dict[str, list[Manifest]]) -> None:
    """`helm test` fails if a topic that the chart creates is missing, and checks the readiness of every enabled stage."""
    check, ask = ["topics", "apply", "--check"], ["topics", "list"]
    for name, disabled, words in (("as it comes", set(), check), ("least", {"fetch", "essence", "index"}, ask)):
        (pod,) = of(rendered[name], "Pod").values()
        assert pod["metadata"]["annotations"]["helm.sh/hook"] == "test"
        topics, stages = pod["spec"]["containers"]
        assert topics["args"] == words
        wanted = {stage.name.partition(".")[0] for stage in topology(TopologySettings()).stages} - disabled
        assert set(stages["args"][1:]) == {f"http://demo-harvest-{stage}:9108/readyz" for stage in wanted}
        compile(stages["args"][0], "helm test", "exec")


def test_notes_name_next_commands_and_warnings(helm: Helm) -> None:
    """The notes after an installation name the next commands and warn of missing protections."""
    assert "helm test demo --namespace prod" in helm.notes()
    assert "WARNING" not in helm.notes()
    assert "fetchers may reach" in helm.notes(LEAST)


def test_alerts_and_dashboard_are_rendered_unchanged(full: list[Manifest], helm: Helm, root: Path) -> None:
    """The rendered alerts and dashboard are the chart's files, unchanged; Helm leaves the templates inside alerts alone."""
    (rule,) = of(full, "PrometheusRule").values()
    assert rule["spec"] == helm.yaml(root / "helm" / "harvest" / "files" / "alerts.yaml")
    (dashboard,) = (one for one in full if one["kind"] == "ConfigMap" and "brokers" not in one["metadata"]["name"])
    assert json.loads(dashboard["data"]["harvest.json"])["uid"] == "harvest"


def test_chart_has_the_project_version(helm: Helm, root: Path) -> None:
    """The chart's appVersion is the version of the project."""
    version = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    assert helm.yaml(root / "helm" / "harvest" / "Chart.yaml")["appVersion"] == version


def test_values_and_schema_have_the_same_keys(helm: Helm, root: Path) -> None:
    """values.yaml and its schema have the same keys at every level, so that a misspelled key is rejected."""
    schema = json.loads((root / "helm" / "harvest" / "values.schema.json").read_text("utf-8"))

    def compare(values: Any, part: Mapping[str, Any], where: str) -> None:
        if not isinstance(values, dict) or part.get("additionalProperties") is not False:
            return
        assert set(values) == set(part["properties"]) - {"global", "claims"}, where
        for name, value in values.items():
            compare(value, part["properties"][name], f"{where}.{name}")

    compare(helm.yaml(root / "helm" / "harvest" / "values.yaml"), schema, "")
