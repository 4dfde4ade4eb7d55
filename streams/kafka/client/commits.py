"""What an edge commits: the offset below which all is finished, and in the commit's metadata what finished above it.

Format of the metadata: "1:" and a bitmap in base64; bit 0 of its first byte is the record behind the offset, and so on upwards. An
edge reads at most SPAN records ahead, so that the text is bounded: 1,370 characters for 8,192 records, where brokers take 4,096.
Metadata of anybody else's is read as none: then what was finished above the offset is done again.
"""

from __future__ import annotations

import base64
import binascii

from streams.store import Offsets

LIMIT = 4_096
"""Bytes of metadata that a broker takes (offset.metadata.max.bytes, as it comes)."""
MARK = "1:"
BITS = (LIMIT - len(MARK)) // 4 * 3 * 8
"""Records above the offset that can be told; what finished above them is done again after a start."""


def told(offsets: Offsets) -> str:
    """The metadata of a commit."""
    bits = 0
    for offset in offsets.done:
        at = offset - offsets.next - 1
        if 0 <= at < BITS:
            bits |= 1 << at
    return MARK + base64.b64encode(bits.to_bytes(-(-bits.bit_length() // 8), "little")).decode() if bits else ""


def understood(offset: int, metadata: str | None) -> Offsets:
    """What a commit said."""
    if not metadata or not metadata.startswith(MARK):
        return Offsets(offset)
    try:
        bits = int.from_bytes(base64.b64decode(metadata[len(MARK) :], validate=True), "little")
    except binascii.Error:
        return Offsets(offset)
    return Offsets(offset, frozenset(offset + 1 + at for at in range(bits.bit_length()) if bits >> at & 1))
