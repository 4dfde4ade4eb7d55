"""Fixtures shared by the essence tests: objects with arbitrary bytes, and archives built on the fly."""

from __future__ import annotations

import hashlib
import io
import tarfile
import zipfile
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from processors.essence.stage import EssenceSettings, Output, essence
from schemas.codec import decode, encode
from schemas.records import FetchedObject, Root

Run = Callable[..., list[Output]]
Pack = Callable[[Sequence[tuple[str, bytes]]], bytes]


@pytest.fixture(scope="session")
def fetched() -> Callable[..., FetchedObject]:
    """Factory of FetchedObject records from a body and optional fields."""

    def build(data: bytes, url: str = "file:///d/x", **fields: Any) -> FetchedObject:
        known = {
            "version": 7,
            "time": 1_000,
            "outcome": "fetched",
            "root": Root(url="file:///d/", run="r1"),
            "size": len(data),
            "md5": hashlib.md5(data, usedforsecurity=False).hexdigest(),
            "sha256": hashlib.sha256(data).hexdigest(),
        }
        return FetchedObject(url=url, **{**known, **fields})

    return build


@pytest.fixture(scope="session")
def run(fetched: Callable[..., FetchedObject]) -> Run:
    """Function from a body to all resulting records, each after an Avro round trip."""

    def run_all(
        data: bytes,
        url: str = "file:///d/x",
        settings: Mapping[str, Any] | None = None,
        skip: Any = frozenset(),
        progress: Callable[[str], None] = lambda _: None,
        **fields: Any,
    ) -> list[Output]:
        made = EssenceSettings(**{"gatherer": "g", **(settings or {})})
        records = list(essence(fetched(data, url, **fields), io.BytesIO(data), made, skip, progress))
        assert [decode(encode(r)) for r in records] == records
        return records

    return run_all


@pytest.fixture(scope="session")
def tar() -> Pack:
    """Function from names and contents to a tar (GNU format, as tarfile writes it)."""

    def pack(members: Sequence[tuple[str, bytes]]) -> bytes:
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as archive:
            for name, data in members:
                info = tarfile.TarInfo(name)
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))
        return out.getvalue()

    return pack


@pytest.fixture(scope="session")
def zipped() -> Pack:
    """Function from names and contents to a zip."""

    def pack(members: Sequence[tuple[str, bytes]]) -> bytes:
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, data in members:
                archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
        return out.getvalue()

    return pack


@pytest.fixture(scope="session")
def ar() -> Pack:
    """Function from names and contents to an ar archive with BSD long names."""

    def pack(members: Sequence[tuple[str, bytes]]) -> bytes:
        out = b"!<arch>\n"
        for name, data in members:
            raw = name.encode()
            out += b"%-16s%-12d%-6d%-6d%-8s%-10d`\n" % (b"#1/%d" % len(raw), 0, 0, 0, b"644", len(raw) + len(data))
            out += raw + data + b"\n" * ((len(raw) + len(data)) % 2)
        return out

    return pack
