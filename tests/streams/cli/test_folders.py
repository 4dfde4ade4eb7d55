"""Data folders that were half made, or damaged: the first are made, of the others one line tells."""

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
    """The file, and nothing in it."""
    (folder / FILE).touch()


def header(folder: Path) -> None:
    """A database without tables."""
    connect(folder / FILE, readonly=False, timeout=1).close()


def tables(folder: Path) -> None:
    """Tables without topics."""
    Store(folder).close()


def journal(folder: Path) -> None:
    """A first transaction that was cut short, to be undone by who may write."""
    subprocess.run([sys.executable, "-c", CUT, folder / FILE], check=True)
    assert (folder / f"{FILE}-journal").exists()


HALVES: list[Callable[[Path], None]] = [empty, header, tables, journal]


@pytest.mark.parametrize("half", HALVES, ids=lambda half: half.__name__)
def test_half_made(harvest: Any, tree: Path, tmp_path: Path, half: Callable[[Path], None]) -> None:
    """A data folder whose making was cut short is one that was not made: commands that read say so, and a run makes it."""
    folder = tmp_path / "harvest-data"
    folder.mkdir()
    half(folder)
    for command in (["show", "x"], ["roots", "list"], ["index", "rebuild"], ["topics", "list"]):
        assert f"{folder.name}: no data of harvest here" in harvest(*command, code=1).stderr
    assert "none known" in harvest("gather", code=2).stderr
    assert b"no store of its own" in harvest.start("doctor").communicate()[0]
    harvest("gather", tree, "--quiet")
    assert len(harvest.lines("search", "*", "--copies")) == 3


def test_rows_that_do_not_decode(harvest: Any, tree: Path, tmp_path: Path) -> None:
    """Where rows or records are not what was written there, one line says that the data folder is damaged."""
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


def test_keys_that_are_no_text(harvest: Any, tree: Path, tmp_path: Path) -> None:
    """A key of the frontier that was changed is damage, and no bug of ours."""
    harvest("gather", tree, "--quiet")
    with apsw.Connection(str(tmp_path / "harvest-data" / FILE)) as connection:
        ((table,),) = connection.execute("SELECT 'rows_' || id FROM spaces WHERE name='frontier'")
        connection.execute(NO_TEXT.format(table=table))
    connection.close()
    process = harvest.start("gather", tree, "-q")
    _, said = process.communicate()
    assert process.returncode == 1
    # What a stage made of it before stands in the log, as of any record that it cannot process.
    assert said.decode().splitlines()[-1].startswith("harvest: the data folder is damaged: a key of the frontier: ")


def test_the_doctor_sees_damage(harvest: Any, tree: Path, tmp_path: Path) -> None:
    """A page of the store that is none is found."""
    harvest("gather", tree, "--quiet")
    store = tmp_path / "harvest-data" / FILE
    with apsw.Connection(str(store)) as connection:
        ((page,),) = connection.execute("SELECT max(rootpage) FROM sqlite_master")
    connection.close()
    with open(store, "r+b") as file:
        file.seek((page - 1) * PAGE)
        file.write(b"\xff" * PAGE)
    process = harvest.start("doctor")
    output, _ = process.communicate()
    assert process.returncode == 1
    assert f"NOT OK  data folder: {store.parent.name}: damaged: " in output.decode()


def test_the_doctor_sees_a_damaged_index(harvest: Any, tree: Path, tmp_path: Path) -> None:
    """A bit of the index that has turned is found, and what helps is told, and does; so it is where the index cannot be opened."""
    harvest("gather", tree, "--quiet")
    index = tmp_path / "harvest-data" / "index" / "main"
    (store,) = index.glob("*.store")
    for spoiled in (bytes([store.read_bytes()[0] ^ 1]) + store.read_bytes()[1:], b""):
        store.write_bytes(spoiled)
        process = harvest.start("doctor")
        output, _ = process.communicate()
        assert process.returncode == 1
        (line,) = (line for line in output.decode().splitlines() if "data folder: " in line)
        assert line.startswith("NOT OK  data folder: the index")
        assert line.endswith("(make it anew: harvest index rebuild)")
        harvest("index", "rebuild", "--quiet")
        assert "NOT OK  data folder" not in harvest.start("doctor").communicate()[0].decode()
        (store,) = index.glob("*.store")


@pytest.mark.parametrize("lock", ["runner.lock", "writers.lock"])
def test_a_lock_that_is_none(harvest: Any, tree: Path, tmp_path: Path, lock: str) -> None:
    """What stands in the place of a lock file is named."""
    folder = tmp_path / "harvest-data"
    folder.mkdir()
    os.mkfifo(folder / lock)
    assert harvest("gather", tree, code=1).stderr == f"harvest: {folder.name}/{lock}: not a file\n"
    (folder / lock).unlink()
    (folder / lock).mkdir()
    assert harvest("gather", tree, code=1).stderr == f"harvest: {folder.name}/{lock}: Is a directory\n"


def store_is_a_folder(data: Path) -> None:
    """In the place of the store is a folder."""
    (data / FILE).unlink()
    (data / FILE).mkdir()


def shm_is_a_folder(data: Path) -> None:
    """In the place of a file that SQLite makes is a folder."""
    (data / f"{FILE}-shm").mkdir()


def store_is_empty(data: Path) -> None:
    """The store was emptied."""
    (data / FILE).write_bytes(b"")


def store_is_a_byte(data: Path) -> None:
    """The store was emptied but for a byte."""
    (data / FILE).write_bytes(b"x")


def store_is_missing(data: Path) -> None:
    """The store is gone, and the index is not."""
    (data / FILE).unlink()


def store_is_a_text(data: Path) -> None:
    """In the place of the store is something else."""
    (data / FILE).write_bytes(b"no store " * 1_000)


def data_is_a_file(data: Path) -> None:
    """In the place of the data folder is a file."""
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
def test_a_store_that_is_lost(harvest: Any, tree: Path, tmp_path: Path, spoil: Callable[[Path], None]) -> None:
    """What is left of a data folder is not written over: one line says what it lacks, and what helps; the doctor sees it."""
    harvest("gather", tree, "--quiet")
    data = tmp_path / "harvest-data"
    spoil(data)
    (line,) = harvest("gather", tree, code=1).stderr.splitlines()
    assert line.startswith(f"harvest: {SPOILED[spoil]}")
    process = harvest.start("doctor")
    output, _ = process.communicate()
    assert process.returncode == 1
    assert f"NOT OK  data folder: {SPOILED[spoil]}" in output.decode()
    if data.is_dir():
        assert len(harvest.lines("search", "*", "--copies")) == 3


@pytest.mark.parametrize("instead", [None, b"no index"])
def test_an_index_that_is_lost(harvest: Any, tree: Path, tmp_path: Path, instead: bytes | None) -> None:
    """The doctor misses an index where there are summaries, and what it tells helps."""
    harvest("gather", tree, "--quiet")
    index = tmp_path / "harvest-data" / "index" / "main"
    shutil.rmtree(index)
    if instead:
        index.write_bytes(instead)
    process = harvest.start("doctor")
    output, _ = process.communicate()
    assert process.returncode == 1
    assert f"the index is {'no folder' if instead else 'missing'}: {index.relative_to(tmp_path)} (make it anew" in output.decode()
    harvest("index", "rebuild", "--quiet")
    assert len(harvest.lines("search", "*", "--copies")) == 3
    assert b"NOT OK  data folder" not in harvest.start("doctor").communicate()[0]


def body_is_gone(body: Path) -> None:
    """No body."""
    body.unlink()


def body_is_a_folder(body: Path) -> None:
    """In the place of a body is a folder that holds something."""
    body.unlink()
    (body / "in").mkdir(parents=True)


def body_is_a_pipe(body: Path) -> None:
    """In the place of a body is a pipe, which nobody ever writes to."""
    body.unlink()
    os.mkfifo(body)


def body_is_a_link(body: Path) -> None:
    """In the place of a body is a link that leads nowhere."""
    body.unlink()
    body.symlink_to("nowhere")


def body_has_changed(body: Path) -> None:
    """A body is as long as it was, and one byte of it is another."""
    held = bytearray(body.read_bytes())
    held[len(held) // 2] ^= 1
    body.write_bytes(held)


SMALL = 100_000
LOSSES = [(lose, SMALL) for lose in (body_is_gone, body_is_a_folder, body_is_a_pipe, body_is_a_link, body_has_changed)]


@pytest.mark.parametrize(("lose", "size"), [*LOSSES, (body_has_changed, 2 * ALONE)])
def test_a_body_that_is_lost(harvest: Any, tree: Path, tmp_path: Path, lose: Callable[[Path], None], size: int) -> None:
    """What cannot be tried again for want of its body is rejected for that, and fetched anew by the next run, unchanged or not."""
    torn = tree / "torn.gz"
    torn.write_bytes(gzip.compress(random.Random(1).randbytes(size))[:-50])
    harvest("gather", tree, "--quiet")
    (letter,) = harvest.lines("rejected", "list")
    (body,) = (path for path in (tmp_path / "harvest-data" / "blobs").glob("??/*") if path.stat().st_size == torn.stat().st_size)
    lose(body)
    harvest("rejected", "retry", "--all")
    assert harvest.lines("rejected", "list")[-1]["reason"] == "its body is not in the blob store"
    (table,) = harvest.lines("gather", tree)
    assert (table["objects"], table["unchanged"]) == (1, 3)
    (again,) = harvest.lines("rejected", "list")
    assert again["reason"] == letter["reason"]
    assert harvest.lines("gather", tree)[0]["nothing_changed"]
