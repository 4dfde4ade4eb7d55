from __future__ import annotations

import bz2
import gzip
import io
import lzma
import random
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processors.essence.listings import ftp_recursive
from processors.essence.listings.ftp_recursive import sections
from processors.essence.unnest.containers import _libarchive, _libarchive_c

NOW = 1_732_800_000_000
SAMPLES = Path(__file__).parents[3] / "samples" / "unnest" / "compress"
TREE = b""".:
total 8
-rw-r--r-- 1 a a   12 Jan 12  2023 a.txt
drwxr-xr-x 2 a a 4096 Jan 12  2023 sub

./sub:
total 4
-rw-r--r-- 1 a a    7 Jan 12  2023 b:
drwxr-xr-x 2 a a 4096 Jan 12  2023 deep er

./sub/deep er:
total 0
"""
EXPECTED = {
    b"": b"type=file;size=12;modify=20230112; a.txt\ntype=dir; sub\n",
    b"sub": b"type=file;size=7;modify=20230112; b:\ntype=dir; deep er\n",
    b"sub/deep er": b"",
}
PACKED = {b"": TREE, b".gz": gzip.compress(TREE), b".bz2": bz2.compress(TREE), b".xz": lzma.compress(TREE)}


def read(body: bytes, suffix: bytes = b"", base: bytes = b"pub") -> dict[bytes, bytes]:
    """Return the sections of a file."""
    return dict(sections(io.BytesIO(body), b"ls-lR" + suffix, base, NOW))


@pytest.mark.parametrize("suffix", PACKED)
def test_each_directory_has_its_listing(suffix: bytes) -> None:
    """Each section gives the listing of its directory, whatever the compression, in one member or in several."""
    assert read(PACKED[suffix], suffix) == EXPECTED
    if suffix:
        pack: Callable[[bytes], bytes] = {b".gz": gzip.compress, b".bz2": bz2.compress, b".xz": lzma.compress}[suffix]  # type: ignore[assignment]
        assert read(pack(TREE[:100]) + pack(TREE[100:]), suffix) == EXPECTED


HEADS = [b".", b"./", b"", b"/pub", b"/pub/"]


@pytest.mark.parametrize("head", HEADS)
def test_directories_are_named_relative_or_from_the_root(head: bytes) -> None:
    """Directories are relative to that of the file, or below its path; the first may have no header."""
    slash = b"" if head.endswith(b"/") or not head else b"/"
    body = TREE.replace(b".:\n", head + b":\n" if head else b"", 1).replace(b"./sub", head + slash + b"sub")
    assert read(body) == EXPECTED


@pytest.mark.parametrize("head", [b"../x", b"/etc", b"/public", b"a//b", b"a/../b"])
def test_directory_elsewhere_is_left_out(head: bytes) -> None:
    """A section of a directory that is not below that of the file is left out."""
    assert read(TREE + b"\n" + head + b":\ntotal 0\n") == EXPECTED


def test_unreadable_or_repeated_section_is_left_out() -> None:
    """A section with a line that is no entry is left out, and so is a second one of the same directory."""
    assert read(TREE.replace(b"deep er\n\n", b"deep er\nls: cannot open\n\n")) == {k: v for k, v in EXPECTED.items() if k != b"sub"}
    assert read(TREE + b"\n./sub:\ntotal 0\n") == EXPECTED


@pytest.mark.parametrize("suffix", [b"", b".gz", b".bz2", b".xz", b".Z"])
def test_damaged_file_is_refused(suffix: bytes) -> None:
    """A file that is cut off, or not of its compression, is refused with a reason."""
    for body in (PACKED[suffix][:-1] if suffix in PACKED else b"\x1f\x9d\x90\xff\xff", b"\x1f\x8b nothing"):
        with pytest.raises(ValueError, match=r"cut off|damaged|compress"):
            read(body, suffix)


def test_size_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bomb, an endless line and too many directories are refused."""
    with pytest.raises(ValueError, match="in a line"):
        read(gzip.compress(b"x" * 10_000_000), b".gz")
    monkeypatch.setattr(ftp_recursive, "MAX_TEXT", 1_000_000)
    with pytest.raises(ValueError, match="more than 1,000,000 bytes"):
        read(bz2.compress(b"total 0\n" * 200_000), b".bz2")
    with pytest.raises(ValueError, match="lines, or"):
        read(bz2.compress(b".:\n" + b"-\n" * 250_001), b".bz2")
    assert read(bz2.compress(TREE.rstrip(b"\n") + b"\n" * 300_000), b".bz2") == EXPECTED
    monkeypatch.setattr(ftp_recursive, "MAX_SECTION", 1_000)
    with pytest.raises(ValueError, match="1,000 bytes, of one directory"):
        read(TREE + b"x" * 1_000 + b"\n")
    monkeypatch.setattr(ftp_recursive, "MAX_DIRECTORIES", 2)
    with pytest.raises(ValueError, match="more than 2 directories"):
        read(TREE)


@pytest.mark.parametrize("name", ["words.Z", "cleared.Z"])
def test_compress_is_decoded_as_by_libarchive(name: str) -> None:
    """Files of compress are decoded to the same bytes as by libarchive, with a cleared table too."""
    body = (SAMPLES / name).read_bytes()
    expected = _libarchive.Filtered(io.BytesIO(body), _libarchive_c.COMPRESS).read(1_000_000)
    assert b"".join(ftp_recursive._decoded(io.BytesIO(body), b"ls-lR.Z")) == expected


@given(body=st.binary(max_size=300), suffix=st.sampled_from([b"", b".gz", b".bz2", b".xz", b".Z"]), seed=st.integers(0, 9))
def test_no_file_raises_anything_else(body: bytes, suffix: bytes, seed: int) -> None:
    """Whatever the bytes, a file gives sections or a ValueError."""
    heads = {b".Z": b"\x1f\x9d\x90"}
    damaged = bytearray(PACKED.get(suffix, b"") + body)
    if damaged:
        damaged[random.Random(seed).randrange(len(damaged))] ^= 1 + seed
    for data in (heads.get(suffix, b"") + body, bytes(damaged)):
        with suppress(ValueError):
            read(data, suffix)
