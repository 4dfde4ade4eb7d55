"""Data folders that were half made, or damaged: the first are made, of the others one line tells."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from streams.store import Store
from streams.store.schema import FILE, connect

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
    assert b"none yet" in harvest.start("doctor").communicate()[0]
    harvest("gather", tree, "--quiet")
    assert len(harvest.lines("search", "*", "--copies")) == 3
