"""Readers of binary formats: any bytes give what is readable, or the damage is reported."""

import io
import random
import struct
from pathlib import Path
from unittest.mock import Mock

import mutagen
import pytest
from hypothesis import given
from hypothesis import strategies as st

from processors.essence.summarize import Facts, Found, SummaryError, summarize, summarizers
from processors.essence.summarize._base import MAX_SUMMARY

KINDS = {
    "Audio": (
        b"ID3\3\0\0\0\0",
        b"fLaC\0\0\0\x22",
        b"OggS\0\2",
        b"\0\0\0\x14ftypM4A ",
        b"RIFF\xff\0\0\0WAVE",
        b"FORM\0\0\0\xffAIFF",
    ),
    "Binary": (
        b"\x7fELF\x02\x01\x01",
        b"\x7fELF\x01\x02\x01",
        b"MZ" + bytes(58) + b"\x40\0\0\0PE\0\0",
        b"\xcf\xfa\xed\xfe",
        b"\xfe\xed\xfa\xce",
        b"\xca\xfe\xba\xbe\0\0\0\1",
    ),
    "Dvi": (b"\xf7\x02", b"\xf7\x02" + bytes(13)),
    "Font": (b"\0\1\0\0", b"OTTO\0\1", b"wOFF", b"ttcf", b"\x01fcp\x01\0\0\0", b"STARTFONT ", b"\x80\x01", b"StartFontMetrics 4"),
    "Image": (
        b"II*\0\x08\0\0\0",
        b"MM\0*\0\0\0\x08",
        b"\xff\xd8\xff\xe1\1\0Exif\0\0II*\0\x08\0\0\0",
        b"\x89PNG\r\n\x1a\n",
        b"GIF89a<rdf:RDF<dc:title",
    ),
    "SQLite": (b"SQLite format 3\0\x02\0", b"SQLite format 3\0\x02\0\1\1\0" + bytes(79) + b"\r"),
}
"""Leading bytes of the formats."""
STARTS = [(kind, start) for kind, starts in KINDS.items() for start in starts]


class Reads(io.BytesIO):
    """A file that counts its read calls and the bytes read."""

    count = 0
    size = 0

    def read(self, size: int | None = -1, /) -> bytes:
        raw = super().read(size)
        self.count += 1
        self.size += len(raw)
        return raw


def summarize_counted(kind: str, body: bytes) -> tuple[Found, Reads]:
    """Return the result for the bytes and the file that was read; only SummaryError may be raised."""
    found, file, reason = Found(), Reads(body), "none"
    try:
        summarize(Facts(b"name", "http://example.org/name", kind, "x/y", len(body), 0, ""), file, found)
    except SummaryError as error:
        reason = str(error)
    assert 0 < len(reason) <= 200
    assert found.text("title")
    assert sum(len(v) for values in found.attributes.values() for v in values) <= MAX_SUMMARY
    return found, file


@pytest.mark.parametrize(("kind", "start"), STARTS)
@given(rest=st.binary(max_size=400))
def test_any_bytes_are_read_in_bounded_steps(kind: str, start: bytes, rest: bytes) -> None:
    """Arbitrary bytes after the start of a format are read a bounded number of times."""
    _, file = summarize_counted(kind, start + rest)
    assert file.count < 1_500


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_damaged_sample_gives_readable_parts(kind: str, samples: Path) -> None:
    """A truncated or altered sample gives what is readable."""
    module = summarizers()[kind].run.__module__.rpartition(".")[2]
    sample = next(p for p in samples.glob(f"{module}.*") if p.suffix != ".json").read_bytes()
    chance = random.Random(kind)
    for cut in {*range(0, len(sample), 37), len(sample) - 1}:
        summarize_counted(kind, sample[:cut])
    for _ in range(200):
        changed = bytearray(sample)
        for _ in range(chance.randrange(1, 6)):
            changed[chance.randrange(min(len(changed), 600))] = chance.choice((0, 1, 127, 255, chance.randrange(256)))
        summarize_counted(kind, bytes(changed))


def library(pages: int = 1) -> bytes:
    """Return a Windows library: one section with an export table and an import table."""
    base = 0x1000
    exports = struct.pack("<3I8I", 0, 0, 0, base + 200, 1, 1, 2, base + 100, base + 110, base + 120, 0)[:40]
    body = bytearray(1_024 * pages)
    body[0:40] = exports
    body[12:16] = struct.pack("<I", base + 200)
    body[24:28] = struct.pack("<I", 2)
    body[32:36] = struct.pack("<I", base + 110)
    body[110:118] = struct.pack("<2I", base + 220, base + 230)
    body[200:209] = b"boat.dll\0"
    body[220:224] = b"row\0"
    body[230:236] = b"float\0"
    body[300:320] = struct.pack("<5I", 0, 0, 0, base + 400, 0)
    body[400:409] = b"oars.dll\0"
    version = "FileDescription\0\0Rows boats\0".encode("utf-16-le")
    body[500 : 500 + len(version)] = version
    optional = b"\x0b\x02" + bytes(110) + struct.pack("<6I", base, 40, base + 300, 40, base + 480, 200) + bytes(104)
    header = b"PE\0\0" + struct.pack("<HHIIIHH", 0x8664, 1, 0, 0, 0, len(optional), 0x2000) + optional
    section = b".rdata\0\0" + struct.pack("<4I", len(body), base, len(body), 512) + bytes(16)
    head = (b"MZ" + bytes(58) + struct.pack("<I", 64) + header + section).ljust(512, b"\0")
    return head + bytes(body)


def test_windows_library_names_exports_and_imports() -> None:
    """The summary of a Windows library has its name, exports, imports and version resource."""
    found, _ = summarize_counted("Binary", library())
    assert found.text("format") == "PE64 library"
    assert found.text("machine") == "x86-64"
    assert found.text("soname") == "boat.dll"
    assert found.attributes["symbols"] == ["row", "float"]
    assert found.attributes["libraries"] == ["oars.dll"]
    assert found.text("description") == "Rows boats"


def test_macintosh_library_names_exports_and_imports() -> None:
    """The summary of a Macintosh library has its name, imports and exports."""
    name = b"libboat.dylib\0\0\0"
    named = struct.pack("<6I", 0xD, 24 + len(name), 24, 0, 0, 0) + name
    asked = struct.pack("<6I", 0xC, 40, 24, 0, 0, 0) + b"/usr/oars\0".ljust(16, b"\0")
    at = 32 + len(named) + len(asked) + 24
    table = struct.pack("<6I", 2, 24, at, 1, at + 16, 6)
    head = struct.pack("<8I", 0xFEEDFACF, 0x1000007, 3, 6, 3, at - 32, 0, 0)
    found, _ = summarize_counted("Binary", head + named + asked + table + struct.pack("<IBBHQ", 1, 0x0F, 1, 0, 0) + b"\0_row\0")
    assert found.text("format") == "Mach-O 64-bit shared library"
    assert found.text("machine") == "x86-64"
    assert found.text("soname") == "libboat.dylib"
    assert found.attributes["libraries"] == ["/usr/oars"]
    assert found.attributes["symbols"] == ["_row"]


def exif() -> bytes:
    """Return a directory with description, camera and artist, followed by one with a date."""
    texts = (b"A long boat\0", b"Oarflex\0", b"Ada Row\0", b"1994:07:01 12:00:00\0")
    places, at = [], 100
    for text in texts:
        places.append(at)
        at += len(text)
    entries = [(tag, 2, len(t), p) for tag, t, p in zip((0x10E, 0x110, 0x13B), texts, places, strict=False)]
    entries.append((0x8769, 4, 1, 70))
    first = struct.pack("<H", len(entries)) + b"".join(struct.pack("<HHII", *entry) for entry in entries)
    inner = struct.pack("<HHHII", 1, 0x9003, 2, len(texts[3]), places[3])
    return ((b"II*\0\x08\0\0\0" + first).ljust(70, b"\0") + inner).ljust(100, b"\0") + b"".join(texts)


def test_photograph_has_exif_xmp_comment_and_size() -> None:
    """The summary of a photograph has its Exif, XMP, comment and size."""
    xmp = b"http://ns.adobe.com/xap/1.0/\0<rdf:RDF><dc:title><rdf:Alt><rdf:li>Oars &amp; boats</rdf:li></rdf:Alt></dc:title>"
    parts = ((0xE1, b"Exif\0\0" + exif()), (0xE1, xmp), (0xFE, b"by hand"), (0xC0, struct.pack(">BHHB", 8, 30, 40, 3)))
    body = (
        b"\xff\xd8"
        + b"".join(struct.pack(">BBH", 0xFF, mark, len(part) + 2) + part for mark, part in parts)
        + b"\xff\xd9"
        + bytes(9)
    )
    found, _ = summarize_counted("Image", body)
    said = {
        name: found.text(name)
        for name in ("title", "description", "camera", "author", "creation-date", "comments", "width", "height")
    }
    assert list(said.values()) == [
        "Oars & boats",
        "A long boat",
        "Oarflex",
        "Ada Row",
        "1994-07-01T12:00:00",
        "by hand",
        "40",
        "30",
    ]


def test_tags_before_missing_audio_are_kept() -> None:
    """Tags before missing audio data are kept, and the file is damaged."""
    text = b"TPE1" + struct.pack(">IH", 9, 0) + b"\0Ada Row."
    found = Found()
    body = io.BytesIO(b"ID3\3\0\0" + struct.pack(">I", len(text)) + text + b"no sound" * 50)
    with pytest.raises(SummaryError, match="tags: "):
        summarize(Facts(b"a.mp3", "http://example.org/a.mp3", "Audio", "audio/mpeg", 500, 0, ""), body, found)
    assert found.attributes["author"] == ["Ada Row."]


def test_damage_reason_is_never_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    """An exception without a message is reported by its class name."""
    monkeypatch.setattr(mutagen, "File", Mock(side_effect=mutagen.MutagenError))
    with pytest.raises(SummaryError, match=r"^tags: MutagenError$"):
        summarize(Facts(b"a.ogg", "http://example.org/a.ogg", "Audio", "audio/ogg", 4, 0, ""), io.BytesIO(b"OggS"), Found())


def test_fonts_of_other_formats_have_names() -> None:
    """Fonts of formats other than the sample's have names in their summary, too."""
    bdf = b"""STARTFONT 2.1
COMMENT by hand
FONT -misc-boat-bold
FAMILY_NAME "Boat"
WEIGHT_NAME "Bold"
CHARS 2
STARTCHAR a
Notice b
"""
    found, _ = summarize_counted("Font", bdf)
    assert (found.text("title"), found.text("font-name"), found.text("glyphs")) == ("Boat Bold", "-misc-boat-bold", "2")
    assert "copyright" not in found.attributes
    type1 = b"%!PS-AdobeFont-1.0: Boat\n/FullName (Boat \\(Bold\\)) def /FontName /Boat-Bold def /Notice (Copyright 1994) def\n"
    found, _ = summarize_counted("Font", type1)
    assert (found.text("title"), found.text("font-name"), found.text("copyright")) == ("Boat (Bold)", "Boat-Bold", "Copyright 1994")
    names = b"FAMILY_NAME\0Boat\0"
    table = struct.pack("<II", 0, 1) + struct.pack("<IBI", 0, 1, 12) + b"\0" * 3 + struct.pack("<I", len(names)) + names
    pcf = b"\x01fcp" + struct.pack("<5I", 1, 1, 0, len(table), 24) + table
    assert summarize_counted("Font", pcf)[0].text("family") == "Boat"
