"""Object storage by URL, over fsspec: S3 by s3fs, and whatever else fsspec has a package for.

Laws:
- A failure is FileNotFoundError (no such object) or StorageError: one line that names the setting to look at, and no secret.
- An object appears as a whole or not at all: storage whose writes are not atomic gets a temporary name first.
- No request lasts for ever, and nothing is read beyond the size that the caller states.
"""

from __future__ import annotations

import secrets
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple
from urllib.parse import urlsplit

import msgspec

from streams.store.errors import StoreError

PART = 8 << 20
"""Bytes of a part: objects of more than two are uploaded in parts, and downloads are read so."""
PARTS_AT_ONCE = 4
"""Parts of one object in memory."""
ATOMIC = frozenset({"s3", "gs", "gcs", "az", "abfs", "abfss", "oci", "oss", "memory"})
"""Schemes whose objects appear as a whole."""
UNFINISHED_NAME = ".new"
"""End of the names of objects that are being written, where writes are not atomic."""
PROBE = "probe"
"""Name of the object that a check writes."""
DENIED = frozenset(
    {"InvalidAccessKeyId", "SignatureDoesNotMatch", "InvalidToken", "ExpiredToken", "InvalidClientTokenId", "XAdminUserNotFound"}
)
"""Codes of S3 servers for credentials that are wrong, not rights that are missing."""


class StorageError(StoreError):
    """The storage refuses or does not answer; the message names the setting. It may pass."""


class BlobSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of the store of bodies, as in section `blobs`."""

    url: str = ""
    endpoint: str = ""
    region: str = ""
    access_key: str = ""
    secret_key: str = ""
    ca: str = ""
    timeout: float = 30.0
    cache: int = 1 << 30
    options: tuple[tuple[str, Any], ...] = ()

    def __repr__(self) -> str:
        """Return the URL alone: logs and tracebacks show no secret."""
        return f"BlobSettings({urlsplit(self.url)._replace(netloc=urlsplit(self.url).hostname or '').geturl()})"


class StoredObject(NamedTuple):
    """An object in the storage: its name below the prefix, and its bytes."""

    key: str
    size: int


class ObjectStorage:
    """The objects below one URL. Thread-safe. Raises StorageError if the scheme is unknown or its package is missing."""

    def __init__(self, settings: BlobSettings) -> None:
        import fsspec  # noqa: PLC0415 - few commands need it, and it is slow to import

        self._settings = settings
        self.scheme = urlsplit(settings.url).scheme
        options = dict(settings.options) | (_s3_options(settings) if self.scheme == "s3" else {})
        options |= {"use_listings_cache": False, "skip_instance_cache": True}
        try:
            self._fs: Any = fsspec.filesystem(self.scheme, **options)
        except (ImportError, ValueError) as error:
            raise StorageError(f"blobs.url: {self.scheme} is not available: {_line(error)}") from None
        except TypeError as error:
            raise StorageError(f"blobs.options: {_line(error)}") from None
        self._root = str(self._fs._strip_protocol(settings.url)).rstrip("/")  # noqa: SLF001 - has no public name

    def check(self, *, write: bool) -> None:
        """Check that the storage is there, and with `write` that it can be written. Raises StorageError."""
        with self._explained("write" if write else "read"):
            self._require_root(create=write)
            if write:
                self._fs.pipe_file(self._path(PROBE), b"Harvest")

    def put(self, file: Path, key: str) -> None:
        """Store a file as an object, and replace one of that name. Raises StorageError, or OSError if the file cannot be read."""
        path = self._path(key)
        with self._explained("write"), _missing_root():
            if self.scheme == "s3":
                self._fs.put_file(str(file), path, chunksize=PART, max_concurrency=PARTS_AT_ONCE)
            elif self.scheme in ATOMIC:
                self._fs.put_file(str(file), path)
            else:
                self._put_by_name(file, path)

    def _put_by_name(self, file: Path, path: str) -> None:
        """Write under another name first: readers see whole objects only."""
        self._fs.makedirs(path.rpartition("/")[0], exist_ok=True)
        # Another process may write the same body: with one name for both, a reader could see a part of it.
        temporary = f"{path}.{secrets.token_hex(8)}{UNFINISHED_NAME}"
        self._fs.put_file(str(file), temporary)
        self._fs.mv(temporary, path)

    def get(self, key: str, out: BinaryIO, limit: int) -> None:
        """Write an object into a file, at most `limit` bytes of it. Raises FileNotFoundError, StorageError, OSError of the file."""
        with self._explained("read"):
            try:
                source = self._fs.open(self._path(key), "rb", block_size=PART, cache_type="none")
            except FileNotFoundError:
                self._require_root()
                raise
        with source:
            # Not every kind of storage says how large an object is.
            size, done = min(limit, int(getattr(source, "size", None) or 0)), 0
            while done < limit:
                with self._explained("read"):
                    piece = source.read(min(PART, limit - done))
                if not piece:
                    break
                out.write(piece)
                done += len(piece)
        if done < size:
            raise StorageError(f"blobs.url: the storage gave {done:,} of {size:,} bytes of {key}")

    def list(self, below: str) -> list[StoredObject]:
        """Return the objects whose names begin with `below` and a slash; none if there is none. Raises StorageError."""
        with self._explained("read"):
            try:
                found: Mapping[str, Mapping[str, Any]] = self._fs.find(self._path(below), detail=True)
            except FileNotFoundError:
                found = {}
            if not found:
                self._require_root()
        start = len(self._root) + 1
        return [StoredObject(path[start:], int(about.get("size") or 0)) for path, about in sorted(found.items())]

    def delete(self, key: str) -> None:
        """Delete an object, if it is there. Raises StorageError."""
        with self._explained("delete"), suppress(FileNotFoundError):
            self._fs.rm_file(self._path(key))

    def unfinished(self) -> Iterator[tuple[str, str, float]]:
        """Yield the uploads in parts that were never completed: name, id, time in seconds since the epoch. Raises StorageError."""
        if self.scheme != "s3":
            return
        bucket, prefix, _ = self._fs.split_path(f"{self._root}/x")
        with self._explained("read"):
            answer = self._fs.call_s3("list_multipart_uploads", Bucket=bucket, Prefix=prefix.removesuffix("x"))
        for upload in answer.get("Uploads", ()):
            yield upload["Key"], upload["UploadId"], upload["Initiated"].timestamp()

    def abort(self, key: str, upload: str) -> None:
        """Abort an upload in parts. Raises StorageError."""
        with self._explained("delete"), suppress(FileNotFoundError):
            bucket, _, _ = self._fs.split_path(self._root)
            self._fs.call_s3("abort_multipart_upload", Bucket=bucket, Key=key, UploadId=upload)

    def _path(self, key: str) -> str:
        return f"{self._root}/{key}"

    def _require_root(self, *, create: bool = False) -> None:
        """Raise StorageError if the bucket is missing: its objects are not gone one by one. `create` makes a missing folder."""
        if self.scheme == "s3":
            bucket = self._root.partition("/")[0]
            try:
                # Not head_bucket: an answer without a body does not say what is wrong.
                self._fs.call_s3("list_objects_v2", Bucket=bucket, MaxKeys=1)
            except FileNotFoundError:
                raise StorageError(f"blobs.url: there is no bucket {bucket}") from None
        elif create:
            self._fs.makedirs(self._root, exist_ok=True)
        elif self.scheme not in ATOMIC and not self._fs.exists(self._root):
            raise StorageError("blobs.url: there is no such folder")

    @contextmanager
    def _explained(self, what: str) -> Iterator[None]:
        """Turn every failure but a missing object into a StorageError."""
        try:
            yield
        except (FileNotFoundError, StoreError):
            raise
        except Exception as error:
            # fsspec's packages raise errors of their own libraries, which have no common class.
            if (line := self._sentence(error, what)) is None:
                raise
            raise StorageError(line) from None

    def _sentence(self, error: Exception, what: str) -> str | None:
        """Return the line for an error; None for a bug."""
        causes = [error, *filter(None, [error.__cause__, error.__context__])]
        response = next((found for one in causes if (found := getattr(one, "response", None))), None)
        code = str(response.get("Error", {}).get("Code", "")) if isinstance(response, Mapping) else ""
        if code in DENIED:
            return f"blobs.access_key, blobs.secret_key: the storage refuses this login ({code})"
        if isinstance(error, PermissionError) or code in {"403", "AccessDenied"}:
            return f"blobs.url: this login may not {what} there{f' ({code})' if code else ''}"
        if type(error).__name__ == "NoCredentialsError":
            return "blobs.access_key: missing, and the environment has no credentials either"
        if any(isinstance(one, ssl.SSLError) or type(one).__name__ == "SSLError" for one in causes):
            return f"blobs.ca: no secure connection to the storage: {_line(error)}"
        known = isinstance(error, OSError | TimeoutError) or type(error).__module__.split(".")[0] in PACKAGES
        if isinstance(error, TypeError) and "unexpected keyword" in str(error):
            return f"blobs.options: {_line(error)}"
        where = "blobs.endpoint" if self._settings.endpoint else "blobs.url"
        return f"{where}: the storage does not {what}: {_line(error)}" if known else None


PACKAGES = frozenset({"botocore", "aiobotocore", "aiohttp", "s3fs", "fsspec", "urllib3", "gcsfs", "adlfs", "paramiko", "requests"})
"""Packages whose exceptions are failures of the storage."""


@contextmanager
def _missing_root() -> Iterator[None]:
    """Explain a missing object while one is written: the bucket or folder is missing."""
    try:
        yield
    except FileNotFoundError:
        raise StorageError("blobs.url: the bucket or folder is gone") from None


def _s3_options(settings: BlobSettings) -> dict[str, Any]:
    """Return the options of s3fs. A server that is not Amazon's may not know checksums in trailers, so none is sent unasked."""
    client: dict[str, Any] = {}
    if settings.region:
        client["region_name"] = settings.region
    if settings.ca:
        client["verify"] = settings.ca
    config = {
        "connect_timeout": settings.timeout,
        "read_timeout": settings.timeout,
        "retries": {"max_attempts": 2, "mode": "standard"},
        "request_checksum_calculation": "when_required",
        "response_checksum_validation": "when_required",
    }
    login = {"key": settings.access_key, "secret": settings.secret_key} if settings.access_key else {}
    endpoint = {"endpoint_url": settings.endpoint} if settings.endpoint else {}
    return {**login, **endpoint, "client_kwargs": client, "config_kwargs": config}


def _line(error: Exception) -> str:
    """Return an error in one bounded line."""
    return " ".join(str(error).split())[:200] or type(error).__name__
