"""Archives of which parts cannot be read: every member that is named has a reason, and none is lost without one."""

from __future__ import annotations

import io
import struct
import tarfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from processors.essence.formats.container import Budget, UnnestError, UnnestLimits
from processors.essence.unnest import Container, members, plugins
from tests.samples.written import archive

Read = Callable[..., tuple[list[dict[str, Any]], str]]
Pack = Callable[..., bytes]

SAMPLES = Path(__file__).resolve().parents[3] / "samples" / "unnest"
FILES = {
    name: [f.read_bytes() for f in sorted((SAMPLES / name).iterdir()) if f.suffix != ".json"]
    for name, plugin in plugins().items()
    if isinstance(plugin, Container)
}
LIMITS = UnnestLimits(bytes=1 << 24, entries=1_000, member=1 << 22)


# ---- every unnester --------------------------------------------------------------------------------------------------


@st.composite
def altered(draw: st.DrawFn, name: str) -> bytes:
    """Samples of a format, cut, padded before and behind, concatenated or with pieces in another order."""
    data = draw(st.sampled_from(FILES[name]))
    for _ in range(draw(st.integers(1, 3))):
        a, b = sorted(draw(st.lists(st.integers(0, len(data)), min_size=2, max_size=2)))
        pad = draw(st.sampled_from((b"\0", b"\xff", b"#!/bin/sh\n", b"MZ"))) * draw(st.integers(1, 700))
        other = draw(st.sampled_from(FILES[name]))
        pieces = (data[:a], data[b:], pad + data, data + pad, data + other, data[b:] + data[a:b] + data[:a], data[:a] + data[b:])
        data = draw(st.sampled_from(pieces))
    return data


@pytest.mark.parametrize("name", sorted(FILES))
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_container_without_members_has_a_reason(name: str, data: st.DataObject) -> None:
    """An altered sample yields a member or has a bounded reason; only documents may have neither, and no other error is raised."""
    container, content = plugins()[name], data.draw(altered(name))
    assert isinstance(container, Container)
    count, reason = 0, ""
    try:
        for member in members(container, io.BytesIO(content), Budget(LIMITS, len(content))):
            count += 1
            while member.body and member.body.read(1 << 16):
                pass
    except UnnestError as error:
        reason = error.reason
    assert count or reason or container.summarized
    assert len(reason) <= 200


@pytest.mark.parametrize("kind", ["7zip", "ar_bsd", "cpio_newc", "pax", "zip"])
def test_empty_archive_says_that_it_is_empty(kind: str) -> None:
    """An archive that was written without members gives that as its reason."""
    name = {"7zip": "sevenzip", "ar_bsd": "ar", "cpio_newc": "cpio", "pax": "tar"}.get(kind, kind)
    container, data = plugins()[name], archive(kind, [])
    assert isinstance(container, Container)
    with pytest.raises(UnnestError, match=r"no members|the directory|truncated"):
        list(members(container, io.BytesIO(data), Budget(LIMITS, len(data))))


# ---- names behind a fatal error --------------------------------------------------------------------------------------


def vint(number: int) -> bytes:
    """Return a number of RAR 5."""
    out = b""
    while number > 0x7F:
        out, number = out + bytes((number & 0x7F | 0x80,)), number >> 7
    return out + bytes((number,))


def block5(content: bytes) -> bytes:
    """Return a block of RAR 5 with its checksum and size."""
    sized = vint(len(content)) + content
    return struct.pack("<I", zlib.crc32(sized)) + sized


def file5(name: str, data: bytes, *, encrypted: bool = False, flags: int = 0, method: int = 0) -> bytes:
    """Return a file of RAR 5 with its data."""
    extra = b"\x30\x01\x00\x00\x0f" + bytes(44) if encrypted else b""
    start = vint(2) + vint(2 | bool(extra) | flags) + (vint(len(extra)) if extra else b"") + vint(len(data))
    about = vint(4) + vint(len(data)) + vint(0o644) + struct.pack("<I", zlib.crc32(data)) + vint(method) + vint(1)
    return block5(start + about + vint(len(name)) + name.encode() + extra) + data


def rar5(*blocks: bytes, volume: int = -1, more: bool = False) -> bytes:
    """Return an archive of RAR 5; `volume`: the number of its part, from 0; `more`: whether another part follows."""
    main = b"" if volume < 0 else vint(volume) if volume else b""
    first = block5(vint(1) + vint(0) + vint((volume >= 0) | 2 * (volume > 0)) + main)
    return b"Rar!\x1a\7\1\0" + first + b"".join(blocks) + block5(vint(5) + vint(0) + vint(more))


def errors(found: list[dict[str, Any]]) -> dict[str, str]:
    """Return the reason of each member by name; "" for those that were read."""
    return {f["name"]: f.get("error", "") for f in found}


@pytest.mark.parametrize("forward", [False, True])
def test_names_behind_an_encrypted_file_of_rar5_are_listed(forward: bool, read: Read) -> None:
    """All files of an archive with encrypted ones are named, each with the reason; those before them are read."""
    data = rar5(file5("a.txt", b"words"), file5("b.txt", b"x" * 32, encrypted=True), file5("c.txt", b"y" * 16, encrypted=True))
    found, problem = read("rar", data, forward=forward)
    assert errors(found) == {"a.txt": "", "b.txt": "encrypted", "c.txt": "encrypted"}
    assert not problem
    packed = [file5(f"{n}.txt", b"\xa5" * 40, encrypted=n != "e", method=0x80) for n in "bcde"]
    found, problem = read("rar", rar5(file5("a.txt", b"words"), *packed), forward=forward)
    assert list(errors(found).items())[:4] == [("a.txt", ""), *((f"{n}.txt", "encrypted") for n in "bcd")]
    assert errors(found)["e.txt"]
    assert all(f.get("text") == "words" or f["error"] for f in found)


def test_encrypted_headers_of_rar_are_the_reason(read: Read) -> None:
    """An archive whose names are encrypted says so, in both versions."""
    five = b"Rar!\x1a\7\1\0" + block5(vint(4) + vint(0) + bytes(18)) + b"\x55" * 90
    main = struct.pack("<BHH", 0x73, 0x80, 13) + bytes(6)
    four = b"Rar!\x1a\7\0" + struct.pack("<H", zlib.crc32(main) & 0xFFFF) + main + b"\x55" * 90
    assert read("rar", five)[1] == "encrypted, with its names"
    assert read("rar", four)[1] == "encrypted, with its names"


@pytest.mark.parametrize(
    ("volume", "flags", "more", "lost"),
    [
        (0, (0, 16), True, "part 1 of a multi-volume archive: the parts after it are missing"),
        (1, (8, 16), True, "part 2 of a multi-volume archive: the parts before it and the parts after it are missing"),
        (4, (8, 0), False, "part 5 of a multi-volume archive: the parts before it are missing"),
    ],
)
def test_part_of_a_rar_says_which_part_it_is(volume: int, flags: tuple[int, int], more: bool, lost: str, read: Read) -> None:
    """A part of a multi-volume archive names its files, and says which part it is and what is missing."""
    files = [file5("a.txt", b"first", flags=flags[0]), file5("m.txt", b"mid"), file5("z.txt", b"last", flags=flags[1])]
    found, problem = read("rar", rar5(*files, volume=volume, more=more))
    assert problem == lost
    assert {f["name"] for f in found} == {"a.txt", "m.txt", "z.txt"}
    assert all(f.get("text") or f.get("error") for f in found)


def sevenzip(files: list[tuple[str, bytes]], coder: bytes) -> bytes:
    """Return a 7z of stored files whose coder is declared as another one (7zFormat.txt, "Folder")."""
    data = archive("7zip", files, options="compression=store")
    at, size = struct.unpack_from("<QQ", data, 12)
    head, stored = data[32 + at : 32 + at + size], b"\1\1\0" * len(files) + b"\x0c"
    assert stored in head
    head = head.replace(stored, (b"\1" + bytes((len(coder),)) + coder) * len(files) + b"\x0c")
    start = struct.pack("<QQI", at, len(head), zlib.crc32(head))
    return data[:8] + struct.pack("<I", zlib.crc32(start)) + start + data[32 : 32 + at] + head


@pytest.mark.parametrize("coder", ["04f71101", "040109", "7f"])
def test_names_behind_an_unknown_codec_of_7z_are_listed(coder: str, read: Read) -> None:
    """Every file of a 7z whose codec is unknown is named, each with the reason, from a file and from a stream."""
    data = sevenzip([("a.txt", b"xx"), ("b.txt", b"yyy"), ("c.txt", b"z")], bytes.fromhex(coder))
    for forward in (False, True):
        found, problem = read("sevenzip", data, forward=forward)
        assert [f["name"] for f in found] == ["a.txt", "b.txt", "c.txt"]
        assert all(problem and f["error"] == problem for f in found)


def test_first_part_of_a_7z_says_how_much_is_missing(read: Read) -> None:
    """Part 001 of a 7z has no directory, and says how many bytes there are of how many; a later part has no signature."""
    data = archive("7zip", [("a.txt", b"words " * 50)])
    assert read("sevenzip", data[:60])[1].endswith(f"60 of {len(data)} bytes, the directory at the end is missing")
    assert "later part" in read("sevenzip", data[60:])[1]


@pytest.mark.parametrize(("flags", "lost"), [(1, "the parts before it"), (2, "the parts after it")])
def test_part_of_a_set_of_cabinets_says_which_part_it_is(flags: int, lost: str, read: Read) -> None:
    """A cabinet of a set names its files, and says which part it is and what is missing."""
    data = bytearray((SAMPLES / "cabinet" / "stored.cab").read_bytes())
    names = {f["name"] for f in read("cabinet", bytes(data))[0]}
    data[30:32], data[34:36] = struct.pack("<H", flags), struct.pack("<H", 2)
    at = 36
    data[at:at] = b"next.cab\0Disk 2\0"
    for place in (16, 8, 36 + 16):
        data[place : place + 4] = struct.pack("<I", int.from_bytes(data[place : place + 4], "little") + 16)
    for forward in (False, True):
        found, problem = read("cabinet", bytes(data), forward=forward)
        assert problem == f"part 3 of a multi-volume archive: {lost} are missing"
        assert names == {f["name"] for f in found}


@pytest.mark.parametrize(
    ("name", "folder", "whole"),
    [
        ("T\u00fcrme.txt", "\u65e5\u672c\uffff", "\u65e5\u672c/T\u00fcrme.txt"),
        ("\u8868\u793a.txt", "", "\u8868\u793a.txt"),
        (
            "\u043f\u043b\u0430\u043d.txt",
            "\u041f\u0430\u043f\u043a\u0430\uffff\u0412\uffff",
            "\u041f\u0430\u043f\u043a\u0430/\u0412/\u043f\u043b\u0430\u043d.txt",
        ),
        ("\U0001f6a2.txt", "a\uffff\ud55c\uae00\uffff", "a/\ud55c\uae00/\U0001f6a2.txt"),
    ],
)
def test_names_of_lha_in_utf16_headers_are_read(name: str, folder: str, whole: str, read: Read) -> None:
    """Names and folders in the UTF-16 headers 0x44 and 0x45 of LHA are read, whatever the name in the plain header is."""
    fields = [b"\x44" + name.encode("utf-16-le"), *[b"\x45" + folder.encode("utf-16-le")] * bool(folder)]
    data, sum16 = b"words", 0
    for byte in data:
        sum16 ^= byte
        for _ in range(8):
            sum16 = sum16 >> 1 ^ 0xA001 if sum16 & 1 else sum16 >> 1
    sizes = [len(field) + 2 for field in fields]
    more = b"".join(field + struct.pack("<H", size) for field, size in zip(fields, [*sizes[1:], 0], strict=True))
    head = b"-lh0-" + struct.pack("<II", len(data) + len(more), len(data)) + b"\0\0\x21\x1d\x20\1\5a.txt"
    head += struct.pack("<H", sum16) + b"M" + struct.pack("<H", sizes[0])
    found, problem = read("lha", bytes((len(head), sum(head) & 0xFF)) + head + more + data + b"\0")
    assert problem == ""
    assert [(f["name"], f["text"]) for f in found] == [(whole, "words")]


# ---- bytes before and behind -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("pad", [b"\0", b"\0" * 512, b"PK\5\6" * 9, b"x" * 90_000, b"PK\5\6" + b"\xff" * 70_000])
def test_bytes_behind_a_zip_are_no_damage(pad: bytes, read: Read) -> None:
    """Bytes behind a zip, also more than a comment may have, and bytes before it, change nothing of what is read."""
    for name in ("methods.zip", "streamed.zip"):
        data = (SAMPLES / "zip" / name).read_bytes()
        assert read("zip", data + pad) == read("zip", data)
        assert read("zip", pad + data + pad) == read("zip", data)


def test_last_part_of_a_zip_names_its_members(read: Read, zipped: Pack) -> None:
    """The last part of a zip in several names all members, those of earlier parts with the reason, and reads its own."""
    data = zipped([("a.txt", b"first\n"), ("b.txt", b"second\n")])
    at = data.index(b"PK\1\2")
    second = data.index(b"PK\3\4", 4)
    entry = bytearray(data[at:])
    third = entry.index(b"PK\1\2", 4)
    entry[third + 34 : third + 36] = struct.pack("<H", 2)
    entry[third + 42 : third + 46] = bytes(4)
    end = entry.index(b"PK\5\6")
    entry[end + 4 : end + 8] = struct.pack("<HH", 2, 2)
    entry[end + 16 : end + 20] = struct.pack("<I", at - second)
    found, problem = read("zip", data[second:at] + bytes(entry))
    assert problem == "part 3 of a multi-volume archive: the parts before it are missing"
    assert errors(found) == {"a.txt": problem, "b.txt": ""}
    first, problem = read("zip", b"PK\7\x08" + data[:at])
    assert [f["text"] for f in first] == ["first\n", "second\n"]
    assert problem == "part 1 of a multi-volume archive: the parts after it are missing"


@pytest.mark.parametrize("blocks", [1, 2, 41])
def test_zeros_before_a_tar_do_not_end_it(blocks: int, read: Read) -> None:
    """Blocks of zeros before the first header of a tar are passed over."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        info = tarfile.TarInfo("a.txt")
        info.size = 5
        tar.addfile(info, io.BytesIO(b"words"))
    data = bytes(512 * blocks) + out.getvalue()
    assert errors(read("tar", data)[0]) == {"a.txt": ""}
    assert read("tar", data)[1] == ""
    assert read("tar", bytes(512 * blocks) + b"x" * 512)[1]


@pytest.mark.parametrize("forward", [False, True])
def test_cut_between_files_of_rar_is_told(forward: bool, read: Read) -> None:
    """An archive of RAR 5 without its end, and one of RAR 4 that ends within a header, are truncated."""
    whole = rar5(file5("a.txt", b"words"), file5("b.txt", b"others"))
    for cut in (whole[:-8], whole[: whole.index(b"b.txt")], whole[: whole.index(b"words") + 5]):
        found, problem = read("rar", cut, forward=forward)
        assert "a.txt" in errors(found)
        assert problem.startswith("truncated")
    old = (SAMPLES / "rar" / "stored4.rar").read_bytes()
    for cut in (old[:-20], old[:-95]):
        found, problem = read("rar", cut, forward=forward)
        assert "link" in errors(found)
        assert problem.startswith("truncated")


def test_zip_before_a_zip_is_told(read: Read) -> None:
    """Of two archives one behind the other the last is read, and the first is not passed over without a word."""
    found, problem = read("zip", archive("zip", [("a.txt", b"first")]) + archive("zip", [("b.txt", b"last")]))
    assert errors(found) == {"b.txt": ""}
    assert problem == "another archive before this one is not read"
