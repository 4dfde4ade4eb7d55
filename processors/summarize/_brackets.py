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

_MARK = re.compile(rb"\\.|[\[\](){}]|<<|>>|(?<=end)(?:obj|stream)|stream[\r\n]", re.DOTALL)


def steep(data: bytes) -> bool:
    """Whether brackets without end, or strings of brackets, would keep pdfminer for a minute or fill its memory."""
    deep = inside = begun = copied = 0
    packed = False
    for number, mark in enumerate(_MARK.finditer(data)):
        token = mark[0]
        if token in (b"[", b"{", b"<<"):
            deep += not inside
        elif token in (b"]", b"}", b">>"):
            deep = max(deep - (not inside), 0)
        elif token == b"(":
            begun, inside = begun if inside else mark.start(), inside + (not packed)
        elif token == b")":
            inside = max(inside - 1, 0)
        elif token[0] != ord("\\"):
            # What opened a string was none, and in what is packed there are none.
            inside, packed = 0, token.startswith(b"stream")
        copied += mark.start() - begun if inside else 0
        if deep > DEEP or number > MARKS or copied > COPIED:
            return True
    return False
