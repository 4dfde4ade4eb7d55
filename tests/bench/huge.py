"""Runs `harvest gather` on a tar.gz of 10 GB: seconds, MB/s, and the peak memory of all its processes together.

The archive is generated for the run and takes 1 to 2 per cent of its size on disk: one gzip stream of a tar with texts of 1 MiB
and of 64 MiB, in which a page of random words repeats, with numbers between. (Each body is compressed once, and copied in with a
full flush between; only headers and checksums are new.) An operator who wants such files opened raises the limits of one object;
a second run measures the default limits.

Memory is PSS plus the anonymous files that hold large members (memfd_create(2)), which PSS counts only if they are mapped.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import tarfile
import time
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from schemas.records import Partial, Summary
from streams.logs import StoreLog
from streams.operations.dead_letters import standing
from streams.store import Store
from tests.bench.figures import BenchError, Figure, Goal
from tests.bench.memory import PROC, Sampled, family
from tests.bench.objects import environment, gathering
from tests.bench.outcomes import records

MB, MIB = 1_000_000, 1 << 20
SMALL, LARGE = 1 * MIB, 64 * MIB
EACH = 64
"""Small members for each large one, so that each kind has half of the bytes."""
RAISED = {"HARVEST_ESSENCE_LIMITS_BYTES": str(64 << 30)}
"""The limit as an operator raises it: bytes that one object may yield (`essence.limits.bytes`); a tar.gz yields each byte twice."""


class Made(NamedTuple):
    """A generated tar.gz: its path, number of members, bytes of all members, and bytes of the file."""

    path: Path
    members: int
    size: int
    packed: int


class _Piece(NamedTuple):
    """Bytes of a tar with their compressed form, which is valid at any position of a deflate stream."""

    data: bytes
    packed: bytes


def _piece(data: bytes) -> _Piece:
    packer = zlib.compressobj(6, zlib.DEFLATED, -zlib.MAX_WBITS)
    return _Piece(data, packer.compress(data) + packer.flush(zlib.Z_FULL_FLUSH))


def _text(size: int, seed: int) -> bytes:
    """A text of lines, most of which repeat."""
    chance = random.Random(seed)
    words = [f"{chance.choice('bdfgklmnprst')}{chance.choice('aeiou')}{at:x}" for at in range(2_000)]
    page = [" ".join(chance.choices(words, k=12)).capitalize() + "." for _ in range(200)]
    found, length, number = [], 0, 0
    while length < size:
        line = f"{number}\n" if number % 20 == 0 else f"{page[number % 200]}\n"
        found.append(line)
        length, number = length + len(line), number + 1
    return "".join(found).encode()[:size]


def make(path: Path, size: int) -> Made:
    """Generate a tar.gz with members of `size` bytes in all."""
    small, large = [_piece(_text(SMALL, seed)) for seed in range(8)], _piece(_text(LARGE, 64))
    crc = total = members = given = 0
    with path.open("wb") as out:
        out.write(b"\x1f\x8b\x08\0\0\0\0\0\0\xff")
        while given < size:
            body = large if members % (EACH + 1) == EACH else small[members % len(small)]
            head = tarfile.TarInfo(f"part-{members // 100:04}/{members:06}.txt")
            head.size, head.mtime = len(body.data), 770_000_000 + members
            for piece in (_piece(head.tobuf(tarfile.GNU_FORMAT)), body):
                crc, total = zlib.crc32(piece.data, crc), total + len(piece.data)
                out.write(piece.packed)
            members, given = members + 1, given + len(body.data)
        end = bytes(2 * tarfile.BLOCKSIZE)
        out.write(zlib.compress(end, 6, -zlib.MAX_WBITS))
        crc, total = zlib.crc32(end, crc), total + len(end)
        out.write(crc.to_bytes(4, "little") + (total & 0xFFFFFFFF).to_bytes(4, "little"))
    return Made(path, members, given, path.stat().st_size)


def anonymous(pid: int) -> int:
    """Bytes in anonymous files that a process and its descendants have open, each file counted once."""
    found: dict[int, int] = {}
    for one in family(pid):
        with suppress(OSError):
            for number in os.listdir(PROC / str(one) / "fd"):
                with suppress(OSError):
                    file = PROC / str(one) / "fd" / number
                    if os.readlink(file).startswith("/memfd:"):
                        facts = file.stat()
                        found[facts.st_ino] = facts.st_blocks * 512
    return sum(found.values())


class Run(NamedTuple):
    """A run of `harvest gather` on one archive: closing table, seconds, peak memory in bytes, processes, outcomes of members."""

    said: Mapping[str, Any]
    seconds: float
    peak: int
    processes: int
    summarized: int
    rejected: Counter[str]
    partial: str


def run(root: Path, data: Path, settings: Mapping[str, str]) -> Run:
    """Run `harvest gather` and sample its memory. Raises BenchError."""
    began = time.perf_counter()
    command = gathering([root], data)
    environ = {**environment(), **settings}
    child = subprocess.Popen(command, cwd=data.parent, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    with Sampled(child.pid, anonymous) as sampled:
        said, errors = child.communicate()
    seconds = time.perf_counter() - began
    if child.returncode:
        raise BenchError(f"harvest gather ended with {child.returncode}: {errors.decode(errors='replace')[-2_000:]}")
    with Store(data, readonly=True) as store:
        summaries = {one.url: one for one in records(store, "summaries") if isinstance(one, Summary)}
        rejected = {one.path: one.reason for one in standing(StoreLog(store))}
        partial = [one.reason for one in records(store, "made") if isinstance(one, Partial)]
    summarized = sum(bool(one.path) and one.path not in rejected for one in summaries.values())
    return Run(
        json.loads(said.splitlines()[-1]),
        seconds,
        sampled.peak,
        sampled.processes,
        summarized,
        Counter(rejected.values()),
        partial[-1] if partial else "",
    )


def huge(size: int, work: Path) -> Iterator[Figure]:
    """Measure both runs. Raises BenchError if members are missing with the limits raised."""
    folder = work / "huge"
    folder.mkdir()
    made = make(folder / "huge.tar.gz", size)
    os.sync()
    held = f"{made.members:,} members, {made.size:,} bytes in {made.packed:,}"
    yield Figure("10 GB", "archive", made.size / MB, "MB", held)
    found = run(folder, work / "raised", RAISED)
    if found.summarized != made.members or found.rejected:
        raise BenchError(f"{found.summarized} of {made.members} members were summarized; {dict(found.rejected)}")
    how = ", ".join(f"{name}={value}" for name, value in RAISED.items())
    yield Figure("10 GB", "gather", found.seconds, "s", f"every member summarized; {how}")
    yield Figure("10 GB", "gather, MB/s", made.size / found.seconds / MB, "MB/s", "bytes of the members, start and end included")
    yield Figure(
        "10 GB", "memory, most", found.peak / MIB, "MiB", f"PSS and anonymous files of {found.processes} processes", Goal("<", 512)
    )
    usual = run(folder, work / "usual", {})
    why = "; ".join(f"{count} {reason}" for reason, count in usual.rejected.most_common(3)) or "none rejected"
    told = f"of {made.members:,}, in {usual.seconds:.1f} s; rejected: {why}; partial: {usual.partial or 'no'}"
    yield Figure("10 GB", "default limits: summarized", usual.summarized, "members", told)
    yield Figure("10 GB", "default limits: memory, most", usual.peak / MIB, "MiB", "as above", Goal("<", 512))
