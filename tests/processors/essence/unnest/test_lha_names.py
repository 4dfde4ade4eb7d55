"""Names in LHA archives, whose charset is mostly not declared."""

from __future__ import annotations

import io
import struct
from collections.abc import Sequence

import pytest

from processors.essence.formats.container import Budget, UnnestLimits
from processors.essence.unnest.containers.lha import open_lha


def _crc(data: bytes) -> int:
    """Return CRC-16/ARC, as LHA uses it."""
    mirrored = 0
    for byte in data:
        mirrored ^= byte
        for _ in range(8):
            mirrored = mirrored >> 1 ^ 0xA001 * (mirrored & 1)
    return mirrored


def _level0(name: bytes, body: bytes = b"x") -> bytes:
    head = b"-lh0-" + struct.pack("<IIIBBB", len(body), len(body), 0x5A00_0021, 0x20, 0, len(name)) + name
    head += struct.pack("<H", _crc(body))
    return bytes([len(head), sum(head) & 0xFF]) + head + body


def _level2(name: bytes, folder: bytes = b"", page: int = 0, body: bytes = b"x") -> bytes:
    extras = [b"\0\0\0", b"\1" + name, *[b"\2" + folder] * bool(folder), *[b"\x46" + struct.pack("<I", page)] * bool(page)]
    sizes = [*(len(extra) + 2 for extra in extras), 0]
    chunks = b"".join(extra + struct.pack("<H", size) for extra, size in zip(extras, sizes[1:], strict=True))
    head = struct.pack("<H", 26 + len(chunks)) + b"-lh0-" + struct.pack("<IIIBB", len(body), len(body), 1_700_000_000, 0x20, 2)
    head += struct.pack("<H", _crc(body)) + b"M" + struct.pack("<H", sizes[0]) + chunks
    return head[:27] + struct.pack("<H", _crc(head)) + head[29:] + body


def names(*members: bytes) -> list[str]:
    """Return the names of the members of an archive."""
    data = b"".join(members) + b"\0"
    return [member.name.decode() for member in open_lha(io.BytesIO(data), Budget(UnnestLimits(), 1 << 20))]


NAMES: dict[str, Sequence[str]] = {
    "cp932": ("会議の資料.txt", "表示ソース.txt", "テスト.c", "フォルダ/能力表/readme.txt", "ﾃﾞｰﾀ.dat"),
    "cp1252": ("Übung.txt", "Mädchen/Größe.txt"),
    "cp866": ("Отчет.txt", "Новая папка/план.txt"),
    "utf-8": ("会議の資料.txt", "Größe.txt"),
    "ascii": ("readme.txt", "doc/notes.txt"),
}


@pytest.mark.parametrize("charset", NAMES)
def test_names_without_a_declared_charset_are_decoded(charset: str) -> None:
    """Names are in the charset of the machine that wrote them; a backslash that is half a character does not split a path."""
    raw = [name.encode(charset) for name in NAMES[charset]]
    assert names(*map(_level0, raw)) == list(NAMES[charset])
    assert names(*(_level2(each) for each in raw if b"/" not in each)) == [name for name in NAMES[charset] if "/" not in name]


def test_folder_of_a_member_is_decoded() -> None:
    """Folders in a header of their own are decoded, also of a file whose own name is ASCII."""
    folder = "予定".encode("cp932") + b"\xff" + "表".encode("cp932") + b"\xff"
    assert names(_level2(b"a.txt", folder), _level2("ソ.txt".encode("cp932"), folder)) == ["予定/表/a.txt", "予定/表/ソ.txt"]


@pytest.mark.parametrize(("page", "charset"), [(932, "cp932"), (65001, "utf-8")])
def test_declared_code_page_is_obeyed(page: int, charset: str) -> None:
    """A header that states the code page of its names is obeyed."""
    assert names(_level2("ソ表.txt".encode(charset), "能".encode(charset) + b"\xff", page)) == ["能/ソ表.txt"]


def test_many_names_take_linear_time() -> None:
    """Only the first names are examined for their charset: 20,000 take a few seconds."""
    assert len(names(*[_level0("資料.txt".encode("cp932"))] * 20_000)) == 20_000
