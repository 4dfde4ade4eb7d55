"""A data folder whose bodies are in object storage: gathering, a body that was changed there, storage that cannot be used."""

from __future__ import annotations

import asyncio
import gzip
import random
from pathlib import Path
from typing import Any

import pytest

from streams.cli.wiring import embedded_settings
from streams.clock import now_ms
from streams.config.settings import load
from streams.edges.work import ALONE
from streams.embedded import Embedded, upkeep
from streams.store.object_blobs import DAY, ObjectBlobs


@pytest.fixture
def storage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder as object storage, which the settings name."""
    monkeypatch.setenv("HARVEST_BLOBS_URL", f"file://{tmp_path}/storage")
    (tmp_path / "storage").mkdir()
    return tmp_path / "storage"


@pytest.fixture
def torn(tree: Path) -> Path:
    """A large file in the tree that is rejected, so that it can be tried again."""
    path = tree / "torn.gz"
    path.write_bytes(gzip.compress(random.Random(1).randbytes(100_000))[:-50])
    return path


def bodies(storage: Path) -> list[Path]:
    """The objects of bodies."""
    return [path for path in storage.glob("??/*/*") if path.is_file()]


@pytest.mark.parametrize("size", [100_000, 2 * ALONE])
def test_changed_body_is_rejected_and_fetched_again(harvest: Any, tree: Path, storage: Path, tmp_path: Path, size: int) -> None:
    """A body that was changed in the storage is rejected with its digest; the next run fetches and stores it again."""
    torn = tree / "torn.gz"
    torn.write_bytes(gzip.compress(random.Random(1).randbytes(size))[:-50])
    harvest("gather", tree, "--quiet")
    assert not (tmp_path / "harvest-data" / "blobs").exists()
    (letter,) = harvest.lines("rejected", "list")
    (body,) = bodies(storage)
    body.write_bytes(bytes(body.stat().st_size))
    for cached in (tmp_path / "harvest-data" / "blobs-cache").glob("*/??/*"):
        cached.unlink()
    harvest("rejected", "retry", "--all")
    lost = harvest.lines("rejected", "list")[-1]
    assert lost["reason"] == f"its body is not in the blob store: {body.parent.name} was changed in the object storage"
    assert bodies(storage) == []
    (table,) = harvest.lines("gather", tree)
    assert (table["objects"], table["unchanged"]) == (1, 4)
    assert harvest.lines("rejected", "list")[0]["reason"] == letter["reason"]
    assert [path.name for path in bodies(storage)] == [body.name]


def test_backup_has_the_bodies_of_the_storage(harvest: Any, tree: Path, torn: Path, storage: Path, tmp_path: Path) -> None:
    """A backup needs neither the data folder nor the storage: restore puts its bodies into the storage of the settings."""
    harvest("gather", tree, "--quiet")
    (body,) = bodies(storage)
    assert "1 body of" in harvest("backup", "copies").stderr
    assert not list((tmp_path / "copies").glob("*/blobs-cache"))
    assert [path.name for path in (tmp_path / "copies" / "blobs").glob("??/*")] == [body.parent.name]
    assert "0 of them new" in harvest("backup", "copies").stderr
    content = body.read_bytes()
    body.unlink()
    assert "ok      backup" in harvest("doctor", "--backup", "copies").stdout
    harvest("restore", "copies", "--data", "new")
    (restored,) = bodies(storage)
    assert (restored.parent.name, restored.read_bytes()) == (body.parent.name, content)
    assert not {"blobs", "blobs-cache", "restoring"} & {path.name for path in (tmp_path / "new").iterdir()}
    torn.unlink()
    harvest("rejected", "retry", "--all", "--data", "new")
    assert "its body is not" not in harvest.lines("rejected", "list", "--data", "new")[-1]["reason"]


def test_backup_names_bodies_that_the_storage_lost(harvest: Any, tree: Path, storage: Path) -> None:
    """A body that is missing from the storage is named; a storage that cannot be read makes no backup."""
    (tree / "large.txt").write_text("A whale of a file.\n" * 10_000)
    harvest("gather", tree, "--quiet")
    (body,) = bodies(storage)
    away = storage.rename(storage.with_name("away"))
    (away / "probe").unlink(missing_ok=True)
    assert "blobs.url: there is no such folder" in harvest("backup", "copies", code=1).stderr
    away.rename(storage)
    body.unlink()
    lost = harvest("backup", "copies", code=1).stderr
    assert f"file://{storage}: bodies that the log names are missing or damaged" in lost
    assert body.parent.name in lost


def test_upkeep_keeps_bodies_that_records_name(
    harvest: Any, torn: Path, tree: Path, storage: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A record may rely on a body that was stored the day before: the body stays as long as the record."""
    assert torn.exists()
    harvest("gather", tree, "--quiet")
    (body,) = bodies(storage)
    body.rename(body.with_name(str(int(body.name) - 1)))

    async def kept(days: float) -> int:
        later = lambda: int(now_ms() + 9 * DAY)  # noqa: E731 - a clock
        monkeypatch.setattr(upkeep, "now_ms", later)
        async with Embedded(tmp_path / "harvest-data", embedded_settings(load()), print) as runner:
            assert isinstance(runner.blobs, ObjectBlobs)
            runner.blobs._clock = later
            upkeep.upkeep(runner, days * 86_400)
            assert bool(runner.store.stats().topics["objects"].records) == (days > 9)
        return len(bodies(storage))

    assert asyncio.run(kept(9.01)) == 1
    assert asyncio.run(kept(6)) == 0


def test_storage_that_cannot_be_written_ends_the_run_with_one_line(
    harvest: Any, tree: Path, torn: Path, storage: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run whose storage fails ends with one line that names the setting, and the next run completes it."""
    assert torn.exists()
    monkeypatch.setattr("streams.embedded.runner.PATIENCE", 0.0)
    storage.rmdir()
    storage.write_text("not a folder")
    failed = harvest("gather", tree, "--quiet", code=1)
    assert failed.stderr.splitlines()[-1].startswith("harvest: blobs.url: the storage does not write")
    storage.unlink()
    storage.mkdir()
    harvest("gather", tree, "--quiet")
    assert len(bodies(storage)) == 1


def test_doctor_names_a_storage_that_does_not_work(harvest: Any, storage: Path) -> None:
    """`harvest doctor` and `harvest bodies check` say whether bodies can be stored."""
    assert "ok      object storage: bodies can be stored and read" in harvest("doctor").stdout
    assert harvest("bodies", "check").stdout == "bodies can be stored and read\n"
    for path in storage.iterdir():
        path.unlink()
    storage.rmdir()
    storage.write_text("not a folder")
    assert "NOT OK  object storage: blobs.url: the storage does not write" in harvest("doctor", code=1).stdout
    assert harvest("bodies", "check", code=1).stderr.startswith("harvest: blobs.url: the storage does not write")


def test_commands_about_bodies_say_where_they_do_not_apply(harvest: Any) -> None:
    """Without Kafka nothing is trimmed by a command, and without a URL there is no storage to check."""
    assert "harvest run and harvest gather trim a data folder" in harvest("bodies", "trim", code=2).stderr
    assert "blobs.url is not set" in harvest("bodies", "check", code=2).stderr


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ({"URL": "s3://"}, "HARVEST_BLOBS_URL: "),
        ({"URL": "sftp://user:sesame@host/x"}, "HARVEST_BLOBS_URL: user and password belong to blobs.options"),
        ({"URL": "s3:///x"}, "HARVEST_BLOBS_URL: a bucket has to be named"),
        ({"REGION": "eu"}, "HARVEST_BLOBS_REGION: has no effect without blobs.url with s3"),
        ({"URL": "s3://b", "ACCESS_KEY": "sesame"}, "blobs.secret_key: missing; needed for blobs.access_key"),
        ({"URL": "s3://b", "SECRET_KEY": "sesame"}, "HARVEST_BLOBS_SECRET_KEY: has no effect without blobs.access_key"),
        (
            {"URL": "s3://b", "ENDPOINT": "http://h:1", "CA": "/absent"},
            "HARVEST_BLOBS_CA: has no effect without blobs.endpoint with https",
        ),
        ({"URL": "s3://b", "ENDPOINT": "https://h:1", "CA": "/absent"}, "HARVEST_BLOBS_CA: /absent: No such file"),
        ({"URL": "s3://b", "OPTIONS": "sesame"}, "HARVEST_BLOBS_OPTIONS: NAME=VALUE pairs"),
        ({"OPTIONS": "token=sesame"}, "HARVEST_BLOBS_OPTIONS: has no effect without blobs.url"),
        ({"URL": "s3://b", "SECRET_KEY_FILE": "/absent"}, "HARVEST_BLOBS_SECRET_KEY_FILE: /absent: No such file"),
    ],
)
def test_contradicting_settings_are_one_line_without_secrets(
    harvest: Any, monkeypatch: pytest.MonkeyPatch, settings: dict[str, str], line: str
) -> None:
    """Settings of the storage that make no sense end any command with one line that shows no secret."""
    for name, value in settings.items():
        monkeypatch.setenv(f"HARVEST_BLOBS_{name}", value)
    ended = harvest("doctor", code=2).stderr
    assert line in ended
    assert "sesame" not in ended
    assert len(ended.splitlines()) == 1


def test_bodies_of_a_folder_are_copied_into_storage(
    harvest: Any, tree: Path, torn: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`bodies copy` stores the bodies of a data folder, which keeps them; afterwards an object is parsed with the copy."""
    assert torn.exists()
    harvest("gather", tree, "--quiet")
    (letter,) = harvest.lines("rejected", "list")
    (body,) = (tmp_path / "harvest-data" / "blobs").glob("??/*")
    monkeypatch.setenv("HARVEST_BLOBS_URL", f"file://{tmp_path}/storage")
    (tmp_path / "storage").mkdir()
    line = f"1 body copied, {body.stat().st_size:,} bytes\n"
    assert harvest("bodies", "copy", "harvest-data").stdout == line
    assert harvest("bodies", "copy", "harvest-data").stdout == line
    assert body.exists()
    assert [path.parent.name for path in bodies(tmp_path / "storage")] == [body.name]
    body.unlink()
    harvest("rejected", "retry", "--all")
    assert harvest.lines("rejected", "list")[-1]["reason"] == letter["reason"]


def test_copy_names_damaged_bodies(harvest: Any, tree: Path, torn: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A body that was changed in the folder is named, is not in the storage under its digest, and the exit code is 1."""
    assert torn.exists()
    harvest("gather", tree, "--quiet")
    (body,) = (tmp_path / "harvest-data" / "blobs").glob("??/*")
    body.write_bytes(bytes(70_000))
    monkeypatch.setenv("HARVEST_BLOBS_URL", f"file://{tmp_path}/storage")
    (tmp_path / "storage").mkdir()
    copied = harvest("bodies", "copy", "harvest-data", code=1)
    assert copied.stdout == "0 bodies copied, 0 bytes\n"
    assert copied.stderr.startswith(f"harvest: {body.name}: was changed in the folder")
    assert body.name not in {path.parent.name for path in bodies(tmp_path / "storage")}


def test_copy_without_source_or_storage_is_one_line(harvest: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without `blobs.url`, and with a folder that has no bodies, `bodies copy` says so in one line."""
    assert "blobs.url is not set" in harvest("bodies", "copy", "harvest-data", code=2).stderr
    monkeypatch.setenv("HARVEST_BLOBS_URL", f"file://{tmp_path}/storage")
    assert harvest("bodies", "copy", "elsewhere", code=1).stderr.startswith("harvest: elsewhere/blobs: no such folder")
