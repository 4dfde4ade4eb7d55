"""Incomplete and damaged data folders: the first are completed by a run, the others are reported in one line."""

from __future__ import annotations

import gzip
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

from streams.edges.work import ALONE
from streams.store import Store
from streams.store.schema import FILE, PAGE, connect

CUT = """
import os, sys, apsw
connection = apsw.Connection(sys.argv[1])
connection.execute("PRAGMA cache_size=1")
connection.execute("BEGIN IMMEDIATE")
connection.execute("CREATE TABLE t(x)")
for _ in range(100):
    connection.execute("INSERT INTO t VALUES(zeroblob(5000))")
os._exit(0)
"""

GARBLE = "UPDATE {table} SET value=x'ff00ff00'"
NO_TEXT = "UPDATE {table} SET key=CAST(x'757cff' || substr(key, 4) AS BLOB) WHERE substr(key, 1, 2)=x'757c'"


def empty(folder: Path) -> None:
    """An empty store file."""
    (folder / FILE).touch()


def header(folder: Path) -> None:
    """A database without tables."""
    connect(folder / FILE, readonly=False, timeout=1).close()


def tables(folder: Path) -> None:
    """A database with tables but no topics."""
    Store(folder).close()


def journal(folder: Path) -> None:
    """An interrupted first transaction, whose journal only a process with write access can roll back."""
    subprocess.run([sys.executable, "-c", CUT, folder / FILE], check=True)
    assert (folder / f"{FILE}-journal").exists()


HALVES: list[Callable[[Path], None]] = [empty, header, tables, journal]


@pytest.mark.parametrize("half", HALVES, ids=lambda half: half.__name__)
def test_incomplete_data_folder_counts_as_absent(harvest: Any, tree: Path, tmp_path: Path, half: Callable[[Path], None]) -> None:
    """An incomplete data folder counts as absent: commands that read it say so, and a run completes it."""
    folder = tmp_path / "harvest-data"
    folder.mkdir()
    half(folder)
    for command in (["show", "x"], ["roots", "list"], ["index", "rebuild"], ["topics", "list"]):
        assert f"{folder.name}: no data of harvest here" in harvest(*command, code=1).stderr
    assert "none known" in harvest("gather", code=2).stderr
    assert "no store of its own" in harvest("doctor").stdout
    harvest("gather", tree, "--quiet")
    assert len(harvest.lines("search", "*", "--copies")) == 3


def test_undecodable_rows_are_reported_as_damage(harvest: Any, tree: Path, tmp_path: Path) -> None:
    """Rows or records that do not decode are reported in one line: the data folder is damaged."""
    harvest("gather", tree, "--quiet")
    with apsw.Connection(str(tmp_path / "harvest-data" / FILE)) as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type='table'")]
        for name in tables:
            if name.startswith(("rows_", "log_")):
                connection.execute(GARBLE.format(table=name))
    connection.close()
    for command in (["gather", tree, "-q"], ["roots", "list"]):
        (line,) = harvest(*command, code=1).stderr.splitlines()
        assert line.startswith("harvest: the data folder is damaged: ")


def test_undecodable_frontier_key_is_reported_as_damage(harvest: Any, tree: Path, tmp_path: Path) -> None:
    """A changed key of the frontier is reported as damage of the data folder, not as a bug."""
    harvest("gather", tree, "--quiet")
    with apsw.Connection(str(tmp_path / "harvest-data" / FILE)) as connection:
        ((table,),) = connection.execute("SELECT 'rows_' || id FROM spaces WHERE name='frontier'")
        connection.execute(NO_TEXT.format(table=table))
    connection.close()
    process = harvest.start("gather", tree, "-q")
    _, said = process.communicate()
    assert process.returncode == 1
    # The traceback of the stage precedes it in the output, as for any record that a stage cannot process.
    assert said.decode().splitlines()[-1].startswith("harvest: the data folder is damaged: a key of the frontier: ")


def test_doctor_reports_a_damaged_store(harvest: Any, tree: Path, tmp_path: Path) -> None:
    """`doctor` reports an overwritten page of the store."""
    harvest("gather", tree, "--quiet")
    store = tmp_path / "harvest-data" / FILE
    with apsw.Connection(str(store)) as connection:
        ((page,),) = connection.execute("SELECT max(rootpage) FROM sqlite_master")
    connection.close()
    with open(store, "r+b") as file:
        file.seek((page - 1) * PAGE)
        file.write(b"\xff" * PAGE)
    output = harvest("doctor", code=1).stdout
    assert f"NOT OK  data folder: {store.parent.name}: damaged: " in output


def test_doctor_reports_a_damaged_index(harvest: Any, tree: Path, tmp_path: Path) -> None:
    """`doctor` reports a flipped bit in the index, or one that cannot be opened, with the command that repairs it."""
    harvest("gather", tree, "--quiet")
    index = tmp_path / "harvest-data" / "index" / "main"
    (store,) = index.glob("*.store")
    for spoiled in (bytes([store.read_bytes()[0] ^ 1]) + store.read_bytes()[1:], b""):
        # A file of its own: this process may have mapped the one that is there, and dies if that is cut off.
        (tmp_path / "spoiled").write_bytes(spoiled)
        (tmp_path / "spoiled").replace(store)
        output = harvest("doctor", code=1).stdout
        (line,) = (line for line in output.splitlines() if "data folder: " in line)
        assert line.startswith("NOT OK  data folder: the index")
        assert line.endswith("(make it anew: harvest index rebuild)")
        harvest("index", "rebuild", "--quiet")
        assert "NOT OK  data folder" not in harvest("doctor").stdout
        (store,) = index.glob("*.store")


@pytest.mark.parametrize("lock", ["runner.lock", "writers.lock"])
def test_wrong_lock_file_is_named(harvest: Any, tree: Path, tmp_path: Path, lock: str) -> None:
    """A fifo or folder in place of a lock file is an error that names the path."""
    folder = tmp_path / "harvest-data"
    folder.mkdir()
    os.mkfifo(folder / lock)
    assert harvest("gather", tree, code=1).stderr == f"harvest: {folder.name}/{lock}: not a file\n"
    (folder / lock).unlink()
    (folder / lock).mkdir()
    assert harvest("gather", tree, code=1).stderr == f"harvest: {folder.name}/{lock}: Is a directory\n"


def store_is_a_folder(data: Path) -> None:
    """Replace the store by a folder."""
    (data / FILE).unlink()
    (data / FILE).mkdir()


def shm_is_a_folder(data: Path) -> None:
    """Put a folder where SQLite creates its shared memory file."""
    (data / f"{FILE}-shm").mkdir()


def store_is_empty(data: Path) -> None:
    """Truncate the store to 0 bytes."""
    (data / FILE).write_bytes(b"")


def store_is_a_byte(data: Path) -> None:
    """Replace the store by a single byte."""
    (data / FILE).write_bytes(b"x")


def store_is_missing(data: Path) -> None:
    """Delete the store and keep the index."""
    (data / FILE).unlink()


def store_is_a_text(data: Path) -> None:
    """Replace the store by a text."""
    (data / FILE).write_bytes(b"no store " * 1_000)


def data_is_a_file(data: Path) -> None:
    """Replace the data folder by a file."""
    shutil.rmtree(data)
    data.write_bytes(b"")


SPOILED: dict[Callable[[Path], None], str] = {
    store_is_a_folder: "harvest-data/store.sqlite: not a file",
    shm_is_a_folder: "harvest-data/store.sqlite-shm: not a file",
    store_is_empty: "harvest-data/store.sqlite: is empty, though there is an index of it: to start afresh, delete",
    store_is_a_byte: "harvest-data/store.sqlite: is empty, though there is an index of it: to start afresh, delete",
    store_is_missing: "harvest-data/store.sqlite: is missing, though there is an index of it: to start afresh, delete",
    store_is_a_text: "harvest-data/store.sqlite: file is not a database: to start afresh, delete",
    data_is_a_file: "harvest-data: ",
}


@pytest.mark.parametrize("spoil", SPOILED, ids=lambda spoil: spoil.__name__)
def test_lost_store_is_reported_and_not_overwritten(
    harvest: Any, tree: Path, tmp_path: Path, spoil: Callable[[Path], None]
) -> None:
    """A run does not overwrite a data folder with a lost store: one line states defect and remedy; `doctor` reports it."""
    harvest("gather", tree, "--quiet")
    data = tmp_path / "harvest-data"
    spoil(data)
    (line,) = harvest("gather", tree, code=1).stderr.splitlines()
    assert line.startswith(f"harvest: {SPOILED[spoil]}")
    output = harvest("doctor", code=1).stdout
    assert f"NOT OK  data folder: {SPOILED[spoil]}" in output
    if data.is_dir():
        assert len(harvest.lines("search", "*", "--copies")) == 3


@pytest.mark.parametrize("instead", [None, b"no index"])
def test_doctor_reports_a_missing_index(harvest: Any, tree: Path, tmp_path: Path, instead: bytes | None) -> None:
    """`doctor` reports a missing index, and the command that it names rebuilds it."""
    harvest("gather", tree, "--quiet")
    index = tmp_path / "harvest-data" / "index" / "main"
    shutil.rmtree(index)
    if instead:
        index.write_bytes(instead)
    output = harvest("doctor", code=1).stdout
    assert f"the index is {'no folder' if instead else 'missing'}: {index.relative_to(tmp_path)} (make it anew" in output
    harvest("index", "rebuild", "--quiet")
    assert len(harvest.lines("search", "*", "--copies")) == 3
    assert "NOT OK  data folder" not in harvest("doctor").stdout


def body_is_gone(body: Path) -> None:
    """Delete the body."""
    body.unlink()


def body_is_a_folder(body: Path) -> None:
    """Replace the body by a folder that is not empty."""
    body.unlink()
    (body / "in").mkdir(parents=True)


def body_is_a_pipe(body: Path) -> None:
    """Replace the body by a fifo without a writer."""
    body.unlink()
    os.mkfifo(body)


def body_is_a_link(body: Path) -> None:
    """Replace the body by a dangling link."""
    body.unlink()
    body.symlink_to("nowhere")


def body_has_changed(body: Path) -> None:
    """Flip a bit of the body; its length stays."""
    held = bytearray(body.read_bytes())
    held[len(held) // 2] ^= 1
    body.write_bytes(held)


SMALL = 100_000
LOSSES = [(lose, SMALL) for lose in (body_is_gone, body_is_a_folder, body_is_a_pipe, body_is_a_link, body_has_changed)]


@pytest.mark.parametrize(("lose", "size"), [*LOSSES, (body_has_changed, 2 * ALONE)])
def test_lost_body_is_rejected_and_fetched_again(
    harvest: Any, tree: Path, tmp_path: Path, lose: Callable[[Path], None], size: int
) -> None:
    """A retry without the body is rejected for that reason, and the next run fetches the file again, also if it is unchanged."""
    torn = tree / "torn.gz"
    torn.write_bytes(gzip.compress(random.Random(1).randbytes(size))[:-50])
    harvest("gather", tree, "--quiet")
    (letter,) = harvest.lines("rejected", "list")
    (body,) = (path for path in (tmp_path / "harvest-data" / "blobs").glob("??/*") if path.stat().st_size == torn.stat().st_size)
    lose(body)
    harvest("rejected", "retry", "--all")
    assert harvest.lines("rejected", "list")[-1]["reason"] == "its body is not in the blob store"
    (table,) = harvest.lines("gather", tree)
    assert (table["objects"], table["unchanged"]) == (1, 4)
    (again,) = harvest.lines("rejected", "list")
    assert again["reason"] == letter["reason"]
    assert harvest.lines("gather", tree)[0]["nothing_changed"]
