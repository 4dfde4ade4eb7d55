"""Hard links and sparse files in tars."""

from __future__ import annotations

import gzip
import io
import struct
import tarfile
from collections.abc import Callable
from typing import Any

import pytest

from processors.essence.stage import Output
from processors.essence.unnest.containers import _tar_links as links
from schemas.records import Complete, Rejected, Summary

Read = Callable[..., tuple[list[dict[str, Any]], str]]
Run = Callable[..., list[Output]]


def tarred(*members: tuple[str, bytes | str], kind: int = tarfile.GNU_FORMAT) -> bytes:
    """Return a tar of files (name, content) and of hard links (name, target)."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=kind) as tar:
        for name, content in members:
            info = tarfile.TarInfo(name)
            if isinstance(content, str):
                info.type, info.linkname = tarfile.LNKTYPE, content
            else:
                info.size = len(content)
            tar.addfile(info, io.BytesIO(content) if isinstance(content, bytes) else None)
    return out.getvalue()


CASES = [
    (("a.txt", b"words\n"), ("b.txt", "a.txt")),
    (("./d/a.txt", b"words\n"), ("d/c.txt", "d/a.txt"), ("d/e.txt", "./d/c.txt")),
    (("a" * 150, b"words\n"), ("other", b"x" * 3_000), ("b" * 160, "a" * 150), ("z", b"last\n")),
    (("first", b""), ("link", "first"), ("big", bytes(range(256)) * 800), ("again", "big"), ("end", b"words\n")),
]


@pytest.mark.parametrize("forward", [False, True], ids=["sought", "streamed"])
@pytest.mark.parametrize("case", CASES, ids=range(len(CASES)))
def test_hard_link_has_the_content_of_its_target(case: Any, forward: bool, read: Read) -> None:
    """A hard link is read as its target, also through another link; the members behind it are not affected."""
    found, problem = read("tar", tarred(*case), forward=forward)
    shown = {f["name"]: f.get("text", f.get("sha256")) for f in found}
    assert problem == ""
    plain = {name.removeprefix("./"): value for name, value in shown.items()}
    targets = {name.removeprefix("./"): content.removeprefix("./") for name, content in case if isinstance(content, str)}
    assert all(plain[name] == plain[target] for name, target in targets.items())


def test_hard_link_without_a_target_stays_a_name(read: Read) -> None:
    """A link to a later file, to itself or to a file outside of the archive has no content."""
    found, problem = read("tar", tarred(("a", "later"), ("b", "b"), ("c", "/etc/passwd"), ("later", b"words\n")))
    assert [(f["name"], f["kind"], "text" in f) for f in found] == [
        ("a", "hardlink", False),
        ("b", "hardlink", False),
        ("c", "hardlink", False),
        ("later", "file", True),
    ]
    assert problem == ""


@pytest.mark.parametrize("forward", [False, True])
def test_contents_of_hard_links_are_bounded(forward: bool, read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    """Links give a bounded number of bytes in all; further ones are names, and the archive is read to its end."""
    monkeypatch.setattr(links, "MAX_LINKED", 25_000)
    data = tarred(("a", b"x" * 10_000), *((f"l{n}", "a") for n in range(50)), ("end", b"words\n"))
    found, problem = read("tar", data, forward=forward)
    assert [f["size"] for f in found[1:]] == [10_000] * 2 + [0] * 48 + [6]
    assert problem == ""


def test_damaged_target_leaves_its_link_a_name_or_damaged(read: Read) -> None:
    """A link to a target that is cut off has no content without an error."""
    data = tarred(("a", b"x" * 3_000), ("b", "a"))
    found, problem = read("tar", data[:2_000], forward=True)
    assert problem
    assert [f["name"] for f in found if "error" not in f] == []


def test_hard_link_of_an_archive_is_summarized_as_its_target(run: Run) -> None:
    """The summary of a hard link has the type, digest and words of its target, in a plain and in a compressed tar."""
    data = tarred(("page.html", b"<html><title>Ferns</title><p>Words.</html>"), ("copy.html", "page.html"))
    for name, content in (("x.tar", data), ("x.tar.gz", gzip.compress(data))):
        found = {r.path: r for r in run(content, f"file:///d/{name}") if isinstance(r, Summary)}
        assert found["copy.html"].type == "HTML"
        assert found["copy.html"].sha256 == found["page.html"].sha256
        assert found["copy.html"].attributes["title"] == ("Ferns",)


def sparse(name: str, size: int, pieces: list[tuple[int, bytes]]) -> bytes:
    """Return a sparse file of the old GNU format, without an end mark."""
    data = b"".join(piece for _, piece in pieces)
    head = bytearray(tarfile.TarInfo(name).tobuf(tarfile.GNU_FORMAT))
    head[124:136], head[156:157] = b"%011o\0" % len(data), b"S"
    for at, (offset, piece) in enumerate(pieces[:4]):
        head[386 + 24 * at : 410 + 24 * at] = b"%011o\0%011o\0" % (offset, len(piece))
    head[483:495] = b"%011o\0" % size if size < 8 << 30 else struct.pack(">I", 1 << 31) + size.to_bytes(8, "big")
    head[148:156] = b" " * 8
    head[148:156] = b"%06o\0 " % sum(head)
    return bytes(head) + data + bytes(-len(data) % 512)


@pytest.mark.parametrize(
    ("size", "reason"), [(99 << 20, ""), (200 << 20, ""), (1 << 40, f"a sparse file with {(1 << 40) - 5} bytes of holes")]
)
def test_holes_of_a_sparse_file_are_no_expansion(size: int, reason: str, run: Run) -> None:
    """What lies behind a large sparse file is read, in a plain and in a compressed tar; too many holes are refused alone."""
    data = sparse("disk.img", size, [(0, b"start")]) + tarred(("b.txt", b"words\n"))
    for name, content in (("x.tar", data), ("x.tar.gz", gzip.compress(data))):
        records = run(content, f"file:///d/{name}")
        found = {r.path: r for r in records if isinstance(r, Summary)}
        assert found["b.txt"].type == "RawText"
        assert {r.path: r.reason for r in records if isinstance(r, Rejected)} == ({"disk.img": reason} if reason else {})
        assert isinstance(records[-1], Complete)
        assert reason or found["disk.img"].size == size
