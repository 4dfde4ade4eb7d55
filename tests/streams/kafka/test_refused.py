"""Workers whose login or rights go bad while they run, on a broker with TLS, logins and ACLs."""

from __future__ import annotations

import os
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import (  # type: ignore[attr-defined] # exported without saying so
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from streams.kafka.client.cluster import Cluster
from tests.servers.fixtures import Topics
from tests.servers.process import free_port
from tests.streams.kafka import secured
from tests.streams.kafka.conftest import Broker
from tests.streams.kafka.secured import PASSWORD, PREFIX, USER, Secured
from tests.streams.kafka.test_remade import catalogued, objects
from tests.streams.kafka.test_secured import harvest, worker

# One worker, so that the broker of the module starts once.
pytestmark = [pytest.mark.slow(60), pytest.mark.servers, pytest.mark.xdist_group("refused")]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """The broker of this module."""
    with secured.running(tmp_path_factory.mktemp("refused")) as found:
        yield found


def environ(broker: Secured, port: int) -> dict[str, str]:
    """Settings of a worker, which looks at the cluster every second."""
    found = {
        "BROKERS": broker.login,
        "PREFIX": PREFIX,
        "PARTITIONS": "2",
        "SECURITY_PROTOCOL": "SASL_SSL",
        "SECURITY_CA": broker.ca,
    }
    found |= {"SECURITY_USER": USER, "SECURITY_PASSWORD": PASSWORD}
    more = {"HARVEST_WORKER_STALL": "6", "HARVEST_WORKER_PORT": str(port), "HARVEST_GATHERER": "test"}
    return {f"HARVEST_KAFKA_{name}": value for name, value in found.items()} | more


def readiness(port: int) -> str:
    """The answer of /readyz; "" if the worker is ready."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz") as answer:
            return "" if answer.status == 200 else str(answer.read())
    except urllib.error.HTTPError as error:
        return error.read().decode()
    except OSError as error:
        return repr(error)


def acl(client: AdminClient, topic: str, operation: AclOperation, *, grant: bool) -> None:
    """Grant a right of the user on a topic, or take it away."""
    given = ResourceType.TOPIC, PREFIX + topic, ResourcePatternType.LITERAL, f"User:{USER}", "*", operation, AclPermissionType.ALLOW
    answers = client.create_acls([AclBinding(*given)]) if grant else client.delete_acls([AclBindingFilter(*given)])
    for future in answers.values():
        future.result(60)


def password(client: AdminClient, value: str) -> None:
    """Set the password of the user."""
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
    for future in client.alter_user_scram_credentials([UserScramCredentialUpsertion(USER, info, value.encode())]).values():
        future.result(60)


@pytest.mark.parametrize(("stage", "topic"), [("fetch", "fetches"), ("essence", "objects"), ("index.main", "broker.main")])
def test_refused_consumer_holds_until_mended(
    stage: str, topic: str, broker: Secured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plain consumer without the right to read its topic is not ready, with the reason, and goes on once it has the right."""
    monkeypatch.chdir(tmp_path)
    for variable in [name for name in os.environ if name.startswith("HARVEST_")]:
        monkeypatch.delenv(variable)
    told, log = environ(broker, port := free_port()), tmp_path / "worker.log"
    harvest(told, "topics", "apply")
    client = AdminClient({"bootstrap.servers": broker.open, "log_level": 0})

    def until(true: Callable[[], bool]) -> None:
        while not true():
            assert running.poll() is None, log.read_text()
            time.sleep(0.2)

    with worker(told, log, stage) as running:
        until(lambda: not readiness(port))
        acl(client, topic, AclOperation.READ, grant=False)
        try:
            until(lambda: f"READ on topic secured.{topic}" in readiness(port))
        finally:
            acl(client, topic, AclOperation.READ, grant=True)
        until(lambda: not readiness(port))
    assert running.returncode == 0, log.read_text()


Change = Callable[[AdminClient, bool], None]
CHANGES: dict[str, tuple[Change, str]] = {
    "write": (lambda client, good: acl(client, "summaries", AclOperation.WRITE, grant=good), "WRITE on topic secured.summaries"),
    "read": (lambda client, good: acl(client, "made", AclOperation.READ, grant=good), "READ on topic secured.made"),
    "password": (
        lambda client, good: password(client, PASSWORD if good else "another"),
        "kafka.security.password: the broker refuses",
    ),
}


def test_refused_worker_ends_when_it_is_asked_to(broker: Secured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that the cluster refuses ends at the first SIGTERM, also if it fails while it stops, and does not start again."""
    monkeypatch.chdir(tmp_path)
    for variable in [name for name in os.environ if name.startswith("HARVEST_")]:
        monkeypatch.delenv(variable)
    told, log = environ(broker, port := free_port()), tmp_path / "worker.log"
    harvest(told, "topics", "apply")
    here, cluster = Broker(broker.open, Topics(broker.open)), Cluster(broker.open, PREFIX)
    client = AdminClient({"bootstrap.servers": broker.open, "log_level": 0})
    change, reason = CHANGES["password"]
    with worker(told, log, "catalog") as running:
        while readiness(port):
            assert running.poll() is None, log.read_text()
            time.sleep(0.2)
        change(client, False)
        try:
            # What it makes of these cannot be sent, so that it stops with an error.
            here.append(cluster.topic("made"), objects("stopping"))
            while reason not in readiness(port):
                assert running.poll() is None, log.read_text()
                time.sleep(0.2)
            time.sleep(3)
            running.terminate()
            running.wait(200)
        finally:
            change(client, True)
    assert "waiting until it is mended" not in log.read_text()


@pytest.mark.parametrize("what", CHANGES)
def test_refused_worker_holds_until_mended(what: str, broker: Secured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A right or a login that goes bad makes a worker not ready, with the reason; mended, it goes on by itself.

    It neither ends nor rejects a record meanwhile, and loses none.
    """
    monkeypatch.chdir(tmp_path)
    for variable in [name for name in os.environ if name.startswith("HARVEST_")]:
        monkeypatch.delenv(variable)
    told = environ(broker, port := free_port())
    harvest(told, "topics", "apply")
    here, cluster = Broker(broker.open, Topics(broker.open)), Cluster(broker.open, PREFIX)
    client = AdminClient({"bootstrap.servers": broker.open, "log_level": 0})
    change, reason = CHANGES[what]
    log = tmp_path / "worker.log"

    def until(true: Callable[[], bool]) -> None:
        while not true():
            assert running.poll() is None, log.read_text()
            time.sleep(0.2)

    with worker(told, log, "catalog") as running:
        here.append(cluster.topic("made"), objects(f"{what}1"))
        until(lambda: not readiness(port) and f"{what}1" in catalogued(here, cluster))
        change(client, False)
        try:
            here.append(cluster.topic("made"), objects(f"{what}2"))
            until(lambda: reason in readiness(port))
            # Longer than a standstill may last.
            time.sleep(8)
            assert reason in readiness(port)
        finally:
            change(client, True)
        until(lambda: not readiness(port) and f"{what}2" in catalogued(here, cluster))
        assert here.read(cluster.topic("rejected"), 2) == []
    assert running.returncode == 0, log.read_text()
