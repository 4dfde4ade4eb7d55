"""Width and height of images, from the header of each format, and metadata of camera raw files."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from processors.essence.summarize import Found
from processors.essence.summarize.media._image_size import HEADERS, READERS, STATED, TALL, size_of

Make = Callable[..., Found]
W, H = 640, 480


def _be(form: str, *numbers: int) -> bytes:
    return struct.pack(">" + form, *numbers)


def _le(form: str, *numbers: int) -> bytes:
    return struct.pack("<" + form, *numbers)


def _jxl(eighths: bool) -> bytes:
    bits = (1 | 29 << 1 | 3 << 6) if eighths else (0 | 0 << 1 | (H - 1) << 3 | 0 << 12 | 1 << 15 | (W - 1) << 17)
    return b"\xff\x0a" + bits.to_bytes(12, "little")


_ISPE = b"\0\0\0\x14ispe\0\0\0\0"
_FTYP = b"\0\0\0\x18ftypavif\0\0\0\0avifmif1"
MADE: dict[str, tuple[bytes, bytes]] = {
    "png": (b"a", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + _be("II", W, H)),
    "jng": (b"a", b"\x8bJNG\r\n\x1a\n\0\0\0\x10JHDR" + _be("II", W, H)),
    "gif": (b"a", b"GIF89a" + _le("HH", W, H)),
    "bmp": (b"a", b"BM" + _le("IHHIIii", 54, 0, 0, 54, 40, W, H) + bytes(28)),
    "bmp from its top": (b"a", b"BM" + _le("IHHIIii", 54, 0, 0, 54, 40, W, -H) + bytes(28)),
    "bmp of os/2": (b"a", b"BM" + _le("IHHIIHH", 26, 0, 0, 26, 12, W, H) + bytes(28)),
    "xcf": (b"a", b"gimp xcf v011\0" + _be("III", W, H, 0)),
    "psd": (b"a", b"8BPS\0\1" + bytes(6) + _be("HIIHH", 3, H, W, 8, 3)),
    "tga": (b"a.tga", bytes([0, 0, 10]) + bytes(9) + _le("HH", W, H) + b"\x18\0" + bytes(99)),
    "tga that begins as a cursor does": (b"a.tga", bytes([0, 0, 2]) + bytes(9) + _le("HH", W, H) + b"\x18\0" + bytes(99)),
    "pcx": (b"a.pcx", b"\n\5\1\x08" + _le("HHHH", 1, 2, W, H + 1) + bytes(99)),
    "dcx": (b"a.dcx", b"\xb1\x68\xde\x3a" + _le("II", 12, 0) + b"\n\5\1\x08" + _le("HHHH", 1, 2, W, H + 1) + bytes(99)),
    "sun raster": (b"a", b"\x59\xa6\x6a\x95" + _be("III", W, H, 8)),
    "sgi": (b"a", b"\x01\xda\0\1\0\3" + _be("HHH", W, H, 3)),
    "xwd": (b"a.xwd", _be("6I", 100, 7, 2, 8, W, H) + bytes(99)),
    "dds": (b"a", b"DDS " + _le("IIII", 124, 7, H, W)),
    "dpx": (b"a", b"SDPX" + bytes(768) + _be("II", W, H)),
    "exr": (b"a", b"v/1\x01\2\0\0\0dataWindow\0box2i\0\x10\0\0\0" + _le("4i", 0, 0, W - 1, H - 1) + b"\0"),
    "radiance": (b"a", b"#?RADIANCE\nFORMAT=32-bit_rle_rgbe\n\n-Y 480 +X 640\n"),
    "jpeg 2000": (b"a", b"\0\0\0\x0cjP  \r\n\x87\n\0\0\0\x14ftypjp2 \0\0\0\0jp2 \0\0\0\x2djp2h\0\0\0\x16ihdr" + _be("II", H, W)),
    "jpeg 2000, bare": (b"a", b"\xff\x4f\xff\x51" + _be("HHIIII", 47, 0, W + 3, H + 5, 3, 5)),
    "avif of tiles": (b"a", _FTYP + _ISPE + _be("II", 512, 256) + _ISPE + _be("II", W, H) + _ISPE + _be("II", 32, 24)),
    "jxl": (b"a", _jxl(eighths=False)),
    "jxl of a usual shape": (b"a", _jxl(eighths=True)),
    "jxl in a container": (b"a", b"\0\0\0\x0cJXL \r\n\x87\n\0\0\0\0jxlp\0\0\0\0" + _jxl(eighths=False)),
    "djvu": (b"a", b"AT&TFORM\0\0\0\xffDJVUINFO\0\0\0\x0a" + _be("HH", W, H)),
    "flif": (b"a.flif", b"FLIF\x331\x84\x7f\x83\x5f" + bytes(range(256))),
    "bpg": (b"a", b"BPG\xfb\0\0\x85\0\x83\x60"),
    "ktx 2": (b"a", b"\xabKTX 20\xbb\r\n\x1a\n" + _le("IIII", 0, 1, W, H)),
    "jbig2": (b"a", b"\x97JB2\r\n\x1a\n\1\0\0\0\1\0\0\0\0\x30\0\1\0\0\0\x13" + _be("II", W, H)),
    "icon": (b"a", b"\0\0\1\0\2\0" + bytes([16, 16]) + bytes(14) + bytes([0, 0]) + bytes(14)),
    "cursor": (b"a", b"\0\0\2\0\1\0" + bytes([32, 32, 0, 0]) + bytes(8) + b"\x16\0\0\0" + bytes(99)),
    "apple's icon": (b"a", b"icns\0\0\0\x30is32\0\0\0\x10" + bytes(8) + b"ic08\0\0\0\x10" + bytes(8)),
    "emf": (b"a", _le("II4i4i", 1, 108, 0, 0, W - 1, H - 1, 0, 0, 9, 9) + b" EMF" + bytes(60)),
    "wmf": (b"a", b"\xd7\xcd\xc6\x9a\0\0" + _le("4hH", 0, 0, W * 15, H * 15, 1_440) + bytes(20)),
    "pict": (b"a", bytes(512) + _be("H4h", 9, 10, 20, 10 + H, 20 + W) + b"\0\x11\x02\xff\x0c\0" + bytes(99)),
    "ilbm": (b"a", b"FORM\0\0\1\0ILBMBMHD\0\0\0\x14" + _be("HH", W, H)),
    "pgm": (b"a.pgm", b"P5 # made by hand\n640\n# high\n480 255\n" + bytes(range(256))),
    "pam": (b"a", b"P7\nWIDTH 640\nHEIGHT 480\nDEPTH 3\n"),
    "map of floats": (b"a", b"PF\n640 480\n-1.0\n"),
    "miff": (b"a", b"id=ImageMagick  version=1.0\ncolumns=640  rows=480\n\x0c\n:\x1a"),
    "xpm": (b"a", b'/* XPM */\nstatic char *x[] = {\n"640 480 2 1",\n'),
    "xbm": (b"a.xbm", b"#define x_width 640\n#define x_height 480\nstatic char x_bits[] = {\n"),
    "gimp's brush": (b"a", _be("5I", 28, 2, W, H, 1) + b"GIMP" + bytes(9)),
}
SIZES = {"jxl of a usual shape": (320, 240), "icon": (256, 256), "cursor": (32, 32), "apple's icon": (256, 256)}


@pytest.mark.parametrize("which", MADE)
def test_width_and_height_equal_header(which: str, summary: Make) -> None:
    """Width and height equal those in the header, in any byte order and unit."""
    name, raw = MADE[which]
    found = summary(name, raw)
    assert (found.text("width"), found.text("height")) == tuple(map(str, SIZES.get(which, (W, H)))), found.attributes


@pytest.mark.parametrize("which", MADE)
def test_truncated_header_gives_whole_size_or_none(which: str) -> None:
    """A truncated header gives the whole size or none, without any other error; so does a header of zeros."""
    raw = MADE[which][1]
    starts = [raw[:n] for n in range(len(raw))]
    for short in (*starts, *(start + bytes(600) for start in starts)):
        for media in ("", *STATED, "image/x-pict", "image/vnd.wap.wbmp"):
            size = size_of(short, media)
            assert size is None or min(size) > 0


def test_formats_are_not_confused() -> None:
    """No format is mistaken for another with the same first bytes."""
    starts = [(at, start) for start, at, _ in READERS] + [(0, start) for start, _, _ in (*HEADERS, *TALL)]
    for one, (at, start) in enumerate(starts):
        assert not any(a == at and start.startswith(s) for a, s in starts[:one]), start


def _tiff(start: bytes, tag: int, text: bytes) -> bytes:
    return start + struct.pack("<IHHHII", 8, 1, tag, 2, len(text), 26) + b"\0\0\0\0" + text


OBSCURA = _tiff(b"II*\0", 0x110, b"Obscura\0")


@pytest.mark.parametrize(
    "raw",
    [
        _tiff(b"IIRO", 0x110, b"Obscura\0"),
        _tiff(b"IIU\0", 0x110, b"Obscura\0"),
        b"\0\0\0\x18ftypcrx \0\0\0\1crx isom\0\0\0\x99moovCMT1" + OBSCURA,
        b"\0MRM\0\0\0\x20\0TTW\0\0\0\x20" + OBSCURA,
        _FTYP + _ISPE + _be("II", W, H) + b"mdat\0\0\0\6Exif\0\0" + OBSCURA,
        b"FUJIFILMCCD-RAW " + bytes(68) + _be("II", 92, 200) + b"\xff\xd8\xff\xe1\0\x2eExif\0\0" + OBSCURA,
    ],
    ids=["olympus", "panasonic", "canon", "minolta", "avif", "fuji"],
)
def test_camera_metadata_is_found(raw: bytes, summary: Make) -> None:
    """Camera metadata is found in each format that contains a TIFF, or is one by another name."""
    assert summary(b"x", raw).text("camera") == "Obscura"


def test_unsupported_image_keeps_strings(summary: Make) -> None:
    """An image in an unsupported format keeps its strings, like an unrecognized file."""
    found = summary(b"a.czi", b"ZISRAWFILE" + bytes(30) + b"Microscope of Ahab, version 3" + bytes(30))
    assert "Microscope of Ahab, version 3" in found.text("strings")
    assert found.text("title") == "a.czi"


def test_metafile_and_cursor_texts_are_found(summary: Make) -> None:
    """Program and title of a metafile, name and author of an animated cursor are found."""
    text = "Ahab Draw\0The whale\0\0".encode("utf-16-le")
    head = (
        _le("II4i4i", 1, 108, 0, 0, W - 1, H - 1, 0, 0, 9, 9) + b" EMF" + _le("IIIHHII", 65_536, 999, 9, 1, 0, len(text) // 2, 108)
    )
    found = summary(b"x", head.ljust(108, b"\0") + text)
    assert (found.text("generator"), found.text("title")) == ("Ahab Draw", "The whale")
    info = b"INFO" + b"INAM\6\0\0\0Spout\0" + b"IART\5\0\0\0Mo\xebl\0\0"
    icon = b"\0\0\2\0\1\0" + bytes([48, 48]) + bytes(14)
    body = b"ACONLIST" + _le("I", len(info)) + info + b"icon" + _le("I", len(icon)) + icon
    found = summary(b"x", b"RIFF" + _le("I", len(body)) + body)
    assert (found.text("title"), found.text("author"), found.text("width")) == ("Spout", "Moël", "48")


def test_png_sample_keeps_its_attributes(samples: Path, summary: Make) -> None:
    """The PNG sample still gives the attributes that it gave when only five formats were supported."""
    assert summary(b"image.png", (samples / "image.png").read_bytes()).text("width")


def _chunk(kind: bytes, data: bytes) -> bytes:
    return _be("I", len(data)) + kind + data + bytes(4)


def test_png_texts_and_time_are_read(summary: Make) -> None:
    """Compressed and plain PNG texts are read, without programs' private data, and so is the time."""
    chunks = (
        _chunk(b"IHDR", _be("II", W, H) + bytes(5)),
        _chunk(b"zTXt", b"Title\0\0" + zlib.compress(b"The whale")),
        _chunk(b"iTXt", b"Author\0\1\0\0\0" + zlib.compress("Moël".encode())),
        _chunk(b"iTXt", b"Comment\0\0\0\0\0At sea"),
        _chunk(b"zTXt", b"Description\0\0damaged"),
        _chunk(b"tEXt", b"Creation Time\0Tue, 5 Mar 2024 10:00:00 +0100"),
        *(_chunk(b"tEXt", name + b"\0no") for name in (b"date:create", b"Raw profile type icc")),
        _chunk(b"tIME", _be("H5B", 2024, 3, 6, 9, 0, 0)),
    )
    found = summary(b"x.png", b"\x89PNG\r\n\x1a\n" + b"".join(chunks))
    said = {name: found.text(name) for name in ("title", "author", "description", "creation-date", "modification-date")}
    assert said == {
        "title": "The whale",
        "author": "Moël",
        "description": "",
        "creation-date": "2024-03-05T09:00:00Z",
        "modification-date": "2024-03-06T09:00:00Z",
    }
    assert found.attributes["comments"] == ["At sea"]


def test_xfig_texts_are_read_in_order(summary: Make) -> None:
    """The texts of an Xfig drawing are read in order, in their charset."""
    texts = b"4 0 0 50 -1 0 12 0.0000 4 135 450 1200 2250 Ferns of the lake\\001\n4 1 0 50 0 0 13 0.0 4 1 1 9 3 B\\344ume\\001\n"
    found = summary(b"lake.fig", b"#FIG 3.2\nLandscape\n2 2 0 1 0 7 50 0 -1 0.000 0 0 -1 0 0 5\n\t 0 0 1 1\n" + texts + b"4 0 0\n")
    assert found.text("partial-text") == "Ferns of the lake\nB\xe4ume"
