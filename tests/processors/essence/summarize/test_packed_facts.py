"""Metadata of fonts and images that is compressed, or follows the pixels."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import brotli  # type: ignore[import-untyped]
import pytest

from processors.essence.summarize import Found

Make = Callable[..., Found]
XMP = b'<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF><dc:title><rdf:li>Whales</rdf:li></dc:title></rdf:RDF></x:xmpmeta>'
EXIF = b"Exif\0\0II*\0\x08\0\0\0\1\0" + struct.pack("<HHII", 0x13B, 2, 9, 26) + b"\0\0\0\0Mary Ann\0"


def _chunk(kind: bytes, data: bytes) -> bytes:
    return kind + struct.pack("<I", len(data)) + data + b"\0" * (len(data) % 2)


def _webp(*chunks: bytes) -> bytes:
    body = b"WEBP" + b"".join(chunks)
    return b"RIFF" + struct.pack("<I", len(body)) + body


@pytest.mark.parametrize(
    ("first", "size"),
    [
        (_chunk(b"VP8X", b"\x0c\0\0\0" + (1_999).to_bytes(3, "little") + (999).to_bytes(3, "little")), ("2000", "1000")),
        (_chunk(b"VP8L", b"\x2f" + (299 | 199 << 14).to_bytes(4, "little")), ("300", "200")),
        (_chunk(b"VP8 ", b"\0\0\0\x9d\x01\x2a" + struct.pack("<HH", 640, 480)), ("640", "480")),
    ],
    ids=["extended", "lossless", "lossy"],
)
def test_webp_has_size_and_author(first: bytes, size: tuple[str, str], summary: Make) -> None:
    """The summary of a WebP has its size in each of its forms, and the author stored after the image, however large that is."""
    found = summary(b"a.webp", _webp(first, _chunk(b"ALPH", b"x" * 300_001), _chunk(b"EXIF", EXIF), _chunk(b"XMP ", XMP)))
    assert (found.text("width"), found.text("height")) == size
    assert found.text("title") == "Whales"
    assert found.text("author") == "Mary Ann"


def _base128(value: int) -> bytes:
    return bytes([value >> 14 & 0x7F | 0x80, value >> 7 & 0x7F | 0x80, value & 0x7F])


def test_woff2_equals_uncompressed_font(samples: Path, summary: Make) -> None:
    """A font has the same summary as WOFF 2 as it has uncompressed."""
    bare = (samples / "font.ttf").read_bytes()
    entries = [struct.unpack_from(">4s3I", bare, 12 + 16 * n) for n in range(struct.unpack_from(">H", bare, 4)[0])]
    numbers = {b"maxp": 4, b"name": 5}
    directory, tables = b"", b""
    for tag, _, at, size in entries:
        directory += bytes([numbers.get(tag, 63)]) + (b"" if tag in numbers else tag) + _base128(size)
        tables += bare[at : at + size]
    stream = brotli.compress(tables)
    # Padding and private data follow the stream.
    packed = struct.pack(">4sIIHHII24x", b"wOF2", 0x10000, 0, len(entries), 0, 0, len(stream)) + directory + stream + b"\0\0\0"
    expected = summary(b"x", bare)
    assert expected.text("family")
    assert summary(b"x", packed).attributes == expected.attributes
    assert summary(b"x", packed[:-9]).text("title")
