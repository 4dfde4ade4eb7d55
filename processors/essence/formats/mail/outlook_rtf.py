"""RTF as Outlook compresses it ([MS-OXRTFCP])."""

from __future__ import annotations

import struct

MAX_RTF = 1 << 20
"""Maximum bytes to which the text of an Outlook message is decompressed."""
COMPRESSED, RAW = b"LZFu", b"MELA"
DICTIONARY = (
    rb"{\rtf1\ansi\mac\deff0\deftab720{\fonttbl;}{\f0\fnil \froman \fswiss \fmodern \fscript \fdecor MS Sans SerifSymbolArial"
    rb"Times New RomanCourier{\colortbl\red0\green0\blue0" + b"\r\n" + rb"\par \pard\plain\f0\fs20\b\i\u\tab\tx"
)
"""Initial content of the dictionary ([MS-OXRTFCP] 2.1.2.1)."""
WINDOW = 4_096


def decompress_rtf(raw: bytes) -> bytes:
    """Decompress Outlook's RTF ([MS-OXRTFCP] 2.2), up to the first damage; b"" if the data is in another format."""
    if len(raw) < 16 or raw[8:12] not in (COMPRESSED, RAW):
        return b""
    size = min(struct.unpack_from("<I", raw, 4)[0], MAX_RTF)
    if raw[8:12] == RAW:
        return raw[16 : 16 + size]
    # The dictionary is a window of the last output, filled up with zeros at the beginning.
    start = WINDOW - len(DICTIONARY)
    out, at = bytearray(start) + DICTIONARY, 16
    end = WINDOW + size
    while at < len(raw) and len(out) < end:
        control, at = raw[at], at + 1
        if not control:
            out += raw[at : at + 8]
            at += 8
            continue
        for bit in range(8):
            if not control >> bit & 1:
                out += raw[at : at + 1]
                at += 1
                continue
            token, at = int.from_bytes(raw[at : at + 2], "big"), at + 2
            back = (len(out) - start - (token >> 4)) % WINDOW
            # A reference to the current position ends the data.
            if at > len(raw) or not back:
                return bytes(out[WINDOW:end])
            length, first = (token & 0xF) + 2, len(out) - back
            # A reference longer than the output behind it repeats that output.
            out += out[first : first + length] if back >= length else (out[first:] * length)[:length]
    return bytes(out[WINDOW:end])
