"""EUC-JP and ISO-2022-JP with the characters that vendors added to JIS X 0208 (WHATWG Encoding, 12.1 and 12.2).

Python's codecs know the standard alone. Everybody writes the rows 13 and 89 to 92 as well (circled numbers, Roman numerals, IBM's
kanji), which Python has in `cp932`: a character of JIS X 0208 has one place in each of these encodings.

Laws:
- Decoders never raise: bytes without a meaning become U+FFFD.
- Both take linear time, whatever the bytes are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache

ESCAPE = re.compile(rb"\x1b(?:\$[@AB]|\$\([ABCDOPQ]|\([ABHIJ])")
"""Escape sequences of ISO-2022-JP and its extensions (RFC 1468, RFC 1554, RFC 2237, JIS X 0213)."""
SHIFT = re.compile(rb"\x1b\$(?:[@B]|\([DOPQ])")
"""Those after which two bytes are one Japanese character."""

_HIGH = bytes(byte | 0x80 if 0x21 <= byte <= 0x7E else byte for byte in range(256))
_CELLS = re.compile(rb"[\xa1-\xfe]{2}")
_EUC = re.compile(
    rb"(?P<standard>(?:[\x00-\x7f]++|\x8e[\xa1-\xdf]|\x8f[\xa1-\xfe]{2}|(?![\xad\xf9-\xfc])[\xa1-\xfe]{2}|(?!))++)"
    rb"|[\xa1-\xfe]{2}|.",
    re.DOTALL,
)
"""Runs that Python decodes, characters of the vendors' rows, stray bytes."""
_LOW = re.compile(rb"[\xa1-\xfe]++|[^\xa1-\xfe]++", re.DOTALL)
_VENDOR = {"\u301c": "\uff5e", "\u2016": "\u2225", "\u2212": "\uff0d", "\xa2": "\uffe0", "\xa3": "\uffe1", "\xac": "\uffe2"}
"""Signs that Unicode's old table of JIS X 0208 and everybody's differ in: wave dash, double bar, minus, cent, pound, not."""
WRITTEN = {0xA5: 0x5C, 0x203E: 0x7E, 0x2212: 0xFF0D}
"""What encoders write instead of a sign that the encoding has no place for (WHATWG Encoding, 12.1.2 and 12.3.2)."""


@cache
def rows() -> Mapping[bytes, str]:
    """Return the characters of JIS X 0208 and its vendors' rows by their bytes in EUC-JP."""
    found = {}
    for row in range(0x21, 0x7F):
        lead = (row + 1 >> 1) + (0x70 if row < 0x5F else 0xB0)
        for cell in range(0x21, 0x7F):
            trail = cell + (0x7E if row % 2 == 0 else 0x1F if cell < 0x60 else 0x20)
            char = bytes((lead, trail)).decode("cp932", "replace")
            if len(char) == 1 and char != "\ufffd":
                found[bytes((row | 0x80, cell | 0x80))] = char
    return found


@cache
def _places() -> Mapping[str, bytes]:
    """Return the bytes in EUC-JP by character: of two places, the first."""
    return {char: place for place, char in reversed(list(rows().items()))}


def decode_euc(raw: bytes) -> str:
    """Decode EUC-JP."""
    try:
        text = raw.decode("euc_jp")
    except UnicodeDecodeError:
        vendors = rows()
        text = "".join(
            match[0].decode("euc_jp", "replace") if match["standard"] else vendors.get(match[0], "\ufffd")
            for match in _EUC.finditer(raw)
        )
    if not raw.isascii():
        for theirs, ours in _VENDOR.items():
            text = text.replace(theirs, ours)
    return text


def encode_euc(text: str) -> bytes:
    """Encode in EUC-JP. Raises UnicodeEncodeError for characters beyond JIS X 0208 and its vendors' rows."""
    found = []
    for at, char in enumerate(text.translate(WRITTEN)):
        place = _places().get(char, b"")
        if char.isascii():
            place = char.encode("ascii")
        elif "\uff61" <= char <= "\uff9f":
            place = bytes((0x8E, ord(char) - 0xFF61 + 0xA1))
        if not place:
            raise UnicodeEncodeError("euc_jp", text, at, at + 1, "no place in JIS X 0208")
        found.append(place)
    return b"".join(found)


def _katakana(raw: bytes) -> str:
    return "".join(chr(byte - 0x21 + 0xFF61) if 0x21 <= byte <= 0x5F else chr(byte) if byte < 0x21 else "\ufffd" for byte in raw)


def _plane(codec: str, shift: bytes = b"") -> Callable[[bytes], str]:
    """Return a decoder of two-byte characters of seven bits, in the plane of an EUC that `shift` selects."""

    def decode(raw: bytes) -> str:
        cells = raw.translate(_HIGH)
        if shift:
            cells = _CELLS.sub(lambda match: shift + match[0], cells)
        return decode_euc(cells) if codec == "euc_jp" else cells.decode(codec, "replace")

    return decode


def _ascii(raw: bytes) -> str:
    return raw.decode("ascii", "replace")


def _roman(raw: bytes) -> str:
    return _ascii(raw).replace("\\", "¥").replace("~", "‾")


_Read = Callable[[bytes], str]
_SETS: Mapping[bytes, _Read] = {
    b"(J": _roman,
    b"(I": _katakana,
    b"$@": _plane("euc_jp"),
    b"$B": _plane("euc_jp"),
    b"$(B": _plane("euc_jp"),
    b"$(D": _plane("euc_jp", b"\x8f"),
    b"$A": _plane("gb2312"),
    b"$(A": _plane("gb2312"),
    b"$(C": _plane("euc_kr"),
    b"$(O": _plane("euc_jis_2004"),
    b"$(P": _plane("euc_jis_2004", b"\x8f"),
    b"$(Q": _plane("euc_jis_2004"),
}
"""Decoders of character sets by the escape that designates them; ASCII after the others."""


def decode_iso2022(raw: bytes) -> str:
    """Decode ISO-2022-JP and its extensions. Line ends and spaces are themselves in every set."""
    at, found = 0, list[str]()
    read: _Read = _ascii
    for match in ESCAPE.finditer(raw):
        found.append(read(raw[at : match.start()]))
        at, read = match.end(), _SETS.get(match[0][1:], _ascii)
    return "".join((*found, read(raw[at:])))


def encode_iso2022(text: str) -> bytes:
    """Encode in ISO-2022-JP, in ASCII at its end. Raises UnicodeEncodeError as `encode_euc`."""
    # Of katakana of half width the encoder writes the usual ones (WHATWG Encoding, 12.2.2).
    whole = "".join(_full_width(char) if "\uff61" <= char <= "\uff9f" else char for char in text)
    return b"".join(
        b"\x1b$B" + bytes(byte & 0x7F for byte in part) + b"\x1b(B" if part[0] > 0x7F else part
        for part in _LOW.findall(encode_euc(whole))
    )


def _full_width(char: str) -> str:
    return _HALF[ord(char) - 0xFF61]


_HALF = (
    "。「」、・ヲァィゥェォャュョッーアイウエオカキクケコサシスセソタチツテトナニヌネノハヒフヘホマミムメモヤユヨラリルレロワン゛゜"
)
"""Katakana by those of half width (WHATWG Encoding, index ISO-2022-JP katakana)."""
