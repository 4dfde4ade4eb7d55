"""A system call filter for a child that only computes (seccomp-bpf, `man 2 seccomp`): no sockets, no files, no other process.

Strategy: a list of refused calls, which fail with EPERM, so that a library that tries one can continue; all others are allowed. An
allow-list would be stricter, but breaks with each new libc. Numbers are those of the kernel's asm/unistd.h.

Laws:
- An operator's program, which a child runs for a type (`spawning`), may in addition open files and create processes: Landlock
  decides which files.
- All calls with another architecture's numbers (32 bits, x32) are refused: the numbers would mean something else.
- Threads are allowed, processes are not; signals go to the process itself only; limits and the death signal cannot be changed.
- io_uring is refused, because its operations bypass the filter.
- Opening by path is refused here in addition to Landlock, which older kernels lack; so are calls that Landlock does not cover
  (modes, owners, times).
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from typing import NamedTuple


class Machine(NamedTuple):
    """One architecture: its AUDIT_ARCH value, and its column in the table of numbers."""

    audit: int
    column: int


MACHINES = {"x86_64": Machine(0xC000003E, 0), "aarch64": Machine(0xC00000B7, 1)}
X32 = 0x40000000
"""Bit of the x32 calls, which share x86_64's AUDIT_ARCH."""

TABLE = """
# sockets
socket 41 198; connect 42 203; accept 43 202; bind 49 200; listen 50 201; socketpair 53 199; accept4 288 242;
# other processes, other programs
fork 57 -1; vfork 58 -1; execve 59 221; execveat 322 281; tkill 200 130; rt_sigqueueinfo 129 138;
rt_tgsigqueueinfo 297 240; pidfd_open 434 434; pidfd_send_signal 424 424; pidfd_getfd 438 438; ptrace 101 117;
process_vm_readv 310 270; process_vm_writev 311 271; process_madvise 440 440; kcmp 312 272; setsid 112 157;
setpgid 109 154; setpriority 141 140; shmget 29 194; shmat 30 196; msgget 68 186; semget 64 190; mq_open 240 180;
# what passes by the filter, or into the kernel
io_uring_setup 425 425; io_uring_enter 426 426; io_uring_register 427 427; bpf 321 280; perf_event_open 298 241;
userfaultfd 323 282; add_key 248 217; request_key 249 218; keyctl 250 219; init_module 175 105; finit_module 313 273;
delete_module 176 106; kexec_load 246 104; kexec_file_load 320 294; reboot 169 142; swapon 167 224; swapoff 168 225;
acct 163 89; quotactl 179 60; sethostname 170 161; setdomainname 171 162; settimeofday 164 170; clock_settime 227 112;
clock_adjtime 305 266; adjtimex 159 171; personality 135 92; setrlimit 160 164; unshare 272 97; setns 308 268;
mount 165 40; umount2 166 39; pivot_root 155 41; chroot 161 51; open_tree 428 428; move_mount 429 429; fsopen 430 430;
fsconfig 431 431; fsmount 432 432; fspick 433 433; mount_setattr 442 442;
# the file system
open 2 -1; openat 257 56; openat2 437 437; creat 85 -1; open_by_handle_at 304 265; chdir 80 49; fchdir 81 50;
truncate 76 45; rename 82 -1; renameat 264 38; renameat2 316 276; link 86 -1; linkat 265 37; symlink 88 -1;
symlinkat 266 36; unlink 87 -1; unlinkat 263 35; mkdir 83 -1; mkdirat 258 34; rmdir 84 -1; mknod 133 -1; mknodat 259 33;
readlink 89 -1; readlinkat 267 78; chmod 90 -1; fchmod 91 52; fchmodat 268 53; fchmodat2 452 452; chown 92 -1;
fchown 93 55; lchown 94 -1; fchownat 260 54; utime 132 -1; utimes 235 -1; futimesat 261 -1; utimensat 280 88;
setxattr 188 5; lsetxattr 189 6; fsetxattr 190 7; setxattrat 463 463; removexattr 197 14; lremovexattr 198 15;
fremovexattr 199 16; removexattrat 466 466; inotify_add_watch 254 27; fanotify_init 300 262;
"""
"""Refused calls: name, number on x86_64, number on aarch64 (-1 where the architecture has no such call)."""


def _numbers() -> dict[str, tuple[int, int]]:
    entries = " ".join(line for line in TABLE.splitlines() if not line.startswith("#")).split(";")
    rows = (entry.split() for entry in entries if entry.strip())
    return {name: (int(x86), int(arm)) for name, x86, arm in rows}


REFUSED = _numbers()
_SPAWNING = """
fork vfork execve execveat tkill rt_sigqueueinfo rt_tgsigqueueinfo pidfd_open pidfd_send_signal setpriority setrlimit
open openat openat2 chdir fchdir readlink readlinkat inotify_add_watch
"""
SPAWNING = frozenset(_SPAWNING.split())
"""Refused calls that are allowed to a program. None that leaves the process group: the whole group ends with the program."""
CLONE, CLONE3 = (56, 220), (435, 435)
KILL, TGKILL, PRCTL, PRLIMIT = (62, 129), (234, 131), (157, 167), (302, 261)

CLONE_THREAD = 0x10000
CLONE_SPACES = 0x7E020080
"""Flags of clone that create a namespace."""
PR_SET_PDEATHSIG, PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 1, 38, 22, 2

ALLOW, REFUSE = 0x7FFF0000, 0x00050000
LOAD, JUMP_EQUAL, JUMP_GREATER_EQUAL, JUMP_SET, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
NUMBER, ARCH, ARGUMENTS = 0, 4, 16


def _step(code: int, value: int, then: int = 0, otherwise: int = 0) -> bytes:
    """Return one instruction of classic BPF (struct sock_filter)."""
    return struct.pack("=HBBI", code, then, otherwise, value)


def _if_number(number: int, body: bytes) -> bytes:
    """Run `body`, which returns, if the call has this number. The accumulator holds the number before and after."""
    return _step(JUMP_EQUAL, number, 0, len(body) // 8) + body


def _low(argument: int) -> bytes:
    return _step(LOAD, ARGUMENTS + 8 * argument)


def _high(argument: int) -> bytes:
    return _step(LOAD, ARGUMENTS + 8 * argument + 4)


def program(machine: Machine, pid: int, *, spawning: bool = False) -> bytes:
    """Return the filter of the process `pid` as an array of instructions of 8 bytes each."""
    allow, refuse, nowhere = (_step(RETURN, v) for v in (ALLOW, REFUSE | errno.EPERM, REFUSE | errno.ENOSYS))
    only_me = _low(0) + _step(JUMP_EQUAL, pid, 0, 1) + allow + refuse
    at = machine.column
    parts = [
        _step(LOAD, ARCH) + _step(JUMP_EQUAL, machine.audit, 1, 0) + refuse,
        _step(LOAD, NUMBER),
        _step(JUMP_GREATER_EQUAL, X32, 0, 1) + refuse if machine.column == 0 else b"",
        # glibc falls back to clone, whose flags are in a register; the flags of clone3 are in memory, which a filter cannot read.
        _if_number(CLONE3[at], nowhere),
        *(_spawning(at, allow, refuse) if spawning else _alone(at, only_me, allow, refuse)),
        _if_number(PRCTL[at], _low(0) + _step(JUMP_EQUAL, PR_SET_PDEATHSIG, 0, 1) + refuse + allow),
        *(
            _if_number(numbers[at], refuse)
            for name, numbers in REFUSED.items()
            if numbers[at] >= 0 and not (spawning and name in SPAWNING)
        ),
        allow,
    ]
    return b"".join(parts)


def _alone(at: int, only_me: bytes, allow: bytes, refuse: bytes) -> list[bytes]:
    """Return the rules of a process that must not create processes, signal others or change its limits."""
    return [
        _if_number(CLONE[at], _low(0) + _step(JUMP_SET, CLONE_THREAD, 0, 1) + allow + refuse),
        _if_number(KILL[at], only_me),
        _if_number(TGKILL[at], only_me),
        # prlimit64 only reads limits when its third argument, the new limit, is NULL.
        _if_number(
            PRLIMIT[at], _low(2) + _step(JUMP_EQUAL, 0, 1, 0) + refuse + _high(2) + _step(JUMP_EQUAL, 0, 1, 0) + refuse + allow
        ),
    ]


def _spawning(at: int, allow: bytes, refuse: bytes) -> list[bytes]:
    """Return the rules of a process that may create others, but not in a new namespace, where it would gain privileges."""
    return [_if_number(CLONE[at], _low(0) + _step(JUMP_SET, CLONE_SPACES, 0, 1) + refuse + allow)]


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


def install(libc: ctypes.CDLL, *, spawning: bool = False) -> str:
    """Filter this process from now on; PR_SET_NO_NEW_PRIVS must be set. Returns a description; raises OSError on refusal."""
    name = os.uname().machine
    if name not in MACHINES:
        raise OSError(errno.ENOSYS, f"no table of system calls for {name}")
    code = program(MACHINES[name], os.getpid(), spawning=spawning)
    held = ctypes.create_string_buffer(code, len(code))
    filter_ = _Program(len(code) // 8, ctypes.cast(held, ctypes.c_void_p).value)
    if libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(filter_), 0, 0):
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_SECCOMP)")
    return f"{len(REFUSED) + 6} system calls refused or watched"
