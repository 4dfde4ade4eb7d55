"""Stores bodies that are too large for the log in object storage, by their SHA-256 (`schemas.ports.Blobs`).

A body is written to a local file; a sync uploads all files written since the last one, several at a time. A body is read through a
local cache, and verified by its digest when it is downloaded. Its object is `ab/abcd.../DAY`: the first two digits of its digest,
all of it, and the day (since the epoch, UTC) on which it was stored.

Laws:
- A body is in the storage before `sync` returns. One that is there already, of today or yesterday, is not uploaded again.
- Trimming needs no lock: it deletes no object of the last three days, and a writer relies on those of today and yesterday only
  (it stores an older body again, under its own day).
- A body that differs from its digest in two equal reads is deleted, so that the next fetch of its object stores it anew, and is
  FileNotFoundError. Reads that differ are trouble of the storage, as is a local file that somebody deleted.
- While the storage refuses or does not answer, `sync`, `open` and `trim` wait and try again: `trouble` says why. They raise
  StorageError once `stop` was called, or after `patience` seconds.
"""

from __future__ import annotations

import hashlib
import logging
import re
import threading
import time
from collections.abc import Callable, Container, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from io import BufferedRandom
from pathlib import Path
from typing import BinaryIO, TypeVar

from streams.clock import now_ms
from streams.faults import fault
from streams.store.blob_cache import BlobCache
from streams.store.blobs import DIGEST, PIECE, Trimmed
from streams.store.errors import DamagedBody, DiskFull, translated
from streams.store.object_storage import UNFINISHED_NAME, BlobSettings, ObjectStorage, StorageError, StoredObject

T = TypeVar("T")

DAY = 86_400_000
UPLOADS = 8
"""Bodies uploaded at once."""
PAUSE, MAX_PAUSE = 0.5, 15.0
"""Seconds before the second try, and the most between two tries."""
MAX_BODY = 1 << 50
"""Maximum bytes of a body that is read, unless the caller states another."""
UNFINISHED = DAY
"""ms after which an upload in parts that was never completed is aborted by a trim."""

STORED = re.compile(rf"[0-9a-f]{{2}}/{DIGEST.pattern}/(?P<day>[0-9]+)(\.[0-9a-f]+{re.escape(UNFINISHED_NAME)})?")
"""Name of an object of this class: prefix, digest, day; with a suffix it is not finished."""

_log = logging.getLogger("harvest")


class ObjectBlobs:
    """Blobs in object storage. Thread-safe; any number of processes may write.

    folder: the local cache, which processes of one machine may share.
    clock: returns ms since the epoch.
    patience: seconds after which an unreachable storage is an error; None: never.
    max_body: bytes of the largest body.
    """

    remote = True

    def __init__(
        self,
        settings: BlobSettings,
        folder: Path,
        *,
        clock: Callable[[], int] = now_ms,
        patience: float | None = None,
        max_body: int = MAX_BODY,
    ) -> None:
        self._storage = ObjectStorage(settings)
        self._timeout = settings.timeout
        self._cache = BlobCache(folder, settings.cache)
        self._room = settings.cache
        self._clock = clock
        self._patience = patience
        self._max_body = max_body
        self._lock = threading.Lock()
        self._syncing = threading.Lock()
        self._stopped = threading.Event()
        self._threads = ThreadPoolExecutor(UPLOADS, "upload")
        self._waiting: dict[str, Path] = {}
        self._uploading: dict[str, Path] = {}
        """Local file by digest of the bodies in the next sync (`_waiting`) and in the present one; both can be read."""
        self._waiting_bytes = 0
        self._failure = ""
        self._requests: dict[int, float] = {}
        """Start (monotonic) of the storage's present work, by thread."""

    # ---- writing -------------------------------------------------------------------------------------------------

    def put(self, body: BinaryIO) -> tuple[str, str, int]:
        """Store a body durably; return SHA-256 (hex), MD5 (hex) and length in bytes. Raises OSError, StorageError."""
        written = self.write(body)
        self.sync()
        return written

    def write(self, body: BinaryIO) -> tuple[str, str, int]:
        """As `put`, but durable only after the next `sync`; readable here at once. Raises DiskFull or another OSError.

        If the bodies that wait are larger than the cache, they are uploaded first.
        """
        if self._waiting_bytes > self._room:
            self.sync()
        path = self._cache.temporary()
        try:
            digest, md5, length = self._copy(body, path)
        except BaseException as error:
            path.unlink(missing_ok=True)
            found = translated(error, str(path.parent))
            if isinstance(found, DiskFull):
                # This body is lost to the caller, who can try again.
                self._cache.clear()
            raise found from error
        with self._lock:
            if digest in self._waiting:
                path.unlink()
            else:
                self._waiting[digest] = path
                self._waiting_bytes += length
        return digest, md5, length

    @staticmethod
    def _copy(body: BinaryIO, path: Path) -> tuple[str, str, int]:
        sha256, md5, length = hashlib.sha256(), hashlib.md5(usedforsecurity=False), 0
        fault("blob.write")
        with open(path, "xb") as out:
            while piece := body.read(PIECE):
                sha256.update(piece)
                md5.update(piece)
                length += len(piece)
                out.write(piece)
        return sha256.hexdigest(), md5.hexdigest(), length

    def sync(self) -> None:
        """Upload all bodies written since the last sync. Raises StorageError, OSError: what is missing waits for the next sync.

        One sync at a time; other threads can write and read meanwhile.
        """
        with self._syncing:
            with self._lock:
                self._uploading, self._waiting, self._waiting_bytes = self._waiting, {}, 0
            uploads = [self._threads.submit(self._upload, digest) for digest in list(self._uploading)]
            try:
                # All of them, even if one fails: until then they use the files.
                wait(uploads)
                for upload in uploads:
                    upload.result()
            finally:
                self._keep_failed()
            fault("blob.synced")

    def _keep_failed(self) -> None:
        """Let the bodies that were not uploaded wait for the next sync."""
        with self._lock:
            for digest, path in self._uploading.items():
                if digest in self._waiting:
                    path.unlink()  # written again meanwhile
                else:
                    self._waiting[digest] = path
                    self._waiting_bytes += path.stat().st_size
            self._uploading = {}

    def _upload(self, digest: str) -> None:
        path = self._uploading[digest]
        self._persist(lambda: self._upload_once(digest, path))
        fault("blob.renamed")
        self._cache.add(path, digest)
        # Readable in the cache before it disappears here.
        with self._lock:
            del self._uploading[digest]

    def _upload_once(self, digest: str, path: Path) -> None:
        today, size = self._clock() // DAY, path.stat().st_size
        present = {int(one.key.rpartition("/")[2]): one.size for one in self._objects(digest)}
        if size not in (present.get(today), present.get(today - 1)):
            self._storage.put(path, self._key(digest, today))

    # ---- reading -------------------------------------------------------------------------------------------------

    def open(self, digest: str) -> BinaryIO:
        """Open a body as a local file. Raises FileNotFoundError if it is missing or damaged, StorageError, OSError."""
        if not DIGEST.fullmatch(digest):
            raise FileNotFoundError(f"not a digest: {digest[:80]!r}")
        return self._written(digest) or self._cache.open(digest) or self._persist(lambda: self._download(digest))

    def _written(self, digest: str) -> BinaryIO | None:
        path = self._waiting.get(digest) or self._uploading.get(digest)
        with suppress(FileNotFoundError):  # a sync in another thread has moved it into the cache
            return open(path, "rb") if path else None
        return None

    def _download(self, digest: str) -> BinaryIO:
        """Bring a body into the cache, which makes room if the disk is full, and open it."""
        try:
            return self._download_once(digest)
        except DiskFull:
            self._cache.clear()
            return self._download_once(digest)

    def _download_once(self, digest: str) -> BinaryIO:
        path = self._cache.temporary()
        try:
            with _undeleted(path):
                out = open(path, "x+b")  # noqa: SIM115 - closed by the next block
            with out:
                self._fetch(digest, out)
            with _undeleted(path):
                file = open(path, "rb")  # noqa: SIM115 - the caller closes it
                self._cache.add(path, digest)
        except BaseException as error:
            path.unlink(missing_ok=True)
            raise translated(error, str(path.parent)) from error
        return file

    def _fetch(self, digest: str, out: BufferedRandom) -> None:
        """Download the first object of a body that has its digest. Raises FileNotFoundError."""
        damage = ""
        for key in self._keys(digest):
            try:
                found = self._download_object(key, out)
                if found == digest:
                    return
                # What was damaged on its way is no reason to delete an object.
                if found and self._download_object(key, out) != found:
                    raise StorageError(f"blobs.url: two reads of {key} differ")
            except FileNotFoundError:
                continue
            if not found:
                raise DamagedBody(f"{digest} is larger than the {self._max_body:,} bytes that a body may have")
            damage = f"{digest} was changed in the object storage"
            _log.error("the body %s: %s has the digest %s; it is deleted", damage, key, found)
            # A process that may only read leaves it.
            with suppress(StorageError):
                self._storage.delete(key)
        raise DamagedBody(damage) if damage else FileNotFoundError(f"no body {digest} in the storage")

    def _keys(self, digest: str) -> Iterator[str]:
        """Yield the names under which a body may be: that of today, which needs no look, then the others, the newest first."""
        today = self._clock() // DAY
        yield self._key(digest, today)
        days = {int(one.key.rpartition("/")[2]) for one in self._objects(digest)} - {today}
        yield from (self._key(digest, day) for day in sorted(days, reverse=True))

    def _download_object(self, key: str, out: BufferedRandom) -> str:
        """Download an object, and return the digest of its bytes; "" if it is too large. Raises FileNotFoundError, StorageError."""
        out.seek(0)
        out.truncate()
        self._storage.get(key, out, self._max_body + 1)
        if out.tell() > self._max_body:
            return ""
        out.seek(0)
        return hashlib.file_digest(out, "sha256").hexdigest()

    def discard(self, digest: str) -> None:
        """Forget the local copy of a body that turned out to be damaged."""
        self._cache.discard(digest)

    # ---- administration ------------------------------------------------------------------------------------------

    def check(self, *, write: bool) -> None:
        """Check that the storage is there, and with `write` that it can be written. Raises StorageError."""
        self._storage.check(write=write)

    def digests(self) -> Iterator[str]:
        """Yield the digests of all stored bodies, in order. Raises StorageError."""
        for one in self._all():
            yield one.key.split("/")[1]

    def trim(self, before_ms: int, live: Container[str] = frozenset()) -> Trimmed:
        """Delete the bodies last written before a time (ms since the epoch), except those in `live`, and unfinished uploads.

        Bodies are dated by days: one is deleted when its whole day is over, and at the earliest after three days. Raises
        StorageError.
        """
        last = min(before_ms, self._clock() - 2 * DAY) // DAY
        # A part of the storage at a time: only what is old is kept.
        listed = (one for number in range(256) for one in self._listed(number))
        old = [one for one in listed if (found := STORED.fullmatch(one.key)) and int(found["day"]) < last]
        unfinished = [one for one in old if not _is_body(one)]
        gone = [one for one in old if _is_body(one) and one.key.split("/")[1] not in live]
        list(self._threads.map(lambda one: self._persist(lambda: self._storage.delete(one.key)), gone + unfinished))
        for key, upload, started in self._storage.unfinished():
            if started * 1_000 < self._clock() - UNFINISHED:
                self._storage.abort(key, upload)
        return Trimmed(len(gone), sum(one.size for one in gone))

    def _all(self) -> Iterator[StoredObject]:
        """Yield the objects of all bodies, a part of the storage at a time."""
        for number in range(256):
            yield from filter(_is_body, self._listed(number))

    def _listed(self, number: int) -> list[StoredObject]:
        """Return all objects of one of 256 parts of the storage."""
        return self._persist(lambda: self._storage.list(f"{number:02x}"))

    def _objects(self, digest: str) -> list[StoredObject]:
        """Return the objects of a body."""
        return [one for one in self._storage.list(f"{digest[:2]}/{digest}") if _is_body(one)]

    @staticmethod
    def _key(digest: str, day: int) -> str:
        return f"{digest[:2]}/{digest}/{day}"

    # ---- trouble -------------------------------------------------------------------------------------------------

    @property
    def trouble(self) -> str:
        """What is wrong with the storage at present; empty: nothing."""
        slowest = time.monotonic() - min(list(self._requests.values()), default=time.monotonic())
        return self._failure or (f"blobs.timeout: no answer of the storage for {slowest:.0f} s" if slowest > self._timeout else "")

    def _persist(self, action: Callable[[], T]) -> T:
        """Repeat an action while the storage fails. Raises StorageError once stopped, or after `patience`."""
        begun, pause = time.monotonic(), PAUSE
        while True:
            self._requests[threading.get_ident()] = time.monotonic()
            try:
                result = action()
            except StorageError as error:
                if self._failure != str(error):
                    self._failure = str(error)
                    _log.error("%s; trying again until it does", error)
                if self._stopped.is_set() or (self._patience is not None and time.monotonic() - begun > self._patience):
                    raise
            else:
                self._failure = ""
                return result
            finally:
                self._requests.pop(threading.get_ident(), None)
            self._stopped.wait(pause)
            pause = min(2 * pause, MAX_PAUSE)

    def stop(self) -> None:
        """End the tries of all threads: each fails with the storage's next failure."""
        self._stopped.set()

    def close(self) -> None:
        """Stop, and delete temporary files; bodies that were never synced are lost."""
        self.stop()
        self._threads.shutdown()
        self._cache.close()


def _is_body(one: StoredObject) -> bool:
    """Return whether an object is of this class: prefix, digest, day."""
    return one.key.rpartition("/")[2].isdecimal() and STORED.fullmatch(one.key) is not None


@contextmanager
def _undeleted(path: Path) -> Iterator[None]:
    """Explain a local file that is missing: it must not look like a missing object."""
    try:
        yield
    except FileNotFoundError:
        raise StorageError(f"{path.parent}: the cache of bodies was deleted while it was used") from None
