"""MP4, QuickTime and similar: size, duration, codecs and date from boxes (ISO/IEC 14496-12, 4.2). mutagen reads the tags.

QuickTime has texts of its own, the predecessors of iTunes' tags: one box each, whose name begins with a copyright sign.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import BinaryIO, NamedTuple

from processors.essence.formats.dates import utc
from processors.essence.summarize._base import Found
from processors.essence.summarize.binary._binary import read_at, short_text, unpack

BOXES = 2_000
DEPTH = 6
MAX_TEXT = 4_096
HOLDING = {b"moov", b"trak", b"mdia", b"minf", b"stbl", b"udta"}
"""Containers of the boxes that are read."""
TEXTS = {
    b"\xa9nam": "title", b"\xa9cpy": "copyright", b"\xa9day": "date", b"\xa9aut": "author", b"\xa9ART": "author",
    b"\xa9dir": "author", b"\xa9cmt": "description", b"\xa9inf": "description", b"\xa9des": "description", b"\xa9swr": "generator",
    b"\xa9key": "keywords", b"\xa9mak": "camera", b"\xa9mod": "camera",
}  # fmt: skip
EPOCH = datetime(1904, 1, 1, tzinfo=UTC)


class _Box(NamedTuple):
    name: bytes
    at: int
    """Offset of the content."""
    end: int


def _boxes(body: BinaryIO, size: int) -> Iterator[_Box]:
    """Yield the boxes of a file of `size` bytes in order, nested ones only in `HOLDING`."""
    waiting = [(0, size)]
    for _ in range(BOXES):
        while waiting and waiting[-1][0] >= waiting[-1][1]:
            waiting.pop()
        if not waiting:
            return
        at, end = waiting.pop()
        head = read_at(body, at, 16)
        length, name = unpack(">I4s", head) or (0, b"")
        start = 16 if length == 1 else 8
        length = (unpack(">Q", head, 8) or (0,))[0] if length == 1 else length or end - at
        # A zero ends a list of texts; a box shorter than its header is invalid.
        if not name or length < start:
            continue
        box = _Box(name, at + start, min(at + length, end))
        waiting.append((at + length, end))
        if name in HOLDING and len(waiting) <= DEPTH:
            waiting.append((box.at, box.end))
        yield box


def add_boxes(body: BinaryIO, size: int, found: Found) -> None:
    """Add duration (seconds), creation-date, width and height (pixels), codecs, and QuickTime's texts."""
    widest = (0, 0)
    for box in _boxes(body, size):
        raw = read_at(body, box.at, min(box.end - box.at, MAX_TEXT))
        if box.name == b"mvhd":
            _header(raw, found)
        elif box.name == b"tkhd":
            # Both are fixed-point numbers with 16 fraction bits, at the end of the box.
            sides = unpack(">II", raw, 88 if raw[:1] == b"\1" else 76)
            widest = max(widest, (sides[0] >> 16, sides[1] >> 16)) if sides else widest
        elif box.name == b"stsd":
            found.add("codecs", short_text(raw[12:16]) if raw[12:16].isascii() else "", 20)
        elif box.name in TEXTS:
            length = (unpack(">H", raw) or (0,))[0]
            found.add(TEXTS[box.name], short_text(raw[4 : 4 + length], "mac-roman"), 1_000)
    if min(widest) > 0:
        found.add("width", str(widest[0]), 20)
        found.add("height", str(widest[1]), 20)


def _header(raw: bytes, found: Found) -> None:
    """Add creation date and duration of a film (8.2.2)."""
    long = raw[:1] == b"\1"
    made, _, scale, ticks = unpack(">QQIQ" if long else ">4I", raw, 4) or (0, 0, 0, 0)
    if scale and scale // 2 < ticks < 0xFFFFFFFF:
        found.add("duration", str(round(ticks / scale)), 20)
    # An unknown date is 0, or counted from 1970.
    found.add("creation-date", utc(EPOCH + timedelta(seconds=made)) if 2_082_844_800 < made < 1 << 33 else "")
