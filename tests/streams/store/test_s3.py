"""Bodies in a real S3 server, with TLS, logins and rights."""

from __future__ import annotations

import hashlib
import io
import random
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from streams.clock import now_ms
from streams.store.blobs import Trimmed
from streams.store.object_blobs import DAY, ObjectBlobs
from streams.store.object_storage import PART, BlobSettings, ObjectStorage, StorageError
from tests.servers.object_store import REGION, Buckets, Keys

pytestmark = pytest.mark.servers

BODY = random.Random(5).randbytes(100_000)
DIGEST = hashlib.sha256(BODY).hexdigest()
LARGE = random.Random(6).randbytes(3 * PART + 5)


@pytest.fixture
def bucket(buckets: Buckets) -> str:
    """A bucket in which `writer` may write and `reader` may read."""
    return buckets.make()


Settings = Callable[[Keys], BlobSettings]


@pytest.fixture
def settings(buckets: Buckets, bucket: str) -> Settings:
    """Settings of a user of the bucket, over TLS."""
    store = buckets.store

    def of(user: Keys) -> BlobSettings:
        return BlobSettings(
            url=f"s3://{bucket}/below/this",
            endpoint=store.tls_url,
            region=REGION,
            access_key=user.access,
            secret_key=user.secret,
            ca=store.ca,
            timeout=5,
        )

    return of


Opened = Callable[..., ObjectBlobs]


@pytest.fixture
def opened(settings: Settings, buckets: Buckets, tmp_path: Path) -> Iterator[Opened]:
    """Stores of the bucket, each with a cache of its own."""
    made: list[ObjectBlobs] = []

    def opening(user: Keys = buckets.store.writer, patience: float | None = 0) -> ObjectBlobs:
        made.append(ObjectBlobs(settings(user), tmp_path / f"cache{len(made)}", patience=patience))
        return made[-1]

    yield opening
    for one in made:
        one.close()


def test_bodies_of_one_login_are_read_with_another(opened: Opened, buckets: Buckets, bucket: str) -> None:
    """Bodies are stored by a user who may write, and read by one who may only read; a large one travels in parts."""
    writer, reader = opened(), opened(buckets.store.reader)
    writer.check(write=True)
    reader.check(write=False)
    for body in (BODY, LARGE, BODY):
        writer.write(io.BytesIO(body))
    writer.sync()
    for body in (BODY, LARGE):
        assert reader.open(hashlib.sha256(body).hexdigest()).read() == body
    with pytest.raises(FileNotFoundError, match="no body"):
        reader.open("0" * 64)
    (large,) = (key for key in buckets.keys(bucket) if hashlib.sha256(LARGE).hexdigest() in key)
    assert large.startswith("below/this/")
    assert buckets.client.head_object(Bucket=bucket, Key=large)["ETag"].strip('"').endswith("-4")


def test_changed_body_stays_if_the_reader_may_not_delete_it(opened: Opened, buckets: Buckets, bucket: str) -> None:
    """A reader without further rights reports a body that was changed; a worker that may write deletes it, and stores it anew."""
    writer = opened()
    writer.put(io.BytesIO(BODY))
    (key,) = buckets.keys(bucket)
    buckets.client.put_object(Bucket=bucket, Key=key, Body=b"x" * len(BODY))
    with pytest.raises(FileNotFoundError, match=f"{DIGEST} was changed"):
        opened(buckets.store.reader).open(DIGEST)
    assert buckets.keys(bucket) == [key]
    with pytest.raises(FileNotFoundError, match=f"{DIGEST} was changed"):
        opened().open(DIGEST)
    writer.put(io.BytesIO(BODY))
    assert opened(buckets.store.reader).open(DIGEST).read() == BODY


def test_trim_deletes_old_bodies_and_aborts_unfinished_uploads(
    buckets: Buckets, bucket: str, settings: Settings, tmp_path: Path
) -> None:
    """Trimming deletes old bodies below the prefix, and what a killed worker left of an upload, nothing else in the bucket."""
    buckets.client.put_object(Bucket=bucket, Key=f"ab/{'ab' * 32}/1", Body=b"not below the prefix")
    buckets.client.create_multipart_upload(Bucket=bucket, Key=f"below/this/ab/{'ab' * 32}/1")
    buckets.client.create_multipart_upload(Bucket=bucket, Key="elsewhere")
    day = now_ms() // DAY
    clock = [day * DAY]
    blobs = ObjectBlobs(settings(buckets.store.writer), tmp_path / "cache", patience=0, clock=lambda: clock[0])
    blobs.put(io.BytesIO(BODY))
    clock[0] += 2 * DAY
    blobs.put(io.BytesIO(LARGE))
    clock[0] += DAY
    assert blobs.trim(clock[0]) == Trimmed(1, len(BODY))
    digest = hashlib.sha256(LARGE).hexdigest()
    assert buckets.keys(bucket) == [f"ab/{'ab' * 32}/1", f"below/this/{digest[:2]}/{digest}/{day + 2}"]
    assert [one["Key"] for one in buckets.client.list_multipart_uploads(Bucket=bucket)["Uploads"]] == ["elsewhere"]
    blobs.close()


@pytest.mark.parametrize(
    ("given", "write", "line"),
    [
        ({"secret_key": "sesame"}, True, "blobs.access_key, blobs.secret_key: the storage refuses this login"),
        ({"access_key": "sesame"}, True, "blobs.access_key, blobs.secret_key: the storage refuses this login"),
        ({"url": "s3://absent-bucket-7/x"}, True, "blobs.url: there is no bucket absent-bucket-7"),
        ({"ca": ""}, True, "blobs.ca: no secure connection to the storage"),
        ({"endpoint": "https://127.0.0.1:9"}, True, "blobs.endpoint: the storage does not write"),
        ({"endpoint": "https://127.0.0.1:9"}, False, "blobs.endpoint: the storage does not read"),
    ],
)
def test_unusable_storage_is_one_line(settings: Settings, buckets: Buckets, given: dict[str, str], write: bool, line: str) -> None:
    """What is wrong with the storage is one line that names the setting and shows no secret."""
    writer = settings(buckets.store.writer)
    with pytest.raises(StorageError) as error:
        ObjectStorage(msgspec.structs.replace(writer, **given)).check(write=write)
    assert str(error.value).startswith(line)
    assert "\n" not in str(error.value)
    assert "sesame" not in str(error.value)
    assert buckets.store.writer.secret not in str(error.value)


def test_login_that_may_only_read_is_refused_where_bodies_are_written(settings: Settings, buckets: Buckets) -> None:
    """A login without the right to write is reported before anything is fetched."""
    storage = ObjectStorage(settings(buckets.store.reader))
    storage.check(write=False)
    with pytest.raises(StorageError, match=r"^blobs\.url: this login may not write there \(AccessDenied\)$"):
        storage.check(write=True)


def test_rights_that_come_back_let_a_sync_go_on(opened: Opened, buckets: Buckets, bucket: str) -> None:
    """A worker whose rights are taken away holds and says why; with the rights back, the bodies are stored."""
    blobs = opened(patience=None)
    blobs.check(write=True)
    rights = buckets.client.get_bucket_policy(Bucket=bucket)["Policy"]
    buckets.client.delete_bucket_policy(Bucket=bucket)
    blobs.write(io.BytesIO(BODY))
    syncing = threading.Thread(target=blobs.sync)
    syncing.start()
    while not blobs.trouble:
        assert syncing.is_alive()
        time.sleep(0.01)
    assert blobs.trouble.startswith("blobs.url: this login may not")
    buckets.client.put_bucket_policy(Bucket=bucket, Policy=rights)
    syncing.join(60)
    assert not syncing.is_alive()
    assert blobs.trouble == ""
    assert any(DIGEST in key for key in buckets.keys(bucket))


def test_silent_storage_is_trouble_after_its_timeout(settings: Settings, buckets: Buckets, tmp_path: Path) -> None:
    """A storage that accepts connections and never answers makes a worker not ready, and does not hold it for ever."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        given = msgspec.structs.replace(
            settings(buckets.store.writer), endpoint=f"http://127.0.0.1:{silent.getsockname()[1]}", ca="", timeout=0.3
        )
        blobs = ObjectBlobs(given, tmp_path / "cache")
        blobs.write(io.BytesIO(BODY))
        failed: list[Exception] = []

        def sync() -> None:
            try:
                blobs.sync()
            except StorageError as error:
                failed.append(error)

        syncing = threading.Thread(target=sync)
        syncing.start()
        while not blobs.trouble:
            assert syncing.is_alive()
            time.sleep(0.01)
        assert blobs.trouble.startswith("blobs.timeout: no answer of the storage")
        blobs.stop()
        syncing.join(60)
        assert not syncing.is_alive()
        assert [str(error).startswith("blobs.endpoint: the storage does not") for error in failed] == [True]
        blobs.close()


def test_writers_and_a_trim_at_once_lose_nothing(opened: Opened, settings: Settings, buckets: Buckets, tmp_path: Path) -> None:
    """While old bodies are trimmed, writers that store the same bodies again keep them."""
    old = ObjectBlobs(settings(buckets.store.writer), tmp_path / "old", patience=0, clock=lambda: now_ms() - 9 * DAY)
    bodies = [random.Random(seed).randbytes(70_000) for seed in range(40)]
    for body in bodies:
        old.write(io.BytesIO(body))
    old.sync()
    writer, sweeper = opened(), opened()
    for body in bodies:
        writer.write(io.BytesIO(body))
    threads = [threading.Thread(target=writer.sync), threading.Thread(target=sweeper.trim, args=(now_ms(),))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sweeper.trim(now_ms())
    reader = opened(buckets.store.reader)
    for body in bodies:
        assert reader.open(hashlib.sha256(body).hexdigest()).read() == body
    old.close()
