"""INN, the news server of Debian, with two groups and no feeds.

Law: it listens on 127.0.0.1 only, and writes nothing outside its folder.
"""

from __future__ import annotations

import grp
import io
import os
import pwd
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.servers.artefacts import readable
from tests.servers.debian_servers import installed, libraries
from tests.servers.process import free_port, give, running

USER = "news"
GROUPS = ("local.one", "local.two")
CONTROL = ("control", "control.cancel", "junk")
FOLDERS = ("etc", "db", "articles", "overview", "incoming", "outgoing", "run", "log", "tmp")
CONFIGURATION = """
mta: "/bin/true %s"
organization: "Test"
ovmethod: tradindexed
hismethod: hisv6
pathhost: news.example.org
domain: example.org
pathnews: {home}/usr/lib/news
pathbin: {home}/usr/lib/news/bin
pathetc: {folder}/etc
pathfilter: {folder}/etc
pathdb: {folder}/db
pathspool: {folder}
patharticles: {folder}/articles
pathoverview: {folder}/overview
pathrun: {folder}/run
pathlog: {folder}/log
pathtmp: {folder}/tmp
runasuser: {user}
runasgroup: {group}
port: {port}
bindaddress: 127.0.0.1
nnrpdloadlimit: 0
"""
"""Without a limit on the load of the machine, above which INN serves no readers."""
FILES = {
    "etc/storage.conf": "method tradspool {\n newsgroups: *\n class: 0\n}\n",
    "etc/expire.ctl": "/remember/:11\n*:A:1:10:never\n",
    "etc/newsfeeds": "ME:*::\n",
    "etc/incoming.conf": 'peer ME {\n hostname: "127.0.0.1"\n}\n',
    "etc/readers.conf": (
        'auth "all" {\n hosts: "*"\n default: "<anyone>"\n}\n'
        'access "all" {\n users: "<anyone>"\n newsgroups: "*"\n access: RPA\n}\n'
    ),
    "etc/inn-secrets.conf": "",
    "etc/control.ctl": "",
    "etc/moderators": "",
    "etc/distributions": "",
    "db/active": "".join(f"{name} 0000000000 0000000001 n\n" for name in CONTROL)
    + "".join(f"{name} 0000000000 0000000001 y\n" for name in GROUPS),
    "db/active.times": "",
    "db/newsgroups": "",
    "db/history": "",
}


class News(NamedTuple):
    """A running news server."""

    address: str
    """host:port"""
    command: tuple[str, ...]
    """The beginning of a command of its administrator."""
    environment: Mapping[str, str]
    user: pwd.struct_passwd

    def post(self, *articles: bytes) -> None:
        """Post articles, header and text, with LF at the ends of lines."""
        host, _, port = self.address.partition(":")
        with socket.create_connection((host, int(port)), 60) as connection, connection.makefile("rwb") as stream:
            stream.readline()
            _ask(stream, b"MODE READER", b"20")
            for article in articles:
                _ask(stream, b"POST", b"340")
                lines = (b"." + line if line.startswith(b".") else line for line in article.splitlines())
                _ask(stream, b"\r\n".join((*lines, b".")), b"240")
            _ask(stream, b"QUIT", b"205")

    def control(self, *words: str) -> None:
        """Run a command of the administrator (ctlinnd)."""
        self.run(*self.command, *words)

    def run(self, *command: str) -> None:
        """Run a program as the user of the server."""
        other = os.geteuid() == 0
        subprocess.run(
            command,
            check=True,
            env=dict(self.environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            user=self.user.pw_uid if other else None,
            group=self.user.pw_gid if other else None,
            extra_groups=[] if other else None,
        )


def _ask(stream: io.BufferedRWPair, line: bytes, expected: bytes) -> None:
    """Send a line, and assert how the answer begins."""
    stream.write(line + b"\r\n")
    stream.flush()
    answer = stream.readline()
    assert answer.startswith(expected), (line[:60], answer)


@contextmanager
def inn(folder: Path, scratch: Path) -> Iterator[News]:
    """Run a news server in an empty folder that other users can reach. Raises ServerError, ToolError."""
    home = readable(installed("inn"), scratch)
    user = pwd.getpwnam(USER) if os.geteuid() == 0 else pwd.getpwuid(os.geteuid())
    port = free_port()
    for name in FOLDERS:
        (folder / name).mkdir()
    for name, text in FILES.items():
        (folder / name).write_text(text, "ascii")
    names = {"home": home, "folder": folder, "user": user.pw_name, "group": grp.getgrgid(user.pw_gid).gr_name, "port": port}
    (folder / "etc/inn.conf").write_text(CONFIGURATION.format(**names), "utf-8")
    give(folder, user)
    programs = home / "usr/lib/news/bin"
    environment = {"INNCONF": str(folder / "etc/inn.conf"), "LD_LIBRARY_PATH": libraries(home), "PATH": os.environ["PATH"]}
    news = News(f"127.0.0.1:{port}", (str(programs / "ctlinnd"), "-t", "60"), environment, user)
    news.run(str(programs / "makedbz"), "-s", "1000", "-i", "-o")
    command = [str(programs / "innd"), "-d", "-f"]
    with running(command, folder, lambda: _greets(port), user if os.geteuid() == 0 else None, environment):
        yield news
        # On SIGTERM it would wait for its clients.
        news.control("shutdown", "end")


def _greets(port: int) -> bool:
    """Whether the server takes connections."""
    try:
        with socket.create_connection(("127.0.0.1", port), 60) as connection:
            return connection.recv(3) == b"200"
    except OSError:
        return False
