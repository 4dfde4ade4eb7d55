"""Listeners that are no broker, or whose certificate has expired: what the first contact says of them."""

from __future__ import annotations

import re
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from typer.testing import CliRunner

from streams.cli.app import app
from streams.kafka.client.api_versions import broker_protocol, kafka_version
from streams.kafka.client.cluster import Cluster
from tests.servers.certificates import Authority
from tests.servers.sharing import SESSION

pytestmark = pytest.mark.servers
HTTP = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"


@contextmanager
def listener(context: ssl.SSLContext | None, answer: bytes) -> Iterator[str]:
    """A listener that answers whatever it gets with the same bytes; yields its address."""
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                client = server.accept()[0]
            except OSError:
                return
            try:
                with closing(context.wrap_socket(client, server_side=True) if context else client) as there:
                    there.recv(1024)
                    there.sendall(answer)
            except OSError:
                client.close()

    threading.Thread(target=serve, daemon=True).start()
    with closing(server):
        yield f"127.0.0.1:{server.getsockname()[1]}"


def error(address: str, monkeypatch: pytest.MonkeyPatch, **security: str) -> str:
    """The line with which a worker ends."""
    monkeypatch.setattr("streams.kafka.client.brokers.TIMEOUT", 3.0)
    monkeypatch.setattr("streams.kafka.client.reach.FIRST", 1.0)
    given: dict[str, str | None] = {SESSION: None, "HARVEST_GATHERER": "x", "HARVEST_KAFKA_BROKERS": address}
    given |= {f"HARVEST_KAFKA_SECURITY_{name}": value for name, value in security.items()}
    result = CliRunner().invoke(app, ["worker", "catalog"], env=given)
    assert result.exit_code == 1, (result.output, result.exception)
    assert result.stderr.count("\n") == 1
    return result.stderr


def test_expired_certificate_of_broker_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A worker does not start at a broker whose certificate has expired; one line says so."""
    authority = Authority(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.sign("old", days=-1))
    with listener(context, b"") as address:
        said = error(address, monkeypatch, PROTOCOL="SSL", CA=str(authority.path))
    assert said.startswith(f"harvest: {address}: kafka.security.ca: ")
    assert said.endswith(": certificate has expired\n")


def test_listener_of_another_protocol_is_no_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker does not start at a listener that speaks HTTP; one line names the setting and the address."""
    with listener(None, HTTP) as address:
        said = error(address, monkeypatch)
    assert said == f"harvest: kafka.brokers: none of {address} answers\n"


def test_version_of_kafka_is_inferred_from_its_protocol(kafka: str) -> None:
    """The broker of the tests, Kafka 4.1, is known by the highest versions of its APIs; a listener that is no broker by nothing."""
    assert re.fullmatch(
        r"speaks protocols of Kafka 4\.1 or later \(Produce up to 1\d, Fetch up to 1\d\)", broker_protocol(Cluster(kafka))
    )
    for answer in (HTTP, b"", b"\0\0\0\x0a" + bytes(10)):
        with listener(None, answer) as address:
            assert broker_protocol(Cluster(address)) == ""


@pytest.mark.parametrize(
    ("highest", "version"),
    [
        ({0: 11, 1: 17}, "Kafka 3.9"),
        ({0: 12, 1: 17}, "Kafka 4.0"),
        ({0: 9, 1: 13}, "Kafka 3.1"),
        ({0: 8, 1: 11}, "a Kafka before 2.7"),
    ],
)
def test_older_versions_are_told_apart(highest: dict[int, int], version: str) -> None:
    """A broker is of the newest version all of whose marks it has."""
    assert kafka_version(highest) == version
