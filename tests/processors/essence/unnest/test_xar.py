"""xar archives; the reference is libarchive's writer."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from typing import Any

import pytest

from tests.samples.written import archive

Read = Callable[..., tuple[list[dict[str, Any]], str]]

MEMBERS = [("a.txt", b"words\n" * 10), ("doc/T\u00fcrme.txt", b"Others.\n"), ("doc/deep/empty", b"")]


def packed(toc: bytes, heap: bytes = b"", size: int | None = None) -> bytes:
    """Return an archive with a table of contents."""
    data = zlib.compress(toc)
    return struct.pack(">4sHHQQI", b"xar!", 28, 1, len(data), len(toc) if size is None else size, 0) + data + heap


@pytest.mark.parametrize("compression", ["none", "gzip", "bzip2", "lzma", "xz"])
def test_members_equal_those_written_by_libarchive(compression: str, read: Read) -> None:
    """Files of each compression are read as libarchive wrote them, with their checksums."""
    data = archive("xar", MEMBERS, options=f"compression={compression}")
    for forward in (False, True):
        found, problem = read("xar", data, forward=forward)
        assert problem == ""
        assert {f["name"]: f["text"] for f in found if f["kind"] == "file"} == {n: d.decode() for n, d in MEMBERS}


def test_damaged_content_is_the_reason_of_its_member(read: Read) -> None:
    """A changed byte of the heap damages its member alone."""
    data = bytearray(archive("xar", [("a.txt", b"words\n"), ("b.txt", b"other\n")], options="compression=none"))
    data[data.index(b"words")] ^= 1
    found, problem = read("xar", bytes(data))
    assert problem == ""
    assert [f.get("error", "") for f in found] == ["its checksum fails", ""]


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        (b"<data><offset>-5</offset><length>9</length><size>9</size></data>", "no such offset"),
        (b"<data><length>9</length><size>1e9</size></data>", "no such offset"),
        (b"<data><offset>0</offset><length>0</length><encoding style='x'/></data>", "compression x is not known"),
    ],
)
def test_invalid_entry_has_a_reason(entry: bytes, reason: str, read: Read) -> None:
    """An invalid place or an unknown compression is the reason of its member."""
    found, _ = read("xar", packed(b"<xar><toc><file><name>a</name>" + entry + b"</file></toc></xar>"))
    assert reason in found[0]["error"]


def test_invalid_tables_of_contents_have_a_reason(read: Read) -> None:
    """A table that is empty, cut off, of another size, too large or no XML is a reason; entities are not expanded."""
    entity = b'<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]><xar><toc><file><name>&e;</name></file></toc></xar>'
    assert "root" not in str(read("xar", packed(entity))[0])
    for data in (packed(b""), packed(b"no table"), packed(b"<xar><toc></toc></xar>", size=3), packed(b"<a>" * 900_000)):
        assert read("xar", data)[1]
    assert read("xar", packed(b"<xar><toc></toc></xar>")[:40])[1]
