"""The whole pipeline on a broker with TLS, logins and ACLs, and the errors of wrong passwords, certificates and protocols."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from aiokafka.client import AIOKafkaClient  # type: ignore[import-untyped]
from faust.transport.drivers.aiokafka import credentials_to_aiokafka_auth
from faust.types import TP
from rocksdict import Options, Rdict
from typer.testing import CliRunner, Result

from streams.cli.app import app
from streams.kafka.client.admin import Admin, TopicPlan
from streams.kafka.client.cluster import Cluster
from streams.kafka.client.producer import ordered_producer
from streams.kafka.client.reach import Contact
from streams.kafka.client.security import Security
from streams.kafka.decide.apps import application
from streams.kafka.decide.credentials import credentials
from streams.kafka.decide.recovering import Filling
from streams.sandbox.seal import die_with
from tests.servers.certificates import Authority
from tests.streams.kafka import secured
from tests.streams.kafka.secured import FREE, PASSWORD, PREFIX, USER, Secured

# One worker, so that the broker of the module starts once.
pytestmark = [pytest.mark.slow(60), pytest.mark.servers, pytest.mark.xdist_group("secured")]
SETTING = "HARVEST_KAFKA_"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """The broker; nothing that it writes has the password, but the settings that the test gave it."""
    folder = tmp_path_factory.mktemp("secured")
    with secured.running(folder) as found:
        yield found
    assert PASSWORD not in (folder / "server" / "server.log").read_text("utf-8", "replace")


@pytest.fixture
def told(broker: Secured, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, str]:
    """The environment of `harvest` for the broker, in a folder of the test; changes are seen by the next command."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("streams.kafka.client.reach.FIRST", 1.0)
    for variable in [name for name in os.environ if name.startswith("HARVEST_")]:
        monkeypatch.delenv(variable)
    (tmp_path / "password").write_text(f"{PASSWORD}\n")
    security = {"PROTOCOL": "SASL_SSL", "USER": USER, "PASSWORD_FILE": str(tmp_path / "password"), "CA": broker.ca}
    more = {"BROKERS": broker.login, "PREFIX": PREFIX, "PARTITIONS": "2", "CLIENT": "socket.keepalive.enable=true"}
    return {SETTING + name: value for name, value in (more | {f"SECURITY_{k}": v for k, v in security.items()}).items()}


def harvest(told: Mapping[str, str], *arguments: str, code: int = 0) -> Result:
    """Run a command in this process; its output has no secret."""
    result = CliRunner().invoke(app, arguments, env=dict(told))
    assert PASSWORD not in result.output
    assert result.exit_code == code, (result.output, result.exception)
    return result


@contextmanager
def worker(told: Mapping[str, str], log: Path, *stages: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run `harvest worker` in a process of its own, stopped in order at the end of the block."""
    command = [sys.executable, "-m", "streams.cli", "worker", *stages, "--data", "data"]
    environ = {**os.environ, **told, "HARVEST_GATHERER": "test"}
    with log.open("ab") as out:
        process = subprocess.Popen(
            command,
            env=environ,
            stdout=out,
            stderr=out,
            preexec_fn=partial(die_with, os.getpid()),  # noqa: PLW1509 - the call that it makes is safe
        )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


def urls(found: Result) -> set[str]:
    """The URLs of the hits of a search."""
    return {json.loads(line)["url"] for line in found.stdout.splitlines()}


def test_pipeline_works_with_login_and_acls(told: dict[str, str], root: Path, tmp_path: Path) -> None:
    """With SASL_SSL and the ACLs of the README, topics are made, and all stages fill an index, as in a data folder.

    Neither commands nor workers write the password.
    """
    corpus = str(root / "tests" / "samples" / "corpus")
    assert ", 0 differences" not in harvest(told, "topics", "apply").stderr
    assert "as they should be" in harvest(told, "topics", "apply").stderr
    harvest(told, "roots", "add", corpus)
    log = tmp_path / "worker.log"
    with worker(told, log) as running:
        harvest({}, "gather", corpus, "--data", "alone")
        wanted = urls(harvest({}, "search", "*", "--json", "--limit", "1000", "--data", "alone"))
        while running.poll() is None and _found(told) != wanted:
            time.sleep(1.0)
        assert running.poll() is None, log.read_text()
        assert f"kafka: {told['HARVEST_KAFKA_BROKERS']}: SASL_SSL, SCRAM-SHA-512, user {USER}, " in (found := _doctor(told))
        assert ", speaks protocols of Kafka 4.1 or later (" in found
        assert "ok      kafka ACLs: grant what all stages need" in found
    assert running.returncode == 0
    text = log.read_text()
    assert PASSWORD not in text
    assert "kafka.client: Faust's client has no socket.keepalive.enable" in text
    assert "uthoriz" not in text
    assert len(wanted) > 5


def _found(told: Mapping[str, str]) -> set[str]:
    """The URLs in the index of the workers; none before there is one."""
    result = CliRunner().invoke(app, ["search", "*", "--json", "--limit", "1000", "--data", "data"], env=dict(told))
    return urls(result) if result.exit_code == 0 else set()


def _doctor(told: Mapping[str, str]) -> str:
    """The output of `harvest doctor`, whatever it finds on this machine."""
    result = CliRunner().invoke(app, ["doctor", "--data", "data"], env=dict(told))
    assert PASSWORD not in result.output
    return result.stdout


@pytest.mark.parametrize(
    ("changed", "line"),
    [
        (
            {"PASSWORD": "wrong", "PASSWORD_FILE": ""},
            "kafka.security.user, kafka.security.password: the broker refuses the login",
        ),
        (
            {"MECHANISM": "SCRAM-SHA-256"},
            "kafka.security.mechanism: the broker does not offer SCRAM-SHA-256 (it offers SCR",
        ),
        ({"CA": "OTHER"}, "kafka.security.ca: "),
        ({"PROTOCOL": "SASL_PLAINTEXT", "CA": ""}, "kafka.security.protocol: the broker's listener speaks TLS"),
        ({"BROKERS": "NAME"}, "kafka.brokers, kafka.security.check_hostname: Hostname mismatch"),
        ({"BROKERS": "OPEN"}, "kafka.security.protocol: the broker's listener does not speak SASL_SSL"),
        ({"BROKERS": "MUTUAL", "PROTOCOL": "SSL", "USER": "", "PASSWORD_FILE": ""}, "kafka.security.certificate: "),
    ],
    ids=["password", "mechanism", "ca", "no tls", "host", "no login", "certificate"],
)
def test_wrong_security_is_one_line_that_names_the_setting(
    changed: dict[str, str], line: str, broker: Secured, told: dict[str, str], tmp_path: Path
) -> None:
    """A wrong login, certificate or protocol ends a command with code 1 and one line, which begins with brokers and setting.

    With a wrong password both checks of `doctor` that ask the brokers give that reason.
    """
    values = {
        "OTHER": str(Authority(tmp_path, "other").path),
        "NAME": broker.login.replace("127.0.0.1", "localhost"),
        "OPEN": broker.open,
        "MUTUAL": broker.mutual,
    }
    for name, value in changed.items():
        told[SETTING + (name if name == "BROKERS" else f"SECURITY_{name}")] = values.get(value, value)
    error = harvest(told, "topics", "list", code=1).stderr
    assert error.startswith(f"harvest: {told['HARVEST_KAFKA_BROKERS']}: {line}")
    assert error.count("\n") == 1
    if "PASSWORD" in changed:
        with worker(told, tmp_path / "worker.log") as running:
            assert running.wait() == 1
        assert (tmp_path / "worker.log").read_text() == error
        found = _doctor(told)
        for check in ("kafka", "kafka ACLs"):
            assert f"NOT OK  {check}: {told['HARVEST_KAFKA_BROKERS']}: {line}" in found


def test_topics_outside_the_acls_are_refused_by_name(told: dict[str, str]) -> None:
    """A prefix for which the user has no rights is one line that names topic and user; a worker says that ACLs may hide topics."""
    told["HARVEST_KAFKA_PREFIX"] = "other."
    error = harvest(told, "topics", "apply", code=1).stderr
    assert error.startswith(f"harvest: other.crawl: {told['HARVEST_KAFKA_BROKERS']}: the ACLs refuse this to {USER}: ")
    assert error.count("\n") == 1
    told["HARVEST_GATHERER"] = "test"
    assert "NOT OK  kafka ACLs: refused: frontier: READ WRITE DESCRIBE_CONFIGS on topic other.crawl; " in _doctor(told)
    assert f"unless ACLs hide them from {USER})" in harvest(told, "worker", "catalog", code=1).stderr


def test_tables_are_filled_by_a_group_of_the_prefix(broker: Secured, tmp_path: Path) -> None:
    """The client that fills tables needs no right for a group without the prefix; if refused, it would leave rows to Faust."""
    cluster = Cluster(broker.login, FREE, security=Security(protocol="SASL_SSL", user=USER, password=PASSWORD, ca=broker.ca))
    topic = cluster.topic("filled")
    list(Admin(cluster).apply([TopicPlan(topic, 1, 1, {})]))
    producer = ordered_producer(cluster.client())
    producer.produce(topic, b"row", b"key")
    assert producer.flush(30) == 0
    tables: Any = application("filling", cluster, tmp_path / "app", 1).tables
    offsets: dict[TP, Any] = {}
    with closing(Rdict(str(tmp_path / "store"), Options(raw_mode=True))) as store:
        Filling(tables.recovery._client, {TP(topic, 0): store}, offsets, b"own").run()
        assert (store[b"key"], offsets) == (b"row", {TP(topic, 0): 0})


class Tokens(BaseHTTPRequestHandler):
    """A server of unsecured tokens (RFC 7519, 6), which brokers accept that are not set up for others."""

    def do_POST(self) -> None:
        """Give a token to whoever asks."""
        now = int(time.time())
        parts = ({"alg": "none"}, {"sub": USER, "iat": now, "exp": now + 300})
        token = ".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts) + "."
        body = json.dumps({"access_token": token, "token_type": "Bearer", "expires_in": 300}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@contextmanager
def tokens() -> Iterator[str]:
    """The URL of a running server of tokens."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Tokens) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/token"
        server.shutdown()


@pytest.mark.parametrize("how", ["SCRAM-SHA-512", "PLAIN", "OAUTHBEARER", "mTLS"])
def test_both_clients_log_in(how: str, broker: Secured, tmp_path: Path) -> None:
    """confluent-kafka and Faust's client log in with each mechanism, and with a certificate."""
    with tokens() as url:
        login: dict[str, Any] = {"user": USER, "password": PASSWORD}
        if how == "OAUTHBEARER":
            login = {"token_url": url, "client_id": "it", "client_secret": "horse"}
        security = Security(protocol="SASL_SSL", mechanism=how, ca=broker.ca, **login)
        address = broker.login
        if how == "mTLS":
            certificate, key = Authority.sign(broker.authority, "it", password=PASSWORD.encode())
            files: dict[str, Any] = {"certificate": str(certificate), "key": str(key), "key_password": PASSWORD}
            security, address = Security(protocol="SSL", ca=broker.ca, **files), broker.mutual
        assert Contact(Cluster(address, security=security)).metadata(30).brokers
        assert asyncio.run(_brokers(address, security)) == 1


async def _brokers(address: str, security: Security) -> int:
    """The number of brokers that Faust's client is told of."""
    client = AIOKafkaClient(bootstrap_servers=address, **credentials_to_aiokafka_auth(credentials(security)))
    try:
        await client.bootstrap()
        return len(client.cluster.brokers())
    finally:
        await client.close()
