"""Landlock by raw system calls (`man 7 landlock`): no path, no TCP, no signal or abstract socket out of the child.

A rule set that handles a right and grants none denies it. Each kernel is asked for the rights that it knows, by its ABI number.
A program that an operator has set for a type may read below the paths that it is granted, and write to nothing but /dev/null.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import stat
import struct
from collections.abc import Iterable

CREATE, ADD, RESTRICT = 444, 445, 446
"""landlock_create_ruleset, landlock_add_rule and landlock_restrict_self: the same numbers on all architectures."""
VERSION = 1
BENEATH = 1
"""Rule type: a path and everything below it."""
EXECUTE, WRITE, READ, LIST = 0b0001, 0b0010, 0b0100, 0b1000

FS_RIGHTS = {1: 13, 2: 14, 3: 15, 5: 16}
"""Number of file rights from that ABI version on: a mask of that many bits."""
NET_SINCE, TCP = 4, 0b11
SCOPE_SINCE, SCOPES = 6, 0b11


def handled(abi: int) -> bytes:
    """Return the struct landlock_ruleset_attr with every right that the ABI knows."""
    files = (1 << max(n for since, n in FS_RIGHTS.items() if since <= abi)) - 1
    attributes = struct.pack("=Q", files)
    if abi >= NET_SINCE:
        attributes += struct.pack("=Q", TCP)
    if abi >= SCOPE_SINCE:
        attributes += struct.pack("=Q", SCOPES)
    return attributes


def install(libc: ctypes.CDLL, reads: Iterable[str] = ()) -> str:
    """Deny this process all file access from now on, except below `reads`. PR_SET_NO_NEW_PRIVS must be set.

    Returns a description of the rules in force; raises OSError if the kernel refuses.

    `reads`: paths below which files may be read and executed; a path that does not exist grants nothing.
    """
    abi = libc.syscall(CREATE, None, ctypes.c_size_t(0), VERSION)
    if abi < 1:
        raise OSError(ctypes.get_errno(), "landlock_create_ruleset")
    attributes = handled(abi)
    rules = libc.syscall(CREATE, attributes, ctypes.c_size_t(len(attributes)), 0)
    if rules < 0:
        raise OSError(ctypes.get_errno(), "landlock_create_ruleset")
    try:
        for path in reads:
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                _grant(libc, rules, path)
        if libc.syscall(RESTRICT, rules, 0):
            raise OSError(ctypes.get_errno(), "landlock_restrict_self")
    finally:
        libc.close(rules)
    return f"ABI {abi}: files{', TCP' if abi >= NET_SINCE else ''}{', signals' if abi >= SCOPE_SINCE else ''}"


def _grant(libc: ctypes.CDLL, rules: int, path: str) -> None:
    """Allow a path to be read and executed, and /dev/null to be written to. Raises OSError."""
    at = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        rights = READ | EXECUTE | (LIST if stat.S_ISDIR(os.fstat(at).st_mode) else 0)
        if path == os.devnull:
            rights |= WRITE
        rule = struct.pack("=Qi", rights, at)
        if libc.syscall(ADD, rules, BENEATH, rule, 0):
            raise OSError(ctypes.get_errno(), "landlock_add_rule")
    finally:
        os.close(at)
