"""The baseline of objects/s: what a plain program does with the same processors in two plain processes.

It walks, selects, reads, hashes, calls Essence on each file and writes the encoded summaries to a file of each process: no log,
no state, no sandbox, no index. What it lacks (it survives no crash, and remembers nothing for the next run) is what the overhead of
Harvest pays for. Run: `python -m tests.bench.plain ROOT OUT [PROCESSES]`; it prints its counts as JSON.
"""

from __future__ import annotations

import gc
import hashlib
import io
import multiprocessing
import os
import stat
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import BinaryIO, NamedTuple

import msgspec

from processors.essence import recognize, summarize
from processors.essence.selection import Selection, select
from processors.essence.stage import EssenceSettings, essence
from processors.identity import file_url
from schemas.codec import encode
from schemas.records import FetchedObject, Root, Summary, Validators

PROCESSES = 2
CHUNK = 16
"""Number of files given to a process at a time."""


class Worked(NamedTuple):
    """The work for one file: bytes read and written, summaries, milliseconds of CPU."""

    size: int
    summaries: int
    written: int
    cost: float


class Counts(msgspec.Struct, frozen=True):
    """The counts of a run of the plain program; `median` is the milliseconds of CPU of the median object."""

    objects: int
    summaries: int
    bytes_in: int
    bytes_summaries: int
    median: float


class Process:
    """The state of one process: its settings and its output file."""

    def __init__(self, root: bytes, out: Path) -> None:
        self.settings = EssenceSettings(gatherer="plain")
        self.root = Root(url=file_url(root, folder=True), run="1")
        self.out: BinaryIO = (out / f"{os.getpid()}.summaries").open("wb")

    def work(self, path: bytes) -> Worked:
        """Summarize one file."""
        began = time.process_time()
        body, found = read(path)
        obj = FetchedObject(
            url=file_url(path),
            version=1,
            time=1,
            outcome="fetched",
            root=self.root,
            size=len(body),
            md5=hashlib.md5(body).hexdigest(),
            sha256=hashlib.sha256(body).hexdigest(),
            content_type="inode/symlink" if stat.S_ISLNK(found.st_mode) else "",
            validators=Validators(mtime=found.st_mtime_ns),
        )
        count = written = 0
        for record in essence(obj, io.BytesIO(body), self.settings):
            if isinstance(record, Summary):
                count += 1
                written += self.out.write(encode(record))
        self.out.flush()
        return Worked(len(body), count, written, (time.process_time() - began) * 1_000)


def read(path: bytes) -> tuple[bytes, os.stat_result]:
    """The bytes of a file or the target of a link, with its status."""
    found = os.lstat(path)
    if stat.S_ISLNK(found.st_mode):
        return os.readlink(path), found
    with open(path, "rb") as file:
        return file.read(), found


def walk(folder: bytes, settings: Selection) -> Iterator[bytes]:
    """The selected files and links below a folder."""
    with os.scandir(folder) as entries:
        found = {entry.name: entry.is_dir(follow_symlinks=False) for entry in entries}
    for name in sorted(found.keys() - select(found.items(), settings).keys()):
        path = os.path.join(folder, name)
        if found[name]:
            yield from walk(path, settings)
        elif os.path.islink(path) or os.path.isfile(path):
            yield path


_process: list[Process] = []
"""The state of this child process."""


def _begin(root: bytes, out: Path) -> None:
    gc.freeze()
    _process.append(Process(root, out))


def _work(path: bytes) -> Worked:
    return _process[0].work(path)


def run(root: bytes, out: Path, processes: int) -> Counts:
    """Summarize everything below a folder."""
    recognize.preload()
    summarize.preload()
    with multiprocessing.get_context("fork").Pool(processes, _begin, (root, out)) as pool:
        worked = list(pool.imap_unordered(_work, walk(root, Selection()), CHUNK))
    return Counts(
        objects=len(worked),
        summaries=sum(each.summaries for each in worked),
        bytes_in=sum(each.size for each in worked),
        bytes_summaries=sum(each.written for each in worked),
        median=median(each.cost for each in worked) if worked else 0.0,
    )


if __name__ == "__main__":
    counts = run(os.fsencode(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else PROCESSES)
    print(msgspec.json.encode(counts).decode())
