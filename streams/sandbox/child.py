"""The child process: runs the target on one task at a time, sends its frames, and reports how it ended.

Laws:
- No exception of the target ends the child. MemoryError, and any failure with the address space above 80 per cent of its limit,
  count as out of memory; too much output is a flood; everything else is a bug of this program, reported with its traceback.
- Frames are sent in batches: each send wakes the parent, and costs both sides more than a frame. A crash loses the frames of the
  last moment.
- The child reports that it should be replaced (tasks, CPU time, memory) in the same message that ends a task, so that no task is
  sent to a child that is about to exit.
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
"""Maximum seconds that a frame waits for others before it is sent with them."""
LOOK_EVERY = 0.005
"""Seconds of work between two reads of /proc, which cost some 20 us each."""


class Flood(BaseException):
    """The output of the task exceeds the limits. Not an Exception, so that a parser's `except Exception` does not hide it."""


class Memory:
    """Memory used by this process since it was sealed; its files in /proc are opened before that."""

    def __init__(self, base: int, limits: SandboxLimits) -> None:
        self._status = os.open("/proc/self/status", os.O_RDONLY)
        self._limits = limits
        self._base = base
        self._resident = self._look()["VmRSS"]
        self._looked = 0.0
        self.grown = False
        self.strained = False

    def _look(self) -> dict[str, int]:
        """Return the sizes in bytes by their names in /proc/self/status."""
        lines = (line.split() for line in os.pread(self._status, 8192, 0).split(b"\n") if line.startswith(b"Vm"))
        return {words[0][:-1].decode(): int(words[1]) << 10 for words in lines}

    def look(self, *, now: bool) -> None:
        """Update `grown` and `strained`, if `now`, or if the last update is more than `LOOK_EVERY` ago."""
        at = time.perf_counter()
        if now or at - self._looked > LOOK_EVERY:
            self._looked = at
            found = self._look()
            self.strained = found["VmPeak"] - self._base > FULL * self._limits.memory
            self.grown = found["VmRSS"] - self._resident > self._limits.growth


class Answer:
    """Buffers and sends the frames of one task to the parent."""

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
        """Send one frame, possibly later. Raises Flood above the limits."""
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
        """Report the item that is processed from now on. Frames older than `FLUSH_AFTER` are sent first."""
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
            # The parent does not want the remaining output.
            os._exit(0)
        self._sent = time.perf_counter()

    def end(self, kind: int, text: bytes = b"") -> None:
        """Send the buffered frames, and the message that ends the task."""
        self._held += (HEAD.pack(len(text), kind), text)
        self._flush()


class Child:
    """The loop of one child after it is sealed."""

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
        """Run tasks until the parent closes the socket."""
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
        """Return kind, request and body of the next task; None when the parent has closed the socket."""
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
        # SystemExit and KeyboardInterrupt too: the parent decides when the child exits, not a parser.
        except BaseException as error:  # noqa: BLE001 (see above)
            kind, text = self._failure(error)
        if answer.flooded:
            kind, text = FLOODED, answer.flooded.encode()
        answer.end(self._closing(kind), text)

    def _failure(self, error: BaseException) -> tuple[int, bytes]:
        """Return the kind and text of the message that ends a task which raised."""
        try:
            self._memory.look(now=True)
            if isinstance(error, MemoryError) or self._memory.strained:
                return MEMORY, b""
            told = "".join(traceback.format_exception(error))[-MAX_TRACEBACK:]
            return FAILED, told.encode("utf-8", "backslashreplace")
        except MemoryError:
            os._exit(EXIT_MEMORY)

    def _closing(self, kind: int) -> int:
        """Return the kind of the last message of a task, with flags for replacement and shortage of memory."""
        self._tasks += 1
        self._memory.look(now=False)
        spent = time.process_time() > self._limits.cpu or self._tasks >= self._limits.tasks
        flags = LAST if spent or self._memory.grown or self._memory.strained or kind == MEMORY else 0
        return kind | flags | (STRAINED if kind == DONE and self._memory.strained else 0)


def _body(descriptor: int) -> BinaryIO:
    """Return the body as a buffered file at its start; a pipe is read from its present position."""
    body = open(descriptor, "rb", buffering=CHUNK)  # noqa: SIM115 (the caller closes it)
    with contextlib.suppress(OSError):
        body.seek(0)
    return body
