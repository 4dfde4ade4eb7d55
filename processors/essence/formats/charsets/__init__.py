"""Charsets: what their labels mean, and decoding and encoding as browsers do it (WHATWG Encoding Standard).

A label means the encoding that everybody writes under it, which is mostly a superset of what the label once meant: gb2312 is GBK,
shift_jis is windows-31J, euc-kr is windows-949, iso-8859-1 is windows-1252 (WHATWG Encoding, 4.2). Readers of a stated charset
ask here. Beyond the standard, labels of other machines are known as Python knows them (cp437, EBCDIC, UTF-7).

Laws:
- `decode` never raises: bytes without a meaning become U+FFFD.
- Only charsets are known, not Python's other codecs, of which some take quadratic time.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache, lru_cache, partial
from types import MappingProxyType

from processors.essence.formats.charsets import ebcdic, jis

# fmt: off
_LABELS: Mapping[str, str] = MappingProxyType({
    "utf-8": "unicode-1-1-utf-8 unicode11utf8 unicode20utf8 utf8 x-unicode20utf8 utf-8-sig cp65001",
    "utf-16-le": "csunicode iso-10646-ucs-2 ucs-2 unicode unicodefeff utf-16 utf-16le",
    "utf-16-be": "unicodefffe utf-16be",
    "cp866": "866 csibm866 ibm866",
    "iso8859-2": "csisolatin2 iso-8859-2 iso-ir-101 iso88592 iso-8859-2:1987 l2 latin2",
    "iso8859-3": "csisolatin3 iso-8859-3 iso-ir-109 iso88593 iso-8859-3:1988 l3 latin3",
    "iso8859-4": "csisolatin4 iso-8859-4 iso-ir-110 iso88594 iso-8859-4:1988 l4 latin4",
    "iso8859-5": "csisolatincyrillic cyrillic iso-8859-5 iso-ir-144 iso88595 iso-8859-5:1988",
    "iso8859-6": "arabic asmo-708 csiso88596e csiso88596i csisolatinarabic ecma-114 iso-8859-6 iso-8859-6-e iso-8859-6-i "
                 "iso-ir-127 iso88596 iso-8859-6:1987",
    "iso8859-7": "csisolatingreek ecma-118 elot-928 greek greek8 iso-8859-7 iso-ir-126 iso88597 iso-8859-7:1987 sun-eu-greek",
    "iso8859-8": "csiso88598e csisolatinhebrew hebrew iso-8859-8 iso-8859-8-e iso-ir-138 iso88598 iso-8859-8:1988 visual "
                 "csiso88598i iso-8859-8-i logical",
    "iso8859-10": "csisolatin6 iso-8859-10 iso-ir-157 iso885910 l6 latin6",
    "iso8859-13": "iso-8859-13 iso885913",
    "iso8859-14": "iso-8859-14 iso885914",
    "iso8859-15": "csisolatin9 iso-8859-15 iso885915 l9 latin9",
    "iso8859-16": "iso-8859-16",
    "koi8-r": "cskoi8r koi koi8",
    "koi8-u": "koi8-ru",
    "mac-roman": "csmacintosh mac macintosh x-mac-roman",
    "mac-latin2": "maccentraleurope mac-centraleurope x-mac-ce x-mac-centraleurope",
    "mac-cyrillic": "x-mac-cyrillic x-mac-ukrainian",
    "cp874": "dos-874 iso-8859-11 iso8859-11 iso885911 tis-620 windows-874",
    "cp1250": "windows-1250 x-cp1250",
    "cp1251": "windows-1251 x-cp1251",
    "cp1252": "ansi-x3.4-1968 ascii cp819 csisolatin1 ibm819 iso-8859-1 iso-ir-100 iso8859-1 iso88591 iso-8859-1:1987 l1 latin1 "
              "us-ascii windows-1252 x-cp1252 latin-1 x-user-defined",
    "cp1253": "windows-1253 x-cp1253",
    "cp1254": "csisolatin5 iso-8859-9 iso-ir-148 iso8859-9 iso88599 iso-8859-9:1989 l5 latin5 windows-1254 x-cp1254",
    "cp1255": "windows-1255 x-cp1255",
    "cp1256": "windows-1256 x-cp1256",
    "cp1257": "windows-1257 x-cp1257",
    "cp1258": "windows-1258 x-cp1258",
    "cp420": "ibm420 csibm420 ebcdic-cp-ar1",
    "gbk": "chinese csgb2312 csiso58gb231280 gb2312 gb-2312 gb-2312-80 iso-ir-58 x-gbk euc-cn cp936 ms936 windows-936",
    "gb18030": "gb-18030 gb18030-2000",
    "big5": "big5-hkscs cn-big5 csbig5 x-x-big5 big5hkscs big5-tw cp950 ms950 windows-950",
    "euc-jp": "cseucpkdfmtjapanese x-euc-jp eucjp eucjp-ms eucjp-win x-euc ujis cp51932",
    "iso-2022-jp": "csiso2022jp iso2022-jp iso2022jp iso-2022-jp-1 iso-2022-jp-2 iso-2022-jp-3 iso-2022-jp-ext iso-2022-jp-ms "
                   "iso-2022-jp-2004 iso2022-jp-1 iso2022-jp-2 iso2022-jp-3 iso2022-jp-ext iso2022-jp-2004 jis cp50220 "
                   "cp50221 cp50222",
    "cp932": "csshiftjis ms932 ms-kanji shift-jis sjis windows-31j x-sjis windows-932 x-ms-cp932 cp943 cp943c shiftjis",
    "cp949": "cseuckr csksc56011987 euc-kr euckr iso-ir-149 korean ks-c-5601-1987 ks-c-5601-1989 ksc5601 ksc-5601 windows-949 "
             "ks-c-5601 ms949 uhc cp51949 ksx1001",
})
"""Labels by the name of their encoding here: those of the standard (4.2), and others that programs write; with `-` for `_`."""
# fmt: on
NAMES: Mapping[str, str] = {label: name for name, labels in _LABELS.items() for label in (name, *labels.split())}
"""Names by label."""
_NO_CHARSETS = frozenset(("punycode", "idna", "unicode-escape", "raw-unicode-escape", "undefined", "mbcs", "oem", "utf-8-sig"))
"""Python codecs from bytes to text that are not charsets."""
MAX_LABEL = 60
"""Characters of a label."""

_TWO = re.compile(rb"[\x81-\xfe][\x30-\x39][\x81-\xfe][\x30-\x39]|[\x81-\xfe][\x40-\x7e\x80-\xfe]|\x80")
"""Characters of GB 18030 that are not ASCII, and the euro sign of GBK (WHATWG Encoding, 10.2.1)."""
_BIG5 = re.compile(rb"[\x81-\xfe][\x40-\x7e\xa1-\xfe]")
_EURO = "€".encode("gb18030")


@lru_cache(maxsize=256)
def encoding(label: str) -> str:
    """Return the name of the encoding that a label means (WHATWG Encoding, 4.2, "get an encoding"); "" if it is unknown."""
    key = label.strip(" \t\r\n\f\"'").lower().replace("_", "-")[:MAX_LABEL]
    if key in NAMES:
        return NAMES[key]
    try:
        name = codecs.lookup(key).name.replace("_", "-") if key.isascii() and "\0" not in key else ""
        with suppress(UnicodeError):
            # Codecs from bytes to bytes raise LookupError.
            b" ".decode(name or "ascii")
    except LookupError:
        return ""
    return "" if name in _NO_CHARSETS else NAMES.get(name, name)


def decode(raw: bytes, name: str) -> str:
    """Return bytes as text. `name`: as `encoding` returns it."""
    special = _DECODERS.get(name)
    if special is not None:
        return special(raw)
    try:
        return raw.decode(name)
    except (UnicodeError, ValueError):
        return _with_controls(raw, name) if name in _WINDOWS else raw.decode(name, "replace")


def encode(text: str, name: str) -> bytes:
    """Return text as bytes of an encoding. Raises UnicodeEncodeError for a character that the encoding has not."""
    special = _ENCODERS.get(name)
    return special(text) if special else text.encode(name)


def is_multibyte(name: str) -> bool:
    """Whether characters of an encoding may take several bytes."""
    return (name in _DECODERS and name not in ebcdic.PAGES) or name.startswith(
        ("utf-", "gb", "cp932", "cp949", "hz", "iso2022", "shift-jis", "euc", "johab")
    )


_WINDOWS = frozenset(("cp874", *(f"cp125{number}" for number in range(9))))


@cache
def _table(name: str) -> str:
    """Return the characters of a code page of Windows: places without one have the control of their number."""
    found = [bytes((byte,)).decode(name, "replace") for byte in range(256)]
    return "".join(chr(byte) if char == "\ufffd" and byte < 0xA0 else char for byte, char in enumerate(found))


def _with_controls(raw: bytes, name: str) -> str:
    return codecs.charmap_decode(raw, "replace", _table(name))[0]


def _gbk(raw: bytes) -> str:
    try:
        text = raw.decode("gb18030")
    except UnicodeDecodeError:
        if b"\x80" in raw:
            raw = _TWO.sub(lambda match: _EURO if match[0] == b"\x80" else match[0], raw)
        text = raw.decode("gb18030", "replace")
    # 0xA3A0 is a space in old pages (WHATWG Encoding, index gb18030).
    return text.replace("\ue5e5", "\u3000")


def _big5(raw: bytes) -> str:
    text = raw.decode("big5hkscs", "replace")
    if "\ufffd" in text and b"\xa3\xe1" in raw:
        # The euro sign, which Microsoft added to Big5, is not in Python's tables of it.
        parts = _BIG5.sub(lambda match: b"\0" if match[0] == b"\xa3\xe1" else match[0], raw.replace(b"\0", b" "))
        text = parts.decode("big5hkscs", "replace").replace("\0", "€")
    return text


def _encode_shift_jis(text: str) -> bytes:
    return text.translate(jis.WRITTEN).encode("cp932")


_DECODERS: Mapping[str, Callable[[bytes], str]] = MappingProxyType({
    "gbk": _gbk,
    "gb18030": _gbk,
    "big5": _big5,
    "euc-jp": jis.decode_euc,
    "iso-2022-jp": jis.decode_iso2022,
    **{page: partial(ebcdic.decode, page=page) for page in ebcdic.PAGES},
})  # fmt: skip
_ENCODERS: Mapping[str, Callable[[str], bytes]] = MappingProxyType({
    "big5": lambda text: text.encode("cp950"),
    "euc-jp": jis.encode_euc,
    "iso-2022-jp": jis.encode_iso2022,
    "cp932": _encode_shift_jis,
})  # fmt: skip
