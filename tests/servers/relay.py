"""A relay in front of a server of text lines, which records what clients send."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from types import TracebackType
from typing import Self

READ = 65_536


class Relay:
    """Relays connections to host:port; a context manager. `heard`: the lines of all clients, in their order."""

    def __init__(self, target: str) -> None:
        host, _, port = target.partition(":")
        self._target = (host, int(port))
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listening.getsockname()[1]}"
        self.heard: list[bytes] = []
        self._thread = threading.Thread(target=self._accept, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        # close() alone would not wake accept().
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._thread.join()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            server = socket.create_connection(self._target, 60)
            threading.Thread(target=self._requests, args=(client, server), daemon=True).start()
            threading.Thread(target=_answers, args=(server, client), daemon=True).start()

    def _requests(self, client: socket.socket, server: socket.socket) -> None:
        with client.makefile("rb") as lines:
            try:
                for line in lines:
                    self.heard.append(line.rstrip(b"\r\n"))
                    server.sendall(line)
            except OSError:
                pass
        _end(server)


def _answers(server: socket.socket, client: socket.socket) -> None:
    try:
        while data := server.recv(READ):
            client.sendall(data)
    except OSError:
        pass
    _end(client)


def _end(connection: socket.socket) -> None:
    """End both directions, which wakes the other thread."""
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
