"""Security of the connections: what each client is given, and what errors say of the settings. Without a broker."""

from __future__ import annotations

import asyncio
import ssl
import traceback
from pathlib import Path
from typing import Any, Self

import faust
import pytest
from aiohttp import web
from confluent_kafka import KafkaError, KafkaException
from faust.auth import OAuthCredentials

from streams.config.settings import load
from streams.kafka.client.acls import rights_of_stages
from streams.kafka.client.brokers import written_topics
from streams.kafka.client.cluster import Cluster, ClusterError, cluster_error, is_refusal, sentence
from streams.kafka.client.producer import ordered_producer, worker_client
from streams.kafka.client.reach import ClientSettingsError, Contact
from streams.kafka.client.registry import Registry
from streams.kafka.client.security import Security
from streams.kafka.decide.credentials import TokenError, TokenProvider, credentials, equal_settings
from streams.kafka.worker.worker import WorkerSettings
from streams.topology.flow import TopologySettings, topology
from tests.servers.certificates import Authority

SECRET = "correct-horse"
LOGIN: dict[str, Any] = {"user": "harvest", "password": SECRET}
OAUTH: dict[str, Any] = {"token_url": "https://id.test/token", "client_id": "it", "client_secret": SECRET, "scope": "kafka"}
TLS = {"security.protocol": "SSL", "ssl.endpoint.identification.algorithm": "https"}


@pytest.mark.parametrize(
    ("security", "client"),
    [
        (Security(), {}),
        (Security(protocol="SSL"), TLS),
        (Security(protocol="SSL", check_hostname=False), TLS | {"ssl.endpoint.identification.algorithm": "none"}),
        (
            Security(protocol="SSL", ca="ca", certificate="it", key="key", key_password=SECRET),
            TLS
            | {
                "ssl.ca.location": "ca",
                "ssl.certificate.location": "it",
                "ssl.key.location": "key",
                "ssl.key.password": SECRET,
            },
        ),
        *(
            (
                Security(protocol="SASL_PLAINTEXT", mechanism=mechanism, **LOGIN),
                {
                    "security.protocol": "SASL_PLAINTEXT",
                    "sasl.mechanism": mechanism,
                    "sasl.username": "harvest",
                    "sasl.password": SECRET,
                },
            )
            for mechanism in ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
        ),
        (
            Security(protocol="SASL_SSL", mechanism="OAUTHBEARER", token_ca="idp", **OAUTH),
            TLS
            | {
                "security.protocol": "SASL_SSL",
                "sasl.mechanism": "OAUTHBEARER",
                "sasl.oauthbearer.method": "oidc",
                "sasl.oauthbearer.token.endpoint.url": "https://id.test/token",
                "sasl.oauthbearer.client.id": "it",
                "sasl.oauthbearer.client.secret": SECRET,
                "sasl.oauthbearer.scope": "kafka",
                "https.ca.location": "idp",
            },
        ),
    ],
    ids=["open", "tls", "any host", "mtls", "plain", "scram-256", "scram-512", "oauth"],
)
def test_confluent_client_gets_security(security: Security, client: dict[str, str]) -> None:
    """The settings of librdkafka have protocol, login and certificates; a client accepts them."""
    assert security.confluent() == client
    if not any(name.endswith(".location") for name in client):
        # Raises an error at a setting that librdkafka does not know.
        Contact(Cluster("127.0.0.1:1", security=security))


def test_further_settings_reach_clients_and_override_tuning() -> None:
    """Settings of `kafka.client` are given to each client, also where Harvest has a value of its own."""
    cluster = Cluster("a:1", further=(("linger.ms", "3"), ("fetch.wait.max.ms", "7")))
    found = cluster.client(fetch__wait__max__ms=50, group__id="g")
    assert (found["linger.ms"], found["fetch.wait.max.ms"], found["group.id"]) == ("3", "7", "g")


@pytest.mark.parametrize(
    ("further", "line"),
    [
        ((("no.such", "x"),), 'kafka.client: No such configuration property: "no.such"'),
        ((("socket.timeout.ms", "much"),), "kafka.client: Invalid value"),
    ],
)
def test_unknown_further_setting_is_an_error_before_connecting(further: tuple[tuple[str, str], ...], line: str) -> None:
    """A setting that librdkafka refuses is an error of one line when a client is made."""
    with pytest.raises(ClientSettingsError, match=line) as error:
        Contact(Cluster("127.0.0.1:1", further=further))
    assert len(str(error.value).splitlines()) == 1


def test_faust_client_has_equals_of_some_settings() -> None:
    """Further settings that Faust's client has are given to it; the others are named."""
    given = {"metadata.max.age.ms": "1000", "linger.ms": "3", "debug": "all"}
    assert equal_settings(given) == ({"consumer_metadata_max_age_ms": 1000}, ["debug", "linger.ms"])


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
@pytest.mark.parametrize("protocol", ["SASL_PLAINTEXT", "SASL_SSL"])
def test_faust_client_gets_login(protocol: str, mechanism: str) -> None:
    """Faust's credentials have the protocol, the mechanism, and user and password."""
    found = credentials(Security(protocol=protocol, mechanism=mechanism, **LOGIN))
    assert isinstance(found, faust.SASLCredentials)
    assert (found.protocol.value, found.mechanism.value) == (protocol, mechanism)
    assert (found.username, found.password) == ("harvest", SECRET)
    assert (found.ssl_context is not None) == (protocol == "SASL_SSL")


def test_faust_client_gets_certificates(tmp_path: Path) -> None:
    """Faust's TLS context trusts the CA alone, checks host names unless told otherwise, and has the client's certificate."""
    authority = Authority(tmp_path)
    certificate, key = authority.sign("it", password=SECRET.encode())
    files: dict[str, Any] = {"ca": str(authority.path), "certificate": str(certificate), "key": str(key), "key_password": SECRET}
    found = credentials(Security(protocol="SSL", **files))
    assert isinstance(found, faust.SSLCredentials)
    assert found.context.check_hostname
    assert found.context.verify_mode is ssl.CERT_REQUIRED
    assert [one["subject"] for one in found.context.get_ca_certs()] == [((("commonName", "ca"),),)]
    open_to_any = credentials(Security(protocol="SSL", check_hostname=False, **files))
    assert isinstance(open_to_any, faust.SSLCredentials)
    assert not open_to_any.context.check_hostname
    assert open_to_any.context.verify_mode is ssl.CERT_REQUIRED


def test_open_cluster_needs_no_credentials() -> None:
    """Without security Faust's client gets none."""
    assert credentials(Security()) is None


class Issuer:
    """A server of tokens on a free port; it answers as it is told."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.answer = web.json_response({"access_token": "t1", "expires_in": 100})
        self.url = ""

    async def _give(self, request: web.Request) -> web.Response:
        self.asked.append((request.headers["Authorization"], dict(await request.post())))
        answer = self.answer
        return web.Response(status=answer.status, body=answer.body, headers=answer.headers)

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_post("/token", self._give)
        self._runner = web.AppRunner(app)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}/token"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()


def test_token_is_requested_again_before_it_expires() -> None:
    """A token is used until four fifths of its life are over; the request has the client's login and the scope."""
    now = [0.0]

    async def run() -> None:
        async with Issuer() as issuer:
            provider = TokenProvider(Security(**OAUTH | {"token_url": issuer.url}), lambda: now[0])
            assert [await provider.token() for now[0] in (0.0, 79.0)] == ["t1", "t1"]
            assert len(issuer.asked) == 1
            issuer.answer = web.json_response({"access_token": "t2"})
            now[0] = 80.0
            assert await provider.token() == "t2"
            assert issuer.asked[0] == ("Basic aXQ6Y29ycmVjdC1ob3JzZQ==", {"grant_type": "client_credentials", "scope": "kafka"})

    asyncio.run(run())


@pytest.mark.parametrize(
    ("answer", "line"),
    [
        (web.Response(status=401, text="no"), "refuses the client"),
        (web.Response(text="{}"), "no token"),
        (web.Response(text="[]"), "no token"),
        (web.Response(text="<html>"), "no token"),
        (web.Response(status=302, headers={"Location": "http://127.0.0.1:1/"}), "refuses the client"),
    ],
    ids=["refused", "empty", "list", "page", "elsewhere"],
)
def test_token_error_is_one_line_without_secret(answer: web.Response, line: str) -> None:
    """A server of tokens that gives none is an error that names the setting; its traceback has no secret."""

    async def run() -> None:
        async with Issuer() as issuer:
            issuer.answer = answer
            provider = TokenProvider(Security(**OAUTH | {"token_url": issuer.url}))
            with pytest.raises(TokenError, match=rf"^kafka\.security\.token_url: .*{line}") as error:
                await provider.token()
            assert SECRET not in "".join(traceback.format_exception(error.value))

    asyncio.run(run())


def test_token_server_that_is_away_is_an_error() -> None:
    """A server of tokens that cannot be reached is an error that names the setting."""
    provider = TokenProvider(Security(**OAUTH | {"token_url": "http://127.0.0.1:1/token"}))
    with pytest.raises(TokenError, match=r"^kafka\.security\.token_url: http://127\.0\.0\.1:1/token: Client"):
        asyncio.run(provider.token())


def test_registry_client_gets_login_and_ca() -> None:
    """The client of the Schema Registry has a login and a CA of its own."""
    security = Security(registry_user="me", registry_password="a:b", registry_ca="ca")
    found = {"url": "https://r", "basic.auth.user.info": "me:a:b", "ssl.ca.location": "ca"}
    assert security.registry("https://r") == found
    assert Security().registry("http://r") == {"url": "http://r"}


def test_token_error_is_a_lost_connection_for_the_client() -> None:
    """Aiokafka retries after errors of the operating system; any other error of a token would end the worker."""
    assert issubclass(TokenError, OSError)


def test_settings_of_other_kinds_of_clients_are_not_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    """A further setting for consumers may be given to a producer, which logs nothing of it."""
    producer = ordered_producer(worker_client(Cluster("127.0.0.1:1", further=(("fetch.min.bytes", "7"), ("linger.ms", "3")))))
    while not any("Connect" in line for line in caplog.messages):
        producer.poll(0.1)
    assert not [line for line in caplog.messages if "CONFWARN" in line]


def test_login_of_the_registry_is_in_no_error(tmp_path: Path) -> None:
    """A registry that cannot be reached is a line without its login."""
    files = {"registry_ca": str(Authority(tmp_path).path)}
    security = Security(registry_user="me", registry_password=SECRET, **files)  # type: ignore[arg-type] # texts only
    cluster = Cluster("a:1", registry="https://127.0.0.1:1", security=security)
    registry = Registry(cluster, topology(TopologySettings()).topics)
    registry._client._rest_client.max_retries = 0
    with pytest.raises(ClusterError, match=r"^https://127\.0\.0\.1:1: the Schema Registry: ") as error:
        registry.known("crawl")
    assert SECRET not in "".join(traceback.format_exception(error.value))


def test_no_secret_in_representation(tmp_path: Path) -> None:
    """Neither settings, nor the values made of them, nor Faust's credentials show a secret."""
    names = ("PASSWORD", "CLIENT_SECRET", "KEY_PASSWORD", "REGISTRY_PASSWORD")
    authority = Authority(tmp_path)
    certificate, key = authority.sign("it", password=SECRET.encode())
    told = {"CERTIFICATE": str(certificate), "KEY": str(key), "REGISTRY_USER": "u", "PROTOCOL": "SASL_SSL", "USER": "u"}
    told |= dict.fromkeys([name for name in names if name != "CLIENT_SECRET"], SECRET)
    found = load({}, None, {f"HARVEST_KAFKA_SECURITY_{name}": value for name, value in told.items()})
    cluster = Cluster.of(found.kafka)
    assert cluster.security.password == cluster.security.key_password == cluster.security.registry_password == SECRET
    worker = WorkerSettings(brokers=("a:1",), folder=tmp_path, security=cluster.security)
    oauth = Security(protocol="SASL_SSL", mechanism="OAUTHBEARER", **OAUTH)
    shown = [found, found.kafka, cluster, cluster.security, worker, oauth, credentials(oauth), credentials(cluster.security)]
    assert isinstance(credentials(oauth), OAuthCredentials)
    shown += [cluster.security.summary(), oauth.summary(), found.model_dump()]
    assert [one for one in shown if SECRET in f"{one!r} {one}"] == []


def test_rights_cover_what_each_stage_reads_and_writes() -> None:
    """Each topic of a stage, its changelog and its group have a right; none of a stage creates or changes topics."""
    drawn = topology(TopologySettings())
    found = {(one.who, one.kind, one.name): one.operations for one in rights_of_stages(drawn)}
    for stage in drawn.stages:
        assert all("READ" in found[stage.name, "topic", topic.name] for topic in stage.inputs)
        assert all("WRITE" in found[stage.name, "topic", name] for name in written_topics(stage))
        assert "READ" in found[stage.name, "group", stage.name]
    assert found["catalog", "topic", "catalog-rows-changelog"] == ("READ", "WRITE", "DESCRIBE_CONFIGS")
    assert {operation for operations in found.values() for operation in operations} == {"READ", "WRITE", "DESCRIBE_CONFIGS"}


@pytest.mark.parametrize(
    ("security", "text"),
    [
        (Security(), "PLAINTEXT"),
        (Security(protocol="SSL"), "SSL"),
        (Security(protocol="SSL", certificate="/x/it.pem"), "SSL with the certificate it.pem"),
        (Security(protocol="SASL_SSL", **LOGIN), "SASL_SSL, SCRAM-SHA-512, user harvest"),
        (Security(protocol="SASL_SSL", mechanism="OAUTHBEARER", **OAUTH), "SASL_SSL, OAUTHBEARER, client it"),
    ],
)
def test_summary_names_protocol_mechanism_and_user(security: Security, text: str) -> None:
    """The summary for people has protocol, mechanism and user."""
    assert security.summary() == text


def test_refused_login_in_a_running_client_names_settings() -> None:
    """An error of a client that tells of the login becomes a line that names the settings."""
    cluster = Cluster("a:1", security=Security(protocol="SASL_SSL", **LOGIN))
    text = "SASL authentication error: Authentication failed: Invalid username or password (after 3ms)"
    line = sentence(cluster, KafkaError(KafkaError._AUTHENTICATION, text))
    assert line == "a:1: kafka.security.user, kafka.security.password: the broker refuses the login of harvest"


@pytest.mark.parametrize(("code", "refused"), [(KafkaError.TOPIC_AUTHORIZATION_FAILED, True), (KafkaError._TRANSPORT, False)])
def test_failure_shows_that_the_acls_refuse(code: int, *, refused: bool) -> None:
    """A refusal is recognized as the client raises it and as a ClusterError: a worker that fails by one starts again."""
    error = KafkaError(code)
    assert is_refusal(KafkaException(error)) is is_refusal(cluster_error(Cluster("b:1"), error)) is refused
    assert not is_refusal(KafkaException("no error of the broker"))
    assert not is_refusal(OSError("no answer"))
