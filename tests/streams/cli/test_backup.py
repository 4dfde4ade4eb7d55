"""Backups of a data folder, and data folders made of them."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from streams.cli.wiring import embedded_settings
from streams.config.settings import load
from streams.embedded import Embedded, upkeep
from streams.operations import backup as backing
from streams.operations.backup_format import BODIES, LOCK, MANIFEST, SUMS, backups
from streams.operations.indexes import open_index
from streams.store import Store
from streams.store.locks import LockFile, bodies_kept, bodies_trimmed
from streams.store.schema import FILE
from tests.streams.cli.definitions import define


def bodies(folder: Path) -> dict[str, Path]:
    """The bodies in a data folder or a folder of backups, by digest."""
    return {path.name: path for path in (folder / BODIES).glob("??/*")}


def content(data: Path) -> dict[str, list[Any]]:
    """All records of a data folder by topic."""
    with Store(data, readonly=True) as store:
        topics = store.topics()
        return {name: [one for p in range(topics[name]) for one in store.read(name, p, 0, 100_000)] for name in topics}


@pytest.fixture
def gathered(harvest: Any, tree: Path, tmp_path: Path) -> Path:
    """A data folder with four objects, one of which has a body in a file of its own."""
    (tree / "large.txt").write_text("A whale of a file.\n" * 10_000)
    harvest("gather", tree, "--quiet")
    return tmp_path / "harvest-data"


@pytest.fixture
def copied(gathered: Path, harvest: Any, tmp_path: Path) -> Path:
    """A folder with a backup of that data folder."""
    harvest("backup", "copies")
    return tmp_path / "copies"


def test_restored_folder_equals_the_original(copied: Path, gathered: Path, harvest: Any, tmp_path: Path) -> None:
    """A restored folder has the records, bodies and hits of the original, passes doctor, and a run over it finds no change."""
    result = harvest("restore", copied, "--data", "new")
    assert "1 body, 4 summaries indexed" in result.stderr
    new = tmp_path / "new"
    assert content(new) == content(gathered)
    assert {name: path.read_bytes() for name, path in bodies(new).items()} == {
        name: path.read_bytes() for name, path in bodies(gathered).items()
    }
    assert harvest.lines("search", "*", "--copies", "--data", "new") == harvest.lines("search", "*", "--copies")
    assert "backup: " in harvest("doctor", "--data", "new", "--backup", copied).stdout
    (table,) = harvest.lines("gather", "--data", "new")
    assert table["nothing_changed"]


def test_backup_survives_damage_of_the_original(copied: Path, gathered: Path, harvest: Any) -> None:
    """A backup shares no file with the original: overwritten bodies and a lost store do it no harm."""
    (original,) = bodies(gathered).values()
    (copy,) = bodies(copied).values()
    assert not os.path.samefile(original, copy)
    original.write_bytes(b"damaged")
    (gathered / FILE).unlink()
    harvest("restore", copied, "--data", "new")
    assert len(harvest.lines("search", "whale of a file", "--data", "new")) == 1


def test_second_backup_copies_only_new_bodies(copied: Path, tree: Path, harvest: Any) -> None:
    """Bodies that the folder of backups has are not copied again; one backup is kept unless more are asked for."""
    (first,) = bodies(copied).values()
    before = first.stat()
    (tree / "large2.txt").write_text("Another whale of a file.\n" * 10_000)
    harvest("gather", "--quiet")
    assert "2 bodies of 440,000 bytes, 1 of them new" in harvest("backup", "copies").stderr
    assert first.stat() == before
    assert len(backups(copied)) == 1
    harvest("backup", "copies", "--keep", "2")
    older, newer = backups(copied)
    harvest("restore", older, "--data", "older")
    harvest("restore", copied, "--data", "newer")
    assert harvest.lines("search", "another", "--data", "older") == harvest.lines("search", "another", "--data", "newer")
    assert older.name < newer.name


def test_unused_bodies_leave_the_folder_of_backups(copied: Path, gathered: Path, harvest: Any) -> None:
    """A body that no backup names any more is removed, after the new backup is complete."""
    (copied / BODIES / "ab").mkdir()
    (copied / BODIES / "ab" / ("ab" * 32)).write_bytes(b"named by nothing")
    harvest("backup", "copies")
    assert set(bodies(copied)) == set(bodies(gathered))


def test_body_removed_from_the_original_stays_in_the_backup(copied: Path, gathered: Path, harvest: Any) -> None:
    """A body that the original has lost is kept where an earlier backup has it."""
    (original,) = bodies(gathered).values()
    original.unlink()
    harvest("backup", "copies")
    harvest("restore", "copies", "--data", "new")
    assert len(bodies(copied)) == 1


@pytest.mark.parametrize("damage", [Path.unlink, lambda path: path.write_bytes(b"x" * path.stat().st_size)])
def test_lost_body_is_reported_and_the_backup_made(gathered: Path, harvest: Any, damage: Callable[[Path], Any]) -> None:
    """A missing or damaged body of an object gives exit code 1 and its digest; the rest is backed up and can be restored."""
    (original,) = bodies(gathered).values()
    damage(original)
    result = harvest("backup", "copies", code=1)
    assert original.name in result.stderr.splitlines()[-1]
    harvest("restore", "copies", "--data", "new")
    assert len(harvest.lines("search", "*", "--copies", "--data", "new")) == 4


def test_damaged_store_leaves_the_former_backup(copied: Path, gathered: Path, harvest: Any) -> None:
    """A data folder whose store is damaged is not backed up, and the backup of before stays."""
    before = {path: path.stat() for path in copied.rglob("*") if path.is_file() and path.name != LOCK}
    store = bytearray((gathered / FILE).read_bytes())
    store[8192:] = b"\xff" * (len(store) - 8192)
    (gathered / FILE).write_bytes(store)
    (line,) = harvest("backup", "copies", code=1).stderr.splitlines()
    assert FILE in line
    assert {path: path.stat() for path in copied.rglob("*") if path.is_file() and path.name != LOCK} == before


def flip(path: Path) -> None:
    """Change one byte in the middle of a file."""
    found = bytearray(path.read_bytes())
    found[len(found) // 2] ^= 1
    path.write_bytes(found)


def changed(backup: Path, **fields: Any) -> None:
    """Write other values into the manifest of a backup."""
    path = backup / MANIFEST
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))


DAMAGES: dict[str, Callable[[Path], object]] = {
    "body": lambda one: flip(next(iter(bodies(one.parent).values()))),
    "missing body": lambda one: next(iter(bodies(one.parent).values())).unlink(),
    "store": lambda one: flip(one / FILE),
    "missing store": lambda one: (one / FILE).unlink(),
    "list": lambda one: flip(one / SUMS),
    "missing list": lambda one: (one / SUMS).unlink(),
    "manifest": lambda one: (one / MANIFEST).write_bytes(b'{"format": 1'),
    "foreign manifest": lambda one: (one / MANIFEST).write_bytes(b'{"format": 1, "kind": "something else"}'),
    "ends": lambda one: changed(one, ends={}),
    "bodies": lambda one: changed(one, bodies=7),
    "newer": lambda one: changed(one, format=99),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_backup_is_refused(copied: Path, harvest: Any, tmp_path: Path, damage: str) -> None:
    """A damaged, foreign or newer backup is refused in one line, which names it; nothing is left; doctor reports the same."""
    (one,) = backups(copied)
    DAMAGES[damage](one)
    (line,) = harvest("restore", copied, "--data", "new", code=1).stderr.splitlines()
    assert line.startswith(f"harvest: {one}: ")
    assert ("newer version" if damage == "newer" else "damaged") in line
    assert not (tmp_path / "new").exists()
    checks = {check["check"]: check for check in harvest_lines(harvest, "doctor", "--backup", copied)}
    assert not checks["backup"]["ok"]
    assert str(one) in checks["backup"]["detail"]


def harvest_lines(harvest: Any, *arguments: str | Path) -> list[dict[str, Any]]:
    """The JSON lines of a command that fails."""
    return [json.loads(line) for line in harvest(*arguments, "--json", code=1).stdout.splitlines()]


def test_restore_refuses_a_folder_with_files(copied: Path, harvest: Any, gathered: Path, tmp_path: Path) -> None:
    """A data folder, or any folder that is not empty, is refused and not changed; an empty one is taken."""
    before = content(gathered)
    (line,) = harvest("restore", copied, code=1).stderr.splitlines()
    assert "not an empty folder" in line
    assert content(gathered) == before
    (tmp_path / "empty").mkdir()
    harvest("restore", copied, "--data", "empty")


def test_wrong_folders_are_refused(gathered: Path, tree: Path, harvest: Any, tmp_path: Path) -> None:
    """A folder with other files, one within the data folder, a file, and a folder without backups are one line each."""
    (tmp_path / "file").touch()
    for arguments, said in (
        (("backup", tree), "neither empty nor a folder of backups"),
        (("backup", gathered / "copies"), "lies in the data folder"),
        (("backup", "file"), "not a folder"),
        (("backup", "copies", "--data", "nothing"), "no data of harvest here"),
        (("restore", tree, "--data", "new"), "no backup of harvest here"),
        (("restore", "nothing", "--data", "new"), "no backup of harvest here"),
    ):
        (line,) = harvest(*arguments, code=1).stderr.splitlines()
        assert said in line
    assert not (tmp_path / "new").exists()
    assert not (tmp_path / "copies").exists()


def test_backups_of_another_gatherer_are_not_replaced(copied: Path, tree: Path, harvest: Any) -> None:
    """A backup folder of one Gatherer does not take the backup of another."""
    harvest("gather", tree, "--data", "other", "--gatherer", "other.example", "--quiet")
    (line,) = harvest("backup", copied, "--data", "other", code=1).stderr.splitlines()
    assert "other.example" in line
    assert len(backups(copied)) == 1


def test_one_backup_at_a_time(copied: Path, harvest: Any) -> None:
    """A second command that writes the same folder of backups is refused in one line."""
    lock = LockFile(copied / LOCK)
    lock.claim()
    try:
        (line,) = harvest("backup", copied, code=1).stderr.splitlines()
    finally:
        lock.close()
    assert "in use" in line


def test_bodies_are_not_trimmed_while_they_are_copied(
    gathered: Path, harvest: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the copy of the store and that of the bodies nothing may be trimmed; before and after it may."""
    may: list[bool] = []

    def look(_: str = "") -> None:
        with bodies_trimmed(gathered) as alone:
            may.append(alone)

    look()
    with monkeypatch.context() as patched:
        patched.setattr(backing, "fault", look)
        harvest("backup", "copies")
    look()
    assert (may[0], may[-1]) == (True, True)
    assert len(may) > 4
    assert not any(may[1:-1])


def test_upkeep_beside_a_backup_leaves_the_bodies(gathered: Path, tmp_path: Path) -> None:
    """Upkeep trims the log beside a backup, but no body; the next upkeep removes the body."""
    (body,) = bodies(gathered).values()
    old = time.time() - 2 * 3600
    os.utime(body, (old, old))
    time.sleep(0.01)

    async def look_after() -> None:
        async with Embedded(gathered, embedded_settings(load()), print) as runner:
            upkeep.upkeep(runner, 0)

    with bodies_kept(gathered):
        asyncio.run(look_after())
    assert not content(gathered)["objects"]
    assert body.exists()
    asyncio.run(look_after())
    assert not body.exists()


def test_kafka_is_backed_up_by_export(harvest: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """With brokers set, one line says that the topics are the data and which commands export them."""
    monkeypatch.setenv("HARVEST_KAFKA_BROKERS", "127.0.0.1:1")
    for arguments in (("backup", "copies"), ("restore", "copies", "--data", "new")):
        (line,) = harvest(*arguments, code=1).stderr.splitlines()
        assert "the topics there are the data" in line
        assert "harvest export TOPIC FILE" in line


def test_deleted_body_of_a_backup_is_copied_again(copied: Path, harvest: Any) -> None:
    """A body that is missing from the folder of backups is copied by the next backup, which then verifies."""
    next(iter(bodies(copied).values())).unlink()
    assert ", 1 of them new" in harvest("backup", copied).stderr
    assert "backup: " in harvest("doctor", "--backup", copied).stdout


def test_definitions_of_brokers_are_backed_up(gathered: Path, harvest: Any, tmp_path: Path) -> None:
    """A restored folder has the definitions of the original, and the index of each Broker in its languages."""
    define("pages", "query = 'whale'\nlanguages = ['de']\n", gathered)
    harvest("gather", "--quiet")
    before = harvest.lines("search", "*", "--broker", "pages")
    harvest("backup", "copies")
    harvest("restore", "copies", "--data", "new")
    assert (tmp_path / "new" / "brokers" / "pages.toml").read_text() == (gathered / "brokers" / "pages.toml").read_text()
    assert harvest.lines("search", "*", "--broker", "pages", "--data", "new") == before
    with closing(open_index(load({"data": tmp_path / "new"}, None, {}), "pages")) as index:
        assert tuple(index.languages) == ("de",)


def test_definitions_that_are_there_stay(copied: Path, harvest: Any, tmp_path: Path) -> None:
    """A folder with definitions alone is restored into; its own take the place of the backup's, also of a wrong one."""
    define("pages", "query = 'x'\n")
    define("other", "query = '('\n")
    harvest("backup", "copies")
    define("pages", "query = 'Ishmael'\n", "new")
    harvest("restore", "copies", "--data", "new")
    folder = tmp_path / "new" / "brokers"
    assert {path.name: path.read_text() for path in folder.iterdir()} == {
        "pages.toml": "query = 'Ishmael'\n",
        "other.toml": "query = '('\n",
    }
    assert sorted(path.name for path in (tmp_path / "new").iterdir() if path.is_dir()) == ["blobs", "brokers", "index"]
    assert "warning: " in harvest("search", "*", "--data", "new").stderr


def test_definition_outside_the_folder_is_damage(copied: Path, harvest: Any, tmp_path: Path) -> None:
    """A manifest whose definition has a path for a name is refused, and nothing is written."""
    for name in ("../x.toml", "x", ""):
        changed(backups(copied)[-1], definitions={name: "title = 'x'"})
        assert "damaged" in harvest("restore", copied, "--data", "new", code=1).stderr
        assert not (tmp_path / "new").exists()
