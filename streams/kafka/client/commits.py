"""Commit metadata of an edge: which records above the committed offset are finished.

Format: "1:" and a bitmap in base64; bit 0 of the first byte is the record after the offset, and so on upwards. An edge reads at
most SPAN records ahead, which bounds the text: 1,370 characters for 8,192 records, where brokers accept 4,096. Metadata of any
other format is ignored: what was finished above the offset is then done again.
"""

from __future__ import annotations

import base64
import binascii

from streams.store import Offsets

LIMIT = 4_096
"""Bytes of metadata that a broker accepts (default of offset.metadata.max.bytes)."""
MARK = "1:"
BITS = (LIMIT - len(MARK)) // 4 * 3 * 8
"""Records above the offset that fit into the bitmap; what finished beyond them is done again after a restart."""


def encode_metadata(offsets: Offsets) -> str:
    """Encode the metadata of a commit."""
    bits = 0
    for offset in offsets.done:
        at = offset - offsets.next - 1
        if 0 <= at < BITS:
            bits |= 1 << at
    return MARK + base64.b64encode(bits.to_bytes(-(-bits.bit_length() // 8), "little")).decode() if bits else ""


def decode_commit(offset: int, metadata: str | None) -> Offsets:
    """Decode a committed offset and its metadata."""
    if not metadata or not metadata.startswith(MARK):
        return Offsets(offset)
    try:
        bits = int.from_bytes(base64.b64decode(metadata[len(MARK) :], validate=True), "little")
    except binascii.Error:
        return Offsets(offset)
    return Offsets(offset, frozenset(offset + 1 + at for at in range(bits.bit_length()) if bits >> at & 1))
