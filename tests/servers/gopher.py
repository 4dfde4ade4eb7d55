"""Gopher servers of Debian: Gophernicus, which runs once a connection, and PyGopherd.

Strategy: Gophernicus reads one request from its standard input, as a program of inetd. `python -m tests.servers.gopher` is that
inetd: it accepts connections and starts a program on each. As root it gives the program another user, since Gophernicus refuses
root.

Law: both listen on 127.0.0.1 only, and write nothing outside their folder.
"""

from __future__ import annotations

import asyncio
import os
import pwd
import shutil
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.servers.artefacts import readable
from tests.servers.debian_servers import installed, libraries
from tests.servers.process import free_port, running

USER = "nobody"
PYGOPHERD = """
[pygopherd]
detach = no
port = {port}
interface = 127.0.0.1
servername = 127.0.0.1
servertype = ThreadingTCPServer
timeout = 60
abstract_headers = on
abstract_entries = always
tracebacks = no
usechroot = no
enable_tls = no
root = {root}
mimetypes = {folder}/mime.types
encoding = {{}}
[logger]
logmethod = none
[GopherEntry]
defaultmimetype = text/plain
mapping = [['text/html', 'h'], ['text/.+', '0'], ['image/gif', 'g'], ['image/.+', 'I'],
  ['application/gopher-menu', '1'], ['application/.+', '9'], ['.*', '0']]
eaexts = {{'.abstract': 'ABSTRACT'}}
[handlers.HandlerMultiplexer]
handlers = [url.HTMLURLHandler, UMN.UMNDirHandler, file.FileHandler]
[handlers.dir.DirHandler]
ignorepatt = /\\.cache
cachetime = 0
cachefile = .cache.pygopherd.dir
[handlers.UMN.UMNDirHandler]
extstrip = none
[protocols.ProtocolMultiplexer]
protocols = [rfc1436.GopherProtocol]
"""
MIME = "text/plain txt\ntext/html html\nimage/gif gif\nimage/png png\napplication/gzip gz\napplication/pdf pdf\n"


@contextmanager
def gophernicus(root: Path, scratch: Path) -> Iterator[str]:
    """Serve a folder, which other users can read, with Gophernicus; yield host:port. `scratch`: a folder for its files."""
    home = readable(installed("gophernicus"), scratch)
    port = free_port()
    options = ["-nv", "-nu", "-nm", "-nl", "-nd", "-nh", "-nf"]
    program = [str(home / "usr/sbin/gophernicus"), "-r", str(root), "-h", "127.0.0.1", "-p", str(port), *options]
    command = [sys.executable, "-m", __name__, str(port), *program]
    environment = {"LD_LIBRARY_PATH": libraries(home), "PYTHONPATH": os.pathsep.join(sys.path)}
    with running(command, scratch, lambda: _listens(port), environment=environment):
        yield f"127.0.0.1:{port}"


@contextmanager
def pygopherd(root: Path, scratch: Path) -> Iterator[str]:
    """Serve a folder with PyGopherd; yield host:port. `scratch`: a folder for its files."""
    home = installed("pygopherd")
    port = free_port()
    (scratch / "mime.types").write_text(MIME, "ascii")
    (scratch / "pygopherd.conf").write_text(PYGOPHERD.format(port=port, root=root, folder=scratch), "utf-8")
    # It is written for the Python of its distribution, of which newer ones lack modules.
    python = shutil.which("python3", path="/usr/bin") or sys.executable
    command = [python, str(home / "usr/sbin/pygopherd"), str(scratch / "pygopherd.conf")]
    with running(command, scratch, lambda: _listens(port), environment={"PYTHONPATH": str(home / "usr/lib/python3/dist-packages")}):
        yield f"127.0.0.1:{port}"


def _listens(port: int) -> bool:
    """Whether the port takes connections."""
    try:
        socket.create_connection(("127.0.0.1", port), 60).close()
    except OSError:
        return False
    return True


async def _serve(port: int, program: list[str]) -> None:
    """Run a program on each connection, as inetd does."""
    user = pwd.getpwnam(USER) if os.geteuid() == 0 else None
    tasks: set[asyncio.Task[None]] = set()
    loop = asyncio.get_running_loop()

    async def run(connection: socket.socket) -> None:
        with connection:
            # A stream of asyncio would read the request before the program does.
            connection.setblocking(True)
            child = await asyncio.create_subprocess_exec(
                *program,
                stdin=connection.fileno(),
                stdout=connection.fileno(),
                user=user.pw_uid if user else None,
                group=user.pw_gid if user else None,
                extra_groups=[] if user else None,
            )
        await child.wait()

    with socket.create_server(("127.0.0.1", port)) as listening:
        listening.setblocking(False)
        while True:
            connection, _ = await loop.sock_accept(listening)
            task = asyncio.create_task(run(connection))
            tasks.add(task)
            task.add_done_callback(tasks.discard)


if __name__ == "__main__":
    asyncio.run(_serve(int(sys.argv[1]), sys.argv[2:]))
