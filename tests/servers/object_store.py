"""Object storage as operators have it: versitygw 1.8.0, an S3 server, with TLS and with users that are not its owner.

Strategy: two gateways serve one folder, one with TLS and one without; each object is a file there, with its metadata in extended
attributes, or in a folder of their own where the file system has none.

Laws:
- It listens on 127.0.0.1 only.
- The keys of its users are made for each folder, and pass to the server by its environment and a file, not by its command line.
- A user has only the rights that the policy of a bucket gives him: `policy`.
"""

from __future__ import annotations

import json
import os
import secrets
import ssl
import urllib.request
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from http.client import HTTPException
from pathlib import Path
from typing import Any, NamedTuple, Self

from tests.servers.certificates import Authority
from tests.servers.process import free_port, running
from tests.servers.versitygw import install

HEALTH = "/health"
REGION = "us-east-1"
WRITING = (
    "s3:PutObject",
    "s3:DeleteObject",
    "s3:AbortMultipartUpload",
    "s3:ListMultipartUploadParts",
    "s3:ListBucketMultipartUploads",
)
READING = ("s3:GetObject", "s3:ListBucket")


class Keys(NamedTuple):
    """The login of a user."""

    access: str
    secret: str


class ObjectStore(NamedTuple):
    """A running server: its addresses, its CA, and its users."""

    url: str
    tls_url: str
    ca: str
    """Path of the CA that signs the certificate of `tls_url`."""
    owner: Keys
    """Owner of all buckets."""
    writer: Keys
    """A user who may read and write in buckets with the policy."""
    reader: Keys
    """A user who may only read there."""

    @classmethod
    def decode(cls, text: str) -> Self:
        """The server that `encode` describes."""
        url, tls_url, ca, owner, writer, reader = json.loads(text)
        return cls(url, tls_url, ca, Keys(*owner), Keys(*writer), Keys(*reader))

    def encode(self) -> str:
        """All of it as one line."""
        return json.dumps(self)


def policy(store: ObjectStore, bucket: str) -> str:
    """The policy of a bucket in which the writer may read and write, and the reader may read."""
    rights = ((store.writer, READING + WRITING), (store.reader, READING))
    statements = [_allow(user, action, bucket) for user, actions in rights for action in actions]
    return json.dumps({"Version": "2012-10-17", "Statement": statements})


def _allow(user: Keys, action: str, bucket: str) -> Mapping[str, object]:
    what = f"arn:aws:s3:::{bucket}" if "Bucket" in action else f"arn:aws:s3:::{bucket}/*"
    return {"Effect": "Allow", "Principal": {"AWS": [user.access]}, "Action": [action], "Resource": [what]}


def answers(url: str, ca: str) -> bool:
    """Whether a gateway answers."""
    try:
        trusted = ssl.create_default_context(cafile=ca)
        with urllib.request.urlopen(f"{url}{HEALTH}", timeout=60, context=trusted) as answer:
            return bool(answer.status == 200)
    except (OSError, HTTPException):
        return False


@contextmanager
def from_build(folder: Path) -> Iterator[str]:
    """Run the server, which keeps its files in `folder`; a second start reuses the data, the addresses and the users of the first.

    Yields the encoded `ObjectStore`. Raises ServerError, ToolError.
    """
    program = install()
    described = folder / "store"
    if not described.exists():
        described.write_text(_prepare(folder).encode(), "utf-8")
    store = ObjectStore.decode(described.read_text("utf-8"))
    with ExitStack() as both:
        for url in (store.url, store.tls_url):
            command = [str(program), *_options(folder, url), "posix", *_metadata(folder), str(folder / "data")]
            login = {"ROOT_ACCESS_KEY": store.owner.access, "ROOT_SECRET_KEY": store.owner.secret}
            both.enter_context(running(command, folder, partial(answers, url, store.ca), environment=login))
        yield store.encode()


def _prepare(folder: Path) -> ObjectStore:
    """Make folders, certificates, keys and users, and choose ports."""
    for name in ("data", "metadata", "users"):
        (folder / name).mkdir(exist_ok=True)
    authority = Authority(folder)
    authority.sign("server")
    owner, writer, reader = (Keys(secrets.token_hex(10), secrets.token_urlsafe(30)) for _ in range(3))
    accounts = {keys.access: {**keys._asdict(), "role": "user"} for keys in (writer, reader)}
    (folder / "users" / "users.json").write_text(json.dumps({"accessAccounts": accounts}), "utf-8")
    port = free_port(2)
    return ObjectStore(f"http://127.0.0.1:{port}", f"https://127.0.0.1:{port + 1}", str(authority.path), owner, writer, reader)


def _options(folder: Path, url: str) -> Sequence[str]:
    """The options of the gateway at a URL."""
    scheme, _, address = url.partition("://")
    tls = ["--cert", str(folder / "server.pem"), "--key", str(folder / "server.key")] if scheme == "https" else []
    return ["--port", address, "--iam-dir", str(folder / "users"), "--health", HEALTH, "--keep-alive", *tls]


def _metadata(folder: Path) -> Sequence[str]:
    """The option for metadata in a folder of their own; none where the file system has extended attributes."""
    try:
        os.setxattr(folder / "data", "user.harvest", b"")
    except OSError:
        return ["--sidecar", str(folder / "metadata")]
    return []


class Buckets:
    """Buckets of one test: `buckets.make()` returns the name of an empty one."""

    def __init__(self, store: ObjectStore) -> None:
        self.store = store
        self.client = client(store, store.owner)
        self._made: list[str] = []

    def make(self, *, shared: bool = True) -> str:
        """Create a bucket and return its name; `shared`: writer and reader have their rights there."""
        name = f"t{uuid.uuid4().hex[:10]}"
        self.client.create_bucket(Bucket=name)
        self._made.append(name)
        if shared:
            self.client.put_bucket_policy(Bucket=name, Policy=policy(self.store, name))
        return name

    def keys(self, name: str) -> list[str]:
        """The names of the objects in a bucket, in order."""
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=name)
        return [found["Key"] for page in pages for found in page.get("Contents", ())]

    def close(self) -> None:
        """Delete the buckets, with what is in them."""
        for name in self._made:
            for upload in self.client.list_multipart_uploads(Bucket=name).get("Uploads", ()):
                self.client.abort_multipart_upload(Bucket=name, Key=upload["Key"], UploadId=upload["UploadId"])
            for key in self.keys(name):
                self.client.delete_object(Bucket=name, Key=key)
            self.client.delete_bucket(Bucket=name)


def client(store: ObjectStore, keys: Keys, *, tls: bool = False) -> Any:
    """A client of botocore, with the login of a user."""
    from botocore.config import Config
    from botocore.session import Session

    return Session().create_client(
        "s3",
        REGION,
        endpoint_url=store.tls_url if tls else store.url,
        verify=store.ca or None,
        aws_access_key_id=keys.access,
        aws_secret_access_key=keys.secret,
        # As the program asks: after checksums behind a body the server may refuse the next request on the connection.
        config=Config(retries={"max_attempts": 0}, request_checksum_calculation="when_required"),
    )
