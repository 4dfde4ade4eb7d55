"""The compose file, as docker-compose resolves it."""

from __future__ import annotations

import json
import re
import subprocess
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from streams.config.settings import Settings
from streams.topology.flow import TopologySettings, topology
from tests.deploy import tools
from tests.deploy.conftest import Helm
from tests.servers import kafka, opensearch

PROFILES = ("core", "search", "feed", "observability", "registry")
Services = dict[str, dict[str, Any]]
SECRETS = (
    *(f"KAFKA_SECURITY_{name}" for name in ("PASSWORD_FILE", "CA", "CERTIFICATE", "KEY")),
    *(f"INDEX_{name}" for name in ("PASSWORD_FILE", "CA", "CERTIFICATE", "KEY")),
    *("BLOBS_SECRET_KEY_FILE", "BLOBS_CA"),
)
"""Settings whose value in a container is the path of a secret, without HARVEST_."""
NEEDS = (
    (("topics", "frontier", "fetch", "essence", "catalog", "feed", "register", "dedup", "index", "gateway"), "KAFKA_SECURITY"),
    (("index", "gateway"), "INDEX"),
    (("fetch", "essence"), "BLOBS"),
)
"""Which services get the secrets of which section."""


@pytest.fixture(scope="session")
def compose(installed: None, root: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., dict[str, Any]]:
    """A function from profiles to the compose file as docker-compose resolves it. Raises CalledProcessError for an invalid file."""

    def config(
        *profiles: str, file: Path = root / "docker" / "compose.yaml", beside: Sequence[Path] = (), **variables: str
    ) -> dict[str, Any]:
        options = [word for profile in profiles for word in ("--profile", profile)]
        environ = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path_factory.getbasetemp()), **variables}
        files = [word for one in (file, *beside) for word in ("--file", str(one))]
        command = [str(tools.COMPOSE), *files, *options, "config", "--format", "json"]
        answer = subprocess.run(command, check=True, capture_output=True, text=True, env=environ)
        return dict(json.loads(answer.stdout))

    return config


@pytest.fixture(scope="session")
def services(compose: Callable[..., dict[str, Any]]) -> Services:
    """All services, by name."""
    return dict(compose(*PROFILES)["services"])


@pytest.fixture(scope="session")
def ours(services: Services) -> Services:
    """The services that run the project's image."""
    return {name: service for name, service in services.items() if service["image"].startswith("harvest:")}


def started(service: dict[str, Any]) -> str:
    """The stage that a service runs; "" if it runs none."""
    command = service.get("command") or []
    return command[1] if command[:1] == ["worker"] else ""


@pytest.mark.parametrize("profile", PROFILES)
def test_each_profile_has_its_dependencies(compose: Callable[..., dict[str, Any]], profile: str) -> None:
    """Each profile is valid and contains the services that its services depend on."""
    found = compose(profile)["services"]
    assert found
    assert {other for service in found.values() for other in service.get("depends_on", {})} <= set(found)


def test_unknown_key_of_a_service_is_rejected(compose: Callable[..., dict[str, Any]], tmp_path: Path) -> None:
    """The check itself works: an unknown key of a service is rejected."""
    (tmp_path / "compose.yaml").write_text("services:\n  a:\n    image: a:1\n    comand: x\n")
    with pytest.raises(subprocess.CalledProcessError):
        compose(file=tmp_path / "compose.yaml")


def test_each_stage_has_its_own_service(ours: Services) -> None:
    """Every stage of the topology has one service of its name, and no other service runs a stage."""
    stages = {stage.name.partition(".")[0] for stage in topology(TopologySettings(feed=True)).stages}
    assert {started(service): name for name, service in ours.items() if started(service)} == {s: s for s in stages}


def test_variables_of_services_are_valid_settings(ours: Services, settings_of: Any) -> None:
    """All variables of services are settings with valid values; defaults repeated in the file equal those of the program."""
    defaults = Settings(gatherer="harvest")
    for service in ours.values():
        found = settings_of(service["environment"])
        assert found.kafka.brokers == ("kafka:9092",)
        assert (found.kafka.partitions, found.index.name) == (defaults.kafka.partitions, defaults.index.name)
    assert settings_of(ours["index"]["environment"]).index.url == "http://opensearch:9200"


def test_own_services_are_restricted(ours: Services) -> None:
    """The project's services have no capabilities, write only to volumes, cannot gain privileges, and do not override the user."""
    for name, service in ours.items():
        assert service["read_only"], name
        assert service["cap_drop"] == ["ALL"], name
        assert "no-new-privileges:true" in service["security_opt"], name
        assert not {"privileged", "cap_add", "user", "network_mode", "pid", "devices"} & {k for k, v in service.items() if v}, name
        assert all(volume["type"] == "volume" for volume in service.get("volumes", [])), name


def test_no_service_is_exposed_or_privileged(services: Services) -> None:
    """Ports are published on loopback only; no service mounts the Docker socket; other services get no capabilities either."""
    for name, service in services.items():
        assert all(port["host_ip"] == "127.0.0.1" for port in service.get("ports", [])), name
        assert not any("docker.sock" in volume.get("source", "") for volume in service.get("volumes", [])), name
        assert service["cap_drop"] == ["ALL"], name
        assert "no-new-privileges:true" in service["security_opt"], name


def test_images_are_pinned(services: Services, ours: Services, pinned: re.Pattern[str], root: Path) -> None:
    """Every image has a complete version: Kafka and OpenSearch those of the tests, the project's image that of the project."""
    assert not [service["image"] for service in services.values() if not pinned.match(service["image"])]
    assert (services["kafka"]["image"], services["opensearch"]["image"]) == (kafka.IMAGE, opensearch.IMAGE)
    version = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    assert {service["image"] for service in ours.values()} == {f"harvest:{version}"}


def test_topics_are_created_before_stages_start(ours: Services, services: Services) -> None:
    """Topics are created once, by a command, before any stage starts; Kafka does not create topics on its own."""
    assert ours["topics"]["command"] == ["topics", "apply"]
    assert ours["topics"]["restart"] == "no"
    for name, service in ours.items():
        if started(service):
            assert service["depends_on"]["topics"]["condition"] == "service_completed_successfully", name
    assert services["kafka"]["environment"]["KAFKA_AUTO_CREATE_TOPICS_ENABLE"] == "false"


def test_stages_keep_the_health_check_of_the_image(services: Services, ours: Services) -> None:
    """Stages keep the health check of the image; the gateway and services that dependents wait for define one."""
    assert {name for name, service in ours.items() if "healthcheck" in service} == {"topics", "gateway"}
    waited = {n: c["condition"] for service in services.values() for n, c in service.get("depends_on", {}).items()}
    assert all("test" in services[name]["healthcheck"] for name, condition in waited.items() if condition == "service_healthy")


def test_each_stage_has_its_own_data_volume(ours: Services) -> None:
    """Each stage has its own data volume; fetch and essence share the bodies; the gateway has that of the feed, which it sends."""
    mounts = {
        name: {v["target"]: v["source"] for v in service["volumes"] if v["target"] != "/etc/harvest/brokers"}
        for name, service in ours.items()
    }
    own = [targets["/var/lib/harvest"] for name, targets in mounts.items() if name not in ("topics", "gateway")]
    assert len(own) == len(set(own))
    assert mounts["gateway"] == mounts["feed"] == {"/var/lib/harvest": "feed"}
    assert {name for name, targets in mounts.items() if targets.get("/var/lib/harvest/blobs") == "blobs"} == {"fetch", "essence"}


def test_feed_is_off_by_default(compose: Callable[..., dict[str, Any]], ours: Services, settings_of: Any) -> None:
    """The feed has a profile of its own; its service has the setting, without which no worker runs the stage."""
    assert "feed" not in compose("core", "search")["services"]
    assert settings_of(ours["feed"]["environment"]).feed.enabled
    assert not settings_of(ours["gateway"]["environment"]).feed.enabled
    assert settings_of(compose("search", HARVEST_FEED_ENABLED="true")["services"]["gateway"]["environment"]).feed.enabled


def test_mounted_files_exist(services: Services) -> None:
    """Every file mounted from the clone exists."""
    sources = [v["source"] for service in services.values() for v in service.get("volumes", []) if v["type"] == "bind"]
    assert sources
    assert all(Path(source).exists() for source in sources)


def test_prometheus_scrapes_every_stage_and_the_gateway(ours: Services, helm: Helm, root: Path) -> None:
    """Prometheus scrapes each stage and the gateway on the ports that the image exposes."""
    ((port, page),) = re.findall(r"(?m)^EXPOSE (\d+) (\d+)$", (root / "docker" / "Dockerfile").read_text("utf-8"))
    found = helm.yaml(root / "docker" / "prometheus" / "prometheus.yaml")
    (job,) = found["scrape_configs"]
    targets = {f"{name}:{one['port']}" for one in job["dns_sd_configs"] for name in one["names"]}
    assert targets == {f"gateway:{page}", *(f"{name}:{port}" for name, service in ours.items() if started(service))}
    # By address records: a name alone would be one target, however many containers it has.
    assert {one["type"] for one in job["dns_sd_configs"]} == {"A"}
    assert found["rule_files"] == ["/etc/prometheus/alerts.yaml"]


def test_gateway_is_public_on_loopback_only(services: Services, settings_of: Any) -> None:
    """The gateway asks for no token, since its port is published on loopback only; browsers and Prometheus name a known host."""
    service = services["gateway"]
    found = settings_of(service["environment"])
    assert service["command"] == ["serve"]
    assert (found.serve.host, found.serve.public, found.serve.token.get_secret_value()) == ("0.0.0.0", True, "")
    assert set(found.serve.hosts) == {"localhost", "gateway"}
    assert found.index.url == "http://opensearch:9200"
    (port,) = service["ports"]
    assert (port["host_ip"], port["published"], port["target"]) == ("127.0.0.1", str(found.serve.port), found.serve.port)
    assert f"http://127.0.0.1:{found.serve.port}/livez" in service["healthcheck"]["test"][-1]


def test_gateway_starts_behind_opensearch_and_keeps_nothing(services: Services) -> None:
    """The gateway waits for OpenSearch; all that it can write to is memory of bounded size, and the locks of the feed."""
    service = services["gateway"]
    assert service["depends_on"]["opensearch"]["condition"] == "service_healthy"
    assert service["read_only"] is True
    assert int(service["mem_limit"]) == 1 << 30
    assert {mount.partition(":")[0] for mount in service["tmpfs"]} == {"/tmp"}
    assert all("size=" in mount for mount in service["tmpfs"])


def test_every_service_has_a_memory_limit(services: Services) -> None:
    """No service can take the memory of the others: each has a limit."""
    assert all(int(service.get("mem_limit", 0)) >= 1 << 28 for service in services.values())


def test_image_can_be_given_by_digest(compose: Callable[..., dict[str, Any]], ours: Services) -> None:
    """HARVEST_IMAGE replaces the image of all own services, so that they run what a digest names."""
    image = f"registry.example.org/harvest@sha256:{'0' * 64}"
    found = compose(*PROFILES, HARVEST_IMAGE=image)["services"]
    assert {found[name]["image"] for name in ours} == {image}


def test_secrets_are_mounted_as_files_of_the_services_that_need_them(
    compose: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    """A variable names a file of this machine; services get its path as a secret in the setting, and never its content."""
    files = {name: tmp_path / name.lower() for name in SECRETS}
    for name, path in files.items():
        path.write_text(f"content of {name}")
    given = {f"HARVEST_{name}": str(path) for name, path in files.items()}
    found = compose(*PROFILES, **given)
    assert "content of" not in json.dumps(found)
    assert {secret["file"] for secret in found["secrets"].values()} == set(given.values())
    for name, service in found["services"].items():
        mounted = {f"/run/secrets/{secret['source']}": secret["source"] for secret in service.get("secrets", [])}
        sections = {section for stages, section in NEEDS if name in stages}
        wanted = {variable for variable in given if variable.startswith(tuple(f"HARVEST_{section}_" for section in sections))}
        environment = service.get("environment") or {}
        assert {v for v in given if environment.get(v)} == (wanted if sections else set()), name
        assert {environment[v]: given[v] for v in given if v in environment} == {
            path: found["secrets"][source]["file"] for path, source in mounted.items()
        }, name


def test_login_is_passed_to_all_own_services(compose: Callable[..., dict[str, Any]], settings_of: Any, tmp_path: Path) -> None:
    """The settings of an outside Kafka, OpenSearch and object storage are passed on; the program accepts them together."""
    password = tmp_path / "password"
    password.write_text("secret\n")
    given = {
        "HARVEST_KAFKA_BROKERS": "a:9093",
        "HARVEST_KAFKA_SECURITY_PROTOCOL": "SASL_SSL",
        "HARVEST_KAFKA_SECURITY_USER": "harvest",
        "HARVEST_KAFKA_SECURITY_PASSWORD_FILE": str(password),
        "HARVEST_INDEX_URL": "https://search:9200",
        "HARVEST_INDEX_USER": "harvest",
        "HARVEST_INDEX_PASSWORD_FILE": str(password),
        "HARVEST_BLOBS_URL": "s3://bucket/bodies",
        "HARVEST_BLOBS_ENDPOINT": "https://s3:9000",
        "HARVEST_BLOBS_ACCESS_KEY": "harvest",
        "HARVEST_BLOBS_SECRET_KEY_FILE": str(password),
        "HARVEST_BLOBS_CACHE": "1000000",
    }
    services = compose("core", "search", **given)["services"]
    for name in ("topics", "frontier", "fetch", "essence", "index", "gateway"):
        found = settings_of(services[name]["environment"])
        assert (found.kafka.brokers, found.kafka.security.protocol) == (("a:9093",), "SASL_SSL")
        assert found.kafka.security.password.get_secret_value() == "secret"
        assert (found.index.user == "harvest") == (name in ("index", "gateway"))
        assert (found.blobs.url == "s3://bucket/bodies") == (name in ("fetch", "essence"))


def test_all_services_have_the_definitions_of_brokers(compose: Callable[..., dict[str, Any]], ours: Services, root: Path) -> None:
    """HARVEST_BROKERS names a folder of this machine, which all services mount read-only; without it they have an empty volume."""
    named = compose(*PROFILES, HARVEST_BROKERS="./brokers")["services"]
    for services, kind, source in ((named, "bind", str(root / "docker" / "brokers")), (ours, "volume", "brokers")):
        for name in ours:
            (mount,) = (one for one in services[name]["volumes"] if one["target"] == "/etc/harvest/brokers")
            assert (mount["type"], mount["source"], mount["read_only"]) == (kind, source, True), name
            assert services[name]["environment"]["HARVEST_BROKERS"] == "/etc/harvest/brokers", name


def test_broker_of_the_readme_is_a_service(compose: Callable[..., dict[str, Any]], root: Path, tmp_path: Path) -> None:
    """The examples of the README are services: the stages of another Broker with definitions, index and tables, and its stream."""
    readme = (root / "docker" / "README.md").read_text("utf-8")
    files = []
    for number, example in enumerate(re.findall(r"(?s)```yaml\n(services:.*?)```", readme)):
        files.append(tmp_path / f"{number}.yaml")
        files[-1].write_text(example.replace("compose.yaml", str(root / "docker" / "compose.yaml")), "utf-8")
    services = compose("core", "search", "feed", beside=files, HARVEST_BROKERS="./brokers")["services"]
    found, index = services["pages"], services["index"]
    assert found["command"] == ["worker", "register.pages", "dedup.pages", "index.pages"]
    assert (found["environment"], found["depends_on"]) == (index["environment"], index["depends_on"])
    assert {one["target"]: one["source"] for one in found["volumes"]} == {
        "/etc/harvest/brokers": str(root / "docker" / "brokers"),
        "/var/lib/harvest": "pages",
    }
    stream, feed = services["pages-stream"], services["feed"]
    assert stream["command"] == ["worker", "stream.pages"]
    assert (stream["volumes"], stream["depends_on"]) == (feed["volumes"], feed["depends_on"])
