"""Assembles the strings that a PostScript page shows into lines.

A wide gap between two strings becomes a space; a narrow one is kerning inside of a word.
"""

from __future__ import annotations

import math
from typing import NamedTuple
from unicodedata import normalize

from processors.essence.formats.tex_fonts import ACCENTED

SPACE = 0.17
"""Least gap that is a space, as a fraction of the type size. TeX shrinks its spaces to .22, and kerns by less than .1."""
LINE = 0.6
"""Least vertical distance of a string on another line, as a fraction of the size. Notes and exponents are nearer."""
BACK = -0.3
"""Backward move that begins another line, as a fraction of the size; a smaller one is kerning."""
DOUBLE = 0.1
"""Greatest distance between two prints of a string that is printed twice to look bold, as a fraction of the size."""
_DOTLESS = str.maketrans("\u0131\u0237", "ij")


class Piece(NamedTuple):
    """A string that the page shows."""

    text: str
    size: float
    """Type size in points; 0: unknown."""
    x: float
    y: float
    """Start on the page, in points: `x` along the line, `y` across."""
    end: float
    """End of the string along its line."""
    turned: int
    """Direction of the line in degrees, to the nearest 5."""


def lines(pieces: list[Piece]) -> list[list[Piece]]:
    """Return the pieces of a page by line, in the order in which they are shown.

    A gap becomes a space at the start of the piece after it.
    """
    kept: list[list[Piece]] = []
    before: Piece | None = None
    for piece in pieces:
        size = max(piece.size, before.size) if before else 0.0
        if before and piece.text == before.text and math.dist((piece.x, piece.y), (before.x, before.y)) <= DOUBLE * size:
            continue
        if before is None or not _on(before, piece, size):
            kept.append([piece])
        elif _accents(before, piece):
            letter = normalize("NFC", piece.text[0].translate(_DOTLESS) + ACCENTED[before.text[-1]])
            kept[-1][-1] = piece._replace(text=kept[-1][-1].text[:-1] + letter + piece.text[1:])
        else:
            kept[-1].append(piece._replace(text=" " + piece.text) if piece.x - before.end > SPACE * size else piece)
        before = piece
    return kept


def _on(before: Piece, piece: Piece, size: float) -> bool:
    """Whether a piece is on the same line as the one before."""
    if before.turned != piece.turned or abs(piece.y - before.y) > LINE * size:
        return False
    return piece.x - before.end > BACK * size or _accents(before, piece)


def _accents(before: Piece, piece: Piece) -> bool:
    """Whether the piece before ends with an accent for the first letter of this one."""
    return before.text[-1:] in ACCENTED and piece.x < before.end and piece.text[:1].isalpha()
