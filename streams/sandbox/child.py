"""The child: takes one task at a time, runs the target on it, sends its frames, and says how it ended.

Laws:
- Nothing the target raises ends the child: MemoryError, and any failure with the address space above 80 per cent, is want of
  memory; too much output is a flood; all else is our own bug, told with its traceback.
- Frames are sent in bunches: each send wakes the parent, and costs both more than a frame. A crash loses those of the last moment.
- The child itself says when it wants to be replaced (tasks, CPU time, memory), in the same message that ends a task, so that no
  task is ever sent to a child that is about to leave.
"""

from __future__ import annotations

import array
import contextlib
import os
import socket
import time
import traceback
from collections.abc import Callable
from typing import BinaryIO

import msgspec

from streams.sandbox import probes
from streams.sandbox.values import MAX_TRACEBACK, Layer, SandboxLimits
from streams.sandbox.wire import (
    DONE,
    EXIT_MEMORY,
    FAILED,
    FLOODED,
    FRAME,
    FULL,
    HEAD,
    LAST,
    LAYERS,
    MEMORY,
    READY,
    STRAINED,
    TASK_WITH_BODY,
    ProgressPage,
)

Target = Callable[[bytes, BinaryIO | None, Callable[[bytes], None], Callable[[str], None]], None]

CHUNK = 65_536
FLUSH_AFTER = 0.02
"""Seconds that a frame may wait for others before it is sent with them."""
LOOK_EVERY = 0.005
"""Seconds of work between two looks at /proc, which cost some 20 us each."""


class Flood(BaseException):
    """The task gave more than the limits allow. Not an Exception, so that a parser's `except Exception` does not hide it."""


class Memory:
    """What this process has taken since it was sealed; its files in /proc are opened before that."""

    def __init__(self, base: int, limits: SandboxLimits) -> None:
        self._status = os.open("/proc/self/status", os.O_RDONLY)
        self._limits = limits
        self._base = base
        self._resident = self._look()["VmRSS"]
        self._looked = 0.0
        self.grown = False
        self.strained = False

    def _look(self) -> dict[str, int]:
        """Bytes by the name in /proc/self/status."""
        lines = (line.split() for line in os.pread(self._status, 8192, 0).split(b"\n") if line.startswith(b"Vm"))
        return {words[0][:-1].decode(): int(words[1]) << 10 for words in lines}

    def look(self, *, now: bool) -> None:
        """Bring `grown` and `strained` up to date, if `now` or if the last look is some work ago."""
        at = time.perf_counter()
        if now or at - self._looked > LOOK_EVERY:
            self._looked = at
            found = self._look()
            self.strained = found["VmPeak"] - self._base > FULL * self._limits.memory
            self.grown = found["VmRSS"] - self._resident > self._limits.growth


class Answer:
    """The frames of one task on their way to the parent."""

    def __init__(self, channel: socket.socket, page: ProgressPage, limits: SandboxLimits) -> None:
        self._channel = channel
        self._page = page
        self._limits = limits
        self._held: list[bytes] = []
        self._size = 0
        self._total = 0
        self._sent = time.perf_counter()
        self.flooded = ""

    def emit(self, frame: bytes) -> None:
        """Give one frame. Raises Flood above the limits."""
        length = len(frame)
        self._total += length
        if length > self._limits.frame or self._total > self._limits.total:
            self.flooded = "frame" if length > self._limits.frame else "total"
            raise Flood
        self._held += (HEAD.pack(length, FRAME), frame)
        self._size += length + HEAD.size
        self._page.beat()
        if self._size >= CHUNK or time.perf_counter() - self._sent > FLUSH_AFTER:
            self._flush()

    def progress(self, text: str) -> None:
        """Say what is worked on from now on. Frames that have waited long enough go first."""
        if self._size and time.perf_counter() - self._sent > FLUSH_AFTER:
            self._flush()
        self._page.say(text)

    def _flush(self) -> None:
        data = b"".join(self._held)
        self._held.clear()
        self._size = 0
        try:
            self._channel.sendall(data)
        except OSError:
            # The parent does not want the rest any more.
            os._exit(0)
        self._sent = time.perf_counter()

    def end(self, kind: int, text: bytes = b"") -> None:
        """Send what is held, and the end of the task."""
        self._held += (HEAD.pack(len(text), kind), text)
        self._flush()


class Child:
    """One child's life after it is sealed."""

    def __init__(
        self, channel: socket.socket, page: ProgressPage, limits: SandboxLimits, memory: Memory, layers: list[Layer]
    ) -> None:
        self._channel = channel
        self._page = page
        self._limits = limits
        self._memory = memory
        self._layers = layers
        self._tasks = 0

    def serve(self, target: Target) -> None:
        """Work until the parent closes the socket."""
        self._channel.sendall(HEAD.pack(0, READY))
        while (received := self._receive()) is not None:
            kind, request, descriptor = received
            if kind == LAYERS:
                text = msgspec.json.encode(probes.verified(self._layers))
                self._channel.sendall(HEAD.pack(len(text), FRAME) + text + HEAD.pack(0, DONE))
                continue
            self._page.say("")
            self._run(target, request, descriptor if kind == TASK_WITH_BODY else None)

    def _receive(self) -> tuple[int, bytes, int | None] | None:
        """Kind, request and body of the next task; None at the end."""
        data, ancillary, _, _ = self._channel.recvmsg(CHUNK, socket.CMSG_SPACE(4))
        if not data:
            return None
        descriptor = None
        for _level, _type, value in ancillary:
            descriptor = array.array("i", value)[0]
        while len(data) < HEAD.size:
            data += self._more()
        length, kind = HEAD.unpack_from(data)
        missing = HEAD.size + length - len(data)
        if missing > 0:
            parts = [data]
            while missing > 0:
                parts.append(self._more())
                missing -= len(parts[-1])
            data = b"".join(parts)
        return kind, data[HEAD.size :], descriptor

    def _more(self) -> bytes:
        data = self._channel.recv(1 << 20)
        if not data:
            os._exit(0)
        return data

    def _run(self, target: Target, request: bytes, descriptor: int | None) -> None:
        answer = Answer(self._channel, self._page, self._limits)
        kind, text = DONE, b""
        try:
            body = None if descriptor is None else _body(descriptor)
            try:
                target(request, body, answer.emit, answer.progress)
            finally:
                if body is not None:
                    body.close()
        # SystemExit and KeyboardInterrupt too: the child leaves when the parent says so, not when a parser does.
        except BaseException as error:  # noqa: BLE001 (see above)
            kind, text = self._failure(error)
        if answer.flooded:
            kind, text = FLOODED, answer.flooded.encode()
        answer.end(self._closing(kind), text)

    def _failure(self, error: BaseException) -> tuple[int, bytes]:
        """How a task that raised has ended."""
        try:
            self._memory.look(now=True)
            if isinstance(error, MemoryError) or self._memory.strained:
                return MEMORY, b""
            told = "".join(traceback.format_exception(error))[-MAX_TRACEBACK:]
            return FAILED, told.encode("utf-8", "backslashreplace")
        except MemoryError:
            os._exit(EXIT_MEMORY)

    def _closing(self, kind: int) -> int:
        """The kind of the last message, with what the parent has to know about this child."""
        self._tasks += 1
        self._memory.look(now=False)
        spent = time.process_time() > self._limits.cpu or self._tasks >= self._limits.tasks
        flags = LAST if spent or self._memory.grown or self._memory.strained or kind == MEMORY else 0
        return kind | flags | (STRAINED if kind == DONE and self._memory.strained else 0)


def _body(descriptor: int) -> BinaryIO:
    """The body as a buffered file at its start; a pipe is read from where it is."""
    body = open(descriptor, "rb", buffering=CHUNK)  # noqa: SIM115 (the caller closes it)
    with contextlib.suppress(OSError):
        body.seek(0)
    return body
