"""Helpers for readers of binary formats: bytes, numbers and names at an offset, never more than requested."""

from __future__ import annotations

import struct
from typing import Any, BinaryIO

from processors.essence.formats.text import squeeze


def read_at(body: BinaryIO, at: int, size: int) -> bytes:
    """Return `size` bytes at offset `at` of a file; fewer if the file ends before."""
    if at < 0 or size <= 0 or at >= 1 << 62:
        return b""
    body.seek(at)
    return body.read(size)


def unpack(form: str, raw: bytes, at: int = 0) -> tuple[Any, ...]:
    """Return the numbers at offset `at`, by the `struct` format `form`; () if the bytes end before."""
    return struct.unpack_from(form, raw, at) if 0 <= at <= len(raw) - struct.calcsize(form) else ()


def short_text(raw: bytes, charset: str = "cp1252") -> str:
    """Decode a text too short to guess its charset, up to its NUL, on one line: UTF-8, or else `charset`, usual in its format."""
    raw = raw.partition(b"\0")[0]
    try:
        return squeeze(raw.decode("utf-8"))
    except UnicodeDecodeError:
        return squeeze(raw.decode(charset, "replace"))


def name_at(raw: bytes, at: int, limit: int = 300) -> str:
    """Return the NUL-terminated name at offset `at`, at most `limit` bytes of it."""
    return raw[at : at + limit].partition(b"\0")[0].decode("utf-8", "replace") if 0 <= at < len(raw) else ""
