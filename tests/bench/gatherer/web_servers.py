"""Servers of the whole stream, each a process of its own: `harvest serve`, nginx and aiohttp; and the client that reads from them.

nginx and aiohttp send the same bytes from a ready file, with sendfile(2). nginx is one process, as the gateway is. A client makes
a connection for each request, and counts the bytes of it in both directions, heads included.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import NamedTuple

from aiohttp import web

from tests.bench.cpu import apart, spent
from tests.bench.figures import BenchError
from tests.bench.objects import HARVEST, environment
from tests.servers.nginx import program
from tests.servers.process import free_port, running

NAME = "stream"
"""Name of the ready file."""
STREAM = "/gatherer/soif"
READ = 1 << 20
ROOT = Path(__file__).resolve().parents[3]
NGINX = """
daemon off;
master_process off;
pid {folder}/pid;
error_log {folder}/error.log warn;
events {{ worker_connections 512; }}
http {{
  access_log off;
  sendfile on;
  tcp_nopush on;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  server {{
    listen 127.0.0.1:{port};
    root {served};
  }}
}}
"""


class Server(NamedTuple):
    """A running server: its port, its process ID, and the path of the whole stream."""

    port: int
    pid: int
    path: str


class Answer(NamedTuple):
    """An answer: its status, its ETag, and the bytes of request and answer."""

    status: int
    tag: str
    bytes: int


def get(server: Server, *headers: str) -> Answer:
    """Request the stream. Raises OSError."""
    request = _request(server, headers)
    with socket.create_connection(("127.0.0.1", server.port), 60) as client:
        client.sendall(request)
        with client.makefile("rb") as answer:
            received = answer.read()
    head = received.partition(b"\r\n\r\n")[0]
    status, *lines = head.decode("latin-1").split("\r\n")
    fields = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    return Answer(int(status.split()[1]), fields.get("etag", ""), len(request) + len(received))


def _request(server: Server, headers: tuple[str, ...]) -> bytes:
    lines = (f"GET {server.path} HTTP/1.1", f"Host: 127.0.0.1:{server.port}", "Connection: close", *headers, "", "")
    return "\r\n".join(lines).encode()


def content(server: Server) -> bytes:
    """Return the stream, compressed. Raises OSError."""
    with closing(HTTPConnection("127.0.0.1", server.port, timeout=60)) as connection:
        connection.request("GET", server.path)
        return connection.getresponse().read()


class Rate(NamedTuple):
    """Bytes a second, and seconds of CPU of the server for each stream."""

    bytes: float
    cpu: float


def rate(server: Server, clients: int, requests: int) -> Rate:
    """Measure so many clients at once, each with an address of its own and so many requests, one after the other."""
    received = [0] * clients

    def read(number: int) -> None:
        room = bytearray(READ)
        for _ in range(requests):
            with socket.create_connection(("127.0.0.1", server.port), 60, (f"127.0.5.{number + 1}", 0)) as client:
                client.sendall(_request(server, ()))
                while count := client.recv_into(room):
                    received[number] += count

    threads = [threading.Thread(target=read, args=(number,)) for number in range(clients)]
    with apart(server.pid):
        began, before = time.perf_counter(), spent(server.pid)
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        took = time.perf_counter() - began
    return Rate(sum(received) / took, (spent(server.pid) - before) / (clients * requests))


@contextmanager
def gateway(data: Path) -> Iterator[Server]:
    """Run `harvest serve` on a data folder. Raises BenchError."""
    port = free_port()
    command = [*HARVEST, "serve", "--data", str(data), "--port", str(port)]
    given = {**environment(), "HARVEST_SERVE_RATE": "0"}
    with subprocess.Popen(command, env=given, cwd=data, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            lines = iter(process.stderr.readline, "")
            if not any("search at" in line for line in lines):
                raise BenchError("harvest serve did not start")
            yield Server(port, process.pid, STREAM)
        finally:
            process.terminate()


@contextmanager
def nginx(served: Path, folder: Path) -> Iterator[Server]:
    """Serve the files of a folder by nginx, which works in another one. Raises ServerError, ToolError."""
    port = free_port()
    (folder / "nginx.conf").write_text(NGINX.format(folder=folder, served=served, port=port), "utf-8")
    command = [str(program()), "-p", str(folder), "-e", str(folder / "error.log"), "-c", str(folder / "nginx.conf")]
    with running(command, folder, lambda: listens(port)) as pid:
        yield Server(port, pid, f"/{NAME}")


@contextmanager
def aiohttp(served: Path, folder: Path) -> Iterator[Server]:
    """Serve the files of a folder by aiohttp, which works in another one. Raises ServerError."""
    port = free_port()
    command = [sys.executable, "-m", "tests.bench.gatherer.web_servers", str(served), str(port)]
    with running(command, folder, lambda: listens(port), environment={"PYTHONPATH": str(ROOT)}) as pid:
        yield Server(port, pid, f"/{NAME}")


def listens(port: int) -> bool:
    """Whether the port takes connections."""
    try:
        socket.create_connection(("127.0.0.1", port), 60).close()
    except OSError:
        return False
    return True


def main(served: str, port: str) -> None:
    """Serve the files of a folder until stopped."""
    app = web.Application()
    app.router.add_static("/", served)
    web.run_app(app, host="127.0.0.1", port=int(port), print=None, access_log=None)


if __name__ == "__main__":
    main(*sys.argv[1:3])
