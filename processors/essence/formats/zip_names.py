"""The charset of names in a zip that do not say theirs: what the machine that wrote it had, which zip never tells.

The specification knows the code page of the first PC alone (PKWARE APPNOTE 6.3.10, appendix D); Windows writes its language's. All
doubtful names of an archive are looked at together, since one alone is too short to tell. A reading is believed where it makes
words of letters that are used together, and no names full of lines, blocks and signs.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from itertools import pairwise

DOS = "cp437"
LOOK = 16_384
"""Bytes of names that are looked at."""
WESTERN = (DOS, "cp850", "cp852", "cp1252")
CYRILLIC = ("cp866", "cp1251")
RARE = frozenset("ƒÿþÞ")
"""Letters that what another charset has in these places is likelier than."""
SIGNS = frozenset("\u2116\u00ab\u00bb\u2013\u2014\u2018\u2019\u201c\u201d\u201e\u2026")
"""What stands between words: the number sign, quotes and dashes."""
USUAL: Mapping[str, re.Pattern[bytes]] = {
    "cp949": re.compile(rb"[\xb0-\xc8][\xa1-\xfe]"),
    "gb18030": re.compile(rb"[\xb0-\xd7][\xa1-\xfe]"),
    "cp932": re.compile(rb"\x82[\x9f-\xf1]|\x83[\x40-\x96]|[\x88-\x97][\x40-\xfc]|\x81\x5b"),
    "cp950": re.compile(rb"[\xa4-\xc6][\x40-\x7e\xa1-\xfe]"),
}
"""What most characters of a text are: syllables of KS X 1001, the first levels of GB 2312, JIS X 0208 (and kana) and Big5."""
_NARROW = re.compile("[\uff66-\uff9f]{2,}")
MOST = 0.8
"""The part of a text that those must be."""
FEW = 4
"""Characters that may all be syllables by chance: three fifths of the Chinese ones are of the same bytes."""


def charset_of(names: Iterable[bytes]) -> str:
    """The charset of names that are no UTF-8 (Python's name); that of DOS where nothing is more likely."""
    raw = _together(names)
    western = next((page for page in WESTERN if _western(raw, page)), "")
    cyrillic = next((page for page in CYRILLIC if _cyrillic(raw, page)), "")
    return western or cyrillic or _far(raw) or DOS


def is_shift_jis(names: Iterable[bytes]) -> bool:
    """Whether names are in Shift_JIS: of kana and usual kanji, kana of half width included, as programs for DOS wrote them."""
    text = _read(_together(names), "cp932") or ""
    narrow = sum(map(len, _NARROW.findall(text)))
    usual = sum(USUAL["cp932"].fullmatch(char.encode("cp932")) is not None for char in _beyond(text))
    return 0 < MOST * len(_beyond(text)) <= usual + narrow


def _far(raw: bytes) -> str:
    """The charset of the far East that names are in; "" for none."""
    found = {charset: _usual(raw, charset) for charset in USUAL}
    if sum(byte > 0x7F for byte in raw) < 2 * FEW:
        del found["cp949"]
    best = max(found, key=found.__getitem__)
    return best if found[best] >= MOST else ""


def _usual(raw: bytes, charset: str) -> float:
    """The part of the characters beyond ASCII that are usual in a text of a charset."""
    found = _beyond(_read(raw, charset) or "")
    usual = sum(USUAL[charset].fullmatch(char.encode(charset)) is not None for char in found)
    return usual / len(found) if found else 0.0


def _together(names: Iterable[bytes]) -> bytes:
    """Names a line, without those of folders before them, which are others, and without suffixes, which are ASCII everywhere."""
    found = bytearray()
    for name in names:
        last = name.rstrip(b"/").rpartition(b"/")[2]
        found += (last.rpartition(b".")[0] or last) + b"\n"
        if len(found) >= LOOK:
            break
    return bytes(found)


def _read(raw: bytes, charset: str) -> str | None:
    """The names in a charset; None where they are not in it."""
    try:
        return raw.decode(charset)
    except UnicodeDecodeError:
        return None


def _western(raw: bytes, charset: str) -> bool:
    """Whether names are words of Latin letters, of which a third has accents at the most."""
    text = _read(raw, charset) or ""
    letters = _beyond(text)
    plain = sum(char.isascii() and char.isalpha() for char in text)
    words = all((_letter(char, "LATIN ") and char not in RARE) or char in SIGNS for char in letters)
    return 0 < 2 * len(letters) <= plain and words and not any(_jumps(one, next_) for one, next_ in pairwise(text))


def _cyrillic(raw: bytes, charset: str) -> bool:
    """Whether names are words of Cyrillic letters alone."""
    text = _read(raw, charset) or ""
    letters = _beyond(text)
    words = any(map(str.isalpha, letters)) and all(char in SIGNS or _letter(char, "CYRILLIC ") for char in letters)
    return words and not any(_jumps(one, next_) or _mixed(one, next_) for one, next_ in pairwise(text))


def _jumps(one: str, next_: str) -> bool:
    """Whether a capital that is not ASCII stands behind a small letter: not in words, and everywhere where there are none."""
    return one.islower() and next_.isupper() and not next_.isascii()


def _mixed(one: str, next_: str) -> bool:
    """Whether a Latin letter and another stand side by side."""
    return one.isalpha() and next_.isalpha() and one.isascii() != next_.isascii()


def _beyond(text: str) -> list[str]:
    return [char for char in text if not char.isascii()]


def _letter(char: str, script: str) -> bool:
    return char.isalpha() and unicodedata.name(char, "").startswith(script)
