"""Copies of a database that is being written."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from streams.store import AbsentError, Offsets, Store, StoreError, snapshot
from streams.store.schema import FILE
from streams.store.snapshot import copy_database

CHANCE = random.Random(1994)


def test_copy_is_the_state_of_one_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Transactions that commit while pages are copied are not in the copy, nor parts of them; later copies have them."""
    with Store(tmp_path / "data", {"crawl": 1}, runner=True) as store:

        def commit(_: str = "") -> None:
            with store.transaction() as tx:
                last = [tx.append("crawl", 0, b"key", CHANCE.randbytes(3_000), 0) for _ in range(20)][-1]
                tx.commit_offset("frontier", "crawl", 0, Offsets(last + 1))
                tx.rows("frontier", 0).put(b"last", str(last).encode())

        for _ in range(20):
            commit()
        monkeypatch.setattr(snapshot, "STEP_PAGES", 8)
        monkeypatch.setattr(snapshot, "fault", commit)
        (tmp_path / "copy").mkdir()
        copy_database(tmp_path / "data", tmp_path / "copy" / FILE)
        assert store.ends("crawl")[0] > 800
    with Store(tmp_path / "copy", readonly=True) as copy:
        assert copy.ends("crawl") == [400]
        assert len(copy.read("crawl", 0, 0, 10_000)) == 400
        assert copy.offsets("frontier") == {("crawl", 0): Offsets(400)}
        rows = copy.rows("frontier", 0)
        assert rows is not None
        assert rows.get(b"last") == b"399"
    assert [path.name for path in (tmp_path / "copy").iterdir()] == [FILE]


def test_damaged_database_is_not_copied(tmp_path: Path) -> None:
    """A database with damaged pages raises an error that names it, and leaves no file."""
    with Store(tmp_path / "data", {"crawl": 1}) as store, store.transaction() as tx:
        for number in range(500):
            tx.append("crawl", 0, b"%d" % number, CHANCE.randbytes(1_000), 0)
    path = tmp_path / "data" / FILE
    content = bytearray(path.read_bytes())
    content[-40 * 8192 : -8192] = b"\xff" * (39 * 8192)
    path.write_bytes(content)
    with pytest.raises(StoreError, match=str(path)):
        copy_database(tmp_path / "data", tmp_path / FILE)
    assert not (tmp_path / FILE).exists()


def test_missing_database_is_absent(tmp_path: Path) -> None:
    """A folder without a store raises AbsentError."""
    with pytest.raises(AbsentError):
        copy_database(tmp_path, tmp_path / "copy")
