"""A compiled class of Java, made for tests."""

from __future__ import annotations

import struct


def java(version: int = 52) -> bytes:
    """Return a class: sea.Whale extends sea.Fish implements sea.Swims, a field, two methods, one of them synthetic."""
    texts = ["sea/Whale", "sea/Fish", "sea/Swims", "length", "I", "spout", "()V", "access$0", "SourceFile", "Whale.java"]
    pool = b"".join(b"\1" + struct.pack(">H", len(text)) + text.encode() for text in texts)
    pool += b"\5" + bytes(8) + b"".join(b"\7" + struct.pack(">H", n) for n in (1, 2, 3))
    first = len(texts) + 3
    members = struct.pack(">H4H", 1, 2, 4, 5, 0) + struct.pack(">H4H", 2, 1, 6, 7, 0) + struct.pack(">4H", 0x1001, 8, 7, 0)
    head = b"\xca\xfe\xba\xbe" + struct.pack(">HHH", 0, version, first + 3) + pool
    about = struct.pack(">H", 1) + struct.pack(">HIH", 9, 2, 10)
    return head + struct.pack(">5H", 0x21, first, first + 1, 1, first + 2) + members + about
