"""What mail is encoded in: encoded words in headers (RFC 2047), base64, lines of uuencode."""

from __future__ import annotations

import binascii
import re

from processors.essence.formats.text import decode

NO_BASE64 = re.compile(rb"[^A-Za-z0-9+/=]+")
_ENCODED = re.compile(r"=\?([^?\s]{1,60})\?([bBqQ])\?([^?\n]{0,1000})\?=([ \t]+(?==\?))?")


def words(value: str) -> str:
    """A field with its encoded words decoded (RFC 2047); a character may be split between two of them, as many mail programs do."""
    if "=?" not in value:
        return value
    out: list[str] = []
    at, held, charset = 0, b"", ""
    for match in _ENCODED.finditer(value):
        if match.start() > at or match[1].lower() != charset:
            out += [decoded(held, charset), value[at : match.start()]]
            held = b""
        charset = match[1].lower()
        held += _word(match[2], match[3])
        at = match.end()
    return "".join((*out, decoded(held, charset), value[at:]))


def _word(encoding: str, text: str) -> bytes:
    raw = text.encode("utf-8", "surrogateescape")
    if encoding in "qQ":
        return binascii.a2b_qp(raw, header=True)
    bare = NO_BASE64.sub(b"", raw).rstrip(b"=")
    return unbase64(bare + b"=" * (-len(bare) % 4))


def decoded(raw: bytes, charset: str) -> str:
    """Bytes of a header in the charset they name, after which RFC 2231 allows a language."""
    return decode(raw, charset.partition("*")[0])


def unbase64(data: bytes) -> bytes:
    """What base64 stands for; b"" where it cannot be told."""
    try:
        return binascii.a2b_base64(data)
    except binascii.Error:
        return b""


def unuuencode(line: bytes) -> bytes:
    """What a line of uuencode stands for; b"" for its first and last, and where it cannot be told."""
    bare = line.rstrip(b"\r\n")
    if not bare or bare.startswith(b"begin ") or bare == b"end":
        return b""
    # Spaces at the end may be lost on the way, and a checksum may have been added.
    size = ((bare[0] - 32 & 63) * 4 + 2) // 3
    try:
        return binascii.a2b_uu(bare[:1] + bare[1 : 1 + size].ljust(size))
    except binascii.Error:
        return b""
