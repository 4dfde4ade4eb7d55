"""Bytes to text: charsets declared, marked or guessed."""

from __future__ import annotations

import codecs
import re
from contextlib import suppress
from encodings.aliases import aliases
from typing import BinaryIO

import cchardet

MAX_TEXT = 1 << 20
"""Bytes of a text file that are read: what a summary takes stands before that."""
DETECT = 16_384
"""Bytes that the charset is guessed from."""
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_STARTS = tuple(mark for mark, _ in _MARKS)
_LATIN = {"iso-8859-1", "iso8859-1", "latin-1", "latin1", "us-ascii", "ascii"}
"""Labels that mean windows-1252 to everyone who writes them (WHATWG Encoding, 4.2)."""
FEW = 12
"""Letters that stand alone among ASCII, as in a name or two, from which nothing can be guessed: most are Western."""
_APART = re.compile(rb"(?<![\x80-\xff])[\x80-\xff](?![\x80-\xff])")
_ASCII = bytes(range(128))


def preload() -> None:
    """Import every codec now: Python does so at the first use of a charset."""
    for charset in set(aliases.values()):
        # Some exist on other systems only.
        with suppress(LookupError):
            codecs.lookup(charset)


def decode(raw: bytes, declared: str = "") -> str:
    """Bytes as text: by byte order mark, declared charset, UTF-8, then what cchardet believes, then windows-1252. Never raises."""
    if raw.startswith(_STARTS):
        for mark, charset in _MARKS:
            if raw.startswith(mark):
                return raw[len(mark) :].decode(charset, "replace")
    if raw.isascii() and not declared.lower().startswith(("utf-16", "utf-32", "utf-7", "iso-2022", "hz")):
        return raw.decode("ascii")
    return _by_charset(raw, declared) or _by_guess(raw)


def _by_charset(raw: bytes, declared: str) -> str | None:
    """The text in the charset declared, or in UTF-8; None where it is in neither."""
    for charset in (declared.strip().lower(), "utf-8"):
        try:
            if charset:
                return raw.decode("cp1252" if charset in _LATIN else charset)
        except (LookupError, UnicodeError, ValueError):
            continue
    # A text that was cut in the middle of a character, or with a slip in it, is still UTF-8: where something else in it is.
    text = raw.decode("utf-8", "replace")
    slips = text[:-1].count("\ufffd")
    return text if slips * 200 < len(text) and (not slips or len(raw) - len(text) > 2 * slips) else None


def _by_guess(raw: bytes) -> str:
    try:
        if len(_APART.findall(raw[:DETECT])) == len(raw.translate(None, _ASCII)) <= FEW:
            return raw.decode("cp1252")
        guess = cchardet.detect(raw[:DETECT])["encoding"] or "cp1252"
        # That it is not UTF-8 was seen before.
        return raw.decode("cp1252" if guess == "UTF-8" else guess, "replace")
    except (LookupError, UnicodeError, ValueError):
        return raw.decode("cp1252", "replace")


def read_text(body: BinaryIO, declared: str = "", limit: int = MAX_TEXT) -> str:
    """The text of a file, at most `limit` bytes of it, with newlines alone between lines."""
    text = decode(body.read(limit), declared)
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def squeeze(text: str) -> str:
    """Text on one line, white space made single."""
    return " ".join(text.split())
