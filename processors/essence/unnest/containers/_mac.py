"""Macintosh files: a data fork and a resource fork, as BinHex and MacBinary carry them."""

from __future__ import annotations

RESOURCES = b"/..namedfork/rsrc"
"""Suffix that macOS adds to a name for the resource fork."""
EPOCH = 2_082_844_800
"""Seconds from 1904 to 1970."""


def name(raw: bytes) -> bytes:
    """Return a name in UTF-8; a slash in it becomes a colon, as macOS shows it."""
    return raw.decode("mac_roman").replace("/", ":").encode()


def time(seconds: int) -> int:
    """Convert a time in seconds since 1904 to nanoseconds since the epoch; 0: unknown."""
    return (seconds - EPOCH) * 1_000_000_000 if seconds else 0
