"""Seals a forked child, layer by layer, before it reads the first byte of hostile input.

Every layer is optional if the kernel refuses it: the result is reported (`harvest doctor`), and the other layers stay active.
Order: death with the parent first; limits; then no_new_privs, which Landlock and seccomp require; seccomp last, since it refuses
the calls that the others need.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
from collections.abc import Callable

from streams.sandbox import landlock, seccomp
from streams.sandbox.values import Layer, SandboxLimits

LIBC = ctypes.CDLL(None, use_errno=True)
CAPABILITY_VERSION_3 = 0x20080522
CAPSET = {"x86_64": 126, "aarch64": 91}


def prctl(option: int, value: int) -> None:
    """Call prctl with one argument. Raises OSError."""
    zero = ctypes.c_ulong(0)
    if LIBC.prctl(option, ctypes.c_ulong(value), zero, zero, zero):
        raise OSError(ctypes.get_errno(), f"prctl({option})")


def die_with(parent: int) -> None:
    """Have the kernel kill this process (SIGKILL) when `parent`, its parent process, ends. Exits at once if it has already ended.

    If the kernel refuses, the end of the parent's socket remains as a signal.
    """
    with contextlib.suppress(OSError):
        prctl(seccomp.PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(0)


def address_space() -> int:
    """Return the present size of this process's address space in bytes."""
    with open("/proc/self/statm", "rb") as file:
        return int(file.read().split()[0]) * resource.getpagesize()


def lower(which: int, soft: int, hard: int) -> None:
    """Lower a resource limit of this process: only root may raise one above an existing hard limit."""
    most = resource.getrlimit(which)[1]
    resource.setrlimit(which, (soft, hard) if most == resource.RLIM_INFINITY else (min(soft, most), min(hard, most)))


def _limit(limits: SandboxLimits, base: int) -> str:
    cpu = limits.cpu * 2
    wanted = {
        resource.RLIMIT_AS: (base + limits.memory,) * 2,
        resource.RLIMIT_CPU: (cpu, cpu + 1),
        resource.RLIMIT_FSIZE: (limits.file_size,) * 2,
        resource.RLIMIT_NOFILE: (limits.files,) * 2,
        resource.RLIMIT_CORE: (0, 0),
    }
    for which, (soft, hard) in wanted.items():
        lower(which, soft, hard)
    held = {which: resource.getrlimit(which)[0] for which in wanted}
    memory = f"memory {_mib(held[resource.RLIMIT_AS] - base)} beyond the {_mib(base)} that a process starts with"
    files = f"{held[resource.RLIMIT_NOFILE]} open files, {_mib(held[resource.RLIMIT_FSIZE])} each"
    # A process is replaced after one share of CPU time and killed after two, so that one share is certain for each object.
    times = f"an object {held[resource.RLIMIT_CPU] // 2} s of CPU time, {limits.whole:g} s in all"
    times += f", {limits.deadline:g} s without a sign of life"
    return f"{memory}; {files}; {times}"


def _mib(size: int) -> str:
    return f"{size / (1 << 20):,.0f} MiB"


def no_new_privileges() -> str:
    """Set PR_SET_NO_NEW_PRIVS; return a description. Raises OSError."""
    prctl(seccomp.PR_SET_NO_NEW_PRIVS, 1)
    return "no set-user-ID program can raise rights"


def no_capabilities() -> str:
    """Drop all capabilities; return a description. Raises OSError."""
    header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION_3, 0)
    if LIBC.syscall(CAPSET[os.uname().machine], header, (ctypes.c_uint32 * 6)()):
        raise OSError(ctypes.get_errno(), "capset")
    return "all dropped"


def _first_to_go() -> str:
    with open("/proc/self/oom_score_adj", "r+b", buffering=0) as file:
        file.write(b"%d" % max(500, int(file.read())))
    return "the kernel kills a child first when memory is short"


def seal(limits: SandboxLimits, base: int) -> list[Layer]:
    """Seal this process irrevocably; return the result of each layer. `base`: its address space in bytes after the preload."""
    steps: list[tuple[str, Callable[[], str]]] = [
        ("oom score", _first_to_go),
        ("limits", lambda: _limit(limits, base)),
        ("capabilities", no_capabilities),
        ("no new privileges", no_new_privileges),
        ("landlock", lambda: landlock.install(LIBC)),
        ("seccomp", lambda: seccomp.install(LIBC)),
    ]
    layers = []
    for name, step in steps:
        try:
            layers.append(Layer(name, True, step()))
        # A failed layer must not prevent the others, whatever an unusual kernel or libc does.
        except Exception as error:  # noqa: BLE001 (see above)
            layers.append(Layer(name, False, f"{type(error).__name__}: {error}"[:200]))
    return layers
