"""Backups and restores that are killed, meet a full disk, or run beside a run."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from streams.operations.backup_format import backups
from tests.faults.check import Held, alike, check
from tests.faults.corpus import Corpus
from tests.faults.harness import SETTINGS, Ended, Run, gather_here, harvest_here
from tests.faults.oracle import Oracle

MAKING = (
    "backup.pages:1",
    "backup.store:1",
    "blob.write:2",
    "blob.renamed:3",
    "backup.bodies:1",
    "backup.written:1",
    "backup.renamed:1",
    "backup.removed:1",
)
RESTORING = (
    "blob.write:1",
    "blob.synced:1",
    "restore.copied:1",
    "rebuild.applied:1",
    "restore.indexed:1",
    "restore.moved:1",
    "restore.moved:2",
)
WEEK = str(7 * 86_400)
"""A retention with which the log still names the bodies."""
LIMITED = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))\n"
"""A process that the system refuses to write larger files."""
pytestmark = pytest.mark.slow


def harvest(*arguments: str | Path, fault: str = "", first: str = "") -> Ended:
    """Run a command: with a planned fault, or with code that is executed `first`, in a process of its own, else in this one."""
    if not (fault or first):
        return harvest_here(*arguments)
    environment = {k: v for k, v in os.environ.items() if not k.startswith("HARVEST_")}
    environment |= {f"HARVEST_{k}": v for k, v in SETTINGS.items()} | {"HARVEST_FAULT": fault, "NO_COLOR": "1"}
    program = f"{first}from streams.cli import main\nmain()"
    command = [sys.executable, "-c", program, *map(str, arguments)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=200, check=False)
    return Ended(done.returncode, done.stderr)


def ok(ended: Ended) -> None:
    """Assert that a command succeeded."""
    assert ended.code == 0, ended.errors


def one_line(ended: Ended) -> None:
    """Assert that a command failed with the line of a full disk, or of a file that grew too large."""
    assert ended.code == 1, ended
    (line,) = ended.errors.splitlines()
    assert "No space left on device" in line


@pytest.fixture
def data(tmp_path: Path, corpus: Corpus) -> Path:
    """A gathered data folder, some objects of which have bodies in files of their own."""
    assert gather_here(tmp_path / "data", corpus.root, 2, RETENTION=WEEK) == Ended(0, "")
    return tmp_path / "data"


@pytest.mark.parametrize("effect", ["kill", "enospc"])
@pytest.mark.parametrize("point", MAKING)
def test_interrupted_backup_leaves_a_whole_one(
    tmp_path: Path, data: Path, corpus: Corpus, oracle: Oracle, point: str, effect: str
) -> None:
    """A backup that is killed or has no space at any point leaves the former one, or the new one, whole; the next one works."""
    ok(harvest("backup", tmp_path / "copies", "--data", data))
    (former,) = backups(tmp_path / "copies")
    before = Held(data)
    # Bodies in the folder of backups would not be written again.
    for number in range(8):
        Path(os.fsdecode(corpus.root), f"later{number}.txt").write_bytes(b"line %d of another text\n" % number * 5_000)
    oracle.look()
    assert gather_here(data, corpus.root, 2, RETENTION=WEEK) == Ended(0, "")
    ended = harvest("backup", tmp_path / "copies", "--data", data, fault=f"{point}:{effect}")
    if effect == "kill":
        assert ended.code == -signal.SIGKILL, ended
    else:
        one_line(ended)
    ok(harvest("restore", tmp_path / "copies", "--data", tmp_path / "new"))
    found = Held(tmp_path / "new")
    alike(found, before if backups(tmp_path / "copies")[-1] == former else Held(data))
    ok(harvest("backup", tmp_path / "copies", "--data", data))
    assert len(backups(tmp_path / "copies")) == 1
    shutil.rmtree(tmp_path / "new")
    ok(harvest("restore", tmp_path / "copies", "--data", tmp_path / "new"))
    check(tmp_path / "new", oracle)
    assert not list((tmp_path / "copies").glob("new"))


@pytest.mark.parametrize("effect", ["kill", "enospc"])
@pytest.mark.parametrize("point", RESTORING)
def test_interrupted_restore_can_be_repeated(tmp_path: Path, data: Path, oracle: Oracle, point: str, effect: str) -> None:
    """A restore that is killed or has no space at any point leaves no store; the next one into the same folder works."""
    ok(harvest("backup", tmp_path / "copies", "--data", data))
    ended = harvest("restore", tmp_path / "copies", "--data", tmp_path / "new", fault=f"{point}:{effect}")
    if effect == "kill":
        assert ended.code == -signal.SIGKILL, ended
    else:
        one_line(ended)
    assert not (tmp_path / "new" / "store.sqlite").exists()
    ok(harvest("restore", tmp_path / "copies", "--data", tmp_path / "new"))
    check(tmp_path / "new", oracle)
    assert not (tmp_path / "new" / "restoring").exists()


def test_first_backup_that_is_killed_is_none(tmp_path: Path, data: Path, oracle: Oracle) -> None:
    """The remains of a first backup are no backup: a restore refuses them, and the next backup continues with their bodies."""
    assert harvest("backup", tmp_path / "copies", "--data", data, fault="backup.written:1:kill").code == -signal.SIGKILL
    ended = harvest("restore", tmp_path / "copies", "--data", tmp_path / "new")
    assert (ended.code, "no backup of harvest here" in ended.errors) == (1, True)
    ended = harvest("backup", tmp_path / "copies", "--data", data)
    assert ", 0 of them new" in ended.errors
    ok(harvest("restore", tmp_path / "copies", "--data", tmp_path / "new"))
    check(tmp_path / "new", oracle)


def test_system_write_limit_leaves_no_backup(tmp_path: Path, data: Path) -> None:
    """If the system itself refuses the write, one line says so, and there is no backup."""
    one_line(harvest("backup", tmp_path / "copies", "--data", data, first=LIMITED))
    assert not backups(tmp_path / "copies")


def test_backup_beside_a_run_continues_where_it_was_made(tmp_path: Path, corpus: Corpus, oracle: Oracle) -> None:
    """Backups made while a run writes are each consistent: the run over a restored one ends as the oracle says."""
    run = Run(tmp_path / "data", corpus.root, 2, RETENTION=WEEK)
    made = 0
    while run.process.poll() is None and made < 20:
        if (tmp_path / "data" / "store.sqlite").exists():
            ended = harvest("backup", tmp_path / f"copy{made}", "--data", tmp_path / "data")
            made += ended.code == 0
            assert ended.code == 0 or "no data of harvest here" in ended.errors, ended
    assert run.wait() == Ended(0, "")
    assert made
    for number in range(made):
        new = tmp_path / f"new{number}"
        ok(harvest("restore", tmp_path / f"copy{number}", "--data", new))
        assert gather_here(new, corpus.root, 2) == Ended(0, "")
        check(new, oracle)
