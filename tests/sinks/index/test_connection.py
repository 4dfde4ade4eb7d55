"""Connections to OpenSearch with TLS and a login: what works, and which setting an error names."""

from __future__ import annotations

import traceback
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from processors.query import parse
from schemas.records import Summary
from sinks.index.errors import IndexUnreachable
from sinks.index.opensearch.index import OpenSearchIndex
from sinks.index.opensearch.server import Server
from tests.servers.certificates import Authority
from tests.servers.tls_proxy import TlsProxy, tls_proxy

PASSWORD = "never-to-be-seen"
Make = Callable[..., Summary]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the certificates."""
    return tmp_path_factory.mktemp("certificates")


@pytest.fixture(scope="module")
def authority(folder: Path) -> Authority:
    """The CA of server and clients."""
    return Authority(folder)


@pytest.fixture
def proxy(opensearch: str) -> TlsProxy:
    """A proxy in front of the real server, which is not running yet."""
    return TlsProxy(opensearch, "harvest", PASSWORD)


@pytest.fixture
def alias(search_client: Any) -> Iterator[str]:
    """Name of an index that is deleted after the test."""
    name = f"t{uuid.uuid4().hex[:10]}"
    yield name
    search_client.indices.delete(index=f"{name}*", ignore_unavailable=True)


def test_index_is_filled_and_searched_over_tls(proxy: TlsProxy, authority: Authority, alias: str, summary: Make) -> None:
    """With the CA and the login of the settings, the index works as over an open connection, and every request goes through it."""
    with tls_proxy(proxy, authority.sign("server")) as url:
        server = Server(url, "harvest", PASSWORD, ca=str(authority.path))
        with closing(OpenSearchIndex(server, alias)) as index:
            index.apply([summary("http://a/", title="whale")], {0: 1})
            assert [hit.url for hit in index.search(parse("whale")).hits] == ["http://a/"]
            assert index.offsets() == {0: 1}
    assert any("_bulk" in request for request in proxy.seen)


def test_certificate_of_a_client_is_presented(proxy: TlsProxy, authority: Authority, alias: str) -> None:
    """A server that wants a certificate gets it, also with an encrypted key; without it the error names the setting."""
    certificate, key = authority.sign("client", password=b"key-secret")
    with tls_proxy(proxy, authority.sign("server"), authority.path) as url:
        server = Server(url, "harvest", PASSWORD, str(authority.path), str(certificate), str(key), "key-secret")
        OpenSearchIndex(server, alias).close()
        with pytest.raises(IndexUnreachable, match=r"cannot be reached|index\.certificate"):
            OpenSearchIndex(server._replace(certificate="", key=""), alias)


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
def test_error_names_the_setting(proxy: TlsProxy, authority: Authority, folder: Path, changes: dict[str, Any], named: str) -> None:
    """A wrong login and a CA that does not match are told apart, in one line without a secret."""
    if changes.get("ca") == "other":
        changes = {"ca": str(Authority(folder, "other").path)}
    if changes.get("ca") == "missing":
        changes = {"ca": str(folder / "missing.pem")}
    with tls_proxy(proxy, authority.sign("server")) as url:
        server = Server(url, "harvest", PASSWORD, ca=str(authority.path))._replace(**changes)
        with pytest.raises(IndexUnreachable) as raised:
            OpenSearchIndex(server, "x", writable=False)
    assert named in str(raised.value)
    told = "".join(traceback.format_exception(raised.value)) + repr(server) + str(server) + f"{server}"
    assert PASSWORD not in told
    assert not proxy.seen


def test_name_that_does_not_match_is_named(proxy: TlsProxy, authority: Authority) -> None:
    """A certificate for another name is refused, unless the settings say that names do not matter."""
    with tls_proxy(proxy, authority.sign("elsewhere", "search.example.org")) as url:
        server = Server(url, "harvest", PASSWORD, ca=str(authority.path))
        with pytest.raises(IndexUnreachable, match=r"index\.check_hostname"):
            OpenSearchIndex(server, "x", writable=False)
        with pytest.raises(FileNotFoundError):
            OpenSearchIndex(server._replace(check_hostname=False), f"x{uuid.uuid4().hex}", writable=False)


def test_server_without_tls_is_named(opensearch: str) -> None:
    """A server that does not speak TLS is no certificate's fault."""
    with pytest.raises(IndexUnreachable, match=r"does not speak TLS \(index\.url\)"):
        OpenSearchIndex(Server(opensearch.replace("http:", "https:")), "x", writable=False)
