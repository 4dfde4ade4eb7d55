"""Several Brokers on Kubernetes and with Compose: each has its definition as a file, its own three stages, and its stream."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from processors.query.facets import FACETS
from streams.brokers import keys, read_definitions
from streams.topology.flow import TopologySettings, streamed, topology
from tests.deploy.conftest import Helm, HelmError
from tests.deploy.manifests import Manifest, of

LANGUAGES = ("en",)
BROKERS: Mapping[str, Any] = {
    "pages": {"query": 'type:HTML "<b>&"', "ttl": "1w", "languages": ["en", "de"]},
    "main": {"query": "*"},
    "two-words": {"query": "whale", "ttl": 60},
    "all": {
        "title": "Pages of both",
        "from": ["broker:two-words", "summaries", "https://h.example/brokers/cs/soif", "broker:pages"],
        "facets": ["author", "year"],
        "rank": {"title": 0.5, "half_life": 86400},
        "fallback": {"broker": "main", "below": 5},
        "stream": True,
    },
}


@pytest.fixture(scope="module")
def made(helm: Helm) -> list[Manifest]:
    """The manifests of these Brokers, with autoscaling."""
    return helm.template({"brokers": BROKERS, "autoscaling": {"enabled": True}})


def definitions(made: list[Manifest]) -> dict[str, dict[str, str]]:
    """The ConfigMaps of definitions, by name."""
    return {one["metadata"]["name"]: one["data"] for one in made if one["kind"] == "ConfigMap"}


def test_brokers_have_workloads_of_their_own(made: list[Manifest], tmp_path: Path) -> None:
    """Each Broker has its stages as workloads; all groups and topics that they scale by are those of the topology."""
    files = next(iter(definitions(made).values()))
    for name, text in files.items():
        (tmp_path / name).write_text(text, "utf-8")
    drawn = topology(TopologySettings(brokers=read_definitions(tmp_path, LANGUAGES).brokers))
    workloads = of(made, "StatefulSet", "Deployment")
    ran = [workload["spec"]["template"]["spec"]["containers"][0] for workload in workloads.values()]
    known = {stage.name for stage in drawn.stages} | {stage.name.removesuffix(".main") for stage in drawn.stages}
    assert {container["args"][1] for container in ran} <= known
    assert len(workloads) == len(drawn.stages)
    assert workloads.keys() >= {"register", "register-pages", "dedup-pages", "index-pages", "stream-all"}
    for container in ran:
        environment = {entry["name"]: entry.get("value") for entry in container["env"]}
        assert environment["HARVEST_BROKERS"] == "/etc/harvest/brokers"
    read = [
        (t["metadata"]["consumerGroup"], t["metadata"]["topic"])
        for s in of(made, "ScaledObject").values()
        for t in s["spec"]["triggers"]
    ]
    scaled = [stage for stage in drawn.stages if streamed(stage.name) is None]
    assert sorted(read) == sorted((stage.name, topic.name) for stage in scaled for topic in stage.inputs)


def test_definitions_are_those_of_the_values(made: list[Manifest], tmp_path: Path) -> None:
    """The files say what the values say, whatever characters a query has, and Harvest reads each without a mistake."""
    for number, files in enumerate(definitions(made).values()):
        assert {name.removesuffix(".toml"): {"query": "", **tomllib.loads(text)} for name, text in files.items()} == {
            name: {"query": "", **values} for name, values in BROKERS.items()
        }
        folder = tmp_path / str(number)
        folder.mkdir()
        for name, text in files.items():
            (folder / name).write_text(text, "utf-8")
        found = read_definitions(folder, LANGUAGES)
        assert not found.mistakes
        assert {broker.name for broker in found.brokers} == BROKERS.keys()


def test_every_pod_of_harvest_has_the_definitions(made: list[Manifest]) -> None:
    """All pods mount the definitions of the release; the job of the topics, which runs before it, has a hook of its own."""
    hooks = {one["metadata"]["name"] for one in made if "helm.sh/hook" in one["metadata"].get("annotations", {})}
    pods = [(one, one["spec"]) for one in made if one["kind"] == "Pod"]
    pods += [(one, one["spec"]["template"]["spec"]) for one in made if one["kind"] in ("StatefulSet", "Deployment", "Job")]
    assert {one["kind"] for one, _ in pods} == {"Pod", "StatefulSet", "Deployment", "Job"}
    for one, spec in pods:
        mounts = [mount for container in spec["containers"] for mount in container.get("volumeMounts", [])]
        assert {"name": "brokers", "mountPath": "/etc/harvest/brokers", "readOnly": True} in mounts
        (volume,) = (volume["configMap"]["name"] for volume in spec["volumes"] if volume["name"] == "brokers")
        assert volume in definitions(made)
        assert (volume in hooks) == (one["kind"] == "Job")
    (own,) = hooks & definitions(made).keys()
    (hook,) = (one["metadata"]["annotations"] for one in made if one["metadata"]["name"] == own)
    assert (hook["helm.sh/hook"], int(hook["helm.sh/hook-weight"]) < 0) == ("pre-install,pre-upgrade", True)


def test_changed_definition_starts_workers_anew(helm: Helm, made: list[Manifest]) -> None:
    """The ConfigMap of the release is named after its content, so that a changed definition changes all pods."""
    changed = helm.template({"brokers": {**BROKERS, "pages": {"query": "type:PDF"}}})
    assert len(definitions(made).keys() - definitions(changed).keys()) == 1


@pytest.mark.parametrize(
    ("broker", "text"),
    [
        ({"form": ["summaries"]}, "form"),
        ({"from": ["broker:nowhere"]}, "brokers.one.from: broker:nowhere: no such Broker"),
        ({"from": ["nowhere"]}, "from"),
        ({"ttl": "a week"}, "ttl"),
        ({"rank": {"titel": 1}}, "titel"),
        ({"facets": ["colour"]}, "facets"),
    ],
)
def test_wrong_definition_is_rejected_by_its_key(helm: Helm, broker: Mapping[str, Any], text: str) -> None:
    """A key that is none, and a value that cannot be one, are rejected by name before anything is rendered."""
    with pytest.raises(HelmError, match=text):
        helm.template({"brokers": {"one": broker}})


def test_name_that_no_index_can_have_is_rejected(helm: Helm) -> None:
    """A Broker whose name ends as the indexes of a server do is rejected."""
    with pytest.raises(HelmError, match="one-0"):
        helm.template({"brokers": {"one-0": {}}})


def test_workload_with_too_long_a_name_is_rejected(helm: Helm) -> None:
    """The names of the release and of a Broker together fit into the labels that Kubernetes makes of a workload's name."""
    broker = {"b" * 20: {"stream": True}}
    names = of(helm.template({"fullnameOverride": "r" * 22, "brokers": broker}), "StatefulSet")
    assert max(len(one["metadata"]["name"]) for one in names.values()) == 52
    with pytest.raises(HelmError, match="fullnameOverride"):
        helm.template({"fullnameOverride": "r" * 23, "brokers": broker})


def test_schema_has_all_keys_of_a_definition(root: Path) -> None:
    """The schema of the values knows each key of a definition, and no other; so it does the facets."""
    schema = json.loads((root / "helm" / "harvest" / "values.schema.json").read_text("utf-8"))
    parts = schema["properties"]["brokers"]["additionalProperties"]["properties"]
    inner = [f"{name}.{key}" for name, part in parts.items() for key in part.get("properties", ())]
    assert {*parts, *inner} == set(keys())
    assert tuple(parts["facets"]["items"]["enum"]) == FACETS
