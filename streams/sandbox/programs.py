"""Runs external summarizer programs, one file each, next to a sealed child: through a runner that the child forks before sealing.

    programs = Programs()
    programs.commands = {"Recipe": Command(("/usr/local/bin/recipe2soif",), 20.0)}
    ...                                    # in a child:
    programs.begin(limits)                 # before it is sealed
    printed = programs.run("Recipe", {"NAME": "soup.recipe"}, body)

The child itself must not create processes. It sends the type and the body (an anonymous file) to its runner, which does not read
the body: it starts the program, waits, kills it at its time limit, and returns its output.

A program may read and execute what is below READABLE, its own folder and the paths in its rule; it may create processes, and print,
within the limits of a child. No network, no socket, no writable file, no signals to others, no new privileges. It dies with its
runner, and the runner with the child; all processes that it started are killed with it. Without Landlock in the kernel no program
is run: it could write to all files of its user.
"""

from __future__ import annotations

import os
import resource
import signal
import socket
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import BinaryIO, NamedTuple, NoReturn

import msgspec

from streams.sandbox import landlock, seccomp
from streams.sandbox.seal import LIBC, die_with, lower, no_capabilities, no_new_privileges
from streams.sandbox.values import SandboxLimits, signal_name

READABLE = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc", "/opt", "/nix", "/gnu", "/proc/self", "/proc/filesystems"),
    *("/dev/null", "/dev/zero", "/dev/urandom", "/dev/random"),
)
"""Readable by every program: the system's programs and libraries."""
PRINTED = 4 << 20
"""Maximum bytes that a program may print; Found keeps 64 kB of it."""
SAID = 200
"""Bytes kept from the end of standard error."""
CHUNK = 1 << 20
PACKET = 65_536
EXIT_LOST = 79
"""Exit status of a child whose runner has died."""
EXIT_UNSEALED = 126
PLACE = "{}"
"""Placeholder for the file in a command."""


class Command(NamedTuple):
    """A program with its arguments, its time limit in seconds, and additional paths that it may read."""

    arguments: tuple[str, ...]
    seconds: float
    reads: tuple[str, ...] = ()


class ProgramError(ValueError):
    """The program failed; the message is one line."""


class Programs:
    """The child's side."""

    def __init__(self) -> None:
        self.commands: Mapping[str, Command] = {}
        """Commands by the name of their type."""
        self._runner: socket.socket | None = None

    def begin(self, limits: SandboxLimits) -> None:
        """Fork the runner. Must be called before this process is sealed. Raises OSError."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        child = os.getpid()
        if os.fork() == 0:
            _live(theirs, child, self.commands, limits)
        theirs.close()
        self._runner = ours

    def run(self, name: str, about: Mapping[str, str], body: BinaryIO) -> bytes:
        """Return the output of the named program for a body. `about`: variables for its environment. Raises ProgramError."""
        if self._runner is None:
            raise ProgramError("no program can be run here")
        held = os.memfd_create("body")
        try:
            with os.fdopen(os.dup(held), "wb") as file:
                while piece := body.read(CHUNK):
                    file.write(piece)
            os.lseek(held, 0, os.SEEK_SET)
            try:
                socket.send_fds(self._runner, [msgspec.json.encode((name, about))], [held])
                answer, descriptors, _, _ = socket.recv_fds(self._runner, PACKET, 1)
            except OSError:
                answer, descriptors = b"", []
        finally:
            os.close(held)
        if not answer:
            # The runner was killed, and the work on this file with it; the child that replaces this one has its own runner.
            os._exit(EXIT_LOST)
        with os.fdopen(descriptors[0], "rb") as printed:
            problem = msgspec.json.decode(answer, type=str)
            if problem:
                raise ProgramError(problem)
            printed.seek(0)
            return printed.read()


def _live(channel: socket.socket, child: int, commands: Mapping[str, Command], limits: SandboxLimits) -> NoReturn:
    """Run the loop of the runner, which ends with its child."""
    status = 1
    try:
        die_with(child)
        kept = channel.detach()
        os.dup2(kept, 3, inheritable=False)
        os.closerange(4, os.sysconf("SC_OPEN_MAX"))
        channel = socket.socket(fileno=3)
        os.chdir("/")
        # SIGCHLD is consumed with sigtimedwait, and must not interrupt.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
        while (received := socket.recv_fds(channel, PACKET, 1))[0]:
            name, about = msgspec.json.decode(received[0], type=tuple[str, dict[str, str]])
            body, printed = received[1][0], os.memfd_create("printed")
            problem = _run(commands[name], about, body, printed, limits)
            socket.send_fds(channel, [msgspec.json.encode(problem)], [printed])
            os.close(body)
            os.close(printed)
        status = 0
    finally:
        os._exit(status)


def _run(command: Command, about: Mapping[str, str], body: int, printed: int, limits: SandboxLimits) -> str:
    """Run a program to its end; return the error, or ""."""
    said = os.memfd_create("said")
    try:
        runner, began = os.getpid(), time.monotonic()
        if (pid := os.fork()) == 0:
            _become(command, about, (body, printed, said), runner, limits)
        status = _wait(pid, began + command.seconds)
        # The processes that it started cannot have left its process group.
        with suppress(OSError):
            os.killpg(pid, signal.SIGKILL)
        if status is None:
            os.waitpid(pid, 0)
            return f"its time is over ({command.seconds:g} s)"
        code = os.waitstatus_to_exitcode(status)
        if os.fstat(printed).st_size >= PRINTED:
            return f"it printed more than {PRINTED:,} bytes"
        if code == 0:
            return ""
        size = os.fstat(said).st_size
        words = os.pread(said, SAID, max(0, size - SAID)).decode(errors="replace").strip().splitlines()
        return _ended(code) + (f": {words[-1]}" if words else "")
    finally:
        os.close(said)


def _ended(code: int) -> str:
    if code > 0:
        return f"it ended with {code}"
    return f"it was ended by {signal_name(-code)}"


def _wait(pid: int, end: float) -> int | None:
    """Return the wait status of a child process, or None if it has not ended by `end` (monotonic seconds)."""
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return status
        if (rest := end - time.monotonic()) <= 0:
            return None
        signal.sigtimedwait({signal.SIGCHLD}, rest)


def _become(command: Command, about: Mapping[str, str], ends: tuple[int, int, int], runner: int, limits: SandboxLimits) -> NoReturn:
    """Seal this process and replace it with the program."""
    try:
        die_with(runner)
        os.setsid()
        for standard, descriptor in enumerate(ends):
            os.dup2(descriptor, standard, inheritable=True)
        os.closerange(3, os.sysconf("SC_OPEN_MAX"))
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        for name in (signal.SIGPIPE, signal.SIGINT, signal.SIGXFSZ):
            signal.signal(name, signal.SIG_DFL)
        _seal(command, limits)
        arguments = [argument.replace(PLACE, "/proc/self/fd/0") for argument in command.arguments]
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "TZ") if name in os.environ}
        os.execve(arguments[0], arguments, kept | {f"HARVEST_{k}": v.replace("\0", " ") for k, v in about.items()})  # noqa: S606 - a program with its arguments is what is wanted
    except BaseException as error:  # noqa: BLE001 (nothing may get out)
        with suppress(OSError):
            os.write(2, f"{type(error).__name__}: {error}".encode(errors="replace"))
    finally:
        os._exit(EXIT_UNSEALED)


def _seal(command: Command, limits: SandboxLimits) -> None:
    """Apply the layers of a child, but allow reading files and creating processes. Raises OSError if a layer fails."""
    cpu = int(command.seconds) + 1
    for which, most in (
        (resource.RLIMIT_AS, limits.memory),
        (resource.RLIMIT_CPU, cpu),
        (resource.RLIMIT_FSIZE, PRINTED),
        (resource.RLIMIT_NOFILE, limits.files),
        (resource.RLIMIT_CORE, 0),
    ):
        lower(which, most, most)
    no_capabilities()
    no_new_privileges()
    landlock.install(LIBC, (*READABLE, os.path.dirname(os.path.realpath(command.arguments[0])), *command.reads))
    seccomp.install(LIBC, spawning=True)
