"""EBCDIC, the charset of IBM's mainframes: recognized by its bytes, as no label tells of it (IBM, "Coded Character Sets").

Strategy: a text in EBCDIC has many 0x40 (its space), and neither ASCII's space nor line feed. The likeliest code page is the one in
which the text consists of words of one script, with few other signs.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from functools import cache
from itertools import pairwise

PAGES = ("cp037", "cp500", "cp273", "cp1026", "cp875", "cp424", "cp420")
"""Code pages in the order of preference: English (two of them), German, Turkish, Greek, Hebrew, Arabic."""
SPACE = 0x40
LEAST, SPACES = 32, 20
"""Bytes of a text that can be recognized; bytes for each space at most."""
ODD, LETTERS, PLAIN = 0.05, 0.4, 0.75
"""Parts of a text: of signs that are rare in text at most, of letters at least; part of Latin letters that are ASCII."""
_FOREIGN = bytes(byte for byte in range(SPACE) if byte not in (0x05, 0x0B, 0x0C, 0x0D, 0x15, 0x25))
"""Controls that no text has: all but tab, form feed and line ends."""
_SIGNS = frozenset(" .,;:!?'\"()[]{}|-/&%+*=_#$@<>،؛؟«»\t\r\n\f\v")
_MISPLACED = re.compile(r"\w[\[\]{}|!]\w|(?:^|\s)[!\]}|]\w")
"""Brackets and the like within words and before them: letters of another code page."""
VOWELS = 0.35
"""Part of the letters of a Greek text that are vowels at least: in capitals it has the bytes of a Hebrew one."""
_ARABIC = (
    " \xa0\u0651\ufe7d\u0640\ufffd\u0621\u0622\ufe82\u0623\xa2.<(+|&\ufe84\u0624\ufffd\ufffd\u0626\u0627\ufe8e\u0628\ufe91"
    "!$*);\xac-/"
    "\u0629\u062a\ufe97\u062b\ufe9b\u062c\ufe9f\u062d\xa6,%_>?\ufea3\u062e\ufea7\u062f\u0630\u0631\u0632\u0633\ufeb3\u060c:#@'=\""
    "\u0634abcdefghi\ufeb7\u0635\ufebb\u0636\ufebf\u0637\u0638jklmnopqr\u0639\ufeca\ufecb\ufecc\u063a\ufece\ufecf\xf7stuvwxyz\ufed0"
    "\u0641\ufed3\u0642\ufed7\u0643\ufedb\u0644\ufef5\ufef6\ufef7\ufef8\ufffd\ufffd\ufefb\ufefc\ufedf\u0645\ufee3\u0646\ufee7\u0647"
    "\u061bABCDEFGHI\xad\ufeeb\ufffd\ufeec\ufffd\u0648\u061fJKLMNOPQR\u0649\ufef0\u064a\ufef2\ufef3\u0660\xd7\ufffdSTUVWXYZ\u0661\u0662"
    "\ufffd\u0663\u0664\u06650123456789\ufffd\u0666\u0667\u0668\u0669\x9f"
)
"""Characters of code page 420 from the space on, with letters in the forms that it has for their places in a word."""


def decode(raw: bytes, page: str) -> str:
    """Return bytes as text, with line feeds between lines; Arabic letters in their general form."""
    return raw.decode("latin-1").translate(_table(page))


def page_of(head: bytes) -> str:
    """Return the code page of the start of a text in EBCDIC; "" if it is none."""
    spaces = head.count(SPACE)
    if len(head) < LEAST or spaces * SPACES < len(head) or len(head) != len(head.translate(None, _FOREIGN)):
        return ""
    rated = {page: _odd(decode(head, page), len(head)) for page in PAGES}
    best = min(rated, key=rated.__getitem__)
    return best if rated[best] <= ODD else ""


def _odd(text: str, size: int) -> float:
    """Return the part of a text that is odd: rare signs, letters beside those of another script or case. 1 for what is no text."""
    letters = sum(map(str.isalpha, text))
    if _script(max(text)) == "GREEK" and text.isupper() and sum(map("ΑΕΗΙΟΥΩ".count, text)) < VOWELS * letters:
        return 1.0
    latin = [char for char in text if char.isalpha() and _script(char) == "LATIN"]
    if letters < max(LETTERS * (size - text.count(" ")), LEAST // 2) or sum(map(str.isascii, latin)) < PLAIN * len(latin):
        return 1.0
    signs = sum(not (char in _SIGNS or char.isalpha() or char.isdecimal()) for char in text)
    pairs = sum(one.isalpha() and next_.isalpha() and _clash(one, next_) for one, next_ in pairwise(text))
    return (signs + pairs + len(_MISPLACED.findall(text))) / size


def _clash(one: str, next_: str) -> bool:
    return _script(one) != _script(next_) or (one.islower() and next_.isupper())


@cache
def _script(char: str) -> str:
    return unicodedata.name(char, "").partition(" ")[0]


@cache
def _table(page: str) -> Mapping[int, str]:
    if page == "cp420":
        start = bytes(range(SPACE)).decode("cp037")
        chars = [unicodedata.normalize("NFKC", char) if "\ufe70" <= char <= "\ufefc" else char for char in start + _ARABIC]
    else:
        chars = [bytes((byte,)).decode(page, "replace") for byte in range(256)]
    # The next line of EBCDIC ends a line, as does its line feed.
    return {number: "\n" if char == "\x85" else char for number, char in enumerate(chars)}
