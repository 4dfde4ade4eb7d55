"""Labels of charsets, and the codecs that Python lacks."""

import subprocess
import sys
import time

import pytest

from processors.essence.formats import charsets
from processors.essence.formats.charsets import jis

LABELS = {
    "gb2312": "gbk", "GB_2312-80": "gbk", "gb2312-80": "gbk", "Shift_JIS": "cp932", "x-sjis": "cp932", "euc-kr": "cp949",
    "KS_C_5601-1987": "cp949", "iso-8859-9": "cp1254", "latin5": "cp1254", "iso-8859-1": "cp1252", "us-ascii": "cp1252",
    "ascii": "cp1252", "latin-1": "cp1252", "big5": "big5", "Big5-HKSCS": "big5", "iso-2022-jp": "iso-2022-jp", "TIS-620": "cp874",
    " UTF8 ": "utf-8", "unicode-1-1-utf-8": "utf-8", "utf-16": "utf-16-le", "cp437": "cp437", "iso-8859-8-i": "iso8859-8",
    "macintosh": "mac-roman", "iso-2022-jp-ms": "iso-2022-jp",
}  # fmt: skip

WIDER = [
    ("gb2312", "朱镕基的关于会议", b"\xd6\xec\xe9F\xbb\xf9\xb5\xc4\xb9\xd8\xd3\xda\xbb\xe1\xd2\xe9"),
    ("gbk", "价格 5€", b"\xbc\xdb\xb8\xf1 5\x80"),
    ("shift_jis", "①髙橋", b"\x87\x40\xfb\xfc\x8b\xb4"),
    ("euc-jp", "①髙橋ｱ丂", b"\xad\xa1\xfc\xe2\xb6\xb6\x8e\xb1\x8f\xb0\xa1"),
    ("ks_c_5601-1987", "펲시", b"\xbc\x84\xbd\xc3"),
    ("iso-8859-9", "“ışık”", b"\x93\xfd\xfe\xfdk\x94"),
    ("us-ascii", "“quoted” – \x81", b"\x93quoted\x94 \x96 \x81"),
    ("big5", "價 €，裏", b"\xbb\xf9 \xa3\xe1\xa1A\xf9\xd8"),
    ("iso-2022-jp", "①髙橋 a¥ｱ丂", b"\x1b$B-!|b66\x1b(B a\x1b(J\\\x1b(I1\x1b$(D0!\x1b(B"),
    ("iso-2022-jp", "会議\n2 会議\n", b"\x1b$@2q5D\x1b(J\n2 \x1b$B2q5D\x1b(B\n"),
]


@pytest.mark.parametrize(("label", "name"), LABELS.items(), ids=str)
def test_label_means_what_browsers_mean(label: str, name: str) -> None:
    """A label in any case means the encoding that everybody writes under it."""
    assert charsets.encoding(label) == name


@pytest.mark.parametrize(
    "label", ["", "unknown-8bit", "base64", "rot13", "punycode", "unicode_escape", "idna", "x" * 500, "é", "a\0b"]
)
def test_label_of_no_charset_is_unknown(label: str) -> None:
    """Python's codecs that are not charsets are unknown, as are labels that nobody knows."""
    assert charsets.encoding(label) == ""


@pytest.mark.parametrize(("label", "text", "raw"), WIDER, ids=[f"{label}-{number}" for number, (label, _, _) in enumerate(WIDER)])
def test_extensions_are_decoded(label: str, text: str, raw: bytes) -> None:
    """Characters of the superset that programs write under a label are decoded."""
    assert charsets.decode(raw, charsets.encoding(label)) == text


@pytest.mark.parametrize("name", ["euc-jp", "iso-2022-jp", "cp932"])
def test_japanese_survives_encoding_and_decoding(name: str) -> None:
    """What can be encoded is decoded to itself, vendors' characters included."""
    text = "①㈱髙橋さんの日本語 ABC カナ～―\n"
    assert charsets.decode(charsets.encode(text, name), name) == text


def test_character_without_place_cannot_be_encoded() -> None:
    """A character that an encoding lacks raises, as Python's codecs do."""
    for name in ("euc-jp", "iso-2022-jp", "gbk", "cp1252", "big5"):
        with pytest.raises(UnicodeEncodeError):
            charsets.encode("a한", name)


@pytest.mark.parametrize("name", ["euc-jp", "iso-2022-jp", "big5", "gbk", "cp1252", "cp949", "cp932", "utf-16-le"])
def test_any_bytes_are_decoded(name: str) -> None:
    """Decoding never raises: bytes without a meaning become U+FFFD."""
    every = bytes(range(256)) + bytes(a ^ b for a in range(256) for b in range(256))
    assert charsets.decode(every, name)
    assert charsets.decode(b"\x1b$B!\x1b(B\xff", name) is not None


@pytest.mark.parametrize("unit", [b"\xad\xa1", b"\xff\xad", b"\x1b$B\x1b(B", b"\x1b$(D!!\xff", b"\x80\xa3\xe1\xff"], ids=repr)
def test_decoding_takes_linear_time(unit: bytes) -> None:
    """Bytes that are mostly faults take no more than a few seconds."""
    start = time.process_time()
    for name in ("euc-jp", "iso-2022-jp", "big5", "gbk"):
        charsets.decode(unit * (500_000 // len(unit)), name)
    assert time.process_time() - start < 10


def test_every_cell_of_jis_is_that_of_windows() -> None:
    """A character has the place of `cp932` in EUC-JP and in ISO-2022-JP."""
    raw = b"".join(bytes((row, cell)) for row in (0x2D, 0x30, 0x7C) for cell in range(0x21, 0x7F))
    high = bytes(byte | 0x80 for byte in raw)
    assert jis.decode_iso2022(b"\x1b$B" + raw) == jis.decode_euc(high)
    assert jis.decode_euc(high)[:3] == "①②③"


def test_every_charset_is_loaded_beforehand() -> None:
    """After the preload no charset needs an import: a sealed process could not do it."""
    code = """
import sys
from processors.essence.formats import charsets, text
text.preload()
loaded = set(sys.modules)
for name in (*charsets.NAMES, "koi8-u", "cp874", "cp500", "cp737", "cp720", "mac-arabic"):
    charsets.decode(b"a\\xff\\xfea", charsets.encoding(name))
print(sorted(set(sys.modules) - loaded))
"""
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
