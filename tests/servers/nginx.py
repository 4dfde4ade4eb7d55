"""Debian's nginx in front of a server: TLS, logins (HTTP basic authentication), certificates of clients.

Strategy: the nginx on PATH, otherwise the program of Debian's package, which is unpacked, not installed: no service of the machine
starts or changes. It runs as one child process with a configuration of its own, below a folder of the test.

Laws:
- It listens on 127.0.0.1 only, and writes nothing outside its folder.
- The server behind it gets no login. A request without the right one never reaches it.
- Passwords are in a file of the folder, and in no log.

`python -m tests.servers.nginx` unpacks it into .venv/servers/nginx; make does so before the tests.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import socket
import ssl
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from http.client import HTTPSConnection
from pathlib import Path
from typing import NamedTuple

from tests.deploy.debian import unpack
from tests.deploy.tools import ToolError
from tests.servers.artefacts import HOME as SERVERS
from tests.servers.process import STEP, free_port, running

HOME = SERVERS / "nginx"
CONFIGURATION = """
daemon off;
# One process: a worker of its own would outlive it if it were killed.
master_process off;
pid {folder}/nginx.pid;
error_log {folder}/error.log warn;
events {{ worker_connections 512; }}
http {{
  log_format requests '$status $request_method $uri';
  access_log {folder}/access.log requests;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  client_max_body_size 0;
  upstream target {{ server {target}; keepalive 16; }}
  server {{
    listen 127.0.0.1:{port} ssl;
    ssl_certificate {certificate};
    ssl_certificate_key {key};
    {clients}
    auth_basic "search";
    auth_basic_user_file {folder}/users;
    location / {{
      proxy_pass http://target;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_set_header Authorization "";
      proxy_read_timeout 600s;
    }}
  }}
}}
"""
REFUSED = ("400", "401")
"""Statuses of requests that are not passed on."""


class Proxy(NamedTuple):
    """A running proxy."""

    url: str
    folder: Path

    def passed(self) -> list[str]:
        """Method and path of each request with the right login, in order of their ends.

        A request is logged after its answer was sent. So one more is made and awaited: the only process answers one after another.
        """
        mark = f"/mark/{uuid.uuid4().hex}"
        unchecked = ssl.create_default_context()
        unchecked.check_hostname, unchecked.verify_mode = False, ssl.CERT_NONE
        with closing(HTTPSConnection(self.url.removeprefix("https://"), context=unchecked, timeout=60)) as client:
            client.request("GET", mark)
            client.getresponse().read()
        log = self.folder / "access.log"
        while mark not in (text := log.read_text("utf-8", "replace")):
            time.sleep(STEP)
        entries = (line.partition(" ") for line in text.splitlines())
        return [request for status, _, request in entries if status not in REFUSED]


def program() -> Path:
    """The nginx to run; unpacks Debian's package if the machine has none. Raises ToolError."""
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin"])
    if found := shutil.which("nginx", path=path):
        return Path(found)
    SERVERS.mkdir(parents=True, exist_ok=True)
    with (SERVERS / "nginx.lockfile").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (HOME / "nginx").is_file():
            with tempfile.TemporaryDirectory(dir=SERVERS) as folder:
                (unpacked,) = unpack("nginx", ["usr/sbin/nginx"], Path(folder))
                HOME.mkdir(exist_ok=True)
                unpacked.rename(HOME / "nginx")
    return HOME / "nginx"


@contextmanager
def proxy(
    folder: Path, target: str, users: Mapping[str, str], certificate: tuple[Path, Path], clients: Path | None = None
) -> Iterator[Proxy]:
    """Run a proxy that works in `folder`, an empty one or that of an earlier start, whose port it takes again.

    target: URL of the server behind it.
    users: names with their passwords.
    certificate: its certificate and key.
    clients: the CA of the certificates that clients must have; None: they need none.

    Raises ServerError, ToolError.
    """
    chosen = folder / "port"
    if not chosen.exists():
        chosen.write_text(str(free_port()), "ascii")
    port = int(chosen.read_text("ascii"))
    wanted = f"ssl_client_certificate {clients}; ssl_verify_client on;" if clients else ""
    files = {"folder": folder, "certificate": certificate[0], "key": certificate[1], "clients": wanted}
    target = target.removeprefix("http://")
    (folder / "nginx.conf").write_text(CONFIGURATION.format(target=target, port=port, **files), "utf-8")
    (folder / "users").write_text("".join(f"{name}:{{PLAIN}}{password}\n" for name, password in users.items()), "utf-8")
    command = [str(program()), "-p", str(folder), "-e", str(folder / "error.log"), "-c", str(folder / "nginx.conf")]
    with running(command, folder, lambda: _listens(port)):
        yield Proxy(f"https://127.0.0.1:{port}", folder)


def _listens(port: int) -> bool:
    """Whether the port takes connections."""
    try:
        socket.create_connection(("127.0.0.1", port), 60).close()
    except OSError:
        return False
    return True


if __name__ == "__main__":
    try:
        program()
    except ToolError as error:
        print(f"tests.servers.nginx: {error}", file=sys.stderr)
        sys.exit(1)
