from __future__ import annotations

import gzip
import io
import random
import struct
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from processors.essence.formats.container import FEW, SPARSE, Budget, Damaged, Exhausted, UnnestLimits
from processors.essence.formats.streams import exact
from processors.essence.unnest import Container, Encoding, plugins, stripped
from processors.essence.unnest.containers.tar import _Tar

SAMPLES = Path(__file__).resolve().parents[3] / "samples" / "unnest"
FILES = sorted(f for f in SAMPLES.glob("*/*") if f.suffix != ".json" and f.stat().st_size < 10_000)
MARKED = ("gzip", "bzip2", "xz", "zstandard", "lz4")
"""Encodings with an end mark."""
LIMITS = UnnestLimits(bytes=1 << 20, entries=1_000, member=1 << 20)

Read = Callable[..., tuple[list[dict[str, Any]], str]]


@pytest.mark.parametrize("file", FILES, ids=lambda f: f"{f.parent.name}/{f.name}")
def test_mutated_sample_raises_only_own_errors(file: Path, read: Read) -> None:
    """Changed, removed or inserted bytes are damage with a bounded reason, or stay undetected; no other exception escapes."""
    source, data = random.Random(file.name), file.read_bytes()
    for _ in range(150):
        at = source.randrange(len(data))
        change = source.choice((source.randbytes(source.choice((1, 2, 4))), b"\xff" * 8, b"\0" * 8, b""))
        mutated = data[:at] + change + data[at + source.choice((0, len(change), 1, 50)) :]
        _, problem = read(file.parent.name, mutated, LIMITS, forward=source.random() < 0.5)
        assert len(problem) <= 200


def test_attachment_times_are_utc() -> None:
    """The modification time of a PDF attachment is in UTC, whatever its time zone."""
    data = (SAMPLES / "pdf" / "attached.pdf").read_bytes()
    unnester = plugins()["pdf"]
    assert isinstance(unnester, Container)
    for stated, known in ((b"19941201160000Z", 786_297_600), (b"199412011600+01", 786_294_000)):
        changed = data.replace(b"19941201160000Z", stated)
        times = [member.mtime for member in unnester.open(io.BytesIO(changed), Budget(LIMITS, len(data)))]
        assert known * 1_000_000_000 in times


def test_empty_global_tar_header_cancels_earlier_one() -> None:
    """An empty value cancels an earlier global one; unused global keys are ignored, however many there are."""
    out = io.BytesIO()
    said = {"uname": "all", **{f"x{number}": "y" for number in range(20_000)}}
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT, pax_headers=said) as archive:
        for name, headers in (("a", {}), ("b", {"uname": "", "size": "", "mtime": ""})):
            member = tarfile.TarInfo(name)
            member.size, member.mtime, member.uname, member.pax_headers = 4, 9, "own", headers
            archive.addfile(member, io.BytesIO(b"text"))
    tar = _Tar(io.BytesIO(out.getvalue()))
    found = [(m.name, m.owner, m.size, m.mtime) for m in tar.members()]
    assert found == [(b"a", "all", 4, 9_000_000_000), (b"b", "own", 4, 9_000_000_000)]
    assert set(tar._globals) == {b"uname"}


@pytest.mark.parametrize("name", plugins())
def test_other_format_is_damage(name: str, read: Read) -> None:
    """Content of another format is damage, and so is an empty file."""
    for data in (b"", b"\0", b"no archive at all " * 100, b"PK\x05\x06" + bytes(18)[:10]):
        found, problem = read(name, data)
        assert problem or not any("text" in f and f["text"] for f in found)


@pytest.mark.parametrize(
    "file", [f for f in FILES if f.parent.name in ("gzip", "bzip2", "xz", "zstandard", "lz4")], ids=lambda f: f.name
)
def test_truncated_encoding_fails_again_when_read_again(file: Path) -> None:
    """A truncated stream fails, and fails again when read again."""
    data = file.read_bytes()
    unnester = plugins()[file.parent.name]
    assert isinstance(unnester, Encoding)
    reader = unnester.open(io.BytesIO(data[:40]), Budget(LIMITS, 40))
    for _ in range(2):
        with pytest.raises(Damaged):
            exact(reader, len(data) * 10)


def test_zip_without_directory_is_read_by_local_headers(read: Read) -> None:
    """A zip without its directory gives its members by their local headers, also where sizes follow the data."""
    for name in ("streamed.zip", "methods.zip"):
        data = (SAMPLES / "zip" / name).read_bytes()
        whole, _ = read("zip", data)
        found, problem = read("zip", data[: data.index(b"PK\x01\x02")])
        assert problem == "truncated: the directory is missing"
        if name == "streamed.zip":
            assert [f["name"] for f in found] == [f["name"] for f in whole]
            assert [f.get("sha256", f.get("text")) for f in found] == [f.get("sha256", f.get("text")) for f in whole]
        else:
            assert {f["name"] for f in found} == {f["name"] for f in whole}


def test_budget_counts_entries_names_bytes_and_ratio() -> None:
    """Each limit by itself ends the walk, and the reason names the limit."""
    budget = Budget(UnnestLimits(entries=1, names=10, ratio_from=100, ratio=2), 10)
    budget.enter(b"x")
    with pytest.raises(Exhausted, match="more than 1 members"):
        budget.enter(b"y")
    with pytest.raises(Exhausted, match="names of more than 10 bytes"):
        Budget(UnnestLimits(names=10), 10).enter(b"x" * 11)
    budget.spend(100)
    with pytest.raises(Exhausted, match="2 times its own size"):
        budget.spend(1)
    with pytest.raises(Exhausted, match="more than 5 bytes"):
        Budget(UnnestLimits(bytes=5), 10).spend(6)


def test_encoding_suffix_is_removed() -> None:
    """The name inside an encoding is the name without its suffix; a name that is only a suffix stays."""
    gzip, bzip2, xz = (plugins()[n] for n in ("gzip", "bzip2", "xz"))
    assert not any(isinstance(p, Container) for p in (gzip, bzip2, xz))
    cases = ((gzip, b"x.1.gz", b"x.1"), (gzip, b"A.TGZ", b"A.tar"), (gzip, b".gz", b".gz"), (gzip, b"plain", b"plain"))
    for encoding, name, inner in (*cases, (bzip2, b"a.tbz2", b"a.tar"), (xz, b"a.tar.xz", b"a.tar")):
        assert isinstance(encoding, Encoding)
        assert stripped(name, encoding) == inner


def test_members_are_bounded_by_the_size_of_the_object() -> None:
    """A small number of members is always allowed, a large one only in proportion to the object's bytes."""
    for size, most in ((0, FEW), (400_000, 400_000 // SPARSE), (1 << 40, UnnestLimits().entries)):
        budget = Budget(UnnestLimits(), size)
        for _ in range(most):
            budget.enter(b"")
        with pytest.raises(Exhausted, match=f"more than {most} members"):
            budget.enter(b"")


def test_zip_with_invalid_sizes_and_properties_is_damaged(read: Read) -> None:
    """A 64-bit size beyond the end of any file, and invalid LZMA properties, are ordinary damage."""
    name, extra = b"a", struct.pack("<HHQQ", 1, 16, 1 << 63, 1 << 63)
    head = struct.pack("<4s5HIIIHH", b"PK\x03\x04", 45, 8, 8, 0, 0, 0, 0xFFFFFFFF, 0xFFFFFFFF, len(name), len(extra))
    found, problem = read("zip", head + name + extra + b"x" * 50)
    assert problem or found[0]["error"]
    packed = b"\x10\x02\x05\0" + bytes([4 + 4 * 9]) + struct.pack("<I", 1 << 16) + bytes(20)
    head = struct.pack("<4s5HIIIHH", b"PK\x03\x04", 63, 0, 14, 0, 0, 0, len(packed), 9, len(name), 0)
    found, _ = read("zip", head + name + packed)
    assert found[0]["error"] == "damaged LZMA properties"


def test_nothing_is_read_after_fatal_error(read: Read) -> None:
    """A cabinet whose first data block is invalid ends there: its other members are listed with the reason, and not read."""
    data = bytearray((SAMPLES / "cabinet" / "stored.cab").read_bytes())
    at = int.from_bytes(data[36:40], "little")
    data[at + 4 : at + 8] = b"\xff\xff\0\0"
    found, problem = read("cabinet", bytes(data))
    assert [f["name"] for f in found] == [f["name"] for f in read("cabinet", (SAMPLES / "cabinet" / "stored.cab").read_bytes())[0]]
    assert {f["error"] for f in found} == {problem} == {"Invalid CFDATA"}


def test_stream_failure_is_the_reported_reason(read: Read) -> None:
    """When the stream that libarchive reads fails, the reason is the stream's, not the one that libarchive derives from it."""
    data = gzip.compress((SAMPLES / "lha" / "stored.lzh").read_bytes())
    for cut in range(30, len(data) - 1, 20):
        budget = Budget(LIMITS, cut)
        body = plugins()["gzip"].open(io.BytesIO(data[:cut]), budget)
        assert not isinstance(body, Iterator)
        members = plugins()["lha"].open(body, budget)
        assert isinstance(members, Iterator)
        with pytest.raises(Damaged, match="the compressed data end early"):
            list(members)
