"""The parent's side of the forkserver: sends orders, and receives the ends of its children."""

from __future__ import annotations

import asyncio
import socket
from typing import Protocol

import msgspec

from streams.sandbox.early import take
from streams.sandbox.server import PACKET
from streams.sandbox.values import SandboxLimits

DIED = "the forkserver died"
"""The reason for a forkserver that died without reporting one."""
PATIENCE = 5.0
"""Seconds that a forkserver has to exit by itself."""


class Listener(Protocol):
    """Receives the events of a forkserver."""

    def on_ready(self, threads: int) -> None:
        """Everything is loaded; `threads`: how many the forkserver has (one is right)."""
        ...

    def on_exited(self, number: int, status: int, resident: int) -> None:
        """A child is dead and reaped: its wait status, and its peak resident memory in bytes."""
        ...

    def on_gone(self, why: str) -> None:
        """The forkserver is dead, and its children with it. `why`: its traceback, if it could not load."""
        ...


class Forkserver:
    """A running forkserver. All methods are called on the event loop's thread."""

    def __init__(self, target: str, preload: str, limits: SandboxLimits, listener: Listener, load: str = "") -> None:
        """Start a forkserver, or take the one that was started early; `on_ready` or `on_gone` follows. Raises OSError.

        `load`: argument of a second call of the preload; "" for none.
        """
        self._listener = listener
        self._limits = limits
        self._loop = asyncio.get_running_loop()
        self._load = load
        self._why = ""
        self.loading = True
        """Whether it is still loading."""
        started = take(target, preload)
        self._process, self._control = started.process, started.control
        self._control.setblocking(False)
        self._loop.add_reader(self._control.fileno(), self._hear)

    @property
    def pid(self) -> int:
        """Process id of the forkserver."""
        return self._process.pid

    def spawn(self, number: int, channel: int, page: int) -> None:
        """Order a child; `on_exited` reports its end. Descriptors are copied."""
        self._send(msgspec.json.encode((number, self._limits)), channel, page)

    def kill(self, number: int) -> None:
        """Order a child to be killed, if it is still alive."""
        self._send(msgspec.json.encode((number, None)))

    def end(self) -> None:
        """Kill the forkserver, whatever it is doing; `on_gone` follows."""
        self._process.kill()

    def _send(self, packet: bytes, *descriptors: int) -> None:
        # If sending fails, the forkserver is dead or hangs: it is killed in both cases, and the reader reports it.
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
        """Close the socket, kill the process and reap it."""
        self._loop.remove_reader(self._control.fileno())
        self._control.close()
        self._process.kill()
        self._process.wait()

    async def close(self) -> None:
        """End the forkserver and its children. Returns when it has exited."""
        if self._process.returncode is not None:
            return
        self._loop.remove_reader(self._control.fileno())
        self._control.close()
        if self.loading:
            self._process.kill()  # it has no children yet, and notices the closed socket only after its imports, about a second
        until = self._loop.time() + PATIENCE
        # Not asyncio.timeout: if the closing task was cancelled, Python 3.11.2 cancels it once more at the time-out.
        try:
            # The end of a process cannot be awaited without a thread or a signal watcher.
            while self._process.poll() is None and self._loop.time() < until:  # noqa: ASYNC110
                await asyncio.sleep(0.002)
        finally:
            self._process.kill()
            self._process.wait()
