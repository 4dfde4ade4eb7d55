"""Files embedded in documents: packages, objects, and invalid headers."""

from __future__ import annotations

import io
import struct
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processors.essence.formats.container import Budget, UnnestError, UnnestLimits
from processors.essence.unnest.containers.rtf import open_rtf
from tests.processors.essence.summarize.compound import compound
from tests.processors.essence.unnest.conftest import Forward

Read = Callable[..., tuple[list[dict[str, Any]], str]]


def packaged(name: bytes, data: bytes) -> bytes:
    """Return an embedded package with the file."""
    path = b"C:\\" + name + b"\0"
    head = struct.pack("<H", 2) + name + b"\0" + path + struct.pack("<HHI", 0, 3, len(path)) + path
    return head + struct.pack("<I", len(data)) + data


def ole_stream(name: bytes, data: bytes) -> bytes:
    """Return the stream of a compound file that contains the file."""
    body = packaged(name, data)
    return struct.pack("<I", len(body)) + body


def embedding(kind: bytes, data: bytes, form: int = 2) -> bytes:
    """Return an object in RTF form."""
    names = b"".join(struct.pack("<I", len(n)) + n for n in (kind + b"\0", b"", b""))
    return struct.pack("<II", 0x501, form) + names + struct.pack("<I", len(data)) + data


def rtf(*objects: bytes) -> bytes:
    """Return a document with the objects."""
    bodies = (b"\r\n".join(_lines(each.hex().encode())) for each in objects)
    groups = (b"{\\object\\objemb{\\*\\objdata \r\n" + each + b"}{\\result x}}" for each in bodies)
    return b"{\\rtf1 Text " + b"".join(groups) + b"\\par}"


def _lines(digits: bytes) -> list[bytes]:
    # Odd line lengths: the two digits of a byte may be on different lines.
    return [digits[at : at + 77] for at in range(0, len(digits), 77)]


@pytest.mark.parametrize("forward", [False, True])
def test_rtf_objects_are_extracted(read: Read, *, forward: bool) -> None:
    """Embedded objects are extracted unchanged, files with their names; a linked object is not a member."""
    big = bytes(range(256)) * 1_000
    body = rtf(
        embedding(b"Package", packaged(b"notes.txt", b"Boats.")),
        embedding(b"Word.Document.8", big),
        embedding(b"Linked", b"", form=1),
        embedding(b"Package", packaged(b"", b"No name.")),
    )
    found, problem = read("rtf", body, forward=forward)
    assert [(one["name"], one["size"]) for one in found] == [("notes.txt", 6), ("object-2", len(big)), ("object-4", 8)]
    assert (found[0]["text"], found[1]["length"], problem) == ("Boats.", len(big), "")


def test_damaged_rtf_objects_hide_no_others(read: Read) -> None:
    """An object with an invalid header, and a truncated one, do not hide the others."""
    body = rtf(b"\1\2\3", embedding(b"Package", packaged(b"a", b"whole")), embedding(b"X", b"cut off")[:-3])
    found, problem = read("rtf", body)
    assert [(one["name"], one.get("error", "")) for one in found] == [("a", ""), ("object-3", "truncated: the body ends early")]
    assert problem == "truncated: the head of an embedded file"


def test_files_in_compound_files_are_found(read: Read) -> None:
    """Files are found in the root and in nested storages, also beside a damaged one; other streams are not members."""
    body = compound(
        {
            "ObjectPool\t_1\t\x01Ole10Native": ole_stream(b"notes.txt", b"Boats."),
            "ObjectPool\t_2\tPackage": b"PK\x03\x04" + bytes(6_000),
            "ObjectPool\t_3\t\x01Ole10Native": b"\1\0\0\0\2",
            "ObjectPool\t_4\tCONTENTS": b"of something else",
            "ObjectPool\t_5\tCONTENTS": b"%PDF-1.4",
            "WordDocument": b"x",
        }
    )
    found, problem = read("outlook", body)
    assert [(one["name"], one["size"]) for one in found] == [
        ("notes.txt", 6),
        ("ObjectPool/_2/Package", 6_004),
        ("ObjectPool/_5/CONTENTS", 8),
    ]
    assert problem == "truncated: the head of an embedded file"


@given(st.lists(st.sampled_from([b"\\objdata", b" ", b"0", b"0105000002000000", b"000000", b"}", b"\\", b"ff" * 9]), max_size=40))
def test_any_rtf_raises_only_damage(pieces: list[bytes]) -> None:
    """In any RTF, no member is larger than its digits allow, and only damage is raised."""
    body, given = b"".join(pieces), 0
    with suppress(UnnestError):
        for member in open_rtf(Forward(io.BytesIO(body)), Budget(UnnestLimits(), len(body))):
            assert member.body is not None
            while data := member.body.read(3):
                given += len(data)
    assert given <= len(body) // 2


def test_invalid_pdf_attachment_is_skipped(read: Read) -> None:
    """A PDF with one invalid attachment gives the others, and is reported as damaged."""
    objects = (
        b"<< /Type /Catalog /Pages 2 0 R /Names << /EmbeddedFiles << /Names [(a) 4 0 R (b) 9 0 R (c) 4 0 R] >> >> >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] >>",
        b"<< /Type /Filespec /F (sea.txt) /UF (sea.txt) /EF << /F 5 0 R >> >>",
        b"<< /Type /EmbeddedFile /Length 3 >>\nstream\nsea\nendstream",
    )
    body = b"".join(b"%d 0 obj\n%s\nendobj\n" % (n, o) for n, o in enumerate(objects, 1))
    found, problem = read("pdf", b"%PDF-1.7\n" + body + b"trailer\n<< /Root 1 0 R /Size 6 >>\n%%EOF\n")
    assert [member["text"] for member in found] == ["sea", "sea"]
    assert problem.startswith("damaged")
