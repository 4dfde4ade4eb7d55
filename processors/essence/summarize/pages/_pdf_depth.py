"""Detects from a file's brackets that pdfminer would take too much time or memory, before pdfminer reads it.

pdfminer keeps all open structures in lists, and copies a string at each bracket and escape in it (ISO 32000-1, 7.3). Brackets in
compressed streams are counted too, except strings, since the end of a stream is unknown in a damaged file; random data stays below
the bounds.
"""

from __future__ import annotations

import re

DEEP = 10_000
"""Maximum open brackets; pdfminer takes 200 bytes for each."""
MARKS = 2_000_000
"""Maximum brackets and similar tokens of a file; pdfminer reads 100,000 a second; compressed data has one in 37 bytes."""
COPIED = 4_000_000_000
"""Maximum bytes that pdfminer may copy for strings: a whole string at each bracket and escape in it."""

_BETWEEN = rb"|(?<=end)(?:obj|stream)|(?<=\d )obj|stream[\r\n]"
_MARK = re.compile(rb"[\[\](){}]|<<|>>" + _BETWEEN)
_IN_STRING = re.compile(rb"\\.|[()]" + _BETWEEN, re.DOTALL)
"""Tokens inside of a string, where alone a backslash escapes the character behind it."""


def exceeds_pdfminer_limits(data: bytes) -> bool:
    """Whether endless brackets, or strings of brackets, would occupy pdfminer for a minute or fill its memory."""
    deep = inside = begun = copied = at = number = 0
    packed = False
    while mark := (_IN_STRING if inside else _MARK).search(data, at):
        token, at, number = mark[0], mark.end(), number + 1
        if token in (b"[", b"{", b"<<"):
            deep += 1
        elif token in (b"]", b"}", b">>"):
            deep = max(deep - 1, 0)
        elif token == b"(":
            begun, inside = begun if inside else mark.start(), inside + (not packed)
        elif token == b")":
            inside = max(inside - 1, 0)
        elif token[0] != ord("\\"):
            # The open bracket did not begin a string, and in compressed data none does.
            inside, packed = 0, token[-1:] in b"\r\n"
        copied += mark.start() - begun if inside else 0
        if deep > DEEP or number > MARKS or copied > COPIED:
            return True
    return False
