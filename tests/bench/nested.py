"""Measures unnesting: MB/s of Harvest's readers and of its walk through a tar.gz of tar.gz, against plain libarchive.

The content is real: documentation, much of it compressed once more. All contenders read every member to its end and open nested
archives by the same means. `readers` measures unnesting alone: `unnest` with its budget. `walk` measures `walk.py` as it runs in a
sandboxed child, without the summarizers: it includes recognition, selection, paths, MD5 and SHA-256 of every member and a record
for each; it excludes the digests of the archive itself (computed when it is fetched) and the transfer of records to the parent.
Its ratio has no goal: the two digests alone take about as long as libarchive, as the line "libarchive, digests" shows. Plain
libarchive knows the format in advance, reads into one large buffer, and ignores the content.
"""

from __future__ import annotations

import ctypes
import gc
import hashlib
import io
import os
import tarfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, BinaryIO, NamedTuple

import libarchive
from libarchive import ffi

from processors.essence import recognize
from processors.essence.formats.container import Budget, Reader, UnnestLimits
from processors.essence.formats.streams import CHUNK, Counted, Hashed
from processors.essence.member import DigestedBody, State, Thing, digest_of
from processors.essence.selection import RULES, Selection
from processors.essence.stage import EssenceSettings
from processors.essence.unnest.containers.tar import open_tar
from processors.essence.unnest.encodings import gzip
from processors.essence.walk import Walk
from schemas.records import FetchedObject, Rejected, Summary
from tests.bench.figures import BenchError, Figure, Goal

MB = 1_000_000
INNER = 200
"""Files of each inner archive."""
BLOCK = 1 << 17
"""Bytes of each libarchive read, at its fastest (64 kB to 1 MB make no difference)."""


class Packed(NamedTuple):
    """A tar.gz of tar.gz: its path, the number of files in the inner archives, their bytes, and how many of them are compressed."""

    path: Path
    files: int
    size: int
    compressed: int


class Read(NamedTuple):
    """The result of a reader: the number of member files at all levels, and the bytes of those that contain nothing further."""

    members: int
    size: int


def pack(paths: Sequence[bytes], target: Path) -> Packed:
    """Pack files into archives of some hundred each, and these archives into one."""
    files = size = compressed = 0
    with tarfile.open(target, "w:gz", compresslevel=6, format=tarfile.GNU_FORMAT) as outer:
        for start in range(0, len(paths), INNER):
            body = io.BytesIO()
            with tarfile.open(fileobj=body, mode="w:gz", compresslevel=6, format=tarfile.GNU_FORMAT) as inner:
                for path in paths[start : start + INNER]:
                    inner.add(os.fsdecode(path), recursive=False)
                    files += 1
                    size += os.path.getsize(path)
                    compressed += path.endswith(b".gz")
            head = tarfile.TarInfo(f"part-{start // INNER:04}.tar.gz")
            head.size = body.tell()
            body.seek(0)
            outer.addfile(head, body)
    return Packed(target, files, size, compressed)


class Opening(Walk):
    """The walk without the summarizers: a leaf is only read to its end for its digest."""

    leaves = 0

    def _summarize(self, thing: Thing, reader: Reader, state: State, stated: str) -> None:
        while data := reader.read(CHUNK):
            self.leaves += len(data)

    def _summarized(self, thing: Thing, body: BinaryIO, state: State, stated: str) -> None:
        """Handle a document that contains files: only these are read."""


class Unnested:
    """The readers of `unnest` alone, used like libarchive: names identify nested archives; bytes are paid from the budget."""

    def __init__(self, budget: Budget, *, digested: bool = False) -> None:
        self._budget = budget
        self._stream = Hashed if digested else Counted
        self.members = self.size = 0

    def archive(self, reader: Reader) -> None:
        """Read all members of a tar.gz."""
        tar = Counted(gzip.open_gzip(reader, self._budget), self._budget)
        for member in open_tar(tar, self._budget):
            if member.body is None:
                continue
            self._budget.enter(member.name)
            self.members += 1
            stored = self._stream(member.body, self._budget)
            if member.name.endswith((b".tar.gz", b".tgz")):
                self.archive(stored)
            else:
                self._drain(Counted(gzip.open_gzip(stored, self._budget), self._budget) if member.name.endswith(b".gz") else stored)
            if isinstance(stored, Hashed):
                stored.digest()

    def _drain(self, reader: Reader) -> None:
        while data := reader.read(CHUNK):
            self.size += len(data)


def readers(path: Path, *, digested: bool = False) -> Read:
    """Read with Harvest's readers of tar and gzip."""
    with path.open("rb") as body:
        read = Unnested(Budget(UnnestLimits(), os.fstat(body.fileno()).st_size), digested=digested)
        read.archive(body)
    return Read(read.members, read.size)


def walked(path: Path) -> Read:
    """Read with Harvest's walk. Raises BenchError if it rejects something."""
    off = Selection(off=tuple(RULES), stop_names=(), stop_types=())
    settings = EssenceSettings(gatherer="bench", select=off, entries=False)
    members = 0
    with path.open("rb") as body:
        size = os.fstat(body.fileno()).st_size
        obj = FetchedObject(url="file:///nested.tar.gz", version=1, time=1, outcome="fetched", size=size)
        walk = Opening(obj, settings, "attempt", {}, lambda _: None)
        for record in walk.thing(Thing(path="", name=b"nested.tar.gz", size=size), DigestedBody(body, digest_of(body))):
            members += isinstance(record, Summary) and bool(record.path)
            if isinstance(record, Rejected):
                raise BenchError(f"{record.path}: {record.reason}")
    return Read(members, walk.leaves)


class Plain:
    """A plain libarchive program: reads each member into one buffer, and nested archives from memory."""

    def __init__(self, digests: Sequence[str] = ()) -> None:
        self._digests = digests
        self._buffer = ctypes.create_string_buffer(BLOCK)
        self._view = memoryview(self._buffer)
        self.members = self.size = 0

    def archive(self, read: Any, *, counted: bool = True) -> None:
        """Read all members of an archive."""
        for entry in read:
            self.members += counted
            name = entry.pathname
            nested = name.endswith((".tgz", ".gz"))
            parts = self._read(entry, kept=nested)
            if nested:
                tar = name.endswith((".tar.gz", ".tgz"))
                with libarchive.memory_reader(b"".join(parts), "tar" if tar else "raw", "gzip") as inner:
                    self.archive(inner, counted=tar)

    def _read(self, entry: Any, *, kept: bool) -> list[bytes]:
        """Read a member; return its bytes if `kept`."""
        digests = [hashlib.new(name, usedforsecurity=False) for name in self._digests]
        parts = []
        while got := ffi.read_data(entry._archive_p, self._buffer, BLOCK):
            data = self._view[:got]
            for digest in digests:
                digest.update(data)
            if kept:
                parts.append(bytes(data))
            else:
                self.size += got
        for digest in digests:
            digest.hexdigest()
        return parts


def theirs(path: Path, digests: Sequence[str] = ()) -> Read:
    """Read with libarchive, which is given the formats in advance."""
    plain = Plain(digests)
    with libarchive.file_reader(str(path), "tar", "gzip") as read:
        plain.archive(read)
    return Read(plain.members, plain.size)


class Contender(NamedTuple):
    """A contender: its name, its reading function, and the remark of its line."""

    name: str
    read: Callable[[Path], Read]
    how: str


CONTENDERS = (
    Contender("plain libarchive", theirs, "every member into one buffer, nothing done with it"),
    Contender("readers", readers, "processors/essence/unnest alone: budget, every byte handed over; names tell what is nested"),
    Contender("libarchive, digests", partial(theirs, digests=("md5", "sha256")), "the same, and MD5 and SHA-256 of every member"),
    Contender("readers, digests", partial(readers, digested=True), "the same"),
    Contender("walk", walked, "and recognition, selection, paths, a record each: all of Essence but summarizing"),
)
RATIOS = (
    ("readers to libarchive", "readers", "plain libarchive", Goal(">=", 0.8)),
    ("with digests to the same", "readers, digests", "libarchive, digests", Goal(">=", 0.8)),
    ("walk to libarchive", "walk", "plain libarchive", None),
)


def unnesting(packed: Packed, rounds: int) -> Iterator[Figure]:
    """Measure MB/s of all contenders, and their ratios. Raises BenchError if one of them did not read everything."""
    recognize.preload()
    held = f"{packed.files:,} files of {packed.size / MB:,.0f} MB in {-(-packed.files // INNER)} tar.gz in one of"
    yield Figure("unnest", "archive", packed.path.stat().st_size / MB, "MB", f"{held}; {packed.compressed:,} of them .gz")
    spent: dict[str, list[float]] = {one.name: [] for one in CONTENDERS}
    unpacked: dict[str, Read] = {}
    for _ in range(rounds):
        for one in CONTENDERS:
            seconds, unpacked[one.name] = clocked(one.read, packed.path)
            spent[one.name].append(seconds)
    bytes_out = unpacked["plain libarchive"].size
    if short := [name for name, read in unpacked.items() if read.members < packed.files or read.size < 0.9 * bytes_out]:
        raise BenchError(f"not everything was read: {', '.join(f'{name}: {unpacked[name]}' for name in short)}")
    for one in CONTENDERS:
        yield Figure("unnest", one.name, bytes_out / min(spent[one.name]) / MB, "MB/s", one.how)
    for name, ours, against, goal in RATIOS:
        found = median(b / a for a, b in zip(spent[ours], spent[against], strict=True))
        yield Figure("unnest", name, found, "ratio", f"of CPU time in one process; the middle one of {rounds} rounds", goal)
    members = unpacked["walk"].members
    more = (min(spent["walk"]) - min(spent["readers, digests"])) / members * 1_000_000
    yield Figure("unnest", "walk, a member besides", more, "us", f"{members:,} members; (walk - readers with digests) / members")


def clocked(read: Callable[[Path], Read], path: Path) -> tuple[float, Read]:
    """The seconds of CPU of a reading: on a busy machine the work of other processes does not count."""
    gc.collect()
    began = time.process_time()
    found = read(path)
    return time.process_time() - began, found
