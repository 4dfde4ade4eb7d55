"""How the strings that a page of PostScript shows make lines.

A gap between two strings is a space where it is wide enough, and nothing where a word processor has cut a word to kern it.
"""

from __future__ import annotations

import math
from typing import NamedTuple
from unicodedata import normalize

from processors.essence.formats.tex_fonts import ACCENTED

SPACE = 0.17
"""Of the size of the type: what a gap has at least that is a space. TeX shrinks its spaces to .22, and kerns by less than .1."""
LINE = 0.6
"""Of the size: how far a string is off its line that begins another. Notes and exponents are nearer."""
BACK = -0.3
"""Of the size: how far a string goes back that begins another line; less is kerning."""
DOUBLE = 0.1
"""Of the size: how near to itself a string is that is shown again to make it bold."""
_DOTLESS = str.maketrans("\u0131\u0237", "ij")


class Piece(NamedTuple):
    """A string that was shown."""

    text: str
    size: float
    """Of the type, in points; 0: nothing is known."""
    x: float
    y: float
    """Where it begins, on the page: points, along its line and across."""
    end: float
    """Where it ends along its line."""
    turned: int
    """Where its line leads: degrees, to the nearest 5."""


def lines(pieces: list[Piece]) -> list[list[Piece]]:
    """The pieces of a page as lines, in the order in which they were shown; gaps are spaces in front of the pieces behind them."""
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
    """Whether a piece is on the line of the one before."""
    if before.turned != piece.turned or abs(piece.y - before.y) > LINE * size:
        return False
    return piece.x - before.end > BACK * size or _accents(before, piece)


def _accents(before: Piece, piece: Piece) -> bool:
    """Whether a piece ends with an accent that is set above the letter with which the next one begins."""
    return before.text[-1:] in ACCENTED and piece.x < before.end and piece.text[:1].isalpha()
