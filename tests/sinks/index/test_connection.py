"""Connections to OpenSearch with TLS and a login: what works, and which setting an error names."""

from __future__ import annotations

import socket
import ssl
import threading
import traceback
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import Any

import pytest

from processors.query import parse
from schemas.records import Summary
from sinks.index.errors import IndexUnreachable
from sinks.index.opensearch.index import OpenSearchIndex
from sinks.index.opensearch.server import Server
from tests.servers.certificates import Authority
from tests.servers.fixtures import TIMEOUT
from tests.servers.nginx import Proxy, proxy

PASSWORD = "never-to-be-seen"
Make = Callable[..., Summary]
Start = Callable[..., AbstractContextManager[Proxy]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the certificates."""
    return tmp_path_factory.mktemp("certificates")


@pytest.fixture(scope="module")
def authority(folder: Path) -> Authority:
    """The CA of server and clients."""
    return Authority(folder)


@pytest.fixture
def secured(opensearch: str, authority: Authority, tmp_path: Path) -> Start:
    """Return a function that runs nginx in front of the real server, with the certificate of that name or address."""

    def start(host: str = "127.0.0.1", clients: Path | None = None) -> AbstractContextManager[Proxy]:
        return proxy(tmp_path, opensearch, {"harvest": PASSWORD}, authority.sign("server", host), clients)

    return start


@pytest.fixture
def alias(search_client: Any) -> Iterator[str]:
    """Name of an index that is deleted after the test."""
    name = f"t{uuid.uuid4().hex[:10]}"
    yield name
    search_client.indices.delete(index=f"{name}*", ignore_unavailable=True)


def test_index_is_filled_and_searched_over_tls(secured: Start, authority: Authority, alias: str, summary: Make) -> None:
    """With the CA and the login of the settings, the index works as over an open connection, and every request goes through it."""
    with secured() as running:
        server = Server(running.url, "harvest", PASSWORD, ca=str(authority.path))
        with closing(OpenSearchIndex(server, alias)) as index:
            index.apply([summary("http://a/", title="whale")], {0: 1})
            assert [hit.url for hit in index.search(parse("whale")).hits] == ["http://a/"]
            assert index.offsets() == {0: 1}
        assert any("_bulk" in request for request in running.passed())


def test_certificate_of_a_client_is_presented(secured: Start, authority: Authority, folder: Path, alias: str) -> None:
    """A server that wants a certificate gets it, also with an encrypted key; the setting is named without one."""
    certificate, key = authority.sign("client", password=b"key-secret")
    stranger, its_key = Authority(folder, "strangers").sign("stranger")
    with secured(clients=authority.path) as running:
        server = Server(running.url, "harvest", PASSWORD, str(authority.path), str(certificate), str(key), "key-secret")
        OpenSearchIndex(server, alias).close()
        passed = len(running.passed())
        with pytest.raises(IndexUnreachable, match=r"it wants a certificate \(index\.certificate\)$"):
            OpenSearchIndex(server._replace(certificate="", key=""), alias)
        with pytest.raises(IndexUnreachable, match=r"it does not accept this certificate \(index\.certificate\)$"):
            OpenSearchIndex(server._replace(certificate=str(stranger), key=str(its_key)), alias)
        assert len(running.passed()) == passed


def test_server_that_ends_the_handshake_is_named(authority: Authority) -> None:
    """A server that ends the handshake because there is no certificate, as OpenSearch itself does, is named with the setting."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(authority.path))
    context.load_cert_chain(*authority.sign("strict"))
    context.verify_mode = ssl.CERT_REQUIRED
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=refuse, args=(listener, context), daemon=True)
        thread.start()
        server = Server(f"https://127.0.0.1:{listener.getsockname()[1]}", ca=str(authority.path))
        with pytest.raises(IndexUnreachable, match=r"cannot be reached.*it wants a certificate \(index\.certificate\)$"):
            OpenSearchIndex(server, "x", writable=False)
        thread.join(TIMEOUT)


def refuse(listener: socket.socket, context: ssl.SSLContext) -> None:
    """Take one connection, refuse it in the handshake, and wait for the client to close it: it then has read the alert."""
    accepted, _ = listener.accept()
    with context.wrap_socket(accepted, server_side=True, do_handshake_on_connect=False) as connection:
        with pytest.raises(ssl.SSLError):
            connection.do_handshake()
        while socket.socket.recv(connection, 65_536):
            pass


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"password": "wrong"}, "index.password"),
        ({"user": "", "password": ""}, "index.user"),
        ({"ca": ""}, "index.ca"),
        ({"ca": "other"}, "index.ca"),
        ({"ca": "missing"}, "certificates"),
    ],
)
def test_error_names_the_setting(secured: Start, authority: Authority, folder: Path, changes: dict[str, Any], named: str) -> None:
    """A wrong login and a CA that does not match are told apart, in one line without a secret."""
    if changes.get("ca") == "other":
        changes = {"ca": str(Authority(folder, "other").path)}
    if changes.get("ca") == "missing":
        changes = {"ca": str(folder / "missing.pem")}
    with secured() as running:
        server = Server(running.url, "harvest", PASSWORD, ca=str(authority.path))._replace(**changes)
        with pytest.raises(IndexUnreachable) as raised:
            OpenSearchIndex(server, "x", writable=False)
        assert not running.passed()
    assert named in str(raised.value)
    told = "".join(traceback.format_exception(raised.value)) + repr(server) + str(server) + f"{server}"
    assert PASSWORD not in told


def test_name_that_does_not_match_is_named(secured: Start, authority: Authority) -> None:
    """A certificate for another name is refused, unless the settings say that names do not matter."""
    with secured("search.example.org") as running:
        server = Server(running.url, "harvest", PASSWORD, ca=str(authority.path))
        with pytest.raises(IndexUnreachable, match=r"index\.check_hostname"):
            OpenSearchIndex(server, "x", writable=False)
        with pytest.raises(FileNotFoundError):
            OpenSearchIndex(server._replace(check_hostname=False), f"x{uuid.uuid4().hex}", writable=False)


def test_server_without_tls_is_named(opensearch: str) -> None:
    """A server that does not speak TLS is no certificate's fault."""
    with pytest.raises(IndexUnreachable, match=r"does not speak TLS \(index\.url\)"):
        OpenSearchIndex(Server(opensearch.replace("http:", "https:")), "x", writable=False)


def test_server_with_tls_alone_is_named(secured: Start, authority: Authority) -> None:
    """An open connection to a server with TLS alone is answered by a page, which is understood."""
    with secured() as running:
        server = Server(running.url.replace("https:", "http:"), "harvest", PASSWORD, ca=str(authority.path))
        with pytest.raises(IndexUnreachable, match=r"it speaks TLS only \(index\.url\)$"):
            OpenSearchIndex(server, "x", writable=False)
