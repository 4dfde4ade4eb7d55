"""A root with the sample corpus, the bodies of its objects, and summaries of bytes."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from processors.essence.stage import EssenceSettings, essence
from processors.identity import file_url, member_url, oid
from schemas.records import FetchedObject, Root, Summary
from sinks.gateway.ports import ObjectError
from streams.edges.object_body import BodyLimits, BodySources, ObjectBodies
from streams.sandbox.values import (
    SandboxLimits,
)
from streams.store.blobs import FolderBlobs

SETTINGS = EssenceSettings(gatherer="g")


def url_of(path: Path, *, folder: bool = False) -> str:
    """Return the URL of a file."""
    return file_url(os.fsencode(path), folder=folder)


def fetched(path: Path) -> FetchedObject:
    """Return a file as an object."""
    data = path.read_bytes()
    digests: dict[str, Any] = {"md5": hashlib.md5(data).hexdigest(), "sha256": hashlib.sha256(data).hexdigest()}
    return FetchedObject(url=url_of(path), version=1, time=1, outcome="fetched", size=len(data), body=data, **digests)


def summaries(path: Path) -> dict[str, Summary]:
    """Return the summaries of a file by member path, as Essence makes them."""
    return {r.path: r for r in essence(fetched(path), None, SETTINGS) if isinstance(r, Summary)}


def summary(url: str, data: bytes, path: str = "", **fields: Any) -> Summary:
    """Return a summary of bytes."""
    digests: dict[str, Any] = {"md5": hashlib.md5(data).hexdigest(), "sha256": hashlib.sha256(data).hexdigest()}
    return Summary(
        oid=oid("g", member_url(url, path)),
        url=member_url(url, path),
        object_url=url,
        path=path,
        gatherer="g",
        version=1,
        time=1,
        type="Text",
        **({"size": len(data)} | digests | fields),
    )


class Place(NamedTuple):
    """A root with the corpus, a secret beside it, and the bodies of its Gatherer."""

    root: Path
    secret: Path
    bodies: ObjectBodies
    blobs: FolderBlobs

    def read(self, wanted: Summary) -> bytes:
        """Return the bytes of a summary; their number is the one that was announced."""
        file, size = self.bodies.open(wanted)
        with file:
            data = file.read()
        assert len(data) == size
        return data

    def status(self, wanted: Summary) -> int:
        """Return the status with which a summary is refused."""
        with pytest.raises(ObjectError) as raised:
            self.bodies.open(wanted)
        text = str(raised.value)
        assert text
        assert text.isprintable()
        return raised.value.status


@contextmanager
def made(folder: Path, root: Path) -> Iterator[Place]:
    """Make a place: a root, a data folder and a secret in one folder."""
    secret = folder / "secret"
    secret.write_bytes(b"a secret")
    blobs = FolderBlobs(folder / "data" / "blobs")
    roots = [Root(url=url_of(root, folder=True), run="1"), Root(url="https://example.org/", run="1")]
    bodies = ObjectBodies(BodySources(lambda: roots, blobs, folder / "data"), BodyLimits.of(SandboxLimits(), SETTINGS, 1 << 30))
    yield Place(root, secret, bodies, blobs)
    bodies.close()
