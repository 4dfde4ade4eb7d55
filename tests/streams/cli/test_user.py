"""The program for a user without privileges: files and data folders that are read-only or unreadable."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

pytestmark = pytest.mark.slow

PR_CAPBSET_DROP = 24
OVERRIDES = (1, 2)
"""CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH, by which root bypasses the permissions of files."""


def bound() -> None:
    """In the child: drop these capabilities if it is root."""
    if os.geteuid() == 0:
        for capability in OVERRIDES:
            if ctypes.CDLL(None, use_errno=True).prctl(PR_CAPBSET_DROP, capability, 0, 0, 0):
                raise OSError(ctypes.get_errno(), "prctl")


def plainly(harvest: Any, *arguments: str | Path) -> tuple[int, str, str]:
    """Run a command without privileges; return the exit code, standard output and standard error."""
    command = [*harvest.program, *map(str, arguments)]
    # The reduced bounding set takes effect at exec, so no code of this process runs in the child but `bound`.
    done = subprocess.run(command, cwd=harvest.folder, capture_output=True, text=True, check=False, preexec_fn=bound)
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def sealed(harvest: Any, tree: Path) -> Iterator[Path]:
    """The data folder of the sample tree, without write permissions."""
    harvest("gather", tree, "--quiet")
    data = tree.parent / "harvest-data"
    paths = [data, *data.rglob("*")]
    for path in paths:
        path.chmod(path.stat().st_mode & ~0o222)
    yield data
    for path in paths:
        path.chmod(path.stat().st_mode | 0o200)


def test_summarize_reports_unreadable_files(harvest: Any, tree: Path) -> None:
    """An unreadable file is an error of one line, exit code 1, and the others are summarized."""
    (tree / "secret.txt").write_text("secret\n")
    (tree / "secret.txt").chmod(0)
    code, out, err = plainly(harvest, "summarize", "tree/secret.txt", "tree/page.html", "--json")
    assert (code, out.count("\n"), err) == (1, 1, "harvest: tree/secret.txt: Permission denied\n")


def test_reading_commands_work_on_a_read_only_data_folder(harvest: Any, sealed: Path) -> None:
    """Reading commands work on a read-only data folder and leave no file there."""
    before = sorted(sealed.rglob("*"))
    answers = {
        ("search", "Ishmael"): "notes/a.txt",
        ("show", "tree/page.html"): "Moby",
        ("why", "tree/page.html"): "fetched",
        ("topics", "lag"): "0 to read",
        ("doctor",): "ok      data folder",
    }
    for command, told in answers.items():
        _, out, err = plainly(harvest, *command)
        assert told in out, (out, err)
    assert sorted(sealed.rglob("*")) == before


def test_writing_commands_fail_on_a_read_only_data_folder(harvest: Any, sealed: Path) -> None:
    """A writing command on a read-only data folder is an error of one line, exit code 1."""
    for command in (("gather", "tree"), ("annotate", "tree/page.html", "a=b")):
        code, out, err = plainly(harvest, *command)
        assert (code, out, err.count("\n")) == (1, "", 1), (command, err)
        assert "Permission denied" in err


def test_unreadable_wal_of_a_killed_run_is_reported(harvest: Any, sealed: Path) -> None:
    """If a killed run left records in the WAL that a read-only user cannot read, an error of one line says who can."""
    log = sealed / "store.sqlite-wal"
    sealed.chmod(0o755)
    (sealed / "store.sqlite").chmod(0o644)
    writer = apsw.Connection(str(sealed / "store.sqlite"))
    writer.execute("CREATE TABLE left_over(x)")
    left = log.read_bytes()
    writer.close()
    log.write_bytes(left)
    for path in (log, sealed / "store.sqlite", sealed):
        path.chmod(path.stat().st_mode & ~0o222)
    code, _, err = plainly(harvest, "show", "tree/page.html")
    assert (code, err.count("\n")) == (1, 1)
    assert "a run was cut off here" in err


def test_files_of_unreadable_folder_are_not_counted_unchanged(harvest: Any, tree: Path) -> None:
    """Files of an unreadable folder are kept, and not counted as unchanged, since their state is unknown."""
    harvest("gather", tree, "--quiet")
    (tree / "notes").chmod(0)
    try:
        code, out, err = plainly(harvest, "gather", "tree", "--json")
    finally:
        (tree / "notes").chmod(0o755)
    table = json.loads(out)
    assert (code, err, table["rejected"]) == (0, "", {"Permission denied": 1})
    inside = sum(path.is_file() for path in (tree / "notes").rglob("*"))
    assert inside
    assert table["unchanged"] == sum(path.is_file() for path in tree.rglob("*")) - inside
    assert len(harvest.lines("search", "Ishmael")) == 1
