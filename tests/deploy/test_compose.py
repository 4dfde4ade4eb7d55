"""The compose file, as docker-compose itself reads it."""

from __future__ import annotations

import json
import re
import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from streams.config.settings import Settings
from streams.topology.flow import TopologySettings, topology
from tests.deploy import tools
from tests.deploy.conftest import Helm
from tests.servers import kafka, opensearch

PROFILES = ("core", "search", "observability", "registry")
Services = dict[str, dict[str, Any]]


@pytest.fixture(scope="session")
def compose(installed: None, root: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., dict[str, Any]]:
    """A function from profiles to the file as docker-compose resolves it. Raises CalledProcessError where it refuses."""

    def config(*profiles: str, file: Path = root / "docker" / "compose.yaml") -> dict[str, Any]:
        options = [word for profile in profiles for word in ("--profile", profile)]
        environ = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path_factory.getbasetemp())}
        command = [str(tools.COMPOSE), "--file", str(file), *options, "config", "--format", "json"]
        answer = subprocess.run(command, check=True, capture_output=True, text=True, env=environ)
        return dict(json.loads(answer.stdout))

    return config


@pytest.fixture(scope="session")
def services(compose: Callable[..., dict[str, Any]]) -> Services:
    """All services, by name."""
    return dict(compose(*PROFILES)["services"])


@pytest.fixture(scope="session")
def ours(services: Services) -> Services:
    """Those that run our image."""
    return {name: service for name, service in services.items() if service["image"].startswith("harvest:")}


def started(service: dict[str, Any]) -> str:
    """The stage that a service runs; "" for none."""
    command = service.get("command") or []
    return command[1] if command[:1] == ["worker"] else ""


@pytest.mark.parametrize("profile", PROFILES)
def test_each_profile_stands_alone(compose: Callable[..., dict[str, Any]], profile: str) -> None:
    """Each profile is valid, and brings what its services wait for."""
    found = compose(profile)["services"]
    assert found
    assert {other for service in found.values() for other in service.get("depends_on", {})} <= set(found)


def test_a_mistake_is_seen(compose: Callable[..., dict[str, Any]], tmp_path: Path) -> None:
    """What is no key of a service is refused: the check checks."""
    (tmp_path / "compose.yaml").write_text("services:\n  a:\n    image: a:1\n    comand: x\n")
    with pytest.raises(subprocess.CalledProcessError):
        compose(file=tmp_path / "compose.yaml")


def test_a_service_a_stage(ours: Services) -> None:
    """Every stage of the topology has one service of its name, and no other service runs one."""
    stages = {stage.name.partition(".")[0] for stage in topology(TopologySettings()).stages}
    assert {started(service): name for name, service in ours.items() if started(service)} == {s: s for s in stages}


def test_settings_exist(ours: Services, settings_of: Any) -> None:
    """What services set are settings, with values that are taken; defaults that are repeated here are the defaults."""
    defaults = Settings(gatherer="harvest")
    for service in ours.values():
        found = settings_of(service["environment"])
        assert found.kafka.brokers == ("kafka:9092",)
        assert (found.kafka.partitions, found.index.name) == (defaults.kafka.partitions, defaults.index.name)
    assert settings_of(ours["index"]["environment"]).index.url == "http://opensearch:9200"


def test_ours_are_restricted(ours: Services) -> None:
    """Our services may do nothing that they need not: no rights, no writing but into volumes, no new privileges, no user given."""
    for name, service in ours.items():
        assert service["read_only"], name
        assert service["cap_drop"] == ["ALL"], name
        assert "no-new-privileges:true" in service["security_opt"], name
        assert not {"privileged", "cap_add", "user", "network_mode", "pid", "devices"} & {k for k, v in service.items() if v}, name
        assert all(volume["type"] == "volume" for volume in service.get("volumes", [])), name


def test_nothing_is_open_to_the_world(services: Services) -> None:
    """Ports are published on loopback only; nobody has the engine's socket; the others get no rights back either."""
    for name, service in services.items():
        assert all(port["host_ip"] == "127.0.0.1" for port in service.get("ports", [])), name
        assert not any("docker.sock" in volume.get("source", "") for volume in service.get("volumes", [])), name
        assert service["cap_drop"] == ["ALL"], name
        assert "no-new-privileges:true" in service["security_opt"], name


def test_images_are_pinned(services: Services, ours: Services, pinned: re.Pattern[str], root: Path) -> None:
    """Every image is one version: Kafka's and OpenSearch's those that are tested with, ours that of the project."""
    assert not [service["image"] for service in services.values() if not pinned.match(service["image"])]
    assert (services["kafka"]["image"], services["opensearch"]["image"]) == (kafka.IMAGE, opensearch.IMAGE)
    version = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    assert {service["image"] for service in ours.values()} == {f"harvest:{version}"}


def test_topics_come_first(ours: Services, services: Services) -> None:
    """Topics are made once, by a command, before any stage; Kafka makes none by itself."""
    assert ours["topics"]["command"] == ["topics", "apply"]
    assert ours["topics"]["restart"] == "no"
    for name, service in ours.items():
        if started(service):
            assert service["depends_on"]["topics"]["condition"] == "service_completed_successfully", name
    assert services["kafka"]["environment"]["KAFKA_AUTO_CREATE_TOPICS_ENABLE"] == "false"


def test_health(services: Services, ours: Services) -> None:
    """Stages have the image's own check, which nothing here replaces; what is waited for has one of its own."""
    assert [name for name, service in ours.items() if "healthcheck" in service] == ["topics"]
    waited = {n: c["condition"] for service in services.values() for n, c in service.get("depends_on", {}).items()}
    assert all("test" in services[name]["healthcheck"] for name, condition in waited.items() if condition == "service_healthy")


def test_volumes(ours: Services) -> None:
    """Each stage has a data folder of its own; fetch and essence share the bodies."""
    mounts = {name: {v["target"]: v["source"] for v in service.get("volumes", [])} for name, service in ours.items()}
    own = [targets["/var/lib/harvest"] for name, targets in mounts.items() if name != "topics"]
    assert len(own) == len(set(own))
    assert {name for name, targets in mounts.items() if targets.get("/var/lib/harvest/blobs") == "blobs"} == {"fetch", "essence"}


def test_files_that_are_mounted(services: Services) -> None:
    """What is mounted from the clone is there."""
    sources = [v["source"] for service in services.values() for v in service.get("volumes", []) if v["type"] == "bind"]
    assert sources
    assert all(Path(source).exists() for source in sources)


def test_prometheus_asks_every_stage(ours: Services, helm: Helm, root: Path, settings_of: Any) -> None:
    """Prometheus scrapes each stage, where the image listens."""
    (port,) = re.findall(r"(?m)^EXPOSE (\d+)$", (root / "docker" / "Dockerfile").read_text("utf-8"))
    found = helm.yaml(root / "docker" / "prometheus" / "prometheus.yaml")
    (job,) = found["scrape_configs"]
    targets = job["static_configs"][0]["targets"]
    assert sorted(targets) == sorted(f"{name}:{port}" for name, service in ours.items() if started(service))
    assert found["rule_files"] == ["/etc/prometheus/alerts.yaml"]
