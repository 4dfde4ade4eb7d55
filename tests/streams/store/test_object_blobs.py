"""Bodies in object storage, against storage of fsspec that needs no server: a folder and a dictionary. S3: `test_s3.py`."""

from __future__ import annotations

import hashlib
import io
import random
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import fsspec
import pytest

from streams.store.blobs import FolderBlobs, Trimmed
from streams.store.bodies import open_bodies
from streams.store.object_blobs import DAY, ObjectBlobs
from streams.store.object_storage import PROBE, BlobSettings, ObjectStorage, StorageError

TODAY = 20_000
LARGE = random.Random(3).randbytes(100_000)
DIGEST = hashlib.sha256(LARGE).hexdigest()


class Days:
    """A clock in days."""

    def __init__(self) -> None:
        self.day = TODAY

    def __call__(self) -> int:
        """Return noon of the day, in ms since the epoch."""
        return self.day * DAY + DAY // 2


@pytest.fixture(params=["file", "memory"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """URL of an empty storage."""
    return f"file://{tmp_path}/storage" if request.param == "file" else f"memory://{tmp_path.name}"


@pytest.fixture
def clock() -> Days:
    """A clock that a test moves."""
    return Days()


Opened = Callable[..., ObjectBlobs]


@pytest.fixture
def opened(url: str, tmp_path: Path, clock: Days) -> Iterator[Opened]:
    """Return stores of one storage, each with a cache of its own, as on machines of their own."""
    made: list[ObjectBlobs] = []

    def opening(cache: int = 1 << 20, patience: float | None = 0) -> ObjectBlobs:
        folder = tmp_path / f"cache{len(made)}"
        made.append(ObjectBlobs(BlobSettings(url=url, cache=cache), folder, clock=clock, patience=patience))
        return made[-1]

    first = opening()
    first.check(write=True)
    yield opening
    for one in made:
        one.close()


def stored(url: str) -> list[str]:
    """The names of the bodies' objects in a storage."""
    return [one.key for number in range(256) for one in ObjectStorage(BlobSettings(url=url)).list(f"{number:02x}")]


def test_body_is_read_elsewhere_as_it_was_stored(opened: Opened, url: str) -> None:
    """A body stored by one worker is read by another without a shared folder, and is stored once a day."""
    writer, reader = opened(), opened()
    for _ in range(2):
        assert writer.put(io.BytesIO(LARGE)) == (DIGEST, hashlib.md5(LARGE).hexdigest(), len(LARGE))
    with reader.open(DIGEST) as body:
        assert body.read() == LARGE
        assert body.fileno() > 2
    assert stored(url) == [f"{DIGEST[:2]}/{DIGEST}/{TODAY}"]
    assert list(reader.digests()) == [DIGEST]


def test_body_waits_for_sync_and_is_readable_meanwhile(opened: Opened) -> None:
    """A body is readable by its writer at once, and by others after the sync."""
    writer, reader = opened(), opened()
    writer.write(io.BytesIO(LARGE))
    assert writer.open(DIGEST).read() == LARGE
    with pytest.raises(FileNotFoundError):
        reader.open(DIGEST)
    writer.sync()
    assert reader.open(DIGEST).read() == writer.open(DIGEST).read() == LARGE


def test_many_bodies_are_stored_together(opened: Opened) -> None:
    """A sync stores all that was written since the last one, by several threads, while others are read."""
    writer, reader = opened(cache=200_000), opened()
    bodies = [random.Random(seed).randbytes(30_000) for seed in range(60)]
    threads = [
        threading.Thread(target=lambda own=own: [writer.put(io.BytesIO(body)) for body in own]) for own in (bodies, bodies[::2])
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for body in bodies:
        assert reader.open(hashlib.sha256(body).hexdigest()).read() == body


def test_changed_body_is_missing_and_is_stored_anew(opened: Opened, url: str, tmp_path: Path) -> None:
    """A body that was changed in the storage is reported with its digest, deleted, and stored by the next fetch."""
    writer, reader = opened(), opened()
    writer.put(io.BytesIO(LARGE))
    (tmp_path / "other").write_bytes(b"x" * len(LARGE))
    ObjectStorage(BlobSettings(url=url)).put(tmp_path / "other", f"{DIGEST[:2]}/{DIGEST}/{TODAY}")
    with pytest.raises(FileNotFoundError, match=f"{DIGEST} was changed"):
        reader.open(DIGEST)
    assert stored(url) == []
    writer.put(io.BytesIO(LARGE))
    assert reader.open(DIGEST).read() == LARGE


def test_truncated_body_is_stored_anew(opened: Opened, url: str, tmp_path: Path) -> None:
    """An object of another length does not count as present."""
    (tmp_path / "other").write_bytes(LARGE[:-1])
    ObjectStorage(BlobSettings(url=url)).put(tmp_path / "other", f"{DIGEST[:2]}/{DIGEST}/{TODAY}")
    opened().put(io.BytesIO(LARGE))
    assert opened().open(DIGEST).read() == LARGE


def test_body_beyond_the_limit_is_refused(url: str, tmp_path: Path, opened: Opened) -> None:
    """No more is downloaded than the largest body may have, and nothing is deleted: another worker's limit may be another one."""
    opened().put(io.BytesIO(LARGE))
    reader = ObjectBlobs(BlobSettings(url=url), tmp_path / "small", patience=0, max_body=len(LARGE) - 1, clock=Days())
    with pytest.raises(FileNotFoundError, match="larger than the 99,999 bytes"):
        reader.open(DIGEST)
    reader.close()
    assert len(stored(url)) == 1


def test_cache_stays_within_its_bound(opened: Opened, tmp_path: Path) -> None:
    """The cache keeps what was used last, within its limit; an open body stays readable when it is evicted."""
    writer, reader = opened(), opened(cache=100_000)
    bodies = {hashlib.sha256(body).hexdigest(): body for body in (bytes([n]) * 10_000 for n in range(50))}
    for body in bodies.values():
        writer.put(io.BytesIO(body))
    first = next(iter(bodies))
    kept = reader.open(first)
    for digest, body in bodies.items():
        assert reader.open(digest).read() == body
        size = sum(path.stat().st_size for path in (tmp_path / "cache2").rglob("*") if len(path.name) == 64)
        assert size <= 100_000
    assert kept.read() == bodies[first]


def test_trim_deletes_old_bodies_without_references(opened: Opened, url: str, clock: Days) -> None:
    """Trimming deletes what is old and not referenced, never what a writer still relies on."""
    writer = opened()
    writer.put(io.BytesIO(LARGE))
    other = writer.put(io.BytesIO(LARGE[1:]))[0]
    for day in (TODAY, TODAY + 1, TODAY + 2):
        clock.day = day
        assert writer.trim(clock(), {other}) == Trimmed(0, 0)
    clock.day = TODAY + 3
    assert writer.trim((TODAY + 1) * DAY - 1, {other}) == Trimmed(0, 0)
    assert writer.trim(clock(), {other}) == Trimmed(1, len(LARGE))
    assert stored(url) == [f"{other[:2]}/{other}/{TODAY}"]


def test_old_body_is_stored_again_before_a_record_relies_on_it(opened: Opened, url: str, clock: Days) -> None:
    """A body written again after two days gets a new object: trimming the old one in the same moment loses nothing."""
    writer, sweeper = opened(), opened()
    writer.put(io.BytesIO(LARGE))
    clock.day = TODAY + 1
    writer.put(io.BytesIO(LARGE))
    assert len(stored(url)) == 1
    clock.day = TODAY + 9
    writer.put(io.BytesIO(LARGE))
    sweeper.trim(clock())
    assert stored(url) == [f"{DIGEST[:2]}/{DIGEST}/{TODAY + 9}"]
    assert opened().open(DIGEST).read() == LARGE


def test_foreign_objects_are_left_alone(opened: Opened, url: str, clock: Days) -> None:
    """Trimming touches only objects that a store of bodies has named."""
    fs, root = fsspec.core.url_to_fs(url)
    fs.makedirs(f"{root}/ab/notes", exist_ok=True)
    fs.pipe_file(f"{root}/ab/notes/1", b"x")
    clock.day += 100
    assert opened().trim(clock()) == Trimmed(0, 0)
    assert fs.exists(f"{root}/ab/notes/1")
    assert fs.exists(f"{root}/{PROBE}")


def test_storage_that_is_away_holds_and_goes_on(tmp_path: Path, clock: Days) -> None:
    """While the storage is away a sync waits and says why; it ends by itself once the storage is back."""
    root = tmp_path / "storage"
    blobs = ObjectBlobs(BlobSettings(url=f"file://{root}"), tmp_path / "cache", clock=clock)
    root.write_text("not a folder")
    blobs.write(io.BytesIO(LARGE))
    syncing = threading.Thread(target=blobs.sync)
    syncing.start()
    while not blobs.trouble:
        assert syncing.is_alive()
    assert blobs.trouble.startswith("blobs.url: ")
    root.unlink()
    root.mkdir()
    syncing.join(30)
    assert not syncing.is_alive()
    assert blobs.trouble == ""
    assert stored(f"file://{root}") == [f"{DIGEST[:2]}/{DIGEST}/{TODAY}"]
    blobs.close()


def test_stop_ends_a_sync_that_waits(tmp_path: Path, clock: Days) -> None:
    """A sync that waits for its storage ends with the reason once the process stops; the body stays readable here."""
    (tmp_path / "storage").write_text("not a folder")
    blobs = ObjectBlobs(BlobSettings(url=f"file://{tmp_path}/storage"), tmp_path / "cache", clock=clock)
    blobs.write(io.BytesIO(LARGE))
    threading.Timer(0.2, blobs.stop).start()
    with pytest.raises(StorageError, match=r"blobs\.url"):
        blobs.sync()
    assert blobs.open(DIGEST).read() == LARGE
    blobs.close()


def test_missing_folder_is_no_missing_body(opened: Opened, url: str, tmp_path: Path) -> None:
    """If the whole storage is gone, no body counts as missing: its object would be fetched again for nothing."""
    if url.startswith("memory"):
        return
    opened().put(io.BytesIO(LARGE))
    reader = opened()
    (tmp_path / "storage").rename(tmp_path / "away")
    with pytest.raises(StorageError, match="no such folder"):
        reader.open(DIGEST)


def test_files_of_dead_processes_and_earlier_starts_are_deleted(url: str, tmp_path: Path) -> None:
    """Opening a cache deletes files of earlier starts of the machine, and temporary ones of processes that are gone, no others."""
    folder = tmp_path / "shared"
    living = ObjectBlobs(BlobSettings(url=url), folder)
    living.write(io.BytesIO(LARGE))
    boot = next(folder.iterdir())
    (boot / "new-dead").mkdir()
    (boot / "new-dead" / "half").write_bytes(b"x")
    (folder / "earlier").mkdir()
    other = ObjectBlobs(BlobSettings(url=url), folder)
    assert not (boot / "new-dead").exists()
    assert not (folder / "earlier").exists()
    assert living.open(DIGEST).read() == LARGE
    living.close()
    other.close()


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        (BlobSettings(url="nowhere://x/y"), r"^blobs\.url: nowhere is not available"),
        (BlobSettings(url="s3://x/y", options=(("no_such_option", 1),)), r"^blobs\.options: "),
    ],
)
def test_unusable_settings_are_one_line(settings: BlobSettings, line: str) -> None:
    """A scheme without a package, and an unknown option, are errors in one line that names the setting."""
    with pytest.raises(StorageError, match=line):
        ObjectStorage(settings).check(write=False)


def test_settings_show_no_secret() -> None:
    """Neither logs nor tracebacks can show a secret of the settings."""
    shown = repr(BlobSettings(url="s3://bucket/p", access_key="AKIA", secret_key="sesame", options=(("token", "tulip"),)))
    assert shown == "BlobSettings(s3://bucket/p)"


def test_folder_is_the_default(tmp_path: Path) -> None:
    """Without a URL bodies are in the data folder."""
    assert isinstance(open_bodies(tmp_path, BlobSettings()), FolderBlobs)
    assert isinstance(open_bodies(tmp_path, BlobSettings(url="memory://x")), ObjectBlobs)
