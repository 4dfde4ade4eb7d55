"""Targets that the tests run in sandboxed children: well behaved, faulty and hostile."""

from __future__ import annotations

import ctypes
import gc
import json
import os
import resource
import signal
import socket
import stat
import struct
import sys
import time
from collections.abc import Callable
from typing import BinaryIO

from streams.sandbox.child import FLUSH_AFTER

Emit = Callable[[bytes], None]
Progress = Callable[[str], None]
LOADED: list[str] = []


def load() -> None:
    """The preload of most tests."""
    LOADED.append("loaded")


def load_badly() -> None:
    """A preload with a bug."""
    raise LookupError("no such library")


def load_nothing() -> None:
    """A preload that ends the forkserver at once."""
    os._exit(5)


def load_sabotage() -> None:
    """A preload that makes the setup of every child fail."""
    sys.modules["__main__"].seal = None  # type: ignore[attr-defined]


def work(request: bytes, body: BinaryIO | None, emit: Emit, progress: Progress) -> None:
    """Do what the request says: the name of a function below without `do_`, a space, its argument."""
    name, _, argument = request.partition(b" ")
    globals()[f"do_{name.decode()}"](argument, body, emit, progress)


def do_echo(argument: bytes, body: BinaryIO | None, emit: Emit, progress: Progress) -> None:
    """Emit the argument as one frame."""
    emit(argument)


def do_chunks(argument: bytes, body: BinaryIO | None, emit: Emit, progress: Progress) -> None:
    """Emit a frame for each of the given lengths in bytes."""
    for size in json.loads(argument):
        emit(b"x" * size)


def do_count(argument: bytes, body: BinaryIO | None, emit: Emit, progress: Progress) -> None:
    """Emit the given number of long frames, each with its number."""
    for number in range(int(argument)):
        emit(b"%d" % number + b" " * 60_000)


def do_body(argument: bytes, body: BinaryIO | None, emit: Emit, progress: Progress) -> None:
    """Emit the position of the body and its content."""
    assert body is not None
    start = body.tell()
    emit(b"%d " % start + body.read())


def do_pid(argument: bytes, body: BinaryIO | None, emit: Emit, progress: Progress) -> None:
    """Emit the process id."""
    emit(b"%d" % os.getpid())


def do_abort(argument: bytes, body: BinaryIO | None, emit: Emit, progress: Progress) -> None:
    """Abort at the second of two members."""
    progress("first")
    emit(b"frame of the first")
    time.sleep(2 * FLUSH_AFTER)
    progress(argument.decode())
    os.abort()


def do_segfault(argument: bytes, body: BinaryIO | None, emit: Emit, progress: Progress) -> None:
    """Read from an invalid address."""
    progress(argument.decode())
    ctypes.string_at(8)


def do_leave(argument: bytes, body: BinaryIO | None, emit: Emit, progress: Progress) -> None:
    """Exit with the given status."""
    progress("leaving")
    os._exit(int(argument))


def do_raise(argument: bytes, body: BinaryIO | None, emit: Emit, progress: Progress) -> None:
    """Raise the named exception."""
    progress("raising")
    raise {b"ValueError": ValueError, b"SystemExit": SystemExit, b"KeyboardInterrupt": KeyboardInterrupt}[argument]("a bug")


def do_loop(argument: bytes, body: BinaryIO | None, emit: Emit, progress: Progress) -> None:
    """Compute forever without progress reports."""
    emit(b"begun")
    time.sleep(2 * FLUSH_AFTER)
    progress("a loop")
    while True:
        pass


def do_lively_loop(argument: bytes, body: BinaryIO | None, emit: Emit, progress: Progress) -> None:
    """Compute forever with progress reports."""
    while True:
        progress("round and round")


def do_slowly(argument: bytes, body: BinaryIO | None, emit: Emit, progress: Progress) -> None:
    """Emit frames with pauses, in total far longer than the deadline."""
    for number in range(int(argument)):
        time.sleep(0.05)
        emit(b"%d" % number)


def do_hog(argument: bytes, body: BinaryIO | None, emit: Emit, progress: Progress) -> None:
    """Allocate memory until it fails."""
    progress("a hog")
    held = []
    while True:
        held.append(bytes(1 << 20))


def do_hog_disguised(argument: bytes, body: BinaryIO | None, emit: Emit, progress: Progress) -> None:
    """Run out of memory and hide it, as a C library does: end normally, or with `raise` report damaged input."""
    progress("a hog in disguise")
    held = []
    try:
        while True:
            held.append(bytes(1 << 20))
    except MemoryError:
        held.clear()
    if argument == b"raise":
        raise ValueError("syntax error in line 1")


def do_flood(argument: bytes, body: BinaryIO | None, emit: Emit, progress: Progress) -> None:
    """Emit frames forever, and ignore exceptions."""
    progress("a flood")
    while True:
        try:
            emit(bytes(50_000))
        except Exception:  # noqa: BLE001, S112 (a parser that takes all for damage)
            continue


def do_forge(argument: bytes, body: BinaryIO | None, emit: Emit, progress: Progress) -> None:
    """Write a header with this length and kind to the parent, as code that took over the child could."""
    progress("a forger")
    length, kind = json.loads(argument)
    for descriptor in range(3, 64):
        try:
            if stat.S_ISSOCK(os.fstat(descriptor).st_mode):
                os.write(descriptor, struct.pack("<IB", length, kind) + b"x" * 100)
        except OSError:
            continue
    time.sleep(60)


def do_try(argument: bytes, body: BinaryIO | None, emit: Emit, progress: Progress) -> None:
    """Attempt one forbidden operation, and emit the result."""
    try:
        emit(repr(FORBIDDEN[argument.decode()]()).encode())
    except (OSError, ValueError) as error:
        emit(type(error).__name__.encode())


def do_facts(argument: bytes, body: BinaryIO | None, emit: Emit, progress: Progress) -> None:
    """Emit facts about the child as JSON."""
    facts = {
        "environment": sorted(os.environ),
        "loaded": LOADED,
        "frozen": gc.get_freeze_count(),
        "threads": len({*sys._current_frames()}),
        "interrupt": signal.getsignal(signal.SIGINT) == signal.SIG_IGN,
        "session": os.getsid(0),
        "koi8": b"\xc1".decode("koi8-r"),
        "shift_jis": b"\x83n".decode("shift_jis"),
        "idna": "b\u00fccher.example".encode("idna").decode(),
    }
    emit(json.dumps(facts).encode())


def do_print(argument: bytes, body: BinaryIO | None, emit: Emit, progress: Progress) -> None:
    """Print as a library that quotes its input."""
    print("hostile", flush=True)
    os.write(2, b"hostile\n")


def do_grow(argument: bytes, body: BinaryIO | None, emit: Emit, progress: Progress) -> None:
    """Keep the given amount of memory, and work until the parent has measured it."""
    LOADED.append("x" * int(argument))
    time.sleep(0.01)
    emit(b"%d" % os.getpid())


def do_spool(argument: bytes, body: BinaryIO | None, emit: Emit, progress: Progress) -> None:
    """Write to an anonymous memory file."""
    with open(os.memfd_create("spool"), "w+b") as file:
        try:
            file.write(bytes(int(argument)))
            file.flush()
            emit(b"written")
        except OSError:
            emit(b"refused")
            os.ftruncate(file.fileno(), 0)


def do_late(argument: bytes, body: BinaryIO | None, emit: Emit, progress: Progress) -> None:
    """Import a module that was not preloaded."""
    import wave

    emit(wave.__name__.encode())


FORBIDDEN: dict[str, Callable[[], object]] = {
    "internet": lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM),
    "datagram": lambda: socket.socket(socket.AF_INET6, socket.SOCK_DGRAM),
    "unix": lambda: socket.socket(socket.AF_UNIX),
    "pair": socket.socketpair,
    "read": lambda: open("/etc/passwd", "rb"),  # noqa: SIM115
    "write": lambda: open("/harvest-sandbox-test", "wb"),  # noqa: SIM115
    "list": lambda: os.listdir("/"),
    "mode": lambda: os.chmod("/", 0o700),
    "remove": lambda: os.unlink("/harvest-sandbox-test"),
    "fork": os.fork,
    "execute": lambda: os.execv("/bin/true", ["true"]),  # noqa: S606
    "signal": lambda: os.kill(os.getppid(), 0),
    "limits": lambda: resource.setrlimit(resource.RLIMIT_CORE, (0, 0)),
    "session": os.setsid,
}
