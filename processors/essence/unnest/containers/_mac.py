"""Files of the Macintosh: a fork of data and one of resources, as BinHex and MacBinary carry them."""

from __future__ import annotations

RESOURCES = b"/..namedfork/rsrc"
"""What macOS adds to a name for the fork of resources."""
EPOCH = 2_082_844_800
"""s from 1904 to 1970."""


def name(raw: bytes) -> bytes:
    """A name in UTF-8; a slash in it stands as a colon, as macOS shows it."""
    return raw.decode("mac_roman").replace("/", ":").encode()


def time(seconds: int) -> int:
    """A time since 1904 in ns since the epoch; 0: unknown."""
    return (seconds - EPOCH) * 1_000_000_000 if seconds else 0
