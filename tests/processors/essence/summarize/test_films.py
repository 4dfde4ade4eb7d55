"""Containers of film and old sound formats: size, duration, codecs, authors."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable

import pytest

from processors.essence.summarize import Found

Make = Callable[..., Found]


def element(kind: int, held: bytes, size: int | None = None) -> bytes:
    """Return an EBML element; `size` overrides the declared size."""
    number = len(held) if size is None else size
    return kind.to_bytes((kind.bit_length() + 7) // 8, "big") + (1 << 56 | number).to_bytes(8, "big") + held


def box(name: bytes, held: bytes) -> bytes:
    """Return an MP4 box."""
    return struct.pack(">I4s", 8 + len(held), name) + held


def chunk(name: bytes, held: bytes) -> bytes:
    """Return a RIFF chunk."""
    return name + struct.pack("<I", len(held)) + held + b"\0" * (len(held) % 2)


def _simple(name: str, text: str) -> bytes:
    return element(0x7373, element(0x67C8, element(0x45A3, name.encode()) + element(0x4487, text.encode())))


_HEAD = element(0x1A45DFA3, element(0x4282, b"webm"))
_INFO = element(
    0x1549A966,
    element(0x2AD7B1, b"\x0f\x42\x40")
    + element(0x4489, struct.pack(">d", 61_000))
    + element(0x4461, (86_400 * 10**9).to_bytes(8, "big"))
    + element(0x7BA9, b"Whales")
    + element(0x5741, b"by hand"),
)
_VIDEO = element(0xE0, element(0xB0, b"\2\x80") + element(0xBA, b"\1\xe0"))
_TRACKS = element(
    0x1654AE6B,
    element(
        0xAE,
        element(0x86, b"V_VP9") + element(0x22B59C, b"und") + element(0xE0, element(0xB0, b"\2\x80") + element(0xBA, b"\1\xe0")),
    )
    + element(0xAE, element(0x86, b"A_OPUS") + element(0x22B59C, b"fre") + element(0xE1, element(0x9F, b"\2"))),
)
_TAGS = element(0x1254C367, _simple("ARTIST", "Ahab") + _simple("COMMENT", "Of a whale.") + _simple("BPS", "1"))
_CHAPTERS = element(0x1043A770, element(0x45B9, element(0xB6, element(0x80, element(0x85, b"Loomings")))))
_FILES = element(0x1941A469, element(0x61A7, element(0x466E, b"map.png")))
_CLUSTER = element(0x1F43B675, bytes(5_000))


def _said(found: Found) -> dict[str, list[str | bytes]]:
    return dict(found.attributes)


def test_matroska_elements_between_clusters_are_found(summary: Make) -> None:
    """Matroska metadata elements are found anywhere between the clusters."""
    film = _HEAD + element(0x18538067, _INFO + _TRACKS + _CLUSTER + _CHAPTERS + _CLUSTER * 30 + _FILES + _TAGS)
    expected = {
        "title": ["Whales"], "duration": ["61"], "creation-date": ["2001-01-02T00:00:00Z"], "generator": ["by hand"],
        "width": ["640"], "height": ["480"], "codecs": ["V_VP9", "A_OPUS"], "language": ["fr"],
        "author": ["Ahab"], "description": ["Of a whale."],
        "headings": ["Loomings"], "contents": ["map.png"],
    }  # fmt: skip
    assert _said(summary(b"a.webm", film)) == expected


def test_live_matroska_of_unknown_size_is_read(summary: Make) -> None:
    """A live Matroska stream has a segment and clusters of unknown size: the elements before them are found."""
    unknown = (1 << 56) - 1
    film = _HEAD + element(0x18538067, _INFO + _TRACKS + element(0x1F43B675, bytes(50), unknown) + _TAGS, unknown)
    said = _said(summary(b"a.mkv", film))
    assert (said["title"], said["width"]) == (["Whales"], ["640"])
    assert "author" not in said


@pytest.mark.parametrize("date", [bytes(8), b"\x80" + bytes(7), b"\x7f" + b"\xff" * 7])
def test_unset_matroska_date_is_left_out(date: bytes, summary: Make) -> None:
    """An unset date is left out."""
    film = _HEAD + element(0x18538067, element(0x1549A966, element(0x4461, date) + element(0x7BA9, b"Whales")))
    assert _said(summary(b"a.mkv", film)) == {"title": ["Whales"]}


def _mp4(wide: bool) -> bytes:
    if wide:
        times = struct.pack(">B3xQQIQ", 1, 3_000_000_000, 0, 600, 36_600)
        track = struct.pack(">B3xQQIIQ", 1, 0, 0, 1, 0, 36_600)
    else:
        times = struct.pack(">B3xIIII", 0, 3_000_000_000, 0, 600, 36_600)
        track = struct.pack(">B3xIIIII", 0, 0, 0, 1, 0, 36_600)
    header = track + bytes(52) + struct.pack(">II", 640 << 16, 480 << 16)
    described = box(b"stsd", struct.pack(">II", 0, 1) + box(b"avc1", bytes(70)))
    texts = box(b"\xa9nam", b"\0\6\0\0Whal\x8es") + box(b"\xa9cmt", b"\0\5\x15\xc7\xc3\x84hab") + bytes(4)
    tables = box(b"mdia", box(b"mdhd", bytes(24)) + box(b"minf", box(b"stbl", described)))
    return box(b"moov", box(b"mvhd", times + bytes(80)) + box(b"trak", box(b"tkhd", header) + tables) + box(b"udta", texts))


@pytest.mark.parametrize("wide", [False, True], ids=["32 bits", "64 bits"])
@pytest.mark.parametrize("first", [b"", box(b"mdat", bytes(100_000)), struct.pack(">I4sQ", 1, b"mdat", 100_016) + bytes(100_000)])
def test_quicktime_header_after_film_is_found(first: bytes, wide: bool, summary: Make) -> None:
    """A header after the film is found, too; its texts are in a Macintosh charset if they have a Macintosh language code."""
    found = summary(b"a.mov", first + _mp4(wide))
    expected = {
        "title": ["Whalés"], "duration": ["61"], "creation-date": ["1999-01-24T05:20:00Z"], "width": ["640"], "height": ["480"],
        "codecs": ["avc1"], "description": ["Ähab"],
    }  # fmt: skip
    assert {k: v for k, v in _said(found).items() if k not in ("error", "format")} == expected


def test_avi_has_size_duration_and_info(summary: Make) -> None:
    """The summary of an AVI has its size, duration and info list."""
    header = struct.pack("<10I16x", 40_000, 0, 0, 0, 1_500, 0, 1, 0, 640, 480)
    stream = b"strl" + chunk(b"strh", b"vidsXVID" + bytes(48))
    info = b"INFO" + chunk(b"INAM", b"Whales\0") + chunk(b"ISFT", b"by hand\0")
    body = b"AVI " + chunk(b"LIST", b"hdrl" + chunk(b"avih", header) + chunk(b"LIST", stream)) + chunk(b"LIST", info)
    expected = {
        "title": ["Whales"], "generator": ["by hand"], "width": ["640"], "height": ["480"], "duration": ["60"], "codecs": ["XVID"],
    }  # fmt: skip
    assert _said(summary(b"x", chunk(b"RIFF", body))) == expected


def _amf(name: bytes, value: float | str) -> bytes:
    text = value.encode() if isinstance(value, str) else b""
    kept = b"\2" + struct.pack(">H", len(text)) + text if isinstance(value, str) else b"\0" + struct.pack(">d", value)
    return struct.pack(">H", len(name)) + name + kept


def test_flash_metadata_is_read(summary: Make) -> None:
    """FLV is read by its metadata; SWF by its header, packed or not, with its XMP."""
    pairs = _amf(b"duration", 61.2) + _amf(b"width", 640) + b"\0\1x\1\1" + _amf(b"height", 480) + _amf(b"creator", "Ahab")
    film = b"FLV\1\5\0\0\0\x09\0\0\0\0\x12\0\1\0\0\0\0\0\0\0\0\2\0\x0aonMetaData\x08\0\0\0\5" + pairs + b"\0\0\x09"
    assert _said(summary(b"a.flv", film)) == {
        "title": ["a.flv"], "duration": ["61"], "width": ["640"], "height": ["480"], "author": ["Ahab"]
    }  # fmt: skip
    numbers = [0, 12_800, 0, 9_600]
    bits = 15 << 60 | sum(number << 45 - 15 * n for n, number in enumerate(numbers))
    xmp = b"<rdf:RDF><dc:title>Whales</dc:title></rdf:RDF>"
    rest = (bits << 7).to_bytes(9, "big") + struct.pack("<HH", 25 * 256, 500) + xmp + bytes(20)
    for start, held in ((b"FWS\6", rest), (b"CWS\6", zlib.compress(rest))):
        said = _said(summary(b"a.swf", start + struct.pack("<I", 8 + len(rest)) + held))
        assert said == {"title": ["Whales"], "version": ["6"], "width": ["640"], "height": ["480"], "duration": ["20"]}


@pytest.mark.parametrize(
    ("raw", "duration"),
    [
        (b"\0\0\x01\xba" + bytes(8) + b"\0\0\x01\xb3\x28\x01\xe0\x14" + bytes(9), ""),
        (b"".join(b"G" + bytes(20) + b"\0\0\x01\xb3\x28\x01\xe0\x14".ljust(167, b"\xff") for _ in range(9)), ""),
        (struct.pack("<I6HI", 99, 0xAF12, 100, 640, 480, 8, 3, 40) + bytes(108), "4"),
        (b"\x8aMNG\r\n\x1a\n\0\0\0\x1cMHDR" + struct.pack(">7I", 640, 480, 25, 0, 0, 0, 1), ""),
        (
            b"0&\xb2u\x8ef\xcf\x11\xa6\xd9\0\xaa\0b\xcel" + struct.pack("<QIBB", 132, 1, 1, 2)
            + bytes.fromhex("9107dcb7b7a9cf118ee600c00c205365") + struct.pack("<Q", 102)
            + bytes.fromhex("c0ef19bc4d5bcf11a8fd00805f5c442b") + bytes(38) + struct.pack("<II", 640, 480) + bytes(8),
            "",
        ),
    ],
    ids=["mpeg", "transport stream", "flic", "mng", "windows media"],
)  # fmt: skip
def test_width_and_height_are_read(raw: bytes, duration: str, summary: Make) -> None:
    """Width and height are read from films with little other metadata."""
    said = _said(summary(b"film", raw))
    assert (said.get("width"), said.get("height")) == (["640"], ["480"])
    assert said.get("duration", [""]) == [duration]


def test_realmedia_has_duration_and_texts(summary: Make) -> None:
    """RealMedia has its duration in one chunk and four texts in another, in a Windows charset."""
    time = b"PROP" + struct.pack(">IH5II", 50, 0, 1, 1, 1, 1, 1, 61_000) + bytes(16)
    texts = b"".join(struct.pack(">H", len(text)) + text for text in (b"Whales", b"Ahab", b"\xa9 1851", b""))
    film = b".RMF" + struct.pack(">IHII", 18, 0, 0, 3) + time + b"CONT" + struct.pack(">IH", 10 + len(texts), 0) + texts
    assert _said(summary(b"a.rm", film)) == {"title": ["Whales"], "duration": ["61"], "author": ["Ahab"], "copyright": ["© 1851"]}


def test_unknown_format_keeps_strings(summary: Make) -> None:
    """An unknown format keeps its strings."""
    assert "Of a whale, by Ahab" in summary(b"a.mxf", bytes(20) + b"Of a whale, by Ahab" + bytes(20)).text("strings")


def test_sun_audio_and_modules_are_read(summary: Make) -> None:
    """Sun audio and tracker modules, which the tag library does not support, are read."""
    sun = b".snd" + struct.pack(">5I", 40, 16_000, 1, 8_000, 1) + b"Of a whale\0".ljust(16, b"\0") + bytes(100)
    assert _said(summary(b"a.au", sun)) == {
        "title": ["a.au"], "duration": ["2"], "sample-rate": ["8000"], "channels": ["1"], "description": ["Of a whale"]
    }  # fmt: skip
    module = b"Spouter \x84hab".ljust(1_080, b"\0") + b"M.K." + bytes(99)
    assert summary(b"a.mod", module).text("title") == "Spouter ähab"
    assert summary(b"a.xm", b"Extended Module: Spouter\0".ljust(99, b"\0")).text("title") == "Spouter"


def test_midi_is_titled_by_first_track_name(summary: Make) -> None:
    """The title of a MIDI file is its first track name; data bytes that resemble a name event are ignored."""
    track = b"\0\xff\x02\x0d(C) 1851 Ahab\0\xff\x03\x04\x01\x02\x03\x04\0\xff\x03\x06Whales\0\x90\x40\x40\x60\x80\x40\0\0\xff\x2f\0"
    midi = b"MThd\0\0\0\6\0\0\0\1\0\x60MTrk" + struct.pack(">I", len(track)) + track
    said = _said(summary(b"a.mid", midi))
    assert (said["title"], said["copyright"]) == (["Whales"], ["(C) 1851 Ahab"])


def test_ambiguous_sound_is_read_by_its_name(summary: Make) -> None:
    """A sound without tags whose first bytes are ambiguous is read as the format of its name."""
    frame = b"\xff\xfb\x90\x64" + bytes(413)
    said = _said(summary(b"a.mp3", frame * 40))
    assert (said["sample-rate"], said["bitrate"], said["duration"]) == (["44100"], ["128000"], ["1"])


def test_wav_info_list_is_read(summary: Make) -> None:
    """The info list of a WAV is read, in Windows' charset."""
    form = chunk(b"fmt ", struct.pack("<HHIIHH", 1, 1, 8_000, 8_000, 1, 8))
    info = chunk(b"LIST", b"INFO" + chunk(b"INAM", b"Whales\0") + chunk(b"IART", b"Mo\xebl\0"))
    said = _said(summary(b"a.wav", chunk(b"RIFF", b"WAVE" + form + info + chunk(b"data", bytes(16_000)))))
    assert (said["title"], said["author"], said["duration"]) == (["Whales"], ["Moël"], ["2"])
