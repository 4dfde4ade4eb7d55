"""Hostile inputs: tables that point at one place, fields that libraries cannot handle."""

from __future__ import annotations

import io
import struct
from collections.abc import Callable, Mapping

import pytest

from processors.essence.formats.container import Budget, Member, UnnestLimits
from processors.essence.member import Listed, charset
from processors.essence.recognize import recognize
from processors.essence.summarize import Facts, Found, SummaryError, summarize
from processors.essence.summarize.data import sqlite
from processors.essence.summarize.media import _exif
from processors.essence.unnest.text.mail import UNNESTER as MAIL

Make = Callable[..., Found]


def _varint(number: int) -> bytes:
    digits = [number & 127]
    while number := number >> 7:
        digits.append(number & 127 | 128)
    return bytes(reversed(digits))


def schema(cells: int, overlap: int) -> bytes:
    """Return a one-page database whose cells share one offset, or each start `overlap` bytes before the last."""
    name, sql = b"n" * 8, b"CREATE TABLE t(" + b"a," * 5_000
    head = _varint(23) + _varint(13 + 2 * len(name)) + _varint(15) + _varint(1) + _varint(13 + 2 * len(sql))
    record = _varint(len(head) + 1) + head + b"table" + name + b"t\1" + sql
    cell = _varint(len(record)) + _varint(1) + record
    page = bytearray(65_536)
    page[:24] = b"SQLite format 3\0" + struct.pack(">H", 1) + bytes([1, 1, 0, 64, 32, 32])
    page[56:60] = struct.pack(">I", 1)
    page[100:108] = struct.pack(">BHHHB", 13, 0, cells, 0, 0)
    at = len(page) - len(cell)
    page[at:] = cell
    for n in range(cells):
        page[108 + 2 * n : 110 + 2 * n] = struct.pack(">H", at - n * overlap)
    return bytes(page)


@pytest.mark.parametrize("overlap", [0, 1])
def test_shared_sqlite_cells_are_read_once(overlap: int, monkeypatch: pytest.MonkeyPatch, summary: Make) -> None:
    """No more is read of an SQLite page than its size, however many cells it lists."""
    asked: list[int] = []
    record = sqlite._record

    def counted(cell: bytes, encoding: str) -> tuple[str, str, str]:
        asked.append(len(cell))
        return record(cell, encoding)

    monkeypatch.setattr(sqlite, "_record", counted)
    assert "error" not in summary(b"a.sqlite", schema(20_000, overlap)).attributes
    assert sum(asked) <= 65_536


def test_recursive_exif_directories_are_read_once(monkeypatch: pytest.MonkeyPatch, summary: Make) -> None:
    """Each Exif tag is read once, however often its directory lists it or is listed."""
    entries = [struct.pack("<HHII", 0x8769, 4, 1, 8)] * 3 + [struct.pack("<HHII", 0x10E, 2, 4_000, 9_000)] * 497
    exif = (b"II*\0" + struct.pack("<IH", 8, len(entries)) + b"".join(entries)).ljust(9_000, b"\0") + b"\xe9" * 4_000
    asked: list[int] = []
    add = _exif._add

    def counted(raw: bytes, at: int, entry: tuple[int, ...], order: str, found: Found) -> None:
        asked.append(entry[0])
        add(raw, at, entry, order, found)

    monkeypatch.setattr(_exif, "_add", counted)
    found = summary(b"a.png", b"\x89PNG\r\n\x1a\n" + struct.pack(">I", len(exif)) + b"eXIf" + exif + bytes(4))
    assert asked == [0x10E]
    assert found.text("description")


@pytest.mark.parametrize("stated", ["text/html; charset*=a; charset*1=b", 'text/html; charset="x; charset*=a; charset*1=b"'])
def test_unusable_charset_is_ignored(stated: str) -> None:
    """An unusable declared charset is ignored; a message with such a part still has its text."""
    assert isinstance(charset(stated), str)
    head = "From: a@b\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=x\n\n"
    mail = f"{head}--x\nContent-Type: {stated}\n\nA whale.\n--x--\n"
    members = list(MAIL.open(io.BytesIO(mail.encode()), Budget(UnnestLimits(), len(mail))))
    assert all(isinstance(charset(member.stated), str) for member in members)


@pytest.mark.parametrize("name", [b"FILES.BBS", b"00-INDEX", b"x.xml", b"a.info", b"x.html", b"x.msg", b"a.mp4", b"a.wpd"])
def test_empty_file_has_summary_or_reason(name: bytes) -> None:
    """An empty file causes no internal error: it has a summary, or a reason that names the missing format."""
    kind = recognize(name, b"")
    why = ""
    try:
        summarize(Facts(name, "http://example.org/x", kind.type, kind.content_type, 0, 0, ""), io.BytesIO(b""), Found())
    except SummaryError as error:
        why = str(error)
    assert "Error:" not in why


def test_listed_name_is_one_line() -> None:
    """Each listed name is one line, whatever line ends it contains and however long it is when displayed."""
    listing = Listed("")
    for name in ("a\u2028b", "c\x85d", "e\u202ef", "g"):
        listing.enter(Member(name=name.encode()))
    found = Found()
    listing.tell(found)
    assert found.text("contents").splitlines() == ["a b", "c d", "e f", "g"]
    many, found = Listed(""), Found()
    for n in range(300):
        many.enter(Member(name=b"%03d" % n + b"\xff" * 20))
    many.tell(found)
    assert {len(line) for line in found.text("contents").split("\n")} == {23}


def test_cmake_documentation_has_no_keys(summary: Make) -> None:
    """Text that resembles a key in the documentation of a CMake module is not a key."""
    text = b"#[==[.rst:\nFindX\n-----\n\nFind X.\n\ntitle: other\nDescription: this is it\n#]==]\nset(name x)\n"
    attributes: Mapping[str, list[str | bytes]] = summary(b"FindX.cmake", text).attributes
    assert (attributes["title"], attributes["description"]) == (["FindX"], ["Find X."])
