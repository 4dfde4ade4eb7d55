"""Archives of every kind as objects: members, encryption, damage and bombs. The reference is libarchive's writer."""

from __future__ import annotations

import binascii
import gzip
import struct
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from processors.essence.formats.container import UnnestLimits
from processors.essence.stage import Output
from schemas.records import Complete, Partial, Rejected, Summary
from tests.samples.written import archive

Run = Callable[..., list[Output]]
Pack = Callable[[Sequence[tuple[str, bytes]]], bytes]

MEMBERS = [("doc/a.txt", b"Some words.\n"), ("doc/T\u00fcrme.txt", b"Others.\n" * 40), ("b.txt", b"The last words.\n")]
WRITTEN = {
    "7zip": "SevenZip",
    "ar_bsd": "Archive",
    "cpio": "Cpio",
    "cpio_bin": "Cpio",
    "cpio_newc": "Cpio",
    "iso9660": "ISO9660",
    "pax": "Tar",
    "zip": "Zip",
}
LIMITS = UnnestLimits(ratio=20, ratio_from=1 << 20)
GROWN = "gives more than 20 times its own size"


def summaries(records: list[Output]) -> Mapping[str, Summary]:
    """Return the summaries by path."""
    return {r.path: r for r in records if isinstance(r, Summary)}


def reasons(records: list[Output]) -> Mapping[str, str]:
    """Return the reasons of rejection by path."""
    return {r.path: r.reason for r in records if isinstance(r, Rejected)}


@pytest.mark.parametrize("kind", sorted(WRITTEN))
def test_members_equal_those_written_by_libarchive(kind: str, run: Run) -> None:
    """Names, sizes and contents of members written by libarchive are read back; the content alone identifies the archive."""
    wanted = {name.rpartition("/")[2] if kind == "ar_bsd" else name: data for name, data in MEMBERS}
    records = run(archive(kind, MEMBERS), "file:///d/x")
    found = summaries(records)
    assert {path: s.size for path, s in found.items() if path} == {name: len(data) for name, data in wanted.items()}
    assert {path for path, s in found.items() if s.sha256 and path} == set(wanted)
    assert (found[""].type, found[""].attributes["member-count"]) == (WRITTEN[kind], ("3",))
    assert isinstance(records[-1], Complete)


def test_nested_archive_members_are_found(run: Run, tar: Pack) -> None:
    """Archives read by libarchive and by our own readers may be nested in each other."""
    inner = archive("7zip", [("x.tar", tar([("words.txt", b"Some words.\n")]))])
    found = summaries(run(archive("iso9660", [("y.tar", tar([("z.7z", inner)]))]), "file:///d/x.iso"))
    assert "y.tar#z.7z#x.tar#words.txt" in found


@pytest.mark.parametrize("sample", ["sevenzip/encrypted.7z", "rar/stored4.rar"])
def test_encrypted_member_is_rejected_with_reason(sample: str, run: Run, samples: Path) -> None:
    """An encrypted member is rejected with that reason; the archive itself is not damaged."""
    records = run((samples / "unnest" / sample).read_bytes(), f"file:///d/{sample}")
    assert set(reasons(records).values()) == {"encrypted"}
    assert "" not in reasons(records)
    assert isinstance(records[-1], Complete)


def test_truncated_archive_gives_members_before_cut(run: Run) -> None:
    """Members before the damage are given, and the loss is reported."""
    data = archive("iso9660", [("a.txt", b"Some words.\n"), ("z.bin", bytes(range(256)) * 4_000)])
    records = run(data[:-700_000], "file:///d/x.iso")
    assert summaries(records)["a.txt"].type == "RawText"
    assert set(reasons(records)) == {"z.bin", ""}
    assert isinstance(records[-1], Partial)


# ---- packages --------------------------------------------------------------------------------------------------------


def rpm(payload: bytes) -> bytes:
    """Return a package whose header has one tag, its name."""
    header = b"\x8e\xad\xe8\x01" + bytes(4)
    tag = struct.pack(">IIII", 1000, 6, 0, 1)
    lead = b"\xed\xab\xee\xdb".ljust(96, b"\0")
    return lead + header + struct.pack(">II", 0, 0) + header + struct.pack(">II", 1, 5) + tag + b"name\0" + payload


def test_header_of_an_rpm_becomes_attributes(run: Run, samples: Path) -> None:
    """Name, version, summary, description and license are in the summary of the RPM package itself."""
    found = summaries(run((samples / "unnest" / "rpm" / "zstd.rpm").read_bytes(), "file:///d/x.rpm"))[""].attributes
    assert found["title"] == ("harvest-sample: A sample package",)
    assert (found["name"], found["version"], found["license"]) == (("harvest-sample",), ("1.2-3",), ("Apache-2.0",))
    assert found["summary"] == ("A sample package",)
    assert found["description"] == ("A package made for tests.\nIt holds two small texts.",)


def test_damaged_rpm_keeps_header_attributes(run: Run) -> None:
    """An unreadable payload costs the members, not the attributes."""
    records = run(rpm(b"no payload"), "file:///d/x.rpm")
    assert summaries(records)[""].attributes["name"] == ("name",)
    assert reasons(records) == {"": "a payload of a compression that is not known"}


@pytest.mark.parametrize("sample", ["xz.deb", "zstd.deb"])
def test_control_file_of_a_debian_package_becomes_attributes(sample: str, run: Run, samples: Path) -> None:
    """The control file, in an archive inside a Debian package, gives attributes; it has a summary of its own, too."""
    data = (samples / "unnest" / "deb" / sample).read_bytes()
    found = summaries(run(data, "file:///d/x.deb"))
    own = found[""].attributes
    assert own["title"] == ("gatherer-tools: small programs around a Gatherer",)
    assert (own["name"], own["version"]) == (("gatherer-tools",), ("2.1-3",))
    assert "python3" in own["depends"]
    assert [s.type for path, s in found.items() if path.endswith("#./control")] == ["DebianControl"]
    for cut in range(1, len(data), 50):
        run(data[:cut], "file:///d/x.deb")


def test_debian_package_is_an_archive_of_archives(run: Run, ar: Pack, tar: Pack) -> None:
    """The two archives of a Debian package are opened, and it has a type of its own."""
    control = gzip.compress(tar([("./control", b"Package: x\nVersion: 1\n")]))
    data = archive("raw", [("d", tar([("./usr/share/doc/x/README", b"Read me.\n")]))], packed="zstd")
    found = summaries(
        run(ar([("debian-binary", b"2.0\n"), ("control.tar.gz", control), ("data.tar.zst", data)]), "file:///d/x.deb")
    )
    assert {"control.tar.gz#./control", "data.tar.zst#./usr/share/doc/x/README", "debian-binary"} <= set(found)
    plain = b"!<arch>\n%-16s%-12d%-6d%-6d%-8s%-10d`\n2.0\n" % (b"debian-binary", 0, 0, 0, b"100644", 4)
    assert summaries(run(plain, "file:///d/x"))[""].type == "DebianPackage"


def test_language_packages_are_opened_as_archives(run: Run, tar: Pack, zipped: Pack) -> None:
    """A wheel is opened as a zip, an npm package as a compressed tar, a gem as a tar of compressed files."""
    wheel = zipped([("x/__init__.py", b"'''Words.'''\n"), ("x-1.dist-info/METADATA", b"Name: x\n")])
    assert "x/__init__.py" in summaries(run(wheel, "file:///d/x-1-py3-none-any.whl"))
    npm = gzip.compress(tar([("package/package.json", b'{"name": "x"}\n')]))
    assert "package/package.json" in summaries(run(npm, "file:///d/x-1.0.0.tgz"))
    gem = tar([("metadata.gz", gzip.compress(b"name: x\n")), ("data.tar.gz", gzip.compress(tar([("lib/x.rb", b"# x\n")])))])
    found = summaries(run(gem, "file:///d/x-1.0.gem"))
    assert {"metadata.gz", "data.tar.gz#lib/x.rb"} <= set(found)
    assert found[""].type == "Tar"


# ---- bombs -----------------------------------------------------------------------------------------------------------


def binhex(data: bytes, repeated: int) -> bytes:
    """Return a file whose data are one byte and then only runs of 255."""
    head = b"\1x\0" + bytes(10) + struct.pack(">II", 255 * repeated, 0)
    packed = head.replace(b"\x90", b"\x90\0") + struct.pack(">H", binascii.crc_hqx(head, 0)) + (data + b"\x90\xff") * repeated
    text = binascii.b2a_base64(packed + bytes(-len(packed) % 3), newline=False)
    letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    ours = b"!\"#$%&'()*+,-012345689@ABCDEFGHIJKLMNPQRSTUVXYZ[`abcdefhijklmpqr"
    return b"(This file must be converted with BinHex 4.0)\n\n:" + text.translate(bytes.maketrans(letters, ours)) + b":\n"


BOMBS: Mapping[str, Callable[[], bytes]] = {
    "x.7z": lambda: archive("7zip", [("zeros", bytes(16 << 20))]),
    "many.7z": lambda: archive("7zip", [(f"{n}", bytes(1 << 20)) for n in range(16)]),
    "x.cpio.zst": lambda: archive("cpio_newc", [("zeros", bytes(16 << 20))], packed="zstd"),
    "x.iso.Z": lambda: archive("iso9660", [("zeros", bytes(16 << 20))], packed="compress"),
    "x.rpm": lambda: rpm(gzip.compress(archive("cpio_newc", [("zeros", bytes(16 << 20))]))),
    "x.hqx": lambda: binhex(b"x", 40_000),
}


@pytest.mark.parametrize("name", sorted(BOMBS))
def test_bomb_spends_its_budget_and_no_more(name: str, run: Run) -> None:
    """A bomb is stopped once its expansion exceeds its budget."""
    records = run(BOMBS[name](), f"file:///d/{name}", settings={"limits": LIMITS})
    assert set(reasons(records).values()) == {GROWN}
    assert isinstance(records[-1], Partial)


def test_skipped_members_of_solid_archive_spend_budget(run: Run) -> None:
    """In a solid archive, skipped members spend budget, too, since they must be decompressed."""
    data = archive("7zip", [*((f"{n}~", bytes(2 << 20)) for n in range(10)), ("a.txt", b"Some words.\n")])
    records = run(data, "file:///d/x.7z", settings={"limits": LIMITS})
    assert reasons(records) == {"": GROWN}
