"""Sounds of the 1990s that no tag library reads: Sun audio, and module music, from their headers."""

from __future__ import annotations

import re

from processors.essence.summarize._base import Found
from processors.essence.summarize.binary._binary import short_text, unpack

MODULES: tuple[tuple[bytes, int, int, int], ...] = (
    *((b"SCRM", 44, 0, 28), (b"Extended Module: ", 0, 17, 20), (b"IMPM", 0, 4, 26), (b"MTM", 0, 4, 20), (b"if", 0, 2, 36)),
    *((b"JN", 0, 2, 36), (b"!Scream!", 20, 0, 20), (b"FAR\xfe", 0, 4, 40), (b"MAS_UTrack_V00", 0, 15, 32)),
    *((name, 1_080, 0, 20) for name in (b"M.K.", b"M!K!", b"FLT4", b"FLT8", b"4CHN", b"6CHN", b"8CHN", b"CD81", b"OCTA")),
)
"""Signature of a module, its offset, and offset and length of the title."""
CHARSET = "cp437"
"""Charset of the programs that made modules."""
WIDTHS = {1: 1, 2: 1, 3: 2, 4: 3, 5: 4, 6: 4, 7: 8, 27: 1}
"""Bytes of a sample by Sun's encoding number."""

TEXTS = 50
_TEXT = re.compile(rb"\xff([\x02\x03])([\x03-\x7f])")
"""MIDI events of a copyright and of a track name, with the length of the text."""


def add_midi(raw: bytes, found: Found) -> None:
    """Add title (the name of the first track that has one) and copyright (MIDI 1.0, Standard MIDI Files, meta events)."""
    for event in list(_TEXT.finditer(raw))[:TEXTS]:
        text = short_text(raw[event.end() : event.end() + event[2][0]])
        if text.isprintable() and any(map(str.isalpha, text)):
            (found.add if event[1] == b"\x02" else found.set)("copyright" if event[1] == b"\x02" else "title", text, 300)


def add_sound(raw: bytes, found: Found) -> bool:
    """Add title, or duration (seconds), sample-rate, channels and description; `raw`: the start of the file.

    Returns whether that is all: in a module the names of the instruments often contain messages.
    """
    if raw.startswith(b".snd"):
        _sun(raw, found)
        return True
    for mark, at, place, length in MODULES:
        if raw.startswith(mark, at):
            found.add("title", short_text(raw[place : place + length], CHARSET), 300)
            found.add("format", "module", 50)
            break
    return False


def _sun(raw: bytes, found: Found) -> None:
    """Add the fields of a Sun or NeXT header: offset and size of the sound, encoding, rate, channels, and a text."""
    start, size, coding, rate, channels = unpack(">5I", raw, 4) or (0, 0, 0, 0, 0)
    each = WIDTHS.get(coding, 0) * rate * channels
    if 0 < rate < 1_000_000 and 0 < channels < 65:
        # An unknown size is all ones.
        found.add("duration", str(round(size / each)) if each and each // 2 < size < 0xFFFFFFFF else "", 20)
        found.add("sample-rate", str(rate), 20)
        found.add("channels", str(channels), 20)
    found.add("description", short_text(raw[24:start]), 1_000)
