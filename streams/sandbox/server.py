"""The forkserver: a process with one thread, whose children share the memory pages of the parsing libraries.

    python -m streams.sandbox.server DESCRIPTOR PARENT

It loads the libraries once. It is executed afresh instead of forked from the runner, which has threads, an event loop and open
files that no child must inherit.

Laws:
- It dies with its parent, and its children with it: by SIGKILL from the kernel (PR_SET_PDEATHSIG), and by the end of the control
  socket.
- It never reads a byte of input and never waits for a child.
- A child is killed by its number, and only before it is reaped, so that no other process can receive the signal.
- Every ordered child is reported with exactly one `exited`.

Control messages (JSON, one a packet): in: the configuration, then orders: [number, limits] with the child's socket and page,
[number, null] to kill it, or, before any child, [0, null, argument of the second preload]; out: ["ready", threads] or
["broken", traceback] for each load, then ["exited", number, wait status, peak resident bytes].
"""

from __future__ import annotations

import codecs
import contextlib
import encodings
import gc
import importlib
import os
import pkgutil
import select
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable
from typing import Any, cast

import msgspec

from streams.sandbox.child import Child, Memory, Target
from streams.sandbox.seal import address_space, die_with, seal
from streams.sandbox.values import MAX_TRACEBACK, MistakeError, SandboxLimits
from streams.sandbox.wire import ProgressPage

PACKET = 65_536
EXIT_UNSEALED = 78
"""Exit status of a child that could not be set up."""
THRESHOLDS = (50_000, 20, 20)
"""Arguments of `gc.set_threshold` in a child: the first is how many container objects it may create between two collections."""


class Configuration(msgspec.Struct, frozen=True, kw_only=True):
    """First message of a parent: the import path, the target, and the preload."""

    path: list[str]
    target: str
    preload: str


class Order(msgspec.Struct, frozen=True, array_like=True):
    """An order for the child with that number: create it within these limits, or kill it if there are none."""

    number: int
    limits: SandboxLimits | None
    load: str = ""
    """Argument of a second call of the preload. If that returns a function, each child calls it before it is sealed."""


def resolve(name: str) -> Callable[..., Any]:
    """Return the function named "module:function". Raises ImportError, AttributeError or ValueError."""
    module, _, function = name.partition(":")
    if not function:
        raise ValueError(f"not of the form module:function: {name}")
    return cast("Callable[..., Any]", getattr(importlib.import_module(module), function))


def warm() -> None:
    """Load the modules that the standard library imports late, from paths that a sealed child cannot read: mainly codecs."""
    for module in pkgutil.iter_modules(encodings.__path__):
        # Some are for another system (mbcs, oem).
        with contextlib.suppress(ImportError, LookupError):
            codecs.lookup(module.name)
    time.tzset()
    time.strptime("2000", "%Y")
    traceback.format_exception(ValueError("warm"))


def load(configuration: Configuration) -> Target:
    """Run the preload, and return the target. Raises whatever they raise."""
    sys.path[:] = configuration.path
    gc.disable()
    warm()
    if configuration.preload:
        resolve(configuration.preload)()
    target = resolve(configuration.target)
    gc.collect()
    # A child's garbage collector skips frozen objects; its marks would unshare their memory pages.
    gc.freeze()
    return cast("Target", target)


class Server:
    """The forkserver's loop."""

    def __init__(self, control: socket.socket, target: Target, preload: str = "") -> None:
        self._control = control
        self._target = target
        self._preload = preload
        self._before: Callable[[SandboxLimits], None] | None = None
        """Function that each child calls before it is sealed."""
        self._base = address_space()
        self._children: dict[int, int] = {}
        """Child numbers by process id."""
        self._wake, wake_end = socket.socketpair()
        self._wake.setblocking(False)
        wake_end.setblocking(False)
        self._wake_end = wake_end
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake_end.fileno(), warn_on_full_buffer=False)

    def serve(self) -> None:
        """Follow orders until the parent closes the control socket; then kill all children."""
        while True:
            readable, _, _ = select.select([self._control, self._wake], [], [])
            if self._wake in readable:
                with contextlib.suppress(BlockingIOError):
                    self._wake.recv(4096)
            self._reap()
            if self._control in readable and not self._obey():
                break
        # The ends of children no longer matter, and this socket pair is closed before the process ends.
        signal.set_wakeup_fd(-1)
        for pid in self._children:
            _kill(pid)

    def _obey(self) -> bool:
        """Follow the order in one packet; False when the socket is closed."""
        try:
            data, descriptors, _, _ = socket.recv_fds(self._control, PACKET, 2)
        except ConnectionResetError:
            return False
        if not data:
            return False
        order = msgspec.json.decode(data, type=Order)
        if order.load:
            return self._load(order.load)
        if order.limits is None:
            for pid in [p for p, n in self._children.items() if n == order.number]:
                _kill(pid)
        else:
            self._spawn(order.number, order.limits, *descriptors)
            for descriptor in descriptors:
                os.close(descriptor)
        return True

    def _load(self, more: str) -> bool:
        """Call the preload once more and report the result; False if it failed."""
        try:
            self._before = resolve(self._preload)(more)
        except BaseException as error:  # noqa: BLE001 (a preload that exits has failed too)
            self._say("broken", _told(error))
            return False
        gc.collect()
        gc.freeze()
        self._base = address_space()
        self._say("ready", _threads())
        return True

    def _spawn(self, number: int, limits: SandboxLimits, channel: int, page: int) -> None:
        parent = os.getpid()
        try:
            pid = os.fork()
        except OSError:
            self._say("exited", number, EXIT_UNSEALED << 8, 0)
            return
        if pid == 0:
            self._become_child(parent, limits, channel, page)
        # Called here and in the child: whichever is first, a kill reaches the group.
        with contextlib.suppress(OSError):
            os.setpgid(pid, pid)
        self._children[pid] = number

    def _become_child(self, parent: int, limits: SandboxLimits, channel: int, page: int) -> None:
        status = EXIT_UNSEALED
        try:
            die_with(parent)
            os.setpgid(0, 0)
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for mine in (self._control, self._wake, self._wake_end):
                mine.close()
            mapped = ProgressPage(page)
            os.close(page)
            memory = Memory(self._base, limits)
            _silence()
            if self._before:
                self._before(limits)
            layers = seal(limits, self._base)
            gc.enable()
            # Parsing a page creates thousands of objects, which need not be visited again and again meanwhile.
            gc.set_threshold(*THRESHOLDS)
            Child(socket.socket(fileno=channel), mapped, limits, memory, layers).serve(self._target)
            status = 0
        except BaseException as error:  # noqa: BLE001 (nothing may get out of a child)
            # The exit status is the only report to the parent: the output of a child is not read.
            status = 0 if isinstance(error, ConnectionError) else EXIT_UNSEALED
        finally:
            os._exit(status)

    def _reap(self) -> None:
        """Report every child that has ended."""
        while self._children:
            found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if found is None:
                return
            # Not reaped yet, so the process group still belongs to it: kill what it may have left behind where forks are allowed.
            _kill(found.si_pid)
            pid, status, usage = os.wait4(found.si_pid, 0)
            if (number := self._children.pop(pid, None)) is not None:
                self._say("exited", number, status, usage.ru_maxrss << 10)

    def _say(self, *message: str | int) -> None:
        _send(self._control, *message)


def _kill(pid: int) -> None:
    """Send SIGKILL to a child that is not reaped, and to its group."""
    for kill in (os.killpg, os.kill):
        with contextlib.suppress(OSError):
            kill(pid, signal.SIGKILL)


def _told(error: BaseException) -> str:
    """Return the text for the parent about a failure: the message of a MistakeError, otherwise the traceback."""
    return str(error) if isinstance(error, MistakeError) else "".join(traceback.format_exception(error))[-MAX_TRACEBACK:]


def _threads() -> int:
    return len(os.listdir("/proc/self/task"))


def _silence() -> None:
    """Redirect the standard streams to /dev/null: libraries write warnings that quote their input to the terminal."""
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(null, standard)
    os.close(null)


def _send(control: socket.socket, *message: str | int) -> None:
    """Send one packet; if the parent is gone, the next read reports it."""
    with contextlib.suppress(OSError):
        control.send(msgspec.json.encode(message))


def main(arguments: list[str]) -> int:
    """Serve on the control socket. `arguments`: the socket's descriptor, and the parent's process id."""
    descriptor, parent = map(int, arguments)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    die_with(parent)
    control = socket.socket(fileno=descriptor)
    try:
        configuration = msgspec.json.decode(control.recv(PACKET), type=Configuration)
        target = load(configuration)
    except BaseException as error:  # noqa: BLE001 (a preload that exits has failed too)
        _send(control, "broken", _told(error))
        return 1
    server = Server(control, target, configuration.preload)
    _send(control, "ready", _threads())
    server.serve()
    return 0


if __name__ == "__main__":
    # No clean-up: what the preload has opened ends with the process, and exit handlers of libraries were observed to hang.
    os._exit(main(sys.argv[1:]))
