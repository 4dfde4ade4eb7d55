"""The forkserver: a process of its own, with one thread, whose children share the pages of the parsing libraries.

    python -m streams.sandbox.server DESCRIPTOR PARENT

It loads them once. It is executed afresh and is no fork of the runner, which has threads, an event loop and open files that no
child must inherit.

Laws:
- It dies with its parent, and its children with it: by SIGKILL from the kernel (PR_SET_PDEATHSIG), and by the end of the control
  socket.
- It never reads a byte of input and never waits for a child.
- A child is killed by its number, and only while it is not reaped, so that no other process can be hit.
- Every child that was asked for is answered for: one `exited`.

Control messages (JSON, one a packet): in: the configuration, then orders: [number, limits] with the child's socket and page,
[number, null], or, before any child, [0, null, what is to be loaded besides]; out: ["ready", detail] or ["broken", traceback] for
each load, then ["exited", number, wait status, peak resident bytes].
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
"""A child's for `gc.set_threshold`: between two looks it may make so many objects that others refer to."""


class Configuration(msgspec.Struct, frozen=True, kw_only=True):
    """What a parent wants: where to import from, what to run, what to load before."""

    path: list[str]
    target: str
    preload: str


class Order(msgspec.Struct, frozen=True, array_like=True):
    """What a parent wants done with the child of a number: it is to be made, within these limits, or, without any, killed."""

    number: int
    limits: SandboxLimits | None
    load: str = ""
    """With this, the preload is called once more. What it gives, if anything, is called in each child before that is sealed."""


def resolve(name: str) -> Callable[..., Any]:
    """The object called "module:function". Raises ImportError, AttributeError or ValueError."""
    module, _, function = name.partition(":")
    if not function:
        raise ValueError(f"not of the form module:function: {name}")
    return cast("Callable[..., Any]", getattr(importlib.import_module(module), function))


def warm() -> None:
    """Load what the standard library loads late, by a path that a sealed child cannot read: codecs, above all."""
    for module in pkgutil.iter_modules(encodings.__path__):
        # Some are for another system (mbcs, oem).
        with contextlib.suppress(ImportError, LookupError):
            codecs.lookup(module.name)
    time.tzset()
    time.strptime("2000", "%Y")
    traceback.format_exception(ValueError("warm"))


def load(configuration: Configuration) -> Target:
    """The target, after the preload. Raises whatever they raise."""
    sys.path[:] = configuration.path
    gc.disable()
    warm()
    if configuration.preload:
        resolve(configuration.preload)()
    target = resolve(configuration.target)
    gc.collect()
    # Frozen objects are not visited by a child's collector, whose marks would unshare their pages.
    gc.freeze()
    return cast("Target", target)


class Server:
    """The forkserver's loop."""

    def __init__(self, control: socket.socket, target: Target, preload: str = "") -> None:
        self._control = control
        self._target = target
        self._preload = preload
        self._before: Callable[[SandboxLimits], None] | None = None
        """What each child does before it is sealed."""
        self._base = address_space()
        self._children: dict[int, int] = {}
        """Number by process id."""
        self._wake, wake_end = socket.socketpair()
        self._wake.setblocking(False)
        wake_end.setblocking(False)
        self._wake_end = wake_end
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake_end.fileno(), warn_on_full_buffer=False)

    def serve(self) -> None:
        """Work until the parent closes the control socket; then kill and reap all."""
        while True:
            readable, _, _ = select.select([self._control, self._wake], [], [])
            if self._wake in readable:
                with contextlib.suppress(BlockingIOError):
                    self._wake.recv(4096)
            self._reap()
            if self._control in readable and not self._obey():
                break
        # The ends of the children are news for nobody now, and this pair of sockets closes before the process ends.
        signal.set_wakeup_fd(-1)
        for pid in self._children:
            _kill(pid)

    def _obey(self) -> bool:
        """Do what one packet says; False at the end."""
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
        """Load more, and say what became of it; False where it failed."""
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
        # Here as well as in the child: whoever comes first, a kill finds the group.
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
            # The elements of a page are objects by the thousand, which need not be looked at again and again while it is read.
            gc.set_threshold(*THRESHOLDS)
            Child(socket.socket(fileno=channel), mapped, limits, memory, layers).serve(self._target)
            status = 0
        except BaseException as error:  # noqa: BLE001 (nothing may get out of a child)
            # The parent is told by the status alone: nobody reads what a child prints.
            status = 0 if isinstance(error, ConnectionError) else EXIT_UNSEALED
        finally:
            os._exit(status)

    def _reap(self) -> None:
        """Answer for every child that has ended."""
        while self._children:
            found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if found is None:
                return
            # Not reaped yet, so that its process group still is its own: end what it may have left behind where forks are allowed.
            _kill(found.si_pid)
            pid, status, usage = os.wait4(found.si_pid, 0)
            if (number := self._children.pop(pid, None)) is not None:
                self._say("exited", number, status, usage.ru_maxrss << 10)

    def _say(self, *message: str | int) -> None:
        _send(self._control, *message)


def _kill(pid: int) -> None:
    """SIGKILL to a child that is not reaped, and to its group."""
    for kill in (os.killpg, os.kill):
        with contextlib.suppress(OSError):
            kill(pid, signal.SIGKILL)


def _told(error: BaseException) -> str:
    """What a parent is told of a failure: a mistake as it is, all else with its traceback."""
    return str(error) if isinstance(error, MistakeError) else "".join(traceback.format_exception(error))[-MAX_TRACEBACK:]


def _threads() -> int:
    return len(os.listdir("/proc/self/task"))


def _silence() -> None:
    """Libraries write warnings that quote their input: no terminal of ours shows them."""
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(null, standard)
    os.close(null)


def _send(control: socket.socket, *message: str | int) -> None:
    """One packet out; if the parent is gone, the next read says so."""
    with contextlib.suppress(OSError):
        control.send(msgspec.json.encode(message))


def main(arguments: list[str]) -> int:
    """Serve on the control socket whose descriptor is given, for the parent whose process id is given."""
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
    # No clean-up: what the preload has opened ends with the process, and libraries' exit handlers have been seen to hang.
    os._exit(main(sys.argv[1:]))
