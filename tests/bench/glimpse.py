"""Debian's glimpse on summaries as files, one each in SOIF: the words of two attributes are found by whole-file Booleans.

Glimpse's structured queries (`title=whale`) need an index with `glimpseindex -s`. Debian's build takes the option and makes no such
index, and its expressions for `title: .*whale` are limited to 32 characters in all. So each file ends with a line that has the
words of the two attributes once more, with the name before them (`titlewhale`): glimpse looks them up as words, which is the least
work that an attribute could cost.
"""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from processors.query.words import words
from schemas.records import Summary
from schemas.soif_summary import to_template
from schemas.soif_writer import dumps
from tests.bench import corpora
from tests.bench.figures import BenchError

PACKAGE = "glimpse"
MARKED = ("title", "author")
"""Attributes whose words are marked by their names."""
FOLDER = 1_000
"""Files of one folder."""
TIME = 3_600
"""Maximum seconds for the index."""


class CrashError(BenchError):
    """Glimpse was ended by a signal: some queries corrupt its memory."""


class Answer(NamedTuple):
    """Seconds and number of hits of a query."""

    seconds: float
    hits: int


def programs(cache: Path, work: Path) -> Path:
    """The folder of the programs: of the installed package, or of the package downloaded. Raises BenchError."""
    installed = shutil.which("glimpseindex")
    if installed is not None and shutil.which("glimpse") is not None:
        return Path(installed).parent
    (package,) = corpora.unpacked(corpora.packages(cache, [PACKAGE]), work / "packages")
    return package / "usr/bin"


def as_file(summary: Summary) -> bytes:
    """A summary as the text of its file."""
    marked = [f"{name}{word}" for name in MARKED for text in summary.attributes.get(name, ()) for word in words(str(text))]
    return dumps([to_template(summary)]) + " ".join(marked).encode() + b"\n"


def write(summaries: Iterable[Summary], folder: Path) -> int:
    """Write summaries as files; return their bytes."""
    size = 0
    for at, summary in enumerate(summaries):
        path = folder / f"{at // FOLDER:03d}" / f"{at:06d}.soif"
        path.parent.mkdir(parents=True, exist_ok=True)
        size += path.write_bytes(as_file(summary))
    return size


class Glimpse:
    """An index of a folder of files, made in another folder."""

    def __init__(self, programs: Path, files: Path, index: Path) -> None:
        """Make the index, with a pointer to each file (-o) as for the fastest search. Raises BenchError."""
        self._program, self._index = programs / "glimpse", index
        index.mkdir()
        # -E: all files are text; -B and -M: more memory.
        self._run([programs / "glimpseindex", "-o", "-E", "-B", "-M", "128", "-H", index, files])
        self.start = min(self._timed([self._program, "-V"]).seconds for _ in range(5))
        """Seconds in which the program starts."""

    def _run(self, command: Sequence[str | Path]) -> bytes:
        done = subprocess.run(command, check=False, capture_output=True, stdin=subprocess.DEVNULL, timeout=TIME)
        if done.returncode < 0:
            raise CrashError(f"{command[0]}: ended by signal {-done.returncode}")
        if done.returncode > 1 or (done.stderr and done.returncode):
            raise BenchError(f"{command[0]}: {done.stderr.decode(errors='replace').strip()[-500:]}")
        return done.stdout

    def _timed(self, command: Sequence[str | Path]) -> Answer:
        started = time.perf_counter()
        said = self._run(command)
        return Answer(time.perf_counter() - started, said.count(b"\n"))

    def search(self, query: str) -> Answer:
        """List the files that match a query of whole words, without case; start-up is subtracted. Raises CrashError."""
        found = self._timed([self._program, "-H", self._index, "-y", "-i", "-w", "-W", "-l", query])
        return found._replace(seconds=max(found.seconds - self.start, 1e-6))

    @property
    def size(self) -> int:
        """The bytes of the index, without the names of files."""
        return sum(path.stat().st_size for path in self._index.iterdir() if "filename" not in path.name)
