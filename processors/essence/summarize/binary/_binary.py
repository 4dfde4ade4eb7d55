"""What the readers of binary formats share: bytes at a place, numbers and names in them, never more than was asked for."""

from __future__ import annotations

import struct
from typing import Any, BinaryIO

from processors.essence.formats.text import squeeze


def read_at(body: BinaryIO, at: int, size: int) -> bytes:
    """The bytes at a place of a file; fewer where it ends before."""
    if at < 0 or size <= 0 or at >= 1 << 62:
        return b""
    body.seek(at)
    return body.read(size)


def unpack(form: str, raw: bytes, at: int = 0) -> tuple[Any, ...]:
    """The numbers at a place of bytes; () where the bytes end before."""
    return struct.unpack_from(form, raw, at) if 0 <= at <= len(raw) - struct.calcsize(form) else ()


def short_text(raw: bytes, charset: str = "cp1252") -> str:
    """A text too short for its charset to be guessed, up to its NUL, on one line: UTF-8, or else what is usual in its format."""
    raw = raw.partition(b"\0")[0]
    try:
        return squeeze(raw.decode("utf-8"))
    except UnicodeDecodeError:
        return squeeze(raw.decode(charset, "replace"))


def name_at(raw: bytes, at: int, limit: int = 300) -> str:
    """The name that ends with NUL at a place of bytes."""
    return raw[at : at + limit].partition(b"\0")[0].decode("utf-8", "replace") if 0 <= at < len(raw) else ""
