"""Archives that do not begin at the first byte: padding, programs and scripts before them."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from processors.essence.stage import Output
from schemas.records import Complete, Partial, Rejected, Summary
from tests.samples.written import archive

Run = Callable[..., list[Output]]
Pack = Callable[[Sequence[tuple[str, bytes]]], bytes]

MEMBERS = [("doc/a.txt", b"Some words.\n"), ("b.txt", b"Others.\n" * 40)]
PE = b"MZ" + bytes(58) + (64).to_bytes(4, "little") + b"PE\0\0\x4c\1\0\0" + bytes(90_000)
ELF = b"\x7fELF\2\1\1" + bytes(9) + b"\2\0\x3e\0" + random.Random(3).randbytes(70_000)
SCRIPT = b'#!/bin/sh\nunzip -q "$0"\nexit 0\n'
NOISE = random.Random(1).randbytes(5_000)


def summaries(records: list[Output]) -> dict[str, Summary]:
    """Return the summaries by path."""
    return {r.path: r for r in records if isinstance(r, Summary)}


@pytest.mark.parametrize(
    ("name", "ahead", "kind"),
    [
        ("x.zip", bytes(700), "Zip"),
        ("x.zip", NOISE, "Zip"),
        ("x.zip", b"\0" * 70_000, "Zip"),
        ("setup.exe", PE, "Binary"),
        ("installer", ELF, "Binary"),
        ("install.sh", SCRIPT, None),
        ("install.sh", SCRIPT + b"# words to read\n" * 400, "ShellScript"),
        ("install.run", SCRIPT, None),
    ],
)
def test_zip_behind_other_bytes_is_opened(name: str, ahead: bytes, kind: str | None, run: Run, zipped: Pack) -> None:
    """The members of a zip behind padding, a program or a script are summarized, in a file and in an archive."""
    data = ahead + zipped(MEMBERS)
    records = run(data, f"file:///d/{name}")
    found = summaries(records)
    assert {path: s.size for path, s in found.items() if path} == {n: len(d) for n, d in MEMBERS}
    assert kind in (None, found[""].type)
    assert isinstance(records[-1], Complete)
    inner = summaries(run(archive("pax", [(name, data)]), "file:///d/x.tar"))
    assert {path for path in inner if "#" in path} == {f"{name}#{n}" for n, _ in MEMBERS}


@pytest.mark.parametrize("ahead", [PE, ELF], ids=["PE", "ELF"])
@pytest.mark.parametrize("kind", ["7z", "rar"])
def test_self_extracting_7z_and_rar_are_opened(kind: str, ahead: bytes, run: Run, samples: Path) -> None:
    """A 7z or RAR behind a program is opened; signatures in the program itself are passed over."""
    marks = b"7z\xbc\xaf\x27\x1c\0\4" + bytes(40) + b"Rar!\x1a\7\0" + bytes(40) + b"Rar!\x1a\7\1\0" + bytes(9)
    data = archive("7zip", MEMBERS) if kind == "7z" else (samples / "unnest" / "rar" / "stored5.rar").read_bytes()
    found = summaries(run(ahead + marks + data, "file:///d/setup.exe"))
    assert found["doc/a.txt"].attributes["partial-text"] == ("Some words.",)
    assert found[""].type == "Binary"


@pytest.mark.parametrize(("name", "reason"), [("x.7z", "7z"), ("x.zip", "directory"), ("x.rar", "archive"), ("x.7z.002", "part")])
def test_named_archive_without_an_archive_has_a_reason(name: str, reason: str, run: Run) -> None:
    """A binary file that is named as an archive, and has none in it, is rejected with the reason, and has the type of its name."""
    records = run(NOISE, f"file:///d/{name}")
    (rejected,) = (r for r in records if isinstance(r, Rejected))
    assert reason in rejected.reason
    assert summaries(records)[""].type in ("SevenZip", "Zip", "Rar")
    assert isinstance(records[-1], Partial)


def test_damaged_self_extracting_archive_has_a_reason(run: Run) -> None:
    """A 7z in a program that was cut off keeps the attributes of the program, and is rejected with the reason."""
    records = run(PE + archive("7zip", MEMBERS)[:-9], "file:///d/setup.exe")
    (rejected,) = (r for r in records if isinstance(r, Rejected))
    assert "the directory at the end is missing" in rejected.reason
    assert summaries(records)[""].type == "Binary"


def test_program_without_an_archive_has_no_members(run: Run) -> None:
    """A program, a script and an unknown file without an archive are summarized as before, without a reason."""
    for name, data in (("a.exe", PE), ("b", ELF), ("c.sh", SCRIPT), ("d.dat", NOISE), ("e.dat", NOISE + b"PK\5\6" + bytes(18))):
        (summary, end) = run(data, f"file:///d/{name}")
        assert isinstance(summary, Summary)
        assert not {"reason", "member-count"} & set(summary.attributes)
        assert isinstance(end, Complete)
