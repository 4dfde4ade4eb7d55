"""A robot of 1995: fetches each file of an FTP server over connections of its own, as programs did that knew nothing of each other.

It counts connections, and bytes in both directions: commands, replies and data, without the headers of TCP and IP.
"""

from __future__ import annotations

import ftplib
import os
import socket
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple
from urllib.parse import urlsplit

from streams.fetch.settings import FetchSettings

PIECE = 1 << 16
SESSIONS = 8
"""Sessions at once: the cost of one does not depend on it, but on a busy machine each waits for its turn."""
LINE_END = 2
"""Bytes of a line end on the control connection."""


class Traffic(NamedTuple):
    """What a client caused: connections, and bytes in both directions."""

    connections: int = 0
    bytes: int = 0

    def __add__(self, other: tuple[object, ...]) -> Traffic:
        assert isinstance(other, Traffic)
        return Traffic(self.connections + other.connections, self.bytes + other.bytes)


class _Session(ftplib.FTP):
    """One session, which counts what passes."""

    traffic = Traffic()

    def count(self, piece: bytes) -> None:
        """Count data."""
        self.traffic += Traffic(0, len(piece))

    def putline(self, line: str) -> None:
        self.traffic += Traffic(0, len(line) + LINE_END)
        super().putline(line)

    def getline(self) -> str:
        line = super().getline()
        self.traffic += Traffic(0, len(line) + LINE_END)
        return line

    def ntransfercmd(self, cmd: str, rest: int | str | None = None) -> tuple[socket.socket, int | None]:
        self.traffic += Traffic(1, 0)
        return super().ntransfercmd(cmd, rest)


def fetch_each(url: str, paths: Sequence[bytes]) -> Traffic:
    """Fetch files of a server, by their paths below its folder, each in a session of its own. Raises OSError, ftplib.Error."""
    parts = urlsplit(url)
    fetched = partial(_fetched, parts.hostname or "", parts.port or ftplib.FTP_PORT)
    with ThreadPoolExecutor(SESSIONS) as sessions:
        return sum(sessions.map(fetched, paths), Traffic())


def _fetched(host: str, port: int, path: bytes) -> Traffic:
    # The encoding keeps every byte of a name.
    with _Session(timeout=60, encoding="latin-1") as session:
        session.traffic += Traffic(1, 0)
        session.connect(host, port)
        session.login("anonymous", f"{FetchSettings().user_agent}@")
        session.retrbinary(f"RETR {path.decode('latin-1')}", session.count, PIECE)
        session.quit()
        return session.traffic


def files(folder: os.PathLike[str]) -> list[bytes]:
    """Return the paths of the files below a folder, relative to it."""
    top = os.fsencode(folder)
    return sorted(os.path.relpath(os.path.join(at, name), top) for at, _, names in os.walk(top) for name in names)
