"""Headers of objects and of whole files (packages) that Windows embeds in documents ([MS-OLEDS])."""

from __future__ import annotations

import struct

from processors.essence.formats.container import Damaged, Reader
from processors.essence.formats.streams import need

MAX_TEXT = 1_000
"""Maximum bytes of a name or a path."""
EMBEDDED = 2
"""Kind of an object whose data is in the document; other kinds have only a path."""
PACKAGE = b"Package"


def _text(reader: Reader) -> bytes:
    """Read a NUL-terminated string. Raises Damaged."""
    found = bytearray()
    while (byte := need(reader, 1, "the name of an embedded file")) != b"\0":
        found += byte
        if len(found) > MAX_TEXT:
            raise Damaged("the name of an embedded file is too long")
    return bytes(found)


def _number(reader: Reader) -> int:
    return int(struct.unpack("<I", need(reader, 4, "the head of an embedded file"))[0])


def _counted(reader: Reader) -> bytes:
    """Read a string preceded by its length. Raises Damaged."""
    size = _number(reader)
    if size > MAX_TEXT:
        raise Damaged("the name of an embedded file is too long")
    return need(reader, size, "the name of an embedded file").partition(b"\0")[0]


def package(reader: Reader) -> tuple[bytes, int]:
    """Read the name and size of an embedded file; its bytes follow. Raises Damaged."""
    need(reader, 2, "the head of an embedded file")
    name, _ = _text(reader), _text(reader)
    need(reader, 4, "the head of an embedded file")
    _counted(reader)
    return name, _number(reader)


def embedded(reader: Reader) -> tuple[bytes, int]:
    """Read the name and the size of an object ([MS-OLEDS] 2.2.5); its bytes follow. Raises Damaged.

    The name is b"" if the object is not a file; the size is -1 if its data is stored elsewhere.
    """
    need(reader, 4, "the head of an embedded file")
    kind = _number(reader)
    what, *_ = [_counted(reader) for _ in ("class", "topic", "item")]
    if kind != EMBEDDED:
        return b"", -1
    size = _number(reader)
    return package(reader) if what == PACKAGE else (b"", size)
