"""Rejected objects: what was recognized stays recognized."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from processors.essence.recognize import HEAD, recognize
from processors.essence.stage import Output
from schemas.records import File, Rejected, Summary
from tests.processors.essence.test_quine import solved

Run = Callable[..., list[Output]]

DAMAGED = {
    "letter.doc": b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600),
    "paper.pdf": b"%PDF-1.7\n" + b"\x93\x12 no object \x00" * 60,
    "late.pdf": b"\x00\x01 ahead \xff\n%PDF-1.4\n" + b"\xff\x00" * 40,
    "letter.zip": b"PK\x03\x04" + bytes(20),
    "old.Z": b"\x1f\x9d\x89abcdef",
    "q.gz": solved(),
    "logs.xz": b"\xfd7zXZ\x00" + bytes(60),
    "song.7z": b"7z\xbc\xaf\x27\x1c\0\4" + struct.pack("<IQQI", 0, 1 << 40, 90, 0) + bytes(60),
    "disc.cab": b"MSCF" + bytes(60),
    "sheet.xls": b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\xff" * 700,
}


@pytest.mark.parametrize("name", sorted(DAMAGED))
def test_rejected_object_keeps_its_type_and_media_type(name: str, run: Run) -> None:
    """The summary of a rejected object has the type and media type of its bytes and name, with the reason of its rejection."""
    data, known = DAMAGED[name], recognize(name.encode(), DAMAGED[name][:HEAD])
    assert known.type != "Unrecognized"
    records = run(data, f"file:///d/{name}")
    (summary,) = (r for r in records if isinstance(r, Summary))
    (rejected,) = (r for r in records if isinstance(r, Rejected))
    assert (summary.type, summary.content_type) == (known.type, known.content_type)
    assert summary.attributes["reason"] == (rejected.reason,)


@pytest.mark.parametrize("sample", ["sevenzip/encrypted.7z", "rar/stored4.rar"])
def test_rejected_member_keeps_its_name_without_a_type(sample: str, run: Run, samples: Path) -> None:
    """An encrypted member, of which no byte can be read, is Unrecognized; the archive around it keeps its type."""
    records = run((samples / "unnest" / sample).read_bytes(), f"file:///d/{sample}")
    found = {r.path: r.type for r in records if isinstance(r, Summary)}
    rejected = {r.path for r in records if isinstance(r, Rejected)}
    assert {found[path] for path in rejected} == {"Unrecognized"}
    assert found[""] in ("SevenZip", "Rar")


def test_summary_and_file_record_of_a_rejected_member_agree(run: Run, tar: Callable[..., bytes]) -> None:
    """Type and media type are the same in the summary of a rejected member and in its File record."""
    data = tar([(name, body) for name, body in DAMAGED.items() if name != "q.gz"])
    records = run(data, "file:///d/x.tar", settings={"files": True})
    files = {r.path: (r.type, r.content_type) for r in records if isinstance(r, File)}
    found = {r.path: (r.type, r.content_type) for r in records if isinstance(r, Summary)}
    assert found == files
    assert {r.path for r in records if isinstance(r, Rejected)} == set(DAMAGED) - {"q.gz"}
