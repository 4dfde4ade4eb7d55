"""DVI: number of pages, generator and date, fonts, text (seed 003, table 3, Dvi).

The preamble, the pages and the postamble are one list of commands (D. Knuth, DVItype, 14 to 19), read in order, up to a bound.
Text comes from the commands that set characters, in the encoding of the font; a move to the right of a third of the type size is a
space, a large move down ends a line.
"""

from __future__ import annotations

from typing import BinaryIO

from processors.essence.formats.tex_fonts import compose_accents, font_encoding
from processors.essence.formats.text import decode, squeeze
from processors.essence.summarize._base import Facts, Found, Summarizer
from processors.essence.summarize.binary._binary import read_at

MAX_READ = 262_144
MAX_TEXT = 6_144
TAIL = 64
"""Bytes read at the end: the offset of the postamble, the version, up to seven 223s."""
COMMANDS = 200_000
SPACE = 100_000
"""Least width of a space in DVI units (65,536 a point)."""
LINE = 400_000
FONTS = 200


def run(facts: Facts, body: BinaryIO, found: Found) -> None:
    """Add pages, generator (the comment), fonts and partial-text."""
    raw = body.read(MAX_READ)
    size = raw[14] if len(raw) > 14 else 0
    found.add("generator", decode(raw[15 : 15 + size]).strip(), 300)
    reader = _Reader(raw, 15 + size)
    text = reader.text(found.most(MAX_TEXT))
    pages = _pages(facts, body)
    found.add("pages", str(pages) if pages else "")
    for name in reader.fonts.values():
        found.add("fonts", name, 100)
    found.body(text, MAX_TEXT)


def _pages(facts: Facts, body: BinaryIO) -> int:
    """Return the number of pages that the postamble states; its offset precedes the 223s at the end."""
    end = read_at(body, max(facts.size - TAIL, 0), TAIL).rstrip(b"\xdf")
    if len(end) < 6 or end[-6] != 249:
        return 0
    post = read_at(body, int.from_bytes(end[-5:-1], "big"), 29)
    return int.from_bytes(post[27:29], "big") if post[:1] == b"\xf8" else 0


class _Reader:
    """Reads commands in order."""

    def __init__(self, raw: bytes, at: int) -> None:
        self.raw = raw
        self.at = at
        self.fonts: dict[int, str] = {}
        self.letters = font_encoding("")
        self.moved = {"w": 0, "x": 0, "y": 0, "z": 0}
        """Registers w, x, y and z: most spaces and lines repeat the previous move."""
        self.kept: list[str] = []

    def number(self, size: int, *, signed: bool = False) -> int:
        """Read a number of `size` bytes."""
        self.at += size
        return int.from_bytes(self.raw[self.at - size : self.at], "big", signed=signed)

    def text(self, room: int) -> str:
        """Return the text of the pages, about `room` characters or until the commands end."""
        for _ in range(COMMANDS):
            if self.at >= len(self.raw) or room < 0:
                break
            said = self._command(self.number(1))
            if said is None:
                break
            if said:
                self.kept.append(said)
                room -= len(said)
        return "\n".join(squeeze(line) for line in compose_accents("".join(self.kept)).split("\n") if line.strip())

    def _command(self, code: int) -> str | None:
        """Execute a command; return the text that it sets, or None after the last page."""
        if code < 128:
            return self.letters[code]
        if code <= 131:
            code = self.number(code - 127)
            return self.letters[code] if code < 256 else ""
        if code <= 137:
            self.at += 8 if code in (132, 137) else code - 132
            return ""
        if code == 139:
            self.at += 44
            return "\n"
        if 143 <= code <= 156:
            return self._right(code)
        if 157 <= code <= 170:
            return self._down(code)
        if 171 <= code <= 238:
            self.letters = font_encoding(self.fonts.get(code - 171 if code <= 234 else self.number(code - 234), ""))
            return ""
        if 239 <= code <= 242:
            length = self.number(code - 238)
            self.at += length
            return ""
        if 243 <= code <= 246:
            return self._font(code - 242)
        return None if code >= 247 else ""

    def _right(self, code: int) -> str:
        """right1..4, w0..4, x0..4: a space if the move is wide enough; w0 and x0 repeat the previous move."""
        size = code - 142 if code <= 146 else code - 147 if code <= 151 else code - 152
        return " " if self._move("w" if 147 <= code <= 151 else "x" if code >= 152 else "", size) >= SPACE else ""

    def _down(self, code: int) -> str:
        """down1..4, y0..4, z0..4: a new line if the move is large enough."""
        size = code - 156 if code <= 160 else code - 161 if code <= 165 else code - 166
        return "\n" if abs(self._move("y" if 161 <= code <= 165 else "z" if code >= 166 else "", size)) >= LINE else " "

    def _move(self, kept: str, size: int) -> int:
        """Return the distance of a move: the command's number, or the register's value if it has none."""
        moved = self.number(size, signed=True) if size else self.moved.get(kept, 0)
        if kept:
            self.moved[kept] = moved
        return moved

    def _font(self, size: int) -> str:
        """Read a fnt_def: checksum, scale, size, length of the area, length of the name, area, name."""
        number = self.number(size)
        self.at += 12
        length = self.number(1) + self.number(1)
        name = self.raw[self.at : self.at + length].decode("ascii", "replace")
        self.at += length
        if len(self.fonts) < FONTS:
            self.fonts[number] = name
        return ""


SUMMARIZER = Summarizer(types=("Dvi",), run=run)
