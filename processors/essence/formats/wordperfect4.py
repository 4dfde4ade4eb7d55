"""Documents of WordPerfect 4.2, which have neither a header nor a mark (libwpd, `WP42FileStructure`).

A document is text in ASCII with functions: bytes up to 0xBF alone, and groups that begin and end with the same byte, most of a
fixed size. It is recognized by groups that end where they should.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_ANY = 0
"""Size of groups that extend to the next byte of their kind."""
SIZES = (
    6, 4, 3, 5, 5, 6, 4, 6, 8, 42, 3, 6, 4, 3, 4, 3, 6, _ANY, _ANY, 4, 4, 4, 6, _ANY, 4, 4, 4, 4, _ANY, 24, 4, _ANY,
    4, 3, _ANY, 150, 6, 23, 11, 3, 3, _ANY, _ANY, _ANY, 4, _ANY, 44, 18, 6, 106, _ANY, 100, 4, _ANY, 5,
)  # fmt: skip
"""Sizes of groups by their kind, from 0xC0; the kinds after these extend to the next byte."""
SIGNS = {0x09: "\t", 0x0A: "\n", 0x0B: " ", 0x0C: "\n", 0x0D: " ", 0x8C: "\n", 0xA0: " ", 0xA9: "-", 0xAA: "-", 0xAB: "-"}
"""Text of single bytes; a soft hyphen has none."""
FIRST, CHARACTER = 0xC0, 0xE1
"""The first kind of groups, and the one that holds a character of code page 437."""
LETTERS, GROUPS = 0.5, 2
"""Part of a document that is letters and spaces, and groups of fixed size, at least."""
_RUN = re.compile(rb"[\x20-\x7e]+")
_WORDS = re.compile(rb"[A-Za-z ]+")
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1f]")


class _NoDocument(Exception):  # noqa: N818 - it is caught below, and tells what the data are
    """A group does not end where it should."""


def _pieces(raw: bytes) -> Iterator[tuple[str, int]]:
    """Yield the pieces of a document: text, and the size of a group, else 0. Raises _NoDocument. The last group may be cut."""
    at = 0
    while at < len(raw):
        byte = raw[at]
        if run := _RUN.match(raw, at):
            yield run[0].decode("ascii"), 0
            at = run.end()
        elif byte < FIRST:
            yield SIGNS.get(byte, ""), 0
            at += 1
        else:
            size = SIZES[byte - FIRST] if byte - FIRST < len(SIZES) else _ANY
            end = at + size - 1 if size else raw.find(byte, at + 1)
            if end < 0 or end >= len(raw):
                return
            if byte == 0xFF or raw[end] != byte:
                raise _NoDocument
            yield raw[at + 1 : end].decode("cp437") if byte == CHARACTER else "", size
            at = end + 1


def is_wordperfect4(head: bytes) -> bool:
    """Whether bytes are the start of a document: all groups end, two of fixed size or one beside controls, and most is words."""
    if sum(map(len, _WORDS.findall(head))) < LETTERS * len(head):
        return False
    try:
        groups = sum(size > 0 for _, size in _pieces(head))
    except _NoDocument:
        return False
    return groups >= GROUPS or (groups > 0 and _CONTROL.search(head) is not None)


def wordperfect4_text(raw: bytes, most: int) -> str:
    """Return the first `most` characters of a document, as far as its groups end where they should."""
    parts: list[str] = []
    try:
        for text, _ in _pieces(raw):
            parts.append(text)
            most -= len(text)
            if most <= 0:
                break
    except _NoDocument:
        pass
    return "".join(parts)
