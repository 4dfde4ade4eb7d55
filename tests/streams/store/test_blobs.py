from __future__ import annotations

import errno
import hashlib
import io
import os
import random
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from schemas.ports import Blobs
from streams.store import DiskFull, FolderBlobs, blobs
from streams.store.blobs import PIECE, Trimmed


def files(folder: Path) -> list[str]:
    """The names of all files below a folder."""
    return sorted(p.name for p in folder.rglob("*") if p.is_file())


def test_folder_among_unfinished_files_is_kept(folder: Path) -> None:
    """A folder among the unfinished files is not removed."""
    (folder / "new" / "x" / "y").mkdir(parents=True)
    (folder / "new" / "left").touch()
    FolderBlobs(folder, owner=True)
    assert sorted(path.name for path in (folder / "new").rglob("*")) == ["x", "y"]


@pytest.fixture
def kept(folder: Path) -> FolderBlobs:
    """A folder of blobs, opened as by the runner."""
    return FolderBlobs(folder, owner=True)


@pytest.mark.parametrize(
    "body",
    [b"", b"x", bytes(PIECE), random.Random(7).randbytes(3 * PIECE + 17)],
    ids=["empty", "one byte", "one piece", "pieces"],
)
def test_body_is_read_back_and_stored_once(folder: Path, body: bytes) -> None:
    """A body of any length is stored under its SHA-256 and read back unchanged; a second `put` stores it once."""
    kept: Blobs = FolderBlobs(folder, owner=True)
    digest = hashlib.sha256(body).hexdigest()
    for _ in range(2):
        assert kept.put(io.BytesIO(body)) == (digest, hashlib.md5(body).hexdigest(), len(body))
    with kept.open(digest) as stream:
        assert stream.read() == body
    assert files(folder) == [digest]


def test_unknown_or_invalid_digest_raises_file_not_found(kept: FolderBlobs) -> None:
    """An unknown digest, or an invalid one such as a path out of the folder, raises FileNotFoundError."""
    for name in ("0" * 64, "../../etc/passwd", "", "G" * 64):
        with pytest.raises(FileNotFoundError):
            kept.open(name)


def test_body_is_readable_before_sync(folder: Path, kept: FolderBlobs) -> None:
    """A written body can be opened at once; it gets its name by the sync, which serves all written bodies."""
    digests = [kept.write(io.BytesIO(b"%d" % (i % 9)))[0] for i in range(10)]
    for digest in digests:
        kept.open(digest).close()
    assert not set(files(folder)) & set(digests)
    kept.sync()
    assert files(folder) == sorted(set(digests)) == sorted(kept.digests())
    for digest in digests:
        kept.open(digest).close()


def test_unsynced_bodies_are_removed_by_the_next_runner(folder: Path, kept: FolderBlobs) -> None:
    """Bodies left unsynced by an ended process are removed when the next runner opens the folder, but not by a reader."""
    kept.write(io.BytesIO(b"never synced"))
    FolderBlobs(folder)
    assert len(files(folder)) == 1
    FolderBlobs(folder, owner=True)
    assert files(folder) == []
    assert FolderBlobs(folder).put(io.BytesIO(b"x"))[2] == 1


class Broken(io.BytesIO):
    def read(self, size: int | None = -1, /) -> bytes:
        raise OSError(errno.EIO, "broken pipe of a server")


def test_failing_source_leaves_nothing(folder: Path, kept: FolderBlobs) -> None:
    """An error of the source is raised, and nothing of the body remains."""
    with pytest.raises(OSError, match="broken pipe"):
        kept.put(Broken())
    assert files(folder) == []


@pytest.mark.parametrize("point", ["blob.write", "blob.flushed", "blob.renamed"])
def test_full_disk_leaves_nothing_unfinished(folder: Path, kept: FolderBlobs, monkeypatch: pytest.MonkeyPatch, point: str) -> None:
    """On a full disk DiskFull is raised, nothing unfinished remains, and the next body is stored."""

    def full(passed: str) -> None:
        if passed == point:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(blobs, "fault", full)
        with pytest.raises(DiskFull) as caught:
            kept.put(io.BytesIO(b"body"))
    assert caught.value.errno == errno.ENOSPC
    assert not list((folder / "new").iterdir())
    digest, _, _ = kept.put(io.BytesIO(b"body"))
    assert files(folder) == [digest]


@pytest.mark.parametrize("again", [False, True])
def test_folder_of_a_failed_sync_is_flushed_by_the_next(
    folder: Path, kept: FolderBlobs, monkeypatch: pytest.MonkeyPatch, again: bool
) -> None:
    """A folder created or renamed into by a failed sync is not taken for durable by the next sync, nor by another run."""
    flushed: list[Path] = []
    flush = blobs.flush

    def full(passed: str) -> None:
        if passed == "blob.renamed":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(blobs, "fault", full)
        with pytest.raises(DiskFull):
            kept.put(io.BytesIO(b"body"))
    if again:
        kept = FolderBlobs(folder, owner=True)

    def noted(path: Path) -> None:
        flushed.append(path)
        flush(path)

    monkeypatch.setattr(blobs, "flush", noted)
    digest, _, _ = kept.put(io.BytesIO(b"body"))
    assert {folder / digest[:2], folder, folder.parent} <= set(flushed)


def test_trim_removes_old_bodies_that_are_not_live(kept: FolderBlobs) -> None:
    """A trim removes old bodies that are not live; a body that was put again counts as new."""
    old, live, again, new = (kept.put(io.BytesIO(text))[0] for text in (b"old", b"live", b"again", b"new"))
    for digest in (old, live, again):
        os.utime(kept.path(digest), (1, 1))
    kept.put(io.BytesIO(b"again"))
    assert kept.trim(before_ms=2_000, live={live}) == Trimmed(1, 3)
    assert set(kept.digests()) == {live, again, new}


def test_threads_write_and_sync_concurrently(kept: FolderBlobs) -> None:
    """Concurrent threads write and sync; each finds its bodies, durable, under the returned digests."""
    errors: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for i in range(30):
                body = b"%d" % (number * 20 + i)
                digest, _, _ = kept.put(io.BytesIO(body))
                with kept.open(digest) as stream:
                    assert stream.read() == body
        except BaseException as error:
            errors.append(error)
            raise

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert len(list(kept.digests())) == 90


KILLED = """
import io, sys
from pathlib import Path
from streams.store import FolderBlobs
kept = FolderBlobs(Path(sys.argv[1]), owner=True)
for i in range(5):
    kept.write(io.BytesIO(b"body %d" % i * 1000))
print("written", flush=True)
kept.sync()
print("synced", flush=True)
"""


@pytest.mark.parametrize("point", ["blob.flushed:1", "blob.renamed:3", "blob.synced:1"])
def test_kill_during_sync_leaves_only_complete_bodies(
    folder: Path, program: Callable[..., subprocess.Popen[str]], point: str
) -> None:
    """After a kill during a sync every body under a digest is complete, and leftovers are removed at the next start."""
    process = program(KILLED, fault=f"{point}:kill")
    assert process.communicate()[0] == "written\n"
    kept = FolderBlobs(folder, owner=True)
    for digest in kept.digests():
        assert hashlib.sha256(kept.path(digest).read_bytes()).hexdigest() == digest
    assert len(list(kept.digests())) == {"blob.flushed:1": 0, "blob.renamed:3": 3, "blob.synced:1": 5}[point]
    assert not list((folder / "new").iterdir())
