"""Video: size, duration, codecs, and the metadata of the container.

Matroska and WebM, MP4 and QuickTime, AVI, Flash, MPEG, MNG, FLIC, RealMedia and Theora are read here; tags of MP4, Ogg and Windows
Media by mutagen, as in `audio`. Unknown formats are summarized as Unrecognized.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Callable
from typing import BinaryIO, NamedTuple

from processors.essence.summarize._base import Facts, Found, Summarizer
from processors.essence.summarize.binary import unrecognized
from processors.essence.summarize.binary._binary import short_text, unpack
from processors.essence.summarize.media import audio
from processors.essence.summarize.media._exif import add_xmp
from processors.essence.summarize.media._image_size import size_of
from processors.essence.summarize.media._matroska import add_matroska
from processors.essence.summarize.media._mp4 import add_boxes
from processors.essence.summarize.media._riff import add_info, chunks

MAX_READ = 262_144
"""Bytes at the start that are searched for metadata."""
VALUES = 200
FLASH = {
    b"title": "title", b"creator": "author", b"author": "author", b"metadatacreator": "generator", b"encoder": "generator",
    b"description": "description", b"copyright": "copyright", b"creationdate": "date", b"keywords": "keywords",
}  # fmt: skip
"""Attribute of the summary by name of FLV metadata."""
_SEQUENCE = re.compile(rb"\0\0\x01\xb3(?=.{8})", re.DOTALL)
_THEORA = re.compile(rb"\x80theora(?=.{13})", re.DOTALL)

_PICTURE = re.compile(
    rb"\x91\x07\xdc\xb7\xb7\xa9\xcf\x11\x8e\xe6\x00\xc0\x0c\x20\x53\x65.{8}"
    rb"\xc0\xef\x19\xbc\x4d\x5b\xcf\x11\xa8\xfd\x00\x80\x5f\x5c\x44\x2b(?=.{46})",
    re.DOTALL,
)
"""Stream properties of Windows Media, for a video stream."""


class _Film(NamedTuple):
    """The file to read, and its summary."""

    facts: Facts
    body: BinaryIO
    head: bytes
    found: Found

    def size(self, width: int, height: int) -> None:
        if width > 0 and height > 0:
            self.found.add("width", str(width), 20)
            self.found.add("height", str(height), 20)

    def duration(self, seconds: float) -> None:
        if 0 < seconds < 1e12 and round(seconds):
            self.found.add("duration", str(round(seconds)), 20)


def run(facts: Facts, body: BinaryIO, found: Found) -> None:
    """Add title, author, duration (seconds), width, height (pixels), codecs and others."""
    film = _Film(facts, body, body.read(MAX_READ), found)
    reader = next((reader for start, at, reader in READERS if film.head.startswith(start, at)), _none)
    reader(film)
    body.seek(0)
    if reader in TAGGED:
        audio.run(facts, body, found)
    elif not found.new():
        unrecognized.run(facts, body, found)
    found.set("title", facts.name.decode("utf-8", "replace"), 300)


def _none(film: _Film) -> None:
    """Read a file without a known signature: the boxes of MP4 may be in any order."""
    if film.head[4:8] in (b"ftyp", b"moov", b"mdat", b"wide", b"free", b"skip", b"pnot"):
        _mp4(film)


def _mp4(film: _Film) -> None:
    add_boxes(film.body, max(film.facts.size, len(film.head)), film.found)


def _matroska(film: _Film) -> None:
    add_matroska(film.body, film.found)


def _avi(film: _Film) -> None:
    """Add the headers of the film and of each of its streams (Microsoft, AVI RIFF)."""
    for name, held in chunks(film.head):
        if name != b"LIST" or not held.startswith(b"hdrl"):
            continue
        for kind, header in chunks(held, 4):
            if kind == b"avih":
                pace, frames, width, height = unpack("<I12xI12xII", header) or (0, 0, 0, 0)
                film.size(width, height)
                film.duration(pace * frames / 1e6)
            elif kind == b"LIST" and header.startswith(b"strl") and header[12:16] == b"vids":
                codec = header[16:20].rstrip(b"\0 ")
                film.found.add("codecs", codec.decode("ascii") if codec.isalnum() else "")
    add_info(film.head, film.found)


def _flv(film: _Film) -> None:
    """Add the metadata of FLV: names and values in AMF 0, of which numbers, booleans and strings are read."""
    raw = film.head
    at = raw.find(b"\x02\0\x0aonMetaData")
    at += 13 + (5 if raw[at + 13 : at + 14] == b"\x08" else 1)
    numbers: dict[bytes, float] = {}
    for _ in range(VALUES if at > 18 else 0):
        length = (unpack(">H", raw, at) or (0,))[0]
        name, kind, at = raw[at + 2 : at + 2 + length], raw[at + 2 + length : at + 3 + length], at + 3 + length
        if kind == b"\0":
            numbers[name] = (unpack(">d", raw, at) or (0.0,))[0]
        elif kind == b"\x02":
            length = (unpack(">H", raw, at) or (0,))[0]
            meant = FLASH.get(name.lower(), "")
            film.found.add(meant, short_text(raw[at + 2 : at + 2 + length]) if meant else "", 1_000)
            at += length
        elif kind not in (b"\x01", b"\x0b"):
            break
        at += {b"\0": 8, b"\x01": 1, b"\x02": 2, b"\x0b": 10}[kind]
    film.duration(numbers.get(b"duration", 0))
    if all(0 < numbers.get(side, 0) < 1e6 for side in (b"width", b"height")):
        film.size(round(numbers[b"width"]), round(numbers[b"height"]))


def _swf(film: _Film) -> None:
    """Add the header of Flash (SWF 19, chapter 2): version, and from the part that may be compressed the size and XMP.

    The size is a box in twentieths of pixels.
    """
    raw, found = film.head, film.found
    found.add("version", str(raw[3]) if len(raw) > 3 else "")
    if raw.startswith(b"CWS"):
        try:
            raw = raw[:8] + zlib.decompressobj().decompress(raw[8:], MAX_READ)
        except zlib.error:
            return
    if len(raw) < 30 or raw.startswith(b"ZWS"):
        return
    bits, width = int.from_bytes(raw[8:29], "big"), raw[8] >> 3
    sides = [bits >> 168 - 5 - width * (n + 1) & (1 << width) - 1 for n in range(4)]
    film.size((sides[1] - sides[0]) // 20, (sides[3] - sides[2]) // 20)
    rate, frames = unpack("<HH", raw, 8 + (5 + 4 * width + 7) // 8) or (0, 0)
    film.duration(frames * 256 / rate if rate else 0)
    add_xmp(raw, found)


def _mpeg(film: _Film) -> None:
    """Add the size in the first sequence header (ISO/IEC 13818-2, 6.2.2.1): twelve bits each."""
    start = _SEQUENCE.search(film.head)
    if start:
        bits = int.from_bytes(film.head[start.end() : start.end() + 3], "big")
        film.size(bits >> 12, bits & 0xFFF)


def _flic(film: _Film) -> None:
    """Add the header of FLI and FLC: frames, width and height, and a frame's time in 70ths of a second, or in ms."""
    magic, frames, width, height, _, _, pace = unpack("<6HI", film.head, 4) or (0,) * 7
    film.size(width, height)
    film.duration(frames * pace / (70 if magic == 0xAF11 else 1_000))


def _real(film: _Film) -> None:
    """Add the chunks of RealMedia: PROP has the time in ms, CONT four texts."""
    at = 0
    for _ in range(VALUES):
        name, size = unpack(">4sI", film.head, at) or (b"", 0)
        held = film.head[at + 10 : at + size]
        if name == b"PROP":
            film.duration((unpack(">I", held, 20) or (0,))[0] / 1_000)
        elif name == b"CONT":
            place = 0
            for meant in ("title", "author", "copyright", "description"):
                length = (unpack(">H", held, place) or (0,))[0]
                film.found.add(meant, short_text(held[place + 2 : place + 2 + length]), 1_000)
                place += 2 + length
        if size < 10:
            return
        at += size


def _ogg(film: _Film) -> None:
    """Add the picture size of Theora (Theora 1.0, 6.2); `audio` reads the tags."""
    start = _THEORA.search(film.head)
    if start:
        width, height = struct.unpack(">I", b"\0" + film.head[start.end() + 7 : start.end() + 10]) + struct.unpack(
            ">I", b"\0" + film.head[start.end() + 10 : start.end() + 13]
        )
        film.size(width, height)


def _picture(film: _Film) -> None:
    """Add the size in an image header, which is that of the film."""
    film.size(*(size_of(film.head) or (0, 0)))


def _asf(film: _Film) -> None:
    """Add the size of the first video stream (ASF 1.2, 3.3 and 9.2); the rest is read from tags."""
    start = _PICTURE.search(film.head)
    if start:
        film.size(*struct.unpack_from("<II", film.head, start.end() + 38))


READERS: tuple[tuple[bytes, int, Callable[[_Film], None]], ...] = (
    *((b"\x1a\x45\xdf\xa3", 0, _matroska), (b"ftyp", 4, _mp4), (b"AVI ", 8, _avi), (b"FLV\1", 0, _flv), (b"OggS", 0, _ogg)),
    *((b"FWS", 0, _swf), (b"CWS", 0, _swf), (b"ZWS", 0, _swf), (b"\0\0\1\xba", 0, _mpeg), (b"\0\0\1\xb3", 0, _mpeg)),
    *((b"G", 0, _mpeg), (b"G", 4, _mpeg), (b".RMF", 0, _real), (b"\x8aMNG", 0, _picture), (b"\xff\xd8\xff", 0, _picture)),
    *((b"\x11\xaf", 4, _flic), (b"\x12\xaf", 4, _flic), (b"0&\xb2u\x8e\x66\xcf\x11", 0, _asf)),
)
"""Signature, its offset, and the reader of the format."""
TAGGED = (_mp4, _ogg, _asf)
"""Formats whose tags mutagen reads."""

SUMMARIZER = Summarizer(types=("Video",), run=run)
