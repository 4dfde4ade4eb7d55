"""Encodings of TeX's own fonts, which neither DVI nor bitmap fonts in PostScript contain (D. Knuth, The TeXbook, appendix F)."""

from __future__ import annotations

import re
import unicodedata

_SPACING = dict(
    zip(
        "\xb4`\u02c6\xa8\u02dc\xaf\u02d9\xb8\u02d8\u02c7\u02dd\u02da",
        "\u0301\u0300\u0302\u0308\u0303\u0304\u0307\u0327\u0306\u030c\u030b\u030a",
        strict=True,
    )
)
ACCENTED = _SPACING | {mark: mark for mark in _SPACING.values()}
"""Combining mark by spacing accent (and by itself): fonts without accented letters print the accent over the letter."""

_ASCII = "".join(map(chr, range(33, 127)))
_GREEK = "\u0393\u0394\u0398\u039b\u039e\u03a0\u03a3\u03a5\u03a6\u03a8\u03a9"
_LIGATURES = ["ff", "fi", "fl", "ffi", "ffl"]


def _font(low: list[str], others: dict[int, str], high: str = "") -> list[str]:
    """Return an encoding from its codes below 33, its differences from ASCII, and its codes from 128 on."""
    codes = [*low, *[""] * (33 - len(low)), *_ASCII, "", *high]
    codes += [""] * (256 - len(codes))
    return [others.get(code, said) for code, said in enumerate(codes)]


_ROMAN = _font(
    [*_GREEK, *_LIGATURES, "i", "j", *"\u0300\u0301\u030c\u0306\u0304\u030a\u0327", *"\xdf\xe6\u0153\xf8\xc6\u0152\xd8"],
    {
        34: "\u201d", 39: "\u2019", 60: "\xa1", 62: "\xbf", 92: "\u201c", 94: "\u0302", 95: "\u0307", 96: "\u2018", 123: "\u2013",
        124: "\u2014", 125: "\u030b", 126: "\u0303", 127: "\u0308",
    },
)  # fmt: skip
_TYPEWRITER = _font([*_GREEK, "", "", "'", "\xa1", "\xbf", *_ROMAN[16:32], " "], {127: "\u0308"})
_CORK = _font(
    [
        *"\u0300\u0301\u0302\u0303\u0308\u030b\u030a\u030c\u0306\u0304\u0307\u0327\u0328",
        *"\u201a\u2039\u203a\u201c\u201d\u201e\xab\xbb\u2013\u2014",
        "", "", "i", "j", *_LIGATURES, " ",
    ],
    {39: "\u2019", 96: "\u2018", 127: "-", 0xD7: "\u0152", 0xDF: "SS", 0xF7: "\u0153", 0xFF: "\xdf"},
    "\u0102\u0104\u0106\u010c\u010e\u011a\u0118\u011e\u0139\u013d\u0141\u0143\u0147\u014a\u0150\u0154\u0158\u015a\u0160\u015e\u0164\u0162"
    "\u0170\u016e\u0178\u0179\u017d\u017b\u0132\u0130\u0111\xa7\u0103\u0105\u0107\u010d\u010f\u011b\u0119\u011f\u013a\u013e\u0142\u0144\u0148"
    "\u014b\u0151\u0155\u0159\u015b\u0161\u015f\u0165\u0163\u0171\u016f\xff\u017a\u017e\u017c\u0133\xa1\xbf\xa3"
    + "".join(map(chr, range(0xC0, 0x100))),
)  # fmt: skip
_ITALICS = _font(
    [
        *_GREEK,
        *"\u03b1\u03b2\u03b3\u03b4\u03b5\u03b6\u03b7\u03b8\u03b9\u03ba\u03bb\u03bc\u03bd\u03be\u03c0\u03c1\u03c3\u03c4\u03c5\u03c6\u03c7\u03c8",
    ],
    {58: ".", 59: ",", 64: "\u2202", 34: "\u03b5", 35: "\u03d1", 36: "\u03d6", 37: "\u03f1", 38: "\u03c2", 39: "\u03c6"}
    | dict.fromkeys((*range(40, 48), 63, *range(91, 97), *range(123, 128)), ""),
)
_SIGNS = [""] * 256
_SIGNS[:4], _SIGNS[15], _SIGNS[20:22], _SIGNS[33], _SIGNS[50] = "-\xb7\xd7*", "\u2022", "\u2264\u2265", "\u2192", "\u2208"
_SIGNS[102:104], _SIGNS[106] = "{}", "|"


def font_encoding(font: str) -> list[str]:
    """Return the text of the 256 codes of a TeX font, by its name (K. Berry, Fontname; the encodings OT1, T1, OML and OMS)."""
    if font.startswith(("ec", "t1", "tc", "la")):
        return _CORK
    if font.startswith(("cmmi", "cmbxmi", "lmmi")):
        return _ITALICS
    if font.startswith(("cmsy", "cmbsy", "msam", "msbm", "lmsy")):
        return _SIGNS
    if font.startswith(("cmex", "lasy", "line", "circle", "lcircle")):
        return [""] * 256
    return _TYPEWRITER if "tt" in font or "tex" in font else _ROMAN


_ACCENTED = re.compile(r"([\u0300-\u0328])\s*+([^\W\d_])")


def compose_accents(text: str) -> str:
    """Return text with each accent that precedes its letter, TeX's order, combined with the letter."""
    return unicodedata.normalize("NFC", _ACCENTED.sub(r"\2\1", text)) if _ACCENTED.search(text) else text
