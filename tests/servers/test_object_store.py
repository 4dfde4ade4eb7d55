"""The S3 server behaves as S3 does in what Harvest and s3fs rely on, has users with different rights, and keeps its data."""

from __future__ import annotations

import hashlib
import random
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError, SSLError

from tests.servers import object_store as server
from tests.servers import versitygw
from tests.servers.object_store import Buckets, Keys, ObjectStore, client

PART = 5 << 20
"""Bytes of the smallest part that S3 accepts before the last one."""
LARGE = random.Random(5).randbytes(2 * PART + 1_000)


@pytest.fixture
def writer(object_store: ObjectStore) -> Any:
    """A client that may read and write in shared buckets."""
    return client(object_store, object_store.writer)


def refusal(request: Callable[..., object], **arguments: object) -> tuple[int, str]:
    """The status and the code of a request that is refused."""
    with pytest.raises(ClientError) as raised:
        request(**arguments)
    answer = raised.value.response
    return answer["ResponseMetadata"]["HTTPStatusCode"], answer["Error"]["Code"]


def test_object_is_put_only_if_absent(buckets: Buckets, writer: Any) -> None:
    """`If-None-Match: *` stores an object that is absent, and leaves one that is there as it was."""
    bucket = buckets.make()
    writer.put_object(Bucket=bucket, Key="a/b", Body=b"first", IfNoneMatch="*")
    again = refusal(writer.put_object, Bucket=bucket, Key="a/b", Body=b"second", IfNoneMatch="*")
    assert again == (412, "PreconditionFailed")
    assert writer.get_object(Bucket=bucket, Key="a/b")["Body"].read() == b"first"


def test_object_in_parts_appears_when_it_is_complete(buckets: Buckets, writer: Any) -> None:
    """An upload in parts is listed as such until it is completed; then it is one object, with all its bytes."""
    bucket = buckets.make()
    upload = writer.create_multipart_upload(Bucket=bucket, Key="large")["UploadId"]
    parts = []
    for number, start in enumerate(range(0, len(LARGE), PART), 1):
        body = LARGE[start : start + PART]
        made = writer.upload_part(Bucket=bucket, Key="large", UploadId=upload, PartNumber=number, Body=body)
        parts.append({"PartNumber": number, "ETag": made["ETag"]})
    assert [one["UploadId"] for one in writer.list_multipart_uploads(Bucket=bucket)["Uploads"]] == [upload]
    assert refusal(writer.head_object, Bucket=bucket, Key="large")[0] == 404
    writer.complete_multipart_upload(Bucket=bucket, Key="large", UploadId=upload, MultipartUpload={"Parts": parts})
    stored = writer.get_object(Bucket=bucket, Key="large")["Body"].read()
    assert hashlib.sha256(stored).digest() == hashlib.sha256(LARGE).digest()
    assert not writer.list_multipart_uploads(Bucket=bucket).get("Uploads")


def test_object_is_copied_in_the_server(buckets: Buckets, writer: Any) -> None:
    """A copy has the bytes and the metadata of its source."""
    bucket = buckets.make()
    writer.put_object(Bucket=bucket, Key="source", Body=b"fern", Metadata={"kind": "plant"})
    writer.copy_object(Bucket=bucket, Key="copies/one", CopySource=f"{bucket}/source")
    found = writer.get_object(Bucket=bucket, Key="copies/one")
    assert (found["Body"].read(), found["Metadata"]) == (b"fern", {"kind": "plant"})


def test_objects_are_listed_in_pages(buckets: Buckets, writer: Any) -> None:
    """Names come in order, a page at a time, below a prefix, and are grouped by a delimiter."""
    bucket = buckets.make()
    names = [f"{folder}/{number}" for folder in ("a", "b") for number in range(5)]
    for name in names:
        writer.put_object(Bucket=bucket, Key=name, Body=b"")
    pages = list(writer.get_paginator("list_objects_v2").paginate(Bucket=bucket, PaginationConfig={"PageSize": 3}))
    assert [[one["Key"] for one in page["Contents"]] for page in pages] == [names[:3], names[3:6], names[6:9], names[9:]]
    grouped = writer.list_objects_v2(Bucket=bucket, Delimiter="/")
    assert [one["Prefix"] for one in grouped["CommonPrefixes"]] == ["a/", "b/"]
    assert [one["Key"] for one in writer.list_objects_v2(Bucket=bucket, Prefix="b/")["Contents"]] == names[5:]


def test_reader_may_only_read(buckets: Buckets, object_store: ObjectStore, writer: Any) -> None:
    """A user without the right to write reads and lists, but neither stores nor deletes."""
    bucket = buckets.make()
    writer.put_object(Bucket=bucket, Key="a", Body=b"first")
    reader = client(object_store, object_store.reader)
    assert reader.get_object(Bucket=bucket, Key="a")["Body"].read() == b"first"
    assert reader.list_objects_v2(Bucket=bucket)["KeyCount"] == 1
    assert refusal(reader.put_object, Bucket=bucket, Key="b", Body=b"") == (403, "AccessDenied")
    assert refusal(reader.create_multipart_upload, Bucket=bucket, Key="b") == (403, "AccessDenied")
    assert refusal(reader.delete_object, Bucket=bucket, Key="a") == (403, "AccessDenied")
    assert buckets.keys(bucket) == ["a"]


def test_bucket_without_policy_is_closed_to_users(buckets: Buckets, writer: Any) -> None:
    """Only its owner may use a bucket that is not shared."""
    bucket = buckets.make(shared=False)
    assert refusal(writer.list_objects_v2, Bucket=bucket) == (403, "AccessDenied")
    assert refusal(writer.put_object, Bucket=bucket, Key="a", Body=b"") == (403, "AccessDenied")


def test_wrong_logins_and_missing_things_have_codes_of_their_own(buckets: Buckets, object_store: ObjectStore, writer: Any) -> None:
    """An unknown user, a wrong secret, a missing bucket and a missing object have codes of their own."""
    unknown = client(object_store, Keys("nobody", "x" * 40))
    wrong = client(object_store, object_store.writer._replace(secret="x" * 40))
    assert refusal(unknown.list_buckets) == (403, "InvalidAccessKeyId")
    assert refusal(wrong.list_buckets) == (403, "SignatureDoesNotMatch")
    assert refusal(writer.get_object, Bucket="missing-bucket", Key="a") == (404, "NoSuchBucket")
    assert refusal(writer.get_object, Bucket=buckets.make(), Key="a") == (404, "NoSuchKey")


def test_both_addresses_have_the_same_objects(buckets: Buckets, object_store: ObjectStore, writer: Any) -> None:
    """What is stored over TLS is read without, and a condition holds across both; the certificate needs the CA."""
    bucket = buckets.make()
    secured = client(object_store, object_store.writer, tls=True)
    secured.put_object(Bucket=bucket, Key="a", Body=b"first")
    assert refusal(writer.put_object, Bucket=bucket, Key="a", Body=b"", IfNoneMatch="*") == (412, "PreconditionFailed")
    assert writer.get_object(Bucket=bucket, Key="a")["Body"].read() == b"first"
    with pytest.raises(SSLError):
        client(object_store._replace(ca=""), object_store.writer, tls=True).list_buckets()


def test_s3fs_works_on_it(buckets: Buckets, object_store: ObjectStore) -> None:
    """s3fs stores a small object and one in parts over TLS, lists both with their sizes, and reads a range."""
    from s3fs import S3FileSystem

    bucket = buckets.make()
    access, secret = object_store.writer
    # As the program asks: versitygw may refuse a request on a connection that has carried checksums behind a body before.
    config = {"request_checksum_calculation": "when_required", "response_checksum_validation": "when_required"}
    server = {"endpoint_url": object_store.tls_url, "client_kwargs": {"verify": object_store.ca}, "config_kwargs": config}
    storage = S3FileSystem(key=access, secret=secret, **server, skip_instance_cache=True, use_listings_cache=False)
    storage.pipe_file(f"{bucket}/p/small", b"fern")
    storage.pipe_file(f"{bucket}/p/large", LARGE, chunksize=PART)
    sizes = {path: about["size"] for path, about in storage.find(f"{bucket}/p", detail=True).items()}
    assert sizes == {f"{bucket}/p/large": len(LARGE), f"{bucket}/p/small": 4}
    assert storage.cat_file(f"{bucket}/p/large", start=PART - 5, end=PART + 5) == LARGE[PART - 5 : PART + 5]
    assert storage.cat_file(f"{bucket}/p/small") == b"fern"


@pytest.mark.servers
@pytest.mark.parametrize("attributes", [True, False])
def test_restarted_server_has_its_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, attributes: bool) -> None:
    """A server that stops and starts again has its addresses, users and objects, also without extended attributes."""
    if not attributes:
        monkeypatch.setattr(server, "_metadata", lambda folder: ["--sidecar", str(folder / "metadata")])
    with server.from_build(tmp_path) as described:
        store = ObjectStore.decode(described)
        buckets = Buckets(store)
        bucket = buckets.make()
        client(store, store.writer).put_object(Bucket=bucket, Key="a", Body=b"first", Metadata={"kind": "plant"})
    with server.from_build(tmp_path) as described:
        assert ObjectStore.decode(described) == store
        found = client(store, store.reader).get_object(Bucket=bucket, Key="a")
        assert (found["Body"].read(), found["Metadata"]) == (b"first", {"kind": "plant"})


def test_built_program_is_used_until_a_list_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program counts as installed only with the lists that it was built from."""
    versitygw.install()
    assert versitygw.installed()
    assert versitygw.PROGRAM.stat().st_mode & stat.S_IXUSR
    changed = tmp_path / "versitygw.sum"
    changed.write_text(versitygw.HASHES.read_text("utf-8") + "\n", "utf-8")
    monkeypatch.setattr(versitygw, "HASHES", changed)
    assert not versitygw.installed()
