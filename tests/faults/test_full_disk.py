from __future__ import annotations

import resource
from pathlib import Path

import pytest

from tests.faults.check import check
from tests.faults.corpus import Corpus
from tests.faults.harness import Ended, Run, gather, gather_here
from tests.faults.oracle import Oracle

POINTS = (
    "log.write:5",
    "log.commit:4",
    "log.commit:9",
    "blob.write:1",
    "blob.write:3",
    "blob.flushed:1",
    "blob.renamed:2",
    "blob.synced:2",
    "index.apply:1",
)


LIMITED = """
import resource
from streams.sandbox.forkserver import Forkserver
begin = Forkserver.__init__
def limited(*given):
    begin(*given)
    resource.setrlimit(resource.RLIMIT_FSIZE, ({room}, {room}))
Forkserver.__init__ = limited
"""
"""A run with a limit of the file size. The children have their own limits, which the parent's must not undercut."""


def one_line(ended: Ended) -> None:
    """Assert that the run failed with one line that a user can read."""
    assert ended.code == 1
    assert "Traceback" not in ended.errors
    (line,) = ended.errors.splitlines()
    assert "No space left on device" in line


@pytest.mark.slow
@pytest.mark.parametrize(("number", "point"), list(enumerate(POINTS)))
def test_full_disk_ends_the_run_with_one_line(tmp_path: Path, corpus: Corpus, oracle: Oracle, number: int, point: str) -> None:
    """A full disk at any point ends the run with one line; the next run continues, and ends as the oracle says."""
    partitions = (1, 4)[number % 2]
    one_line(gather(tmp_path / "data", corpus.root, partitions, f"{point}:enospc"))
    assert gather_here(tmp_path / "data", corpus.root, partitions) == Ended(0, "")
    check(tmp_path / "data", oracle)


@pytest.mark.slow
@pytest.mark.parametrize("room", [150_000, 300_000])
def test_system_write_limit_ends_the_run_with_one_line(tmp_path: Path, corpus: Corpus, oracle: Oracle, room: int) -> None:
    """The same if the system itself refuses the write."""
    one_line(Run(tmp_path / "data", corpus.root, 1, first=LIMITED.format(room=room)).wait())
    assert gather_here(tmp_path / "data", corpus.root, 1) == Ended(0, "")
    check(tmp_path / "data", oracle)


@pytest.mark.slow
def test_failing_setup_of_children_is_one_line(tmp_path: Path, corpus: Corpus) -> None:
    """If the children cannot be set up, one line states the reason."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, limits[1]))
    try:
        run = Run(tmp_path / "data", corpus.root, 1)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    ended = run.wait()
    assert ended.code == 1
    (line,) = ended.errors.splitlines()
    assert line.startswith("harvest: ")
    assert "Traceback" not in line
