"""Text of WordPerfect 5, and of 6 and later (Corel, WordPerfect SDK): characters, and functions that are skipped.

A function below 0xD0 has a fixed length, those up to 0xEF state theirs; in version 6 those after that have fixed lengths, too.
"""

from __future__ import annotations

import re

from processors.essence.summarize._base import SummaryError
from processors.essence.summarize.binary._binary import unpack

LENGTHS_5 = {0xC0: 4, 0xC1: 9, 0xC2: 11, 0xC3: 3, 0xC4: 3, 0xC5: 5, 0xC6: 6, 0xC7: 7}
LENGTHS_6 = dict(zip(range(0xF0, 0x100), (4, 5, 3, 3, 3, 3, 4, 4, 4, 5, 5, 6, 6, 8, 8, 1), strict=True))
SIGNS_5 = {0x0A: "\n", 0x0C: "\n", 0x0D: " ", 0x8C: "\n", 0x99: "\n", 0xA0: " ", 0xA9: "-", 0xC1: "\t", 0xC2: "\t"}
SIGNS_6 = {0x80: " ", 0x81: " ", 0x84: "-", 0x87: "\n", 0xC7: "\n", 0xCC: "\n", 0xCF: " ", 0xE0: "\t"}
"""Text of one-byte functions and some others. A soft hyphen has no text."""
SHORT_6 = "\0åÅæÆäÄáàâãÁÃçÇéÉèêíñÑøØõÕöÖüÜúùß"
"""One-byte characters below the space, in version 6."""
MULTINATIONAL = "ßĸȷÁáÂâÄäÀàÅåÆæÇçÉéÊêËëÈèÍíÎîÏïÌìÑñÓóÔôÖöÒòÚúÛûÜüÙùŸÿÃãĐđØøÕõÝýÐðÞþ"
FIRST = 23
"""Number of the first of these characters in set 1."""
TYPOGRAPHIC = "●○■•*¶§¡¿«»£¥₧ƒªº½¼¢²ⁿ®©¤¾³\u201b\u2019\u2018\u201f\u201d\u201c\u2013\u2014\u2039\u203a○□\u2020\u2021™℠℞●○■•"
"""Characters of set 4."""
END_OF_LINE, UNDO, EXTENDED_5, EXTENDED_6 = 0xD0, 0xF1, 0xC0, 0xF0
SOFT = frozenset((1, 2, 3, 0x14, 0x15, 0x16))
"""Kinds of line ends within a paragraph."""
CELL = 0x0A
_RUN = re.compile(rb"[\x20-\x7e]+")


def wordperfect_text(raw: bytes, most: int) -> str:
    """Return the first `most` characters of a document. Raises SummaryError if it is encrypted or in another format."""
    place, kind, major, key = unpack("<4xIxBBxH", raw) or (0, 0, 0, 0)
    if kind != 0x0A:
        raise SummaryError("WordPerfect: not a document")
    if key:
        raise SummaryError("WordPerfect: encrypted")
    return (_six if major == 2 else _five)(raw, place, most)


def _character(number: int, kind: int) -> str:
    """Return a character by its number in a WordPerfect character set; "" for other sets."""
    if kind == 0:
        return chr(number) if 0x20 <= number < 0x7F else ""
    if kind == 1:
        if FIRST <= number < FIRST + len(MULTINATIONAL):
            return MULTINATIONAL[number - FIRST]
        # Standalone accents serve as apostrophes.
        return "\u2019" if 6 <= number <= 13 else ""
    return TYPOGRAPHIC[number] if kind == 4 and number < len(TYPOGRAPHIC) else ""


def _five(raw: bytes, at: int, most: int) -> str:
    parts: list[str] = []
    while at < len(raw) and most > 0:
        byte = raw[at]
        if run := _RUN.match(raw, at):
            parts.append(run[0].decode("ascii"))
            at = run.end()
        else:
            sign = SIGNS_5.get(byte, "")
            if byte == EXTENDED_5 and at + 2 < len(raw):
                sign = _character(raw[at + 1], raw[at + 2])
            parts.append(sign)
            # A stated length is that of the data behind the length field.
            length = 4 + (unpack("<H", raw, at + 2) or (len(raw),))[0] if byte >= END_OF_LINE else LENGTHS_5.get(byte, 1)
            at += length
        most -= len(parts[-1])
    return "".join(parts)


def _six(raw: bytes, at: int, most: int) -> str:
    parts: list[str] = []
    deleted = False
    while at < len(raw) and most > 0:
        byte = raw[at]
        if run := _RUN.match(raw, at):
            sign, length = run[0].decode("ascii"), run.end() - at
        elif 0 < byte < 0x20:
            sign, length = SHORT_6[byte], 1
        else:
            sign = SIGNS_6.get(byte, "")
            length = LENGTHS_6.get(byte, 1)
            if END_OF_LINE <= byte < EXTENDED_6:
                # A function that states less than the size of its header is taken to have that size.
                length = max((unpack("<H", raw, at + 2) or (len(raw),))[0], 4)
            if byte == END_OF_LINE and at + 1 < len(raw):
                sign = " " if raw[at + 1] in SOFT else "\t" if raw[at + 1] == CELL else "\n"
            elif byte == EXTENDED_6 and at + 2 < len(raw):
                sign = _character(raw[at + 1], raw[at + 2])
            elif byte == UNDO and at + 1 < len(raw):
                # Deleted text stays in the file for undo.
                deleted = raw[at + 1] == 0
        at += length
        if sign and not deleted:
            parts.append(sign)
            most -= len(sign)
    return "".join(parts)
