"""Tests what a sealed child can still do, so that `harvest doctor` shows the layers that work, not those that were intended."""

from __future__ import annotations

import ctypes
import os
import signal
import socket
from collections.abc import Callable
from typing import BinaryIO

from streams.sandbox.values import Layer

PR_GET_PDEATHSIG = 2


def _connect() -> None:
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).close()


def _unix() -> None:
    left, right = socket.socketpair()
    left.close()
    right.close()


def _read() -> None:
    os.close(os.open("/", os.O_RDONLY))


def _fork() -> None:
    if (pid := os.fork()) == 0:
        os._exit(0)
    os.waitpid(pid, 0)


def _signal() -> None:
    os.kill(os.getppid(), 0)


PROBES: dict[str, tuple[Callable[[], None], str]] = {
    "no network": (_connect, "an internet socket"),
    "no local sockets": (_unix, "a pair of local sockets"),
    "no files": (_read, "opening a folder"),
    "no processes": (_fork, "a fork"),
    "no signals": (_signal, "a signal to the parent"),
}


def verified(layers: list[Layer]) -> list[Layer]:
    """Return the given layers, followed by one per probe: active if the attempt was refused."""
    found = list(layers)
    for name, (probe, what) in PROBES.items():
        try:
            probe()
        except OSError as error:
            found.append(Layer(name, True, f"{what} is refused: {error.strerror}"))
        else:
            found.append(Layer(name, False, f"{what} is allowed"))
    found.append(
        Layer("no interrupt", signal.getsignal(signal.SIGINT) == signal.SIG_IGN, "the terminal's SIGINT is left to the parent")
    )
    deadly = ctypes.c_int(0)
    ctypes.CDLL(None).prctl(PR_GET_PDEATHSIG, ctypes.byref(deadly), 0, 0, 0)
    found.append(Layer("death with the parent", deadly.value == signal.SIGKILL, f"signal {deadly.value} when the forkserver ends"))
    return found


def nothing(request: bytes, body: BinaryIO | None, emit: Callable[[bytes], None], progress: Callable[[str], None]) -> None:
    """A target that does nothing, for a pool that only reports its layers."""
