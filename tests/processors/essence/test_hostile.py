from __future__ import annotations

import gzip
import io
import random
import struct
import tarfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from processors.essence import member, walk
from processors.essence.formats.container import Budget, Member, Reader, UnnestLimits
from processors.essence.stage import Output
from processors.essence.summarize import Facts
from processors.essence.unnest import Container, Encoding
from schemas.records import MAX_REASON, Complete, Partial, Rejected, Summary

Run = Callable[..., list[Output]]
Pack = Callable[[Sequence[tuple[str, bytes]]], bytes]

SMALL = UnnestLimits(
    entries=200, bytes=4 << 20, ratio=20, ratio_from=1 << 20, depth=6, names=20_000, memory=100_000, member=1 << 20
)


def outcomes(records: list[Output]) -> tuple[dict[str, Summary], dict[str, str]]:
    """Return summaries and rejection reasons by path, after checking the laws that hold for any input."""
    found = {r.path: r for r in records if isinstance(r, Summary)}
    reasons = {r.path: r.reason for r in records if isinstance(r, Rejected)}
    assert len(found) + len(reasons) + 1 == len(records)
    assert all(0 < len(reason) <= MAX_REASON for reason in reasons.values())
    assert {p for p, s in found.items() if "reason" in s.attributes} == set(reasons)
    assert all(found[p].attributes["reason"] == (r,) for p, r in reasons.items())
    end = records[-1]
    assert isinstance(end, Complete | Partial)
    assert end.count == len(found)
    return found, reasons


def members(count: int) -> list[tuple[str, bytes]]:
    """Return members whose text does not compress well."""
    source = random.Random(3)
    return [(f"dir/m{n}.txt", source.randbytes(300).hex().encode()) for n in range(count)]


@pytest.mark.parametrize("kind", ["tar", "tar.gz", "zip", "ar"])
def test_truncated_archive_gives_readable_members(kind: str, run: Run, tar: Pack, zipped: Pack, ar: Pack) -> None:
    """A truncated archive gives its first members undamaged, and the loss is reported by Rejected and Partial."""
    whole = members(8)
    data = {"tar": tar, "tar.gz": lambda m: gzip.compress(tar(m)), "zip": zipped, "ar": ar}[kind](whole)
    end = max(len(data.rstrip(b"\0")), 1) if kind == "tar" else len(data) - 1
    cuts = sorted({*range(600, end, max(1, end // 25)), end - 1})
    sizes = []
    for cut in cuts:
        records = run(data[:cut], f"file:///d/x.{kind}")
        found, reasons = outcomes(records)
        sound = [p for p, s in found.items() if p and p not in reasons]
        assert sound == [name for name, _ in whole][: len(sound)]
        assert all(found[name].size == len(body) for name, body in whole[: len(sound)])
        sizes.append(len(sound))
        # An ar that ends after a member has no detectable loss.
        if kind != "ar":
            assert reasons
            assert isinstance(records[-1], Partial)
    assert sizes == sorted(sizes)
    assert sizes[-1] >= len(whole) - 1


def test_damaged_member_is_rejected_alone(run: Run, zipped: Pack) -> None:
    """A wrong checksum rejects one member; the others are read."""
    data = bytearray(zipped(members(3)))
    data[data.index(b"dir/m1.txt") + 40] ^= 0xFF
    found, reasons = outcomes(run(bytes(data), "file:///d/x.zip"))
    assert set(reasons) == {"dir/m1.txt"}
    assert set(found) == {"dir/m0.txt", "dir/m1.txt", "dir/m2.txt", ""}
    assert found["dir/m1.txt"].sha256 == ""


def test_damaged_header_costs_one_member_of_a_tar(run: Run, tar: Pack) -> None:
    """Reading a tar continues at the next valid header, and the damage is reported."""
    data = bytearray(tar(members(5)))
    data[data.index(b"dir/m2.txt") + 110] ^= 0x55
    found, reasons = outcomes(run(bytes(data), "file:///d/x.tar"))
    assert set(found) == {"dir/m0.txt", "dir/m1.txt", "dir/m3.txt", "dir/m4.txt", ""}
    assert reasons == {"": "damaged header: its checksum fails"}


def test_encrypted_member_is_rejected_with_reason(run: Run, samples: Path) -> None:
    """Encrypted content is rejected with that reason; the archive itself is not damaged."""
    data = (samples / "unnest" / "zip" / "encrypted.zip").read_bytes()
    records = run(data, "file:///d/x.zip")
    assert outcomes(records)[1] == {"secret.txt": "encrypted"}
    assert isinstance(records[-1], Complete)


# ---- bombs -----------------------------------------------------------------------------------------------------------


def rejected(run: Run, data: bytes, url: str, limits: UnnestLimits = SMALL) -> tuple[dict[str, Summary], dict[str, str]]:
    """Return summaries and rejection reasons of an input that must end as Partial."""
    records = run(data, url, settings={"limits": limits})
    assert isinstance(records[-1], Partial)
    found, reasons = outcomes(records)
    assert "" in found
    return found, reasons


def test_gzip_bomb_stops_at_its_budget(run: Run) -> None:
    """A gzip of zeros ends when its expansion exceeds the budget."""
    _, reasons = rejected(run, gzip.compress(bytes(8 << 20)), "file:///d/x.gz")
    assert reasons == {"": "gives more than 20 times its own size"}


def test_zip_bomb_stops_at_its_budget(run: Run, zipped: Pack) -> None:
    """A zip of zeros ends when its expansion exceeds the budget, and the member is named."""
    found, reasons = rejected(
        run, zipped([("a.txt", b"sound\n"), *((f"z{n}", bytes(900_000)) for n in range(9))]), "file:///d/x.zip"
    )
    assert reasons == {"z1": "gives more than 20 times its own size", "": "gives more than 20 times its own size"}
    assert found["a.txt"].type == "RawText"


def test_nested_bombs_share_one_budget(run: Run, zipped: Pack) -> None:
    """Nested bombs share one budget: every open container is rejected, and nothing after it is read."""
    data = zipped([(f"z{n}", bytes(500_000)) for n in range(4)])
    for _ in range(3):
        data = zipped([(f"n{n}.zip", data) for n in range(4)])
    found, reasons = rejected(run, data, "file:///d/x.zip")
    assert set(reasons.values()) == {"gives more than 20 times its own size"}
    assert len(found) < 20


def test_large_content_stops_at_byte_limit(run: Run, tar: Pack) -> None:
    """Large content at a low ratio is stopped by the byte limit."""
    data = gzip.compress(tar([(f"m{n}", random.Random(n).randbytes(500_000)) for n in range(6)]), compresslevel=1)
    limits = UnnestLimits(bytes=2 << 20, ratio=20)
    assert rejected(run, data, "file:///d/x.tar.gz", limits)[1][""] == "gives more than 2097152 bytes"


def test_sparse_file_with_too_many_holes_is_not_read(run: Run) -> None:
    """A sparse file of 8 EB in 2 kB is refused before it is read, and the archive goes on behind it."""
    info = tarfile.TarInfo("s")
    info.pax_headers = {"GNU.sparse.size": str((1 << 63) - 1), "GNU.sparse.numblocks": "0", "GNU.sparse.map": "0,0"}
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
        archive.addfile(info)
        archive.addfile(tarfile.TarInfo("behind"))
    found, reasons = outcomes(run(out.getvalue(), "file:///d/x.tar", settings={"limits": SMALL}))
    assert reasons == {"s": f"a sparse file with {(1 << 63) - 1} bytes of holes"}
    assert set(found) == {"s", "behind", ""}


def test_members_are_counted(run: Run, tar: Pack, zipped: Pack) -> None:
    """Members are counted, in a tar as they are read, in a zip before any is read."""
    many = [(f"{n}", b"") for n in range(300)]
    found, reasons = rejected(run, tar(many), "file:///d/x.tar")
    assert (reasons, len(found)) == ({"": "more than 200 members"}, 201)
    found, reasons = rejected(run, zipped(many), "file:///d/x.zip")
    assert (reasons, len(found)) == ({"": "more than 200 members"}, 1)


def test_entries_are_counted_over_all_nested_archives(run: Run, tar: Pack) -> None:
    """Members of nested archives count like those of a flat one."""
    inner = tar([(f"{n}", b"") for n in range(90)])
    found, reasons = rejected(run, tar([(f"{n}.tar", inner) for n in range(5)]), "file:///d/x.tar")
    assert set(reasons) == {"2.tar", ""}
    assert len(found) <= 204


def test_names_count_towards_budget(run: Run, tar: Pack) -> None:
    """Names count towards the budget by the byte."""
    assert rejected(run, tar([(f"{n}" * 300, b"") for n in range(99)]), "file:///d/x.tar")[1] == {
        "": "names of more than 20000 bytes in all"
    }


def test_repeated_name_takes_linear_time(run: Run, tar: Pack) -> None:
    """5,000 members of one name are numbered, each in constant time."""
    found, _ = outcomes(run(tar([("m", b"")] * 5_000), "file:///d/x.tar"))
    assert "m;5000" in found


def test_deeply_nested_member_is_rejected(run: Run, tar: Pack) -> None:
    """A too deeply nested member is rejected; its neighbours are read."""
    data = b"the end\n"
    for n in range(12):
        data = tar([(f"{n}.tar", data), (f"{n}.txt", b"words\n")])
    found, reasons = rejected(run, data, "file:///d/x.tar")
    assert list(reasons.values()) == ["nested more than 6 deep"]
    assert found["11.txt"].type == "RawText"
    assert len(found) == 13


def test_encodings_count_as_depth(run: Run) -> None:
    """Encodings count as depth."""
    data = b"words\n"
    for _ in range(12):
        data = gzip.compress(data)
    assert rejected(run, data, "file:///d/x.gz")[1] == {"": "nested more than 6 deep"}


def test_quine_ends_at_depth_limit(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that contains itself, as encoding or as member, ends at the depth limit."""

    def itself(body: Reader, budget: Budget) -> Iterator[Member]:
        yield Member(b"x", body=body)

    quines = {"RawText": Encoding(("RawText",), "quine", {}, lambda body, _: body), "HTML": Container(("HTML",), itself)}
    monkeypatch.setattr(walk, "UNNESTERS", quines)
    assert rejected(run, b"words\n", "file:///d/x.txt")[1] == {"": "nested more than 6 deep"}
    assert rejected(run, b"<html>words", "file:///d/x")[1] == {"x#x#x#x#x#x": "nested more than 6 deep"}


def test_zip_quine_is_refused_as_overlapping(run: Run) -> None:
    """A zip whose entry is the zip itself, through an offset to its start, is refused as overlapping."""
    name, head = b"x.zip", struct.pack("<4s5HIIIHH", b"PK\x03\x04", 20, 0, 0, 0, 0, 0, 0, 0, 5, 0)
    size = len(head) + len(name) + 46 + len(name) + 22
    central = struct.pack("<4s6HIIIHHHHHII", b"PK\x01\x02", 20, 20, 0, 0, 0, 0, 0, size, size, 5, 0, 0, 0, 0, 0, 0)
    end = struct.pack("<4s4HIIH", b"PK\x05\x06", 0, 0, 1, 1, len(central) + 5, len(head) + 5, 0)
    _, reasons = rejected(run, head + name + central + name + end, "file:///d/x.zip")
    assert reasons == {"": "entries overlap with the directory, or lie outside of the archive"}


def test_overlapping_zip_entries_are_refused(run: Run) -> None:
    """A zip whose entries share one body is refused before any of it is read."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("kernel", bytes(100_000))
        info = archive.infolist()[0]
        for n in range(50):
            copy = zipfile.ZipInfo(f"{n}")
            for field in ("header_offset", "CRC", "compress_size", "file_size", "compress_type"):
                setattr(copy, field, getattr(info, field))
            archive.filelist.append(copy)
    found, reasons = rejected(run, out.getvalue(), "file:///d/x.zip")
    assert (set(found), reasons) == ({""}, {"": "entries overlap"})


# ---- other exceptions -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "error", [MemoryError(), RecursionError("deep"), OSError(28, "No space left"), UnicodeError("x" * 999), ZeroDivisionError()]
)
def test_exception_in_member_is_an_outcome(error: Exception, run: Run, tar: Pack, monkeypatch: pytest.MonkeyPatch) -> None:
    """No exception of a parser escapes; processing continues with the next member."""

    def summarize(facts: Facts, body: object, found: object) -> None:
        if facts.name == b"bad":
            raise error

    monkeypatch.setattr(walk, "summarize", summarize)
    found, reasons = outcomes(run(tar([("bad", b"1"), ("good", b"2")]), "file:///d/x.tar"))
    assert set(reasons) == {"bad"}
    assert reasons["bad"].startswith(type(error).__name__)
    assert set(found) == {"bad", "good", ""}


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_process_exit_is_not_caught(error: type[BaseException], run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exceptions that end the process are not caught."""

    def summarize(facts: object, body: object, found: object) -> None:
        raise error

    monkeypatch.setattr(walk, "summarize", summarize)
    with pytest.raises(error):
        run(b"words\n")


def test_oversized_member_is_digested_and_rejected(run: Run, tar: Pack) -> None:
    """A member above the size limit is rejected with its size and digest; the archive is not damaged."""
    limits = UnnestLimits(member=200_000, memory=1_000)
    found, reasons = outcomes(
        run(tar([("big", bytes(300_000)), ("small.txt", b"x\n" * 50_000)]), "file:///d/x.tar", settings={"limits": limits})
    )
    assert reasons == {"big": "larger than 200000 bytes"}
    assert found["big"].size == 300_000
    assert found["big"].sha256
    assert found["small.txt"].type == "RawText"


def test_oversized_names_become_digests(run: Run, tar: Pack) -> None:
    """Long names, also through nesting, become distinct digests, so that every path fits in a record."""
    data = b"words\n"
    for depth in range(5):
        data = tar([("n" * 3_000 + f"{depth}.tar", data), ("x" * 5_000, b"1"), ("x" * 5_001, b"2")])
    found, _ = outcomes(run(data, "file:///d/x.tar"))
    assert len(found) == 5 * 3 + 1
    assert max(len(path.encode()) for path in found) < 13_000


def test_deferred_summaries_go_to_a_file(run: Run, tar: Pack, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond a few, summaries held back until the end of the listing go to an anonymous file, and are unchanged."""
    data = tar([*((f"{n:02}.o", b"\x7fELF%d" % n) for n in range(20)), ("07.c", b"int x;\n")])
    whole = run(data, "file:///d/x.tar")
    monkeypatch.setattr(member, "MAX_HELD", 3)
    assert run(data, "file:///d/x.tar") == whole
    assert "07.o" not in outcomes(whole)[0]


@pytest.mark.parametrize("seed", range(6))
def test_mutated_nesting_keeps_the_laws(seed: int, run: Run, tar: Pack, zipped: Pack, ar: Pack) -> None:
    """In randomly altered nested archives every path has a summary, every damage a reason, and there is one end record."""
    source = random.Random(seed)
    pack = source.choice([tar, zipped, ar])
    data = pack([("a.zip", zipped(members(3))), ("b.tar.gz", gzip.compress(tar(members(3)))), ("c.a", ar(members(3))), *members(2)])
    for _ in range(25):
        mutated = bytearray(data)
        for _ in range(source.choice((1, 3, 30))):
            mutated[source.randrange(len(mutated))] = source.randrange(256)
        at = source.randrange(len(mutated))
        del mutated[at : at + source.choice((0, 0, 1, 700))]
        outcomes(run(bytes(mutated), "file:///d/x", settings={"limits": SMALL}))
