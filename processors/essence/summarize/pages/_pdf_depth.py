"""What pdfminer would not get through: told from the brackets of a file, before it reads any of them.

It holds all that is open in lists, and makes a string anew at each bracket and escape in it (ISO 32000-1, 7.3). What stands in
compressed streams is counted with the rest, but for strings, since nobody knows where these end in a file that is damaged; the
bounds are beyond what chance has there.
"""

from __future__ import annotations

import re

DEEP = 10_000
"""Brackets that may be open, where pdfminer takes 200 bytes for each."""
MARKS = 2_000_000
"""Brackets and the like in a whole file, of which pdfminer reads 100,000 a second; what is compressed has one in 37 bytes."""
COPIED = 4_000_000_000
"""Bytes that pdfminer may copy for strings: all of one, at each bracket and escape in it."""

_BETWEEN = rb"|(?<=end)(?:obj|stream)|(?<=\d )obj|stream[\r\n]"
_MARK = re.compile(rb"[\[\](){}]|<<|>>" + _BETWEEN)
_IN_STRING = re.compile(rb"\\.|[()]" + _BETWEEN, re.DOTALL)
"""A backslash takes the meaning from what follows it in a string, and nowhere else."""


def steep(data: bytes) -> bool:
    """Whether brackets without end, or strings of brackets, would keep pdfminer for a minute or fill its memory."""
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
            # What opened a string was none, and in what is packed there are none.
            inside, packed = 0, token[-1:] in b"\r\n"
        copied += mark.start() - begun if inside else 0
        if deep > DEEP or number > MARKS or copied > COPIED:
            return True
    return False
