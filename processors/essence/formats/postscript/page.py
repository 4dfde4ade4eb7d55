"""Graphics of PostScript as far as text needs it (PLRM, 4 and 5): graphics state, pen position, fonts, strings.

Nothing is painted. Images are skipped: their data follows the operator in the file.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from processors.essence.formats.postscript.fonts import LIGATURES, STANDARD, SYMBOL, WINDOWS, Face, builtin_font_dictionary
from processors.essence.formats.postscript.lines import Piece
from processors.essence.formats.postscript.machine import Machine, Operators
from processors.essence.formats.postscript.objects import Fault, Procedure

Matrix = tuple[float, float, float, float, float, float]

SPACES = 32
"""Code of the space character, in every encoding in use."""
RECORDS = 500
"""Maximum number of pdfmark records that are kept."""
PAGE: Matrix = (1.0, 0.0, 0.0, 1.0, 0.0, 0.0)


class State(NamedTuple):
    """Graphics state that is saved and restored (PLRM, 4.2)."""

    ctm: Matrix
    font: dict[object, object]
    at: tuple[float, float] | None


class Save:
    """The result of `save`: the state that `restore` brings back."""

    def __init__(self, state: State, depth: int) -> None:
        self.state = state
        self.depth = depth


class Page(Machine):
    """A machine that collects shown strings; it ends (Enough) after `room` characters, or when the steps are used up."""

    def __init__(self, operators: Operators, room: int, steps: int) -> None:
        super().__init__(operators, steps)
        self.fonts: dict[object, object] = {}
        # Copies, since a program may modify them.
        self.standard, self.symbol = list(STANDARD), list(SYMBOL)
        self.system |= {"StandardEncoding": self.standard, "ISOLatin1Encoding": list(WINDOWS)}
        self.system |= {"FontDirectory": self.fonts, "SharedFontDirectory": self.fonts}
        self.room = room
        # A default font, since text that is shown before a font is set counts too.
        self.state = State(PAGE, self.builtin_font("Times-Roman", 12.0), None)
        self.saved: list[State] = []
        self.measured: float | None = None
        """Width that a glyph procedure has stated, while one is being measured."""
        self.pages: list[list[Piece]] = [[]]
        self.records: list[list[object]] = []
        """Operands of each pdfmark."""
        self.resources: dict[tuple[object, object], object] = {}
        self.scaled: dict[tuple[int, Matrix], tuple[object, dict[object, object]]] = {}
        """Derived fonts by original and matrix. The original is kept, so that its identity is not reused."""
        self.faces: dict[int, Face] = {}
        """Faces by the identity of their font's dictionary, which they keep, so that the identity is not reused."""
        self.alike: dict[int, Face] = {}
        """The first face of those that share their glyphs, by the identity of the glyphs."""

    def builtin_font(self, name: object, size: float = 1.0) -> dict[object, object]:
        """Return a font that is built into printers, at a size in points."""
        return builtin_font_dictionary(name, self.symbol if name == "Symbol" else self.standard, size)

    def six(self, value: object) -> Matrix:
        """Return a value that must be a matrix. Raises Fault."""
        six = self.listed(value)
        numbers = [float(each) for each in six if isinstance(each, int | float)]
        if len(six) != 6 or len(numbers) != 6:
            raise Fault("typecheck")
        return numbers[0], numbers[1], numbers[2], numbers[3], numbers[4], numbers[5]

    def place(self, at: tuple[float, float] | None) -> None:
        """Set the pen's position in the device's space; None: no current point."""
        self.state = self.state._replace(at=at)

    def pen(self) -> tuple[float, float]:
        """Return the pen's position in the device's space. Raises Fault."""
        if self.state.at is None:
            raise Fault("nocurrentpoint")
        return self.state.at

    def move(self, x: float, y: float) -> None:
        """Move the pen by a distance in the user's space."""
        at, by = self.pen(), distance(self.state.ctm, x, y)
        self.place((at[0] + by[0], at[1] + by[1]))

    def face(self) -> Face:
        """Return the face of the current font."""
        font = self.state.font
        found = self.faces.get(id(font))
        if found is None:
            self.pay(256)
            # Fonts that differ in size share their glyphs or their metrics.
            of = font.get("CharProcs", font.get("BitMaps", font.get("Metrics", font)))
            alike = self.alike.get(id(of))
            found = self.faces[id(font)] = Face(font, self._drawn, alike.widths if alike else {})
            self.alike.setdefault(id(of), found)
        return found

    def ended(self, piece: Piece) -> Piece:
        """Return a piece with its end at the pen's position."""
        turn = math.radians(piece.turned)
        x, y = self.pen()
        return piece._replace(end=x * math.cos(turn) + y * math.sin(turn))

    def size(self) -> float:
        """Return the size of the font on the page, in points; 0: unknown."""
        if self.state.font.get("FontType") == 0:
            return 0.0
        matrix = product(self.six(self.state.font.get("FontMatrix")), self.state.ctm)
        return math.hypot(matrix[0], matrix[1]) * self.face().unit()

    def show(self, codes: bytes) -> None:
        """Show a string in the current font, and move the pen to its end."""
        at = self.pen()
        self.pay(len(codes))
        matrix = product(self.six(self.state.font.get("FontMatrix")), self.state.ctm)
        if self.state.font.get("FontType") == 0:
            (said, along), unit = self._composed(codes), 1.0
        else:
            face = self.face()
            said = "".join([face.letters[code] for code in codes]).translate(LIGATURES)
            along = math.fsum([face.width(code) for code in codes])
            unit = face.unit()
        by = distance(matrix, along, 0)
        self.place((at[0] + by[0], at[1] + by[1]))
        if said:
            self._keep(said, matrix, at, math.hypot(matrix[0], matrix[1]) * unit)

    def _composed(self, codes: bytes) -> tuple[str, float]:
        """Return text and width of a string in a composite font, whose first bytes select a font (PLRM, 5.10; FMapType 2)."""
        outer = self.state
        parts, chosen = self.listed(outer.font.get("FDepVector")), self.listed(outer.font.get("Encoding"))
        said, along = [], 0.0
        try:
            for first, second in zip(codes[::2], codes[1::2], strict=False):
                at = chosen[first] if first < len(chosen) else None
                font = self.dictionary(parts[at] if isinstance(at, int) and 0 <= at < len(parts) else None)
                if font.get("FontType") == 0:
                    raise Fault("invalidfont")
                self.state = outer._replace(font=font)
                face = self.face()
                said.append(face.letters[second].translate(LIGATURES))
                along += face.width(second) * self.six(font.get("FontMatrix"))[0]
        finally:
            self.state = outer
        return "".join(said), along

    def _keep(self, said: str, matrix: Matrix, at: tuple[float, float], size: float) -> None:
        """Append a shown string to the page; `matrix` is that of its font on the page."""
        turn = math.atan2(matrix[1], matrix[0])
        cos, sin = math.cos(turn), math.sin(turn)
        end = self.pen()
        if not all(map(math.isfinite, (turn, size, *at, *end))):
            raise Fault("undefinedresult")
        degrees = round(math.degrees(turn) / 5) * 5 % 360
        x, y, to = at[0] * cos + at[1] * sin, at[1] * cos - at[0] * sin, end[0] * cos + end[1] * sin
        self.pages[-1].append(Piece(said, size, x, y, to, degrees))
        self.room -= len(said)
        if self.room < 0:
            self.pay(self.steps + 1)

    def _drawn(self, code: int, name: object) -> float:
        """Return the width that a Type 3 font states when it draws a character (PLRM, 5.7)."""
        font = self.state.font
        by_name, by_code = font.get("BuildGlyph"), font.get("BuildChar")
        draw, what = (by_name, name) if isinstance(by_name, Procedure) else (by_code, code)
        if not isinstance(draw, Procedure) or self.measured is not None:
            return 0.0
        held = self.operands, self.names, self.state, self.saved
        self.operands, self.names, self.saved = [font, what], list(self.names), []
        self.measured = 0.0
        try:
            self.stopped(draw)
            return self.measured
        finally:
            self.operands, self.names, self.state, self.saved = held
            self.measured = None


def distance(matrix: Matrix, x: float, y: float) -> tuple[float, float]:
    """Return a distance, transformed."""
    return matrix[0] * x + matrix[2] * y, matrix[1] * x + matrix[3] * y


def product(first: Matrix, then: Matrix) -> Matrix:
    """Return the transformation that applies `first`, then `then` (PLRM, 4.3.3)."""
    a, b, c, d, e, f = first
    p, q, r, s, t, u = then
    return a * p + b * r, a * q + b * s, c * p + d * r, c * q + d * s, e * p + f * r + t, e * q + f * s + u


def inverse(matrix: Matrix) -> Matrix:
    """Return the inverse transformation. Raises ZeroDivisionError."""
    a, b, c, d, e, f = matrix
    by = a * d - b * c
    return d / by, -b / by, -c / by, a / by, (c * f - d * e) / by, (b * e - a * f) / by


class Drawing(Operators):
    """Operators that need a page."""

    def on_page(self, *names: str) -> Callable[[Callable[[Page], None]], Callable[[Page], None]]:
        """Return a decorator that registers an operator that needs a page."""

        def keep(run: Callable[[Page], None]) -> Callable[[Page], None]:
            def checked(m: Machine) -> None:
                if not isinstance(m, Page):
                    raise Fault("undefined")
                run(m)

            self.update(dict.fromkeys(names, checked))
            return run

        return keep
