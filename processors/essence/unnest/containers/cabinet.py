"""Cabinets of Windows ([MS-CAB]), by libarchive: stored, MSZIP and LZX.

libarchive ends at the first damaged block. The files behind it are listed from the table at the start, each with the reason.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator

from processors.essence.formats.container import Budget, Damaged, Member, Reader, Refused, UnnestError
from processors.essence.formats.streams import Failing, peek
from processors.essence.unnest import Container
from processors.essence.unnest.containers import _libarchive as libarchive
from processors.essence.unnest.containers import _libarchive_c as c

LISTED = 1 << 20
"""Bytes at the start of a cabinet in which its table of files is read."""
HEAD, FILE = struct.Struct("<4s12xI8x2H2xH"), struct.Struct("<I10xH")
"""CFHEADER: signature, offset of the files, number of files, flags, number of the cabinet; CFFILE: size and attributes."""
BEFORE, BEHIND = 1, 2
UTF8 = 0x80


def _files(head: bytes) -> list[tuple[bytes, int]]:
    """Return name and size of the files in the table, as far as it is in the first bytes."""
    if len(head) < HEAD.size:
        return []
    at, count = HEAD.unpack_from(head)[1:3]
    found: list[tuple[bytes, int]] = []
    while (
        len(found) < count and at + FILE.size < len(head) and (end := head.find(b"\0", at + FILE.size, at + FILE.size + 257)) >= 0
    ):
        size, attributes = FILE.unpack_from(head, at)
        raw = head[at + FILE.size : end].replace(b"\\", b"/")
        found.append((raw if attributes & UTF8 or raw.isascii() else raw.decode("cp437").encode(), size))
        at = end + 1
    return found


def _part(head: bytes) -> str:
    """Return which part of a set of cabinets this is and what is missing; "" for a single cabinet."""
    if len(head) < HEAD.size:
        return ""
    flags, number = HEAD.unpack_from(head)[3:]
    lost = ["the parts before it"] * bool(flags & BEFORE) + ["the parts after it"] * bool(flags & BEHIND)
    return f"part {number + 1} of a multi-volume archive: {' and '.join(lost)} are missing" if lost else ""


def open_cabinet(body: Reader, budget: Budget) -> Iterator[Member]:
    """Yield the members of an archive. Raises UnnestError."""
    head, reader = peek(body, LISTED)
    given, problem = Counter[bytes](), None
    try:
        for member in libarchive.members(reader, budget, c.CAB):
            given[member.name] += 1
            yield member
    except (Damaged, Refused) as error:
        problem = error
    part = _part(head)
    lost: UnnestError | None = Damaged(part) if part else problem
    for name, size in _files(head):
        given[name] -= 1
        if given[name] < 0 and lost:
            yield Member(name=name, size=size, body=Failing(lost))
    if lost:
        raise lost


UNNESTER = Container(("Cabinet",), open_cabinet)
