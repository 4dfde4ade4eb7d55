from __future__ import annotations

import struct
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from processors.essence.unnest.containers.tnef import CODEPAGE, FROM, MAGIC, PROPERTIES, SENT, START, SUBJECT, about_tnef

if TYPE_CHECKING:
    from tests.processors.essence.unnest.conftest import Read

SAMPLES = Path(__file__).resolve().parents[3] / "samples" / "unnest"


@pytest.mark.parametrize("cut", [1, 5, 60])
def test_truncated_arj_gives_complete_files(cut: int, read: Read) -> None:
    """A truncated ARJ archive gives its complete files, and is reported as damaged."""
    data = (SAMPLES / "arj" / "methods.arj").read_bytes()
    found, problem = read("arj", data[:-cut], forward=True)
    assert [member["name"] for member in found][:2] == ["notes.txt", "words.txt"]
    assert not any("error" in member for member in found[:2])
    assert problem.startswith("truncated")


def test_arj_header_with_a_wrong_checksum_is_damaged(read: Read) -> None:
    """An ARJ header with a wrong checksum ends the archive."""
    data = (SAMPLES / "arj" / "methods.arj").read_bytes()
    found, problem = read("arj", data.replace(b"words.txt", b"wirds.txt", 1))
    assert [member["name"] for member in found] == ["notes.txt"]
    assert problem == "damaged header: its checksum fails"


def test_truncated_tnef_gives_first_attachment(read: Read) -> None:
    """A winmail.dat truncated in its second attachment gives the first one and the text, and is reported as damaged."""
    data = (SAMPLES / "tnef" / "chart.tnef").read_bytes()
    found, problem = read("tnef", data[:-120])
    assert [member["name"] for member in found] == ["chart%20of%20Ærø.txt", "message.html"]
    assert problem.startswith("truncated")


def test_tnef_attachment_with_a_wrong_checksum_is_damaged(read: Read) -> None:
    """An attachment with a wrong checksum is reported; the others are given."""
    data = (SAMPLES / "tnef" / "chart.tnef").read_bytes()
    found, problem = read("tnef", data.replace(b"north", b"south"))
    assert [member.get("error", "") for member in found] == ["its checksum fails", "", ""]
    assert not problem


def attribute(number: int, data: bytes, level: int = 1) -> bytes:
    """Return a TNEF attribute."""
    return struct.pack("<BII", level, number, len(data)) + data + struct.pack("<H", sum(data) & 0xFFFF)


def text(number: int, value: str) -> bytes:
    """Return a text property."""
    raw = value.encode("utf-16-le") + b"\0\0"
    return struct.pack("<HHII", 0x1F, number, 1, len(raw)) + raw + bytes(-len(raw) % 4)


START_OF_ALL = MAGIC + b"\1\0" + attribute(CODEPAGE, struct.pack("<II", 1251, 0))
NAME = "Анна\0".encode("cp1251")
OLD = (
    attribute(SUBJECT, "О лодках\0".encode("cp1251")),
    attribute(FROM, struct.pack("<4H", 4, 8 + len(NAME) + 9, len(NAME), 9) + NAME + b"SMTP:a@b\0"),
    attribute(SENT, struct.pack("<7H", 2001, 2, 3, 4, 5, 6, 0)),
)
NEW = attribute(
    PROPERTIES,
    struct.pack("<I", 3) + text(0x0037, "О лодках") + text(0x0C1A, "Анна") + struct.pack("<HHQ", 64, 0x0039, 126256467060000000),
)
SAID = {"title": "О лодках", "author": "Анна", "date": "2001-02-03T04:05:06Z"}


@pytest.mark.parametrize("parts", [OLD, (NEW,), (NEW, *OLD)])
def test_tnef_has_subject_sender_and_date(parts: tuple[bytes, ...]) -> None:
    """Subject, sender and date are read once, from attributes or properties; those of an attachment are ignored."""
    attached = attribute(START, b"", 2) + attribute(SUBJECT, b"Another", 1)
    assert dict(about_tnef(START_OF_ALL + b"".join(parts) + attached)) == SAID
    assert not dict(about_tnef(START_OF_ALL + attached))


def test_truncated_tnef_header_raises_nothing() -> None:
    """A truncated header, or one with invalid offsets, raises nothing, and gives only values that it contains."""
    whole = START_OF_ALL + b"".join(OLD) + NEW
    for end in range(len(whole)):
        assert dict(about_tnef(whole[:end])).keys() <= SAID.keys()
    assert not dict(about_tnef(START_OF_ALL + attribute(SENT, b"\xff" * 14) + attribute(FROM, b"\xff" * 9)[:12]))
