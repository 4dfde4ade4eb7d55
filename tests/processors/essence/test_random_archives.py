from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import lzma
import tarfile
import zipfile
from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from processors.essence.stage import Output
from processors.identity import member_path
from schemas.records import Complete, Summary

Run = Callable[..., list[Output]]
Pack = Callable[[Sequence[tuple[str, bytes]]], bytes]

NAMES = st.text("abäß #%;,'é漢.", min_size=1, max_size=12).map(lambda n: f"m{n}")
LEAF = st.tuples(st.just("leaf"), st.text("wörds \n", max_size=60), st.none())
COMPRESS: dict[str, Callable[[bytes], bytes]] = {"": bytes, "gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}
EXPAND: dict[str, Callable[[bytes], bytes]] = {"": bytes, "gz": gzip.decompress, "bz2": bz2.decompress, "xz": lzma.decompress}


def container(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Strategy for a container, compressed or not, of leaves and containers."""
    members = st.lists(st.tuples(NAMES, inner), max_size=4, unique_by=lambda m: m[0])
    return st.tuples(st.sampled_from(["tar", "zip", "ar"]), members, st.sampled_from(sorted(COMPRESS)))


TREES = container(st.recursive(LEAF, container, max_leaves=8))


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(tree=TREES)
def test_random_nesting_gives_leaves_of_plain_walk(tree: Any, run: Run, tar: Pack, zipped: Pack, ar: Pack) -> None:
    """Paths and digests of any nesting equal those of a walk over the tree that it was built from."""
    packers = {"tar": tar, "zip": zipped, "ar": ar}

    def build(node: Any) -> bytes:
        kind, content, packed = node
        if kind == "leaf":
            return str(content).encode()
        return COMPRESS[packed](packers[kind]([(named(name, inner), build(inner)) for name, inner in content]))

    data = build(tree)
    records = run(data, "file:///d/" + named("x", tree))
    found = {r.path: r.md5 for r in records if isinstance(r, Summary)}
    assert found == dict(walk(tree, data, ""))
    assert isinstance(records[-1], Complete)


def named(name: str, node: Any) -> str:
    """Return a file name with the usual suffix of the kind."""
    kind, _, packed = node
    return ".".join(filter(None, (name, "txt" if kind == "leaf" else kind, packed or "")))


def walk(node: Any, data: bytes, path: str) -> list[tuple[str, str]]:
    """Return paths and MD5 of a file and all its members, with the standard library's readers."""
    found = [(path, hashlib.md5(data).hexdigest())]
    kind, content, packed = node
    if kind == "leaf":
        return found
    plain = EXPAND[packed](data)
    for name, inner in content:
        full = named(name, inner)
        step = member_path(full.encode())
        found += walk(inner, member(kind, plain, full), f"{path}#{step}" if path else step)
    return found


def member(kind: str, data: bytes, name: str) -> bytes:
    """Return the content of a member."""
    if kind == "tar":
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            body = archive.extractfile(name)
            assert body
            return body.read()
    if kind == "zip":
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return archive.read(name)
    # BSD ar stores the name right before the content, and names are unique here.
    at, raw = 8, name.encode()
    while True:
        head = data[at : at + 60]
        length, size = int(head[3:16]), int(head[48:58])
        if data[at + 60 : at + 60 + length] == raw:
            return data[at + 60 + length : at + 60 + size]
        at += 60 + size + size % 2
