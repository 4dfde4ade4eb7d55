"""The parent's side of the forkserver: tells it what to do, hears what became of its children."""

from __future__ import annotations

import asyncio
import socket
from typing import Protocol

import msgspec

from streams.sandbox.early import take
from streams.sandbox.server import PACKET
from streams.sandbox.values import SandboxLimits

DIED = "the forkserver died"
"""What is said of one that said nothing itself."""
PATIENCE = 5.0
"""Seconds that a forkserver has to leave by itself."""


class Listener(Protocol):
    """Who hears of it."""

    def on_ready(self, threads: int) -> None:
        """Everything is loaded; the forkserver has so many threads (one is right)."""
        ...

    def on_exited(self, number: int, status: int, resident: int) -> None:
        """A child is dead and reaped: its wait status, and the most bytes it had resident."""
        ...

    def on_gone(self, why: str) -> None:
        """The forkserver is dead, and its children with it. `why` is its traceback if it could not load."""
        ...


class Forkserver:
    """A running forkserver. All methods are called on the loop's thread."""

    def __init__(self, target: str, preload: str, limits: SandboxLimits, listener: Listener, load: str = "") -> None:
        """Start it, or take the one that was started early; `on_ready` or `on_gone` follows. Raises OSError.

        `load`: what the preload is called with once more.
        """
        self._listener = listener
        self._limits = limits
        self._loop = asyncio.get_running_loop()
        self._load = load
        self._why = ""
        self.loading = True
        """Whether it is not ready yet."""
        started = take(target, preload)
        self._process, self._control = started.process, started.control
        self._control.setblocking(False)
        self._loop.add_reader(self._control.fileno(), self._hear)

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def spawn(self, number: int, channel: int, page: int) -> None:
        """Ask for a child; `on_exited` will tell its end. Descriptors are copied."""
        self._send(msgspec.json.encode((number, self._limits)), channel, page)

    def kill(self, number: int) -> None:
        """Have a child killed, if it still lives."""
        self._send(msgspec.json.encode((number, None)))

    def end(self) -> None:
        """Kill it, whatever it is at; `on_gone` follows."""
        self._process.kill()

    def _send(self, packet: bytes, *descriptors: int) -> None:
        # Where it cannot be sent, the forkserver is dead or hangs: either way it is ended, and the reader says so.
        try:
            socket.send_fds(self._control, [packet], descriptors)
        except OSError:
            self._process.kill()

    def _hear(self) -> None:
        try:
            data = self._control.recv(PACKET)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._bury()
            self._listener.on_gone(self._why or DIED)
            return
        what, *rest = msgspec.json.decode(data)
        if what == "exited":
            self._listener.on_exited(*rest)
        elif what == "ready":
            if self._load:
                load, self._load = self._load, ""
                self._send(msgspec.json.encode((0, None, load)))
                return
            self.loading = False
            self._listener.on_ready(*rest)
        else:
            self._why = str(*rest)

    def _bury(self) -> None:
        """Let go of a process that is as good as dead."""
        self._loop.remove_reader(self._control.fileno())
        self._control.close()
        self._process.kill()
        self._process.wait()

    async def close(self) -> None:
        """End it, and its children. Returns when it is gone."""
        if self._process.returncode is not None:
            return
        self._loop.remove_reader(self._control.fileno())
        self._control.close()
        if self.loading:
            self._process.kill()  # it has no children yet, and would look up from its imports only after a second
        until = self._loop.time() + PATIENCE
        # Not by asyncio.timeout: where the task that closes is one that is cancelled, Python 3.11.2 cancels it once more for that.
        try:
            # A process has no event to wait for without a thread or a watcher of signals.
            while self._process.poll() is None and self._loop.time() < until:  # noqa: ASYNC110
                await asyncio.sleep(0.002)
        finally:
            self._process.kill()
            self._process.wait()
