"""A real server: hostile and slow clients, an end in order."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from http.client import HTTPConnection
from pathlib import Path
from typing import NoReturn
from urllib.parse import urlsplit

import pytest

from sinks.gateway import guard, server
from sinks.gateway.options import GatewayOptions
from tests.sinks.gateway.clients import get, hostile_client
from tests.sinks.gateway.doubles import CollectionDouble
from tests.sinks.gateway.serving import gateway

MEMORY = 400 << 20
"""Growth of resident memory in bytes that two hundred clients may cause."""


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A gateway, and the URL of its search page."""
    with gateway(tmp_path_factory.mktemp("served") / "index") as started:
        yield started


@pytest.mark.slow(20)
def test_two_hundred_clients_are_served(tmp_path: Path) -> None:
    """Among a hundred hostile clients, the searches of a hundred others are answered, and memory is bounded.

    Then one signal ends the gateway in order.
    """
    with gateway(tmp_path / "index", queue=256, timeout=60) as (process, url), ThreadPoolExecutor(200) as clients:
        get(url, "/api/search?q=whale")
        before = _resident(process.pid)
        stop = threading.Event()
        hostile = [clients.submit(hostile_client, url, at, stop) for at in range(100)]
        try:
            asked = [
                clients.submit(get, url, f"/api/search?q=krill&page={at % 3 + 1}", f"127.0.2.{at % 100 + 1}") for at in range(500)
            ]
            answers = [each.result() for each in asked]
        finally:
            stop.set()
        assert Counter(status for status, _ in answers) == {200: 500}
        assert {json.loads(body)["total"] for _, body in answers} == {62}
        assert sum((each.result() for each in hostile), Counter()).total() >= 100
        assert _resident(process.pid) - before < MEMORY
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0


def test_address_that_is_too_long_is_refused(running: tuple[subprocess.Popen[str], str]) -> None:
    """The refusal has a status of its own, which OpenAPI names, whether or not the end of the address was read."""
    parts = urlsplit(running[1])
    described = json.loads(get(running[1], "/openapi.json")[1])["paths"]["/api/why"]["get"]["responses"]
    for length, end, status in [(guard.MAX_URL, " HTTP/1.1\r\nHost: localhost\r\n\r\n", 414), (server.MAX_HEAD, "", 431)]:
        with socket.create_connection((parts.hostname or "", parts.port or 0), 60) as peer:
            peer.sendall(f"GET /api/why?url={'a' * length}{end}".encode("ascii"))
            assert peer.recv(100).split()[1] == str(status).encode("ascii")
        assert str(status) in described


def _resident(pid: int) -> int:
    """Resident memory of a process in bytes."""
    return int(Path(f"/proc/{pid}/statm").read_text("ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_slow_request_is_ended(tmp_path: Path) -> None:
    """A request that does not arrive in time is closed, however slowly it goes on; others are answered meanwhile."""
    with gateway(tmp_path / "index", patience=2) as (_, url):
        _send_slowly(url)


def _send_slowly(url: str) -> None:
    """Send a request letter by letter until the connection is closed."""
    parts = urlsplit(url)
    with socket.create_connection((parts.hostname or "", parts.port or 0), 60) as peer:
        peer.settimeout(0.5)
        began = time.monotonic()
        while time.monotonic() - began < 120:
            assert get(url, "/livez") == (200, b"ok\n")
            try:
                peer.sendall(b"G")
                if not peer.recv(100):
                    return
            except TimeoutError:
                continue
            except OSError:
                return
    pytest.fail("the connection is still open")


def test_one_client_has_a_limited_number_of_connections(running: tuple[subprocess.Popen[str], str]) -> None:
    """Connections that a client keeps open do not take those of others."""
    parts = urlsplit(running[1])
    held = [
        socket.create_connection((parts.hostname or "", parts.port or 0), 60, ("127.0.3.1", 0)) for _ in range(server.CONNECTIONS)
    ]
    try:
        with pytest.raises(OSError, match=r"."):
            get(running[1], "/livez", "127.0.3.1")
        assert get(running[1], "/livez", "127.0.3.2") == (200, b"ok\n")
    finally:
        for each in held:
            each.close()


def test_whole_stream_is_the_same_from_pieces_and_from_the_file(running: tuple[subprocess.Popen[str], str]) -> None:
    """One connection is given the same stream again and again; HEAD has its length once it is a ready file, and no body."""
    connection = HTTPConnection(urlsplit(running[1]).netloc, timeout=60)
    bodies, lengths = set(), []
    for _ in range(4):
        connection.request("GET", "/gatherer/soif")
        answer = connection.getresponse()
        assert answer.status == 200
        lengths.append(answer.getheader("content-length"))
        bodies.add(answer.read())
    (body,) = bodies
    assert lengths == [None, None, str(len(body)), str(len(body))]
    connection.request("HEAD", "/gatherer/soif")
    answer = connection.getresponse()
    assert (answer.status, answer.getheader("content-length"), answer.read()) == (200, str(len(body)), b"")
    connection.request("GET", "/gatherer")
    assert connection.getresponse().status == 200
    connection.close()


def test_port_in_use_is_an_error(running: tuple[subprocess.Popen[str], str]) -> None:
    """The address of another server is reported before anything is opened."""

    def unexpected(*_: object) -> NoReturn:
        raise AssertionError

    options = GatewayOptions(port=urlsplit(running[1]).port or 0)
    with pytest.raises(OSError, match="in use"):
        server.serve(options, unexpected, CollectionDouble(), unexpected)


@pytest.mark.parametrize("proxies", ["127.0.3.0/24", "*"])
def test_proxy_has_the_connections_of_its_clients(tmp_path: Path, proxies: str) -> None:
    """A proxy that is trusted is no client: its connections are not limited, and its clients are told apart."""
    with gateway(tmp_path / "index", proxies=proxies, rate=0.1) as (_, url), ExitStack() as held:
        parts = urlsplit(url)
        for _ in range(server.CONNECTIONS + 5):
            held.enter_context(socket.create_connection((parts.hostname or "", parts.port or 0), 60, ("127.0.3.1", 0)))
        asked = [get(url, "/api/search", "127.0.3.1", {"X-Forwarded-For": f"192.0.2.{at}"})[0] for at in (1, 2, 1)]
        assert asked == [200, 200, 429]


def test_unread_downloads_take_no_place_of_others(running: tuple[subprocess.Popen[str], str]) -> None:
    """Exports of a client that goes away before they begin, or in the middle, are counted no longer."""
    parts = urlsplit(running[1])
    for _ in range(20):
        with socket.create_connection((parts.hostname or "", parts.port or 0), 60, ("127.0.3.9", 0)) as peer:
            peer.sendall(b"GET /api/export HTTP/1.1\r\nHost: localhost\r\n\r\n")
    until = time.monotonic() + 60
    while get(running[1], "/api/export?q=krill", "127.0.3.9")[0] != 200:
        assert time.monotonic() < until
        time.sleep(0.05)


def test_readers_that_stall_are_cut_off(tmp_path: Path) -> None:
    """An export that nobody reads ends, its connection too, and then the client may have another one."""
    with gateway(tmp_path / "index", heavy=30, unread=3) as (_, url), ExitStack() as held:
        parts = urlsplit(url)
        stalled = []
        for _ in range(2):
            peer = held.enter_context(socket.socket())
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            peer.bind(("127.0.3.1", 0))
            peer.connect((parts.hostname, parts.port))
            peer.sendall(b"GET /api/export?q=heavy HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert peer.recv(100).startswith(b"HTTP/1.1 200")
            stalled.append(peer)
        assert get(url, "/api/export?q=whale", "127.0.3.1")[0] == 503
        until = time.monotonic() + 60
        while get(url, "/api/export?q=whale", "127.0.3.1")[0] != 200:
            assert time.monotonic() < until
            time.sleep(0.1)
        for peer in stalled:
            rest = _rest(peer)
            assert len(rest) < 30_000_000
            assert not rest.endswith(b"\r\n0\r\n\r\n")
        assert get(url, "/livez") == (200, b"ok\n")


def _rest(peer: socket.socket) -> bytes:
    """What a connection still has."""
    found = bytearray()
    try:
        while piece := peer.recv(1 << 16):
            found += piece
    except ConnectionResetError:
        pass
    return bytes(found)


def test_second_signal_ends_at_once(tmp_path: Path) -> None:
    """The first signal waits for what is being answered, the second does not."""
    with gateway(tmp_path / "index", slow=60) as (process, url), ThreadPoolExecutor(1) as client:
        asked = client.submit(get, url, "/api/status")
        assert process.stdout is not None
        assert process.stdout.readline() == "answering\n"
        process.send_signal(signal.SIGTERM)
        _wait_closed(url)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == -signal.SIGTERM
        with pytest.raises(OSError, match=r"|"):
            asked.result(60)


def _wait_closed(url: str) -> None:
    """Wait until a gateway takes no more connections."""
    until = time.monotonic() + 50
    with suppress(OSError):
        while time.monotonic() < until:
            get(url, "/livez")
        pytest.fail("the gateway takes connections after the signal")
