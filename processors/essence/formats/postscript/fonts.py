"""PostScript fonts: the text and the width of each character code (PLRM, 5).

The text of a code follows from its glyph name in the font's encoding; TeX's bitmap fonts have no glyph names, but known encodings.
The width of a code is, in this order: the value in the font's dictionary (Metrics), the value that its procedure states (Type 3),
the metrics of the standard fonts (Adobe's, as in pdfminer), or an estimate from these.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import fmean
from unicodedata import normalize

from pdfminer.encodingdb import name2unicode
from pdfminer.fontmetrics import FONT_METRICS
from pdfminer.latin_enc import ENCODING

from processors.essence.formats.postscript.objects import Name, key
from processors.essence.formats.tex_fonts import font_encoding

GUESS = 500.0
"""Width of a character without any metrics, in thousandths of the type size."""
LIGATURES = {0xFB00 + at: said for at, said in enumerate(("ff", "fi", "fl", "ffi", "ffl", "st", "st"))} | {0xAD: "-"}

_FIXED, _PLAIN = ("Cour", "Mono", "CMTT", "Typewriter", "cmtt"), ("Helv", "Arial", "Sans", "CMSS", "cmss")
_SYMBOL = dict(
    zip(
        b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
        "\u0391\u0392\u03a7\u0394\u0395\u03a6\u0393\u0397\u0399\u03d1\u039a\u039b\u039c\u039d\u039f\u03a0\u0398\u03a1\u03a3\u03a4\u03a5\u03c2"
        "\u03a9\u039e\u03a8\u0396\u03b1\u03b2\u03c7\u03b4\u03b5\u03c6\u03b3\u03b7\u03b9\u03d5\u03ba\u03bb\u03bc\u03bd\u03bf\u03c0\u03b8\u03c1"
        "\u03c3\u03c4\u03c5\u03d6\u03c9\u03be\u03c8\u03b6",
        strict=True,
    )
)
_SYMBOL |= dict(
    zip(
        b"-\xa3\xac\xae\xb1\xb3\xb4\xb7\xb9\xbc\xe1\xf1",
        "-\u2264\u2190\u2192\xb1\u2265\xd7\u2022\u2260\u2026\u27e8\u27e9",
        strict=True,
    )
)
"""The most common characters of the font Symbol (PLRM, appendix E.12)."""


def _encoding(column: int) -> list[object]:
    names: list[object] = [Name(".notdef")] * 256
    for row in ENCODING:
        code = row[column]
        if isinstance(code, int):
            names[code] = Name(row[0])
    return names


STANDARD, WINDOWS = _encoding(1), _encoding(3)
"""StandardEncoding, and the Windows encoding in place of ISOLatin1Encoding: its letters have the same codes (PLRM, appendix E)."""
WINDOWS[0xAD] = Name("hyphen")
SYMBOL = [
    Name(f"uni{ord(_SYMBOL[code]):04X}") if code in _SYMBOL else name if code < 128 else Name(".notdef")
    for code, name in enumerate(STANDARD)
]


def builtin_font_dictionary(name: object, encoding: list[object], size: float) -> dict[object, object]:
    """Return the dictionary of a font that is built into printers, at a size in points."""
    by = size / 1_000
    return {
        "FontName": name,
        "FontType": 1,
        "Encoding": encoding,
        "FontMatrix": [by, 0.0, 0.0, by, 0.0, 0.0],
        "FontBBox": [0, 0, 0, 0],
        "PaintType": 0,
        **{part: {} for part in ("Private", "CharStrings", "FontInfo")},
    }


class Face:
    """A font at the time of its first use.

    `drawn`: returns the width that a Type 3 font's procedure states for a code and its name, in the font's space.
    `widths`: known widths by code, shared by fonts that differ only in size.
    """

    def __init__(self, font: dict[object, object], drawn: Callable[[int, object], float], widths: dict[int, float]) -> None:
        self.font = font
        self.kind = font.get("FontType")
        self.widths = widths
        self._drawn = drawn
        encoding = font.get("Encoding")
        self.names = [*(encoding if isinstance(encoding, list) else STANDARD)[:256]]
        self.names += [None] * (256 - len(self.names))
        tex = font.get("TeX")
        # The bitmap fonts of dvips have numbers as glyph names.
        of_tex = isinstance(tex, str) or self.names[65] == "65"
        self.letters = font_encoding(str(tex or "")) if of_tex else [_letter(name, code) for code, name in enumerate(self.names)]

    def width(self, code: int) -> float:
        """Return the width of a character, in the font's space."""
        width = self.widths.get(code)
        if width is None:
            measured = self._measured(code)
            width = self.widths[code] = measured if math.isfinite(measured) else 0.0
        return width

    def unit(self) -> float:
        """Return the units of the font's space per type size (PLRM, 5.8: one for Type 42; 5.7: any for Type 3); 0 if unknown."""
        if self.kind != 3:
            return 1.0 if self.kind == 42 else 1000.0
        box = self.font.get("FontBBox")
        if isinstance(box, list) and len(box) == 4 and isinstance(box[3], int | float) and isinstance(box[1], int | float):
            return float(box[3] - box[1]) or self._twice()
        return self._twice()

    def _twice(self) -> float:
        """Return twice the mean width of the characters."""
        return 2 * fmean(self.widths.values()) if self.widths else 0.0

    def _measured(self, code: int) -> float:
        name = self.names[code]
        metrics = self.font.get("Metrics")
        stated = metrics.get(name) if isinstance(metrics, dict) else None
        # A number, or an array that also has the character's origin (PLRM, 5.9.2).
        stated = stated[len(stated) // 4 + 1] if isinstance(stated, list) and len(stated) in (2, 4) else stated
        if isinstance(stated, int | float):
            return float(stated)
        if self.kind == 3:
            return self._drawn(code, name)
        return self._usual(self.letters[code]) * (0.001 if self.kind == 42 else 1.0)

    def _usual(self, said: str) -> float:
        """Return the width by the metrics of this or of a similar standard font, in thousandths of the type size."""
        name = str(key(self.font.get("FontName", "")))
        if name not in FONT_METRICS:
            fixed, plain = any(part in name for part in _FIXED), any(part in name for part in _PLAIN)
            name = "Courier" if fixed else "Helvetica" if plain else "Times-Roman"
        widths = FONT_METRICS[name][1]
        return float(widths.get(said if said in widths else normalize("NFKD", said)[:1], GUESS if said else 0.0))


def _letter(name: object, code: int) -> str:
    """Return the text of a glyph name; "" if it is unknown."""
    if not isinstance(name, str) or name in (".notdef", ""):
        return ""
    try:
        return name2unicode(name)
    except KeyError:
        # Programs without standard names make them of the codes: a65, C65, char65.
        number = name.lstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_").lstrip("0")
        return chr(code) if number == str(code) and 32 <= code < 127 else ""
