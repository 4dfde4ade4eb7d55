"""Bytes to text: charsets declared, marked or guessed."""

from __future__ import annotations

import codecs
import encodings
import pkgutil
import re
from collections.abc import Sequence
from contextlib import suppress
from typing import BinaryIO, NamedTuple

import cchardet

from processors.essence.formats import charsets
from processors.essence.formats.charsets import ebcdic, jis

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
_SEVEN_BIT = ("utf-7", "iso-2022-jp", "iso2022-kr", "hz")
"""Encodings whose texts are of ASCII bytes."""
_WIDE = ("utf-16", "utf-32")
FEW = 12
"""Letters that stand alone among ASCII, as in a name or two, from which nothing can be guessed: most are Western."""
SURE = 6
"""Continuation bytes of valid UTF-8 after which a text is in no other charset, whatever its label says."""
_APART = re.compile(rb"(?<![\x80-\xff])[\x80-\xff](?![\x80-\xff])")
_ASCII = bytes(range(128))
_NO_CONTINUATION = bytes(byte for byte in range(256) if not 0x80 <= byte <= 0xBF)
_KANA = re.compile("[\u3041-\u3093\u30fc]|[\u30a1-\u30f6\u30fc]{2,}")
_HANGUL = re.compile("[\uac00-\ud7a3]")
_WORDS = re.compile("[\uac00-\ud7a3] [\uac00-\ud7a3]")
KANA, HANGUL = 0.2, 0.9
"""Parts of the characters of Japanese and Korean texts that are of these scripts."""
LEAST = 4
"""Characters beyond ASCII from which a script can be counted; a shorter text is Japanese if it is of kana alone."""


class Decoded(NamedTuple):
    """A text, and the encoding that it was in, as `charsets.encoding` names it."""

    text: str
    encoding: str


def preload() -> None:
    """Import every codec now: Python does so at the first use of a charset."""
    for module in pkgutil.iter_modules(encodings.__path__):
        # Some exist on other systems only.
        with suppress(LookupError):
            codecs.lookup(module.name)
    jis.rows()


def decode(raw: bytes, *declared: str) -> str:
    """Return bytes as text; see `identify`."""
    return identify(raw, *declared).text


def identify(raw: bytes, *declared: str) -> Decoded:
    """Return bytes as text, with its encoding: by byte order mark, labels, UTF-8, or a guess; at last windows-1252. Never raises.

    `declared`: labels of charsets, the most trusted first; unknown, empty and contradicted ones are ignored.
    """
    if raw.startswith(_STARTS):
        for mark, charset in _MARKS:
            if raw.startswith(mark):
                return Decoded(raw[len(mark) :].decode(charset, "replace"), charset)
    names = [name for name in map(charsets.encoding, declared) if name]
    if raw.isascii():
        return _seven_bit(raw, names)
    utf8 = _utf8(raw)
    for name in names:
        if utf8 is not None and name.startswith(_WIDE) and b"\0" not in raw:
            continue
        if utf8 is not None and _contradicts(raw, name):
            break
        if name != "utf-8" and (text := _fitting(raw, name)) is not None and not (utf8 is not None and "\ufffd" in text):
            return Decoded(text, name)
        if name == "utf-8" and utf8 is not None:
            break
    text = _fitting(raw, "utf-8") if utf8 is None else utf8
    return _guess(raw) if text is None else Decoded(text, "utf-8")


def _seven_bit(raw: bytes, names: Sequence[str]) -> Decoded:
    """Decode ASCII bytes, in which some encodings write others; ISO-2022-JP is recognized by its escapes, whatever is declared."""
    if not names and (page := ebcdic.page_of(raw[:DETECT])):
        # Hebrew and Arabic have letters in these places, too.
        return Decoded(charsets.decode(raw, page), page)
    shifted = jis.SHIFT.search(raw) is not None
    for name in (*names, *["iso-2022-jp"] * shifted):
        if name in _SEVEN_BIT or (name.startswith(_WIDE) and b"\0" in raw):
            text = _fitting(raw, name)
            if text is not None:
                return Decoded(text, name)
    return Decoded(raw.decode("ascii"), names[0] if names else "utf-8")


def _utf8(raw: bytes) -> str | None:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return None


def _contradicts(raw: bytes, name: str) -> bool:
    """Whether valid UTF-8 is no text in another encoding: in Latin letters no sequence of it makes sense, elsewhere few do."""
    return not name.startswith("utf-") and len(raw.translate(None, _NO_CONTINUATION)) >= (1 if name == "cp1252" else SURE)


def _fitting(raw: bytes, name: str) -> str | None:
    """Return the text in an encoding; None if the bytes are not in it.

    A text that is cut within a character, or has a slip in it, is in its encoding if it has other characters of several bytes.
    """
    text = charsets.decode(raw, name)
    slips = text[:-1].count("\ufffd")
    shorter = len(raw) - len(text) > 2 * slips and charsets.is_multibyte(name)
    return text if not slips or (slips * 200 < len(text) and shorter) else None


def _guess(raw: bytes) -> Decoded:
    """Decode what is in no declared charset and not in UTF-8."""
    head = raw[:DETECT]
    name = ebcdic.page_of(head) or _japanese(head)
    if not name and not len(_APART.findall(head)) == len(raw.translate(None, _ASCII)) <= FEW:
        found = charsets.encoding(cchardet.detect(head)["encoding"] or "")
        name = "cp949" if found in ("big5", "gb18030", "euc-jp") and _is_korean(head) else found
    # That it is not UTF-8 was seen before.
    name = name if name not in ("", "utf-8") else "cp1252"
    return Decoded(charsets.decode(raw, name), name)


def _japanese(head: bytes) -> str:
    """Return the encoding of a Japanese text, which is known by its kana; "" for others.

    The detector takes short sentences for Chinese.
    """
    for name in ("euc-jp", "cp932"):
        text = _valid(head, name)
        many, kana = _beyond(text), sum(map(len, _KANA.findall(text)))
        if kana >= KANA * many if many > LEAST else kana == many >= LEAST - 1:
            return name
    return ""


def _is_korean(head: bytes) -> bool:
    """Whether a text consists of words of Hangul with spaces between them: Chinese has no spaces."""
    text = _valid(head, "cp949")
    return _beyond(text) >= LEAST and _WORDS.search(text) is not None and len(_HANGUL.findall(text)) >= HANGUL * _beyond(text)


def _valid(head: bytes, name: str) -> str:
    """Return the start of a text, whose last character may be cut; "" if it is not in the encoding."""
    text = charsets.decode(head, name).removesuffix("\ufffd")
    return "" if "\ufffd" in text else text


def _beyond(text: str) -> int:
    """Return the number of characters that are not ASCII."""
    return len(text) - len(text.encode("ascii", "ignore"))


def read_text(body: BinaryIO, declared: str = "", limit: int = MAX_TEXT) -> str:
    """The text of a file, at most `limit` bytes of it, with newlines alone between lines."""
    text = decode(body.read(limit), declared)
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def squeeze(text: str) -> str:
    """Text on one line, white space made single."""
    return " ".join(text.split())
