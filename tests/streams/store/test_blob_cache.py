"""The local cache of bodies in object storage when its folder is deleted or shared between machines, and reads that go wrong."""

from __future__ import annotations

import hashlib
import io
import multiprocessing
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from streams.store import blob_cache
from streams.store.object_blobs import DAY, ObjectBlobs
from streams.store.object_storage import BlobSettings, ObjectStorage, StorageError

LARGE = random.Random(3).randbytes(100_000)
DIGEST = hashlib.sha256(LARGE).hexdigest()
DAY_0 = 20_000


@pytest.fixture
def settings(tmp_path: Path) -> BlobSettings:
    """Settings of a storage in a folder, without a cache."""
    (tmp_path / "storage").mkdir()
    return BlobSettings(url=f"file://{tmp_path}/storage", cache=0)


@pytest.fixture
def blobs(settings: BlobSettings, tmp_path: Path) -> Iterator[ObjectBlobs]:
    """A store whose cache is in the folder `cache`, and which waits for no storage."""
    made = ObjectBlobs(settings, tmp_path / "cache", clock=lambda: DAY_0 * DAY, patience=0)
    yield made
    made.close()


def test_deleted_cache_makes_no_body_missing(blobs: ObjectBlobs, tmp_path: Path) -> None:
    """A cache folder that is deleted under a running worker is made again: bodies are read and written as before."""
    blobs.put(io.BytesIO(LARGE))
    shutil.rmtree(tmp_path / "cache")
    assert blobs.open(DIGEST).read() == LARGE
    shutil.rmtree(tmp_path / "cache")
    digest, _, _ = blobs.put(io.BytesIO(b"x" * 70_000))
    assert blobs.open(digest).read() == b"x" * 70_000


def test_cache_deleted_during_a_download_is_no_missing_body(
    blobs: ObjectBlobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cache folder that is deleted while a body is on its way is trouble, not a missing body."""
    blobs.put(io.BytesIO(LARGE))
    get = ObjectStorage.get

    def deleting(self: ObjectStorage, key: str, out: BinaryIO, limit: int) -> None:
        get(self, key, out, limit)
        shutil.rmtree(tmp_path / "cache")

    monkeypatch.setattr(ObjectStorage, "get", deleting)
    with pytest.raises(StorageError, match="cache"):
        blobs.open(DIGEST)


def test_bodies_that_wait_are_missed_again_by_the_next_sync(blobs: ObjectBlobs, tmp_path: Path) -> None:
    """No sync succeeds without a body that was written before it and is lost with the cache folder."""
    blobs.write(io.BytesIO(LARGE))
    shutil.rmtree(tmp_path / "cache")
    for _ in range(2):
        with pytest.raises(FileNotFoundError):
            blobs.sync()


def _live(folder: Path, url: str, boot: str, ready: Any, done: Any) -> None:
    blob_cache._BOOT = Path(boot)
    made = ObjectBlobs(BlobSettings(url=url), folder, patience=0)
    made.write(io.BytesIO(LARGE))
    ready.set()
    done.wait(60)
    made.sync()
    made.close()


def test_machines_that_share_a_folder_leave_each_others_caches(settings: BlobSettings, tmp_path: Path) -> None:
    """A data folder on a shared volume: a worker that starts deletes no cache that a worker of another machine uses."""
    (tmp_path / "boot").write_text("another-machine\n")
    context = multiprocessing.get_context("spawn")
    ready, done = context.Event(), context.Event()
    other = context.Process(target=_live, args=(tmp_path / "cache", settings.url, str(tmp_path / "boot"), ready, done))
    other.start()
    assert ready.wait(60)
    ObjectBlobs(settings, tmp_path / "cache").close()
    done.set()
    other.join(60)
    assert other.exitcode == 0
    assert len(list((tmp_path / "storage").glob("??/*/*"))) == 1
    ObjectBlobs(settings, tmp_path / "cache").close()
    assert not (tmp_path / "cache" / "another-machine").exists()


class Torn(io.BytesIO):
    """A response of the storage that ends early."""

    size = len(LARGE)


def test_response_that_ends_early_deletes_no_body(blobs: ObjectBlobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A read that ends before the size of the object is trouble: the object stays."""
    blobs.put(io.BytesIO(LARGE))
    opened = type(blobs._storage._fs).open
    monkeypatch.setattr(type(blobs._storage._fs), "open", lambda *_, **__: Torn(LARGE[:50_000]))
    with pytest.raises(StorageError, match="50,000 of 100,000 bytes"):
        blobs.open(DIGEST)
    monkeypatch.setattr(type(blobs._storage._fs), "open", opened)
    assert blobs.open(DIGEST).read() == LARGE


def test_body_changed_on_its_way_is_not_deleted(blobs: ObjectBlobs, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two reads that differ show a fault on the way, not damage in the storage: the object stays, and is read again."""
    blobs.put(io.BytesIO(LARGE))
    get, reads = ObjectStorage.get, []

    def flipped(self: ObjectStorage, key: str, out: BinaryIO, limit: int) -> None:
        get(self, key, out, limit)
        reads.append(key)
        if len(reads) == 1:
            out.seek(0)
            out.write(b"flip")
            out.seek(0, 2)

    monkeypatch.setattr(ObjectStorage, "get", flipped)
    with pytest.raises(StorageError, match="two reads"):
        blobs.open(DIGEST)
    assert blobs.open(DIGEST).read() == LARGE


def test_writers_of_one_body_do_not_disturb_each_other(settings: BlobSettings, tmp_path: Path) -> None:
    """Where writes are not atomic, each writer has a temporary name of its own, and a trim deletes what killed ones left."""
    names: set[str] = set()
    storage = ObjectStorage(settings)
    move = storage._fs.mv

    def seen(source: str, target: str) -> None:
        names.add(source)
        move(source, target)

    storage._fs.mv = seen
    (tmp_path / "body").write_bytes(LARGE)
    for _ in range(2):
        storage.put(tmp_path / "body", f"{DIGEST[:2]}/{DIGEST}/{DAY_0}")
    assert len(names) == 2
    folder = tmp_path / "storage" / DIGEST[:2] / DIGEST
    for name in names:
        Path(name).write_bytes(b"half")
    assert len(list(folder.iterdir())) == 3
    days = [DAY_0]
    blobs = ObjectBlobs(settings, tmp_path / "cache", clock=lambda: days[0] * DAY, patience=0)
    assert blobs.trim(days[0] * DAY).blobs == 0
    assert len(list(folder.iterdir())) == 3
    days[0] += 4
    assert blobs.trim(days[0] * DAY) == (1, len(LARGE))
    assert not list(folder.iterdir())
    blobs.close()
