"""The graphics of PostScript, as far as they tell what is shown where (PLRM, 4 and 5): the state, the pen, fonts, strings.

Nothing is painted. Images are passed over: what they are made of stands in the file, behind the operator.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from processors.summarize._postscript import (
    LARGEST,
    Fault,
    Halt,
    Machine,
    Name,
    Operator,
    Procedure,
    Source,
    Text,
    ignored,
    key,
    taken,
)
from processors.summarize._postscript_fonts import LIGATURES, STANDARD, WINDOWS, Face, standard
from processors.summarize._postscript_text import DOUBLE, SPACE, Piece

Matrix = tuple[float, float, float, float, float, float]

SPACES = 32
"""The code of a space, in all encodings that programs use."""
RECORDS = 500
"""Records that are kept for pdfmark."""
PAGE: Matrix = (1.0, 0.0, 0.0, 1.0, 0.0, 0.0)


class State(NamedTuple):
    """The state of the graphics that is saved and restored (PLRM, 4.2)."""

    ctm: Matrix
    font: dict[object, object]
    at: tuple[float, float] | None


class Save:
    """What `save` leaves: the state that `restore` brings back."""

    def __init__(self, state: State, depth: int) -> None:
        self.state = state
        self.depth = depth


class Page(Machine):
    """A machine that keeps what is shown, up to `room` characters; then, or when the steps are used up, it ends (Enough)."""

    def __init__(self, room: int, steps: int) -> None:
        super().__init__(OPERATORS, steps)
        self.fonts: dict[object, object] = {}
        self.system |= {"StandardEncoding": STANDARD, "ISOLatin1Encoding": WINDOWS}
        self.system |= {"FontDirectory": self.fonts, "SharedFontDirectory": self.fonts}
        self.room = room
        # What is shown in no font is shown, nevertheless.
        self.state = State(PAGE, standard("Times-Roman", 12.0), None)
        self.saved: list[State] = []
        self.measured: float | None = None
        """What a character's procedure has stated, while one is measured."""
        self.pages: list[list[Piece]] = [[]]
        self.records: list[list[object]] = []
        """What pdfmark was given."""
        self.resources: dict[tuple[object, object], object] = {}
        self.scaled: dict[tuple[int, Matrix], tuple[object, dict[object, object]]] = {}
        """Fonts that were made of others, which they keep, by these and how they were made."""
        self.faces: dict[int, Face] = {}
        """Fonts by the identity of their dictionaries, which they keep, so that no other gets the same."""
        self.alike: dict[int, Face] = {}
        """The first font of those that have the same characters, by the identity of these."""

    def six(self, value: object) -> Matrix:
        """A value that must be a matrix. Raises Fault."""
        six = self.listed(value)
        numbers = [float(each) for each in six if isinstance(each, int | float)]
        if len(six) != 6 or len(numbers) != 6:
            raise Fault("typecheck")
        return numbers[0], numbers[1], numbers[2], numbers[3], numbers[4], numbers[5]

    def place(self, at: tuple[float, float] | None) -> None:
        """Put the pen somewhere in the device's space, or nowhere."""
        self.state = self.state._replace(at=at)

    def pen(self) -> tuple[float, float]:
        """Where the pen is, in the device's space. Raises Fault."""
        if self.state.at is None:
            raise Fault("nocurrentpoint")
        return self.state.at

    def move(self, x: float, y: float) -> None:
        """Move the pen by a distance of the user's space."""
        at, by = self.pen(), distance(self.state.ctm, x, y)
        self.place((at[0] + by[0], at[1] + by[1]))

    def face(self) -> Face:
        """What the font is."""
        font = self.state.font
        found = self.faces.get(id(font))
        if found is None:
            self.pay(256)
            # Fonts of several sizes share what draws them, or what they are measured by.
            of = font.get("CharProcs", font.get("BitMaps", font.get("Metrics", font)))
            alike = self.alike.get(id(of))
            found = self.faces[id(font)] = Face(font, self._drawn, alike.widths if alike else {})
            self.alike.setdefault(id(of), found)
        return found

    def ended(self, piece: Piece) -> Piece:
        """A piece that ends where the pen is now."""
        turn = math.radians(piece.turned)
        x, y = self.pen()
        return piece._replace(end=x * math.cos(turn) + y * math.sin(turn))

    def size(self) -> float:
        """The size of the font on the page, in points; 0: unknown."""
        if self.state.font.get("FontType") == 0:
            return 0.0
        matrix = product(self.six(self.state.font.get("FontMatrix")), self.state.ctm)
        return math.hypot(matrix[0], matrix[1]) * self.face().unit()

    def show(self, codes: bytes) -> None:
        """Show a string in the font, and move the pen behind it."""
        at = self.pen()
        self.pay(len(codes))
        if self.state.font.get("FontType") == 0:
            said, along, face = self._composed(codes)
            matrix = self.six(self.state.font.get("FontMatrix"))
        else:
            face = self.face()
            said = "".join([face.letters[code] for code in codes]).translate(LIGATURES)
            along = math.fsum([face.width(code) for code in codes])
            matrix = self.six(self.state.font.get("FontMatrix"))
        matrix = product(matrix, self.state.ctm)
        by = distance(matrix, along, 0)
        self.place((at[0] + by[0], at[1] + by[1]))
        if said:
            self._keep(said, matrix, at, math.hypot(matrix[0], matrix[1]) * (face.unit() if face else 1.0))

    def _composed(self, codes: bytes) -> tuple[str, float, Face | None]:
        """What a string in a composite font says, whose first bytes choose a font of several (PLRM, 5.10; FMapType 2)."""
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
        return "".join(said), along, None

    def _keep(self, said: str, matrix: Matrix, at: tuple[float, float], size: float) -> None:
        """Keep a string that was shown at a place, and whose font has that matrix on the page."""
        turn = math.atan2(matrix[1], matrix[0])
        cos, sin = math.cos(turn), math.sin(turn)
        end = self.pen()
        degrees = round(math.degrees(turn) / 5) * 5 % 360
        x, y, to = at[0] * cos + at[1] * sin, at[1] * cos - at[0] * sin, end[0] * cos + end[1] * sin
        self.pages[-1].append(Piece(said, size, x, y, to, degrees))
        self.room -= len(said)
        if self.room < 0:
            self.pay(self.steps + 1)

    def _drawn(self, code: int, name: object) -> float:
        """The width that a Type 3 font states when it draws a character (PLRM, 5.7)."""
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
    """A distance, transformed."""
    return matrix[0] * x + matrix[2] * y, matrix[1] * x + matrix[3] * y


def product(first: Matrix, then: Matrix) -> Matrix:
    """One transformation behind the other (PLRM, 4.3.3)."""
    a, b, c, d, e, f = first
    p, q, r, s, t, u = then
    return a * p + b * r, a * q + b * s, c * p + d * r, c * q + d * s, e * p + f * r + t, e * q + f * s + u


def inverse(matrix: Matrix) -> Matrix:
    """The transformation back. Raises ZeroDivisionError."""
    a, b, c, d, e, f = matrix
    by = a * d - b * c
    return d / by, -b / by, -c / by, a / by, (c * f - d * e) / by, (b * e - a * f) / by


# Operators: the graphics state, paths, painting (PLRM, 8.2).

OPERATORS: dict[str, Operator] = {}

OPERATORS |= ignored("newpath clippath initclip clip eoclip fill eofill ufill stroke closepath flattenpath reversepath", 0)
OPERATORS |= ignored("strokepath ucache endclip sethalftonephase erasepage beginpage endpage", 0)
OPERATORS |= ignored("setlinewidth setlinecap setlinejoin setmiterlimit setgray setflat setcolor setcolorspace setstrokeadjust", 1)
OPERATORS |= ignored("settransfer setblackgeneration setundercolorremoval sethalftone setpattern setoverprint setsmoothness", 1)
OPERATORS |= ignored("setcolorrendering shfill execform setcachelimit setcachedparams uappend upath setrenderingintent", 1)
OPERATORS |= ignored("setdash", 2) | ignored("setrgbcolor sethsbcolor setscreen", 3) | ignored("setcmykcolor setbbox", 4)
OPERATORS |= ignored("rectfill rectstroke rectclip", 4) | ignored("setcolortransfer", 4) | ignored("setcolorscreen", 12)
OPERATORS |= ignored("currentlinewidth currentgray currentflat currentmiterlimit currentsmoothness", 0, (1.0,))
OPERATORS |= ignored("currentlinecap currentlinejoin", 0, (0,)) | ignored("currentdash", 0, ([], 0))
OPERATORS |= ignored("currentrgbcolor currenthsbcolor", 0, (0.0, 0.0, 0.0)) | ignored("currentcmykcolor", 0, (0.0, 0.0, 0.0, 1.0))
OPERATORS |= ignored("currentscreen", 0, (60, 0, Procedure())) | ignored("currentcolor", 0, (0.0,))
OPERATORS |= ignored("currentcolorspace", 0, ([Name("DeviceGray")],))
OPERATORS |= ignored("currenttransfer currentblackgeneration currentundercolorremoval", 0, (Procedure(),))
OPERATORS |= ignored("currentstrokeadjust currentoverprint", 0, (False,)) | ignored("currenthalftone", 0, ({},))
OPERATORS |= ignored("currentcolortransfer", 0, (Procedure(),) * 4) | ignored("currentpagedevice", 0, ({"PageSize": [612, 792]},))
OPERATORS |= ignored("pathbbox", 0, (0.0, 0.0, 0.0, 0.0)) | ignored("pathforall", 4)
OPERATORS |= ignored("infill ineofill instroke inufill", 2, (False,))
OPERATORS |= ignored("cachestatus", 0, (0,) * 7) | ignored("findcolorrendering", 1, (Name("Default"), False))


def page_of(m: Machine) -> Page:
    """The machine, which is one that has pages."""
    if not isinstance(m, Page):
        raise Fault("undefined")
    return m


def drawing(*names: str) -> Callable[[Callable[[Page], None]], Callable[[Page], None]]:
    """A decorator: the names of an operator that needs a page."""

    def keep(run: Callable[[Page], None]) -> Callable[[Page], None]:
        OPERATORS.update(dict.fromkeys(names, lambda m: run(page_of(m))))
        return run

    return keep


@drawing("gsave")
def _gsave(m: Page) -> None:
    if len(m.saved) > LARGEST:
        raise Fault("limitcheck")
    m.saved.append(m.state)


@drawing("grestore")
def _grestore(m: Page) -> None:
    if m.saved:
        m.state = m.saved.pop()


@drawing("grestoreall")
def _grestoreall(m: Page) -> None:
    if m.saved:
        m.state = m.saved[0]
        m.saved.clear()


@drawing("save")
def _save(m: Page) -> None:
    m.push(Save(m.state, len(m.saved)))


@drawing("restore")
def _restore(m: Page) -> None:
    save = m.pop()
    if isinstance(save, Save):
        m.state = save.state
        del m.saved[save.depth :]


@drawing("gstate")
def _gstate(m: Page) -> None:
    m.push(Save(m.state, len(m.saved)))


@drawing("currentgstate")
def _currentgstate(m: Page) -> None:
    m.pop()
    _gstate(m)


@drawing("setgstate")
def _setgstate(m: Page) -> None:
    save = m.pop()
    m.state = save.state if isinstance(save, Save) else m.state


# Transformations.


def _matrix_or_numbers(m: Page, many: int) -> tuple[list[float], list[object] | None]:
    """So many numbers, behind which there may be a matrix that the result goes to."""
    into = m.array() if m.operands and isinstance(m.operands[-1], list) else None
    return m.numbers(many), into


def _transformed(m: Page, by: Matrix, into: list[object] | None) -> None:
    """Leave a transformation in a matrix, or apply it."""
    if into is not None:
        into[:] = by
        m.push(into)
    else:
        m.state = m.state._replace(ctm=product(by, m.state.ctm))


@drawing("translate")
def _translate(m: Page) -> None:
    (x, y), into = _matrix_or_numbers(m, 2)
    _transformed(m, (1.0, 0.0, 0.0, 1.0, x, y), into)


@drawing("scale")
def _scale(m: Page) -> None:
    (x, y), into = _matrix_or_numbers(m, 2)
    _transformed(m, (x, 0.0, 0.0, y, 0.0, 0.0), into)


@drawing("rotate")
def _rotate(m: Page) -> None:
    (degrees,), into = _matrix_or_numbers(m, 1)
    turn = math.radians(degrees)
    _transformed(m, (math.cos(turn), math.sin(turn), -math.sin(turn), math.cos(turn), 0.0, 0.0), into)


@drawing("concat")
def _concat(m: Page) -> None:
    _transformed(m, m.six(m.pop()), None)


@drawing("concatmatrix")
def _concatmatrix(m: Page) -> None:
    into, then, first = m.array(), m.six(m.pop()), m.six(m.pop())
    _transformed(m, product(first, then), into)


@drawing("invertmatrix")
def _invertmatrix(m: Page) -> None:
    into, of = m.array(), m.six(m.pop())
    _transformed(m, inverse(of), into)


@drawing("matrix")
def _matrix(m: Page) -> None:
    m.push(list(PAGE))


@drawing("identmatrix", "defaultmatrix")
def _identmatrix(m: Page) -> None:
    _transformed(m, PAGE, m.array())


@drawing("currentmatrix")
def _currentmatrix(m: Page) -> None:
    _transformed(m, m.state.ctm, m.array())


@drawing("setmatrix")
def _setmatrix(m: Page) -> None:
    m.state = m.state._replace(ctm=m.six(m.pop()))


@drawing("initmatrix")
def _initmatrix(m: Page) -> None:
    m.state = m.state._replace(ctm=PAGE)


def _point(name: str, *, back: bool, far: bool) -> None:
    """Define an operator that transforms a place, or (`far`) a distance, to the device's space or `back`."""

    def run(m: Page) -> None:
        matrix = m.six(m.pop()) if m.operands and isinstance(m.operands[-1], list) else m.state.ctm
        x, y = m.numbers(2)
        by = inverse(matrix) if back else matrix
        to = distance(by, x, y)
        m.operands += to if far else (to[0] + by[4], to[1] + by[5])

    drawing(name)(run)


_point("transform", back=False, far=False)
_point("dtransform", back=False, far=True)
_point("itransform", back=True, far=False)
_point("idtransform", back=True, far=True)


# Paths: where the pen is.


@drawing("currentpoint")
def _currentpoint(m: Page) -> None:
    at = m.pen()
    by = inverse(m.state.ctm)
    x, y = distance(by, *at)
    m.operands += (x + by[4], y + by[5])


def _to(name: str, operands: int) -> None:
    """Define an operator that moves the pen to the last of its places."""

    def run(m: Page) -> None:
        x, y = m.numbers(operands)[-2:]
        to = distance(m.state.ctm, x, y)
        m.place((to[0] + m.state.ctm[4], to[1] + m.state.ctm[5]))

    drawing(name)(run)


def _by(name: str, operands: int) -> None:
    """Define an operator that moves the pen by the last of its distances."""
    drawing(name)(lambda m: m.move(*m.numbers(operands)[-2:]))


_to("moveto", 2)
_to("lineto", 2)
_to("curveto", 6)
_by("rmoveto", 2)
_by("rlineto", 2)
_by("rcurveto", 6)


@drawing("arc", "arcn")
def _arc(m: Page) -> None:
    x, y, r, _, end = m.numbers(5)
    turn = math.radians(end)
    to = distance(m.state.ctm, x + r * math.cos(turn), y + r * math.sin(turn))
    m.place((to[0] + m.state.ctm[4], to[1] + m.state.ctm[5]))


@drawing("arct")
def _arct(m: Page) -> None:
    m.numbers(5)


@drawing("arcto")
def _arcto(m: Page) -> None:
    m.operands += m.numbers(5)[:4]


# Images: what they are made of stands in the file, behind the operator.


def _passed(m: Page, size: int, of: object) -> None:
    """Pass over so many bytes of an image's data."""
    if isinstance(of, Source):
        of.skip(size)
    elif isinstance(of, Procedure):
        while size > 0:
            m.call(of)
            given = m.pop()
            if not isinstance(given, Text) or not given.data:
                return
            size -= len(given.data)


@drawing("image", "imagemask")
def _image(m: Page) -> None:
    given = m.pop()
    if isinstance(given, dict):
        _passed(m, _size(m, given), given.get("DataSource"))
        return
    m.array()
    bits = m.pop()
    width, height = m.numbers(2)
    depth = bits if isinstance(bits, int) and not isinstance(bits, bool) else 1
    _passed(m, (int(width) * depth + 7) // 8 * int(height), given)


def _size(m: Page, image: dict[object, object]) -> int:
    """The bytes that an image's data have, by its dictionary (PLRM, 4.10.5); how many colours there are its Decode tells."""
    width, height, bits = image.get("Width"), image.get("Height"), image.get("BitsPerComponent", 1)
    if not isinstance(width, int) or not isinstance(height, int) or not isinstance(bits, int):
        raise Fault("typecheck")
    decode = image.get("Decode")
    colours = max(len(decode) // 2, 1) if isinstance(decode, list) else 1
    return (width * bits * colours + 7) // 8 * height


@drawing("colorimage")
def _colorimage(m: Page) -> None:
    colours, several = m.whole(), m.pop()
    sources = [m.pop() for _ in range(colours if several is True and 0 < colours <= 4 else 1)]
    m.array()
    width, height, bits = m.numbers(3)
    size = (int(width) * int(bits) * (1 if several is True else colours) + 7) // 8 * int(height)
    for source in reversed(sources):
        _passed(m, size, source)


@drawing("showpage", "copypage")
def _showpage(m: Page) -> None:
    if m.pages[-1]:
        m.pages.append([])
    m.place(None)


# Fonts (PLRM, 5 and 8.2).


@drawing("definefont")
def _definefont(m: Page) -> None:
    font, name = m.dictionary(m.pop()), key(m.pop())
    font.setdefault("FontName", name)
    m.fonts[name] = font
    m.push(font)


@drawing("defineresource")
def _defineresource(m: Page) -> None:
    category, value, name = key(m.pop()), m.pop(), key(m.pop())
    if category == "Font" and isinstance(value, dict):
        m.fonts[name] = value
    m.resources[category, name] = value
    m.push(value)


@drawing("findresource")
def _findresource(m: Page) -> None:
    category, name = key(m.pop()), key(m.pop())
    if category == "Font":
        m.push(_font(m, name))
    elif category == "Encoding":
        m.push(m.find(name))
    elif (category, name) in m.resources:
        m.push(m.resources[category, name])
    else:
        raise Fault("undefinedresource")


@drawing("undefinefont")
def _undefinefont(m: Page) -> None:
    m.fonts.pop(key(m.pop()), None)


@drawing("findfont")
def _findfont(m: Page) -> None:
    m.push(_font(m, key(m.pop())))


@drawing("findencoding")
def _findencoding(m: Page) -> None:
    m.push(m.find(key(m.pop())))


def _font(m: Page, name: object) -> dict[object, object]:
    """A font of the file, or one that a printer would have."""
    if not isinstance(m.fonts.get(name), dict):
        m.pay(256)
        m.fonts[name] = standard(name)
    return m.dictionary(m.fonts[name])


def _made(m: Page, font: dict[object, object], by: Matrix) -> dict[object, object]:
    """A font, transformed; those that were made so before are the same, as in printers' caches."""
    known = m.scaled.get((id(font), by))
    if known is None:
        m.pay(len(font))
        matrix: list[object] = list(product(m.six(font.get("FontMatrix")), by))
        known = m.scaled[id(font), by] = (font, {**font, "FontMatrix": matrix})
    return known[1]


@drawing("scalefont")
def _scalefont(m: Page) -> None:
    by, font = m.number(), m.dictionary(m.pop())
    m.push(_made(m, font, (by, 0.0, 0.0, by, 0.0, 0.0)))


@drawing("makefont")
def _makefont(m: Page) -> None:
    by, font = m.six(m.pop()), m.dictionary(m.pop())
    m.push(_made(m, font, by))


@drawing("setfont")
def _setfont(m: Page) -> None:
    m.state = m.state._replace(font=m.dictionary(m.pop()))


@drawing("selectfont")
def _selectfont(m: Page) -> None:
    by = m.pop()
    font = _font(m, key(m.pop()))
    matrix = m.six(by) if isinstance(by, list) else None
    if matrix is None and isinstance(by, int | float):
        matrix = (by, 0.0, 0.0, by, 0.0, 0.0)
    m.state = m.state._replace(font=_made(m, font, matrix or PAGE))


@drawing("currentfont", "rootfont")
def _currentfont(m: Page) -> None:
    m.push(m.state.font)


@drawing("setcachedevice")
def _setcachedevice(m: Page) -> None:
    _states(m, m.numbers(6)[0])


@drawing("setcachedevice2")
def _setcachedevice2(m: Page) -> None:
    _states(m, m.numbers(10)[0])


@drawing("setcharwidth")
def _setcharwidth(m: Page) -> None:
    _states(m, m.numbers(2)[0])


def _states(m: Page, width: float) -> None:
    """Note the width that a character's procedure states, and end it there: nothing else is wanted."""
    if m.measured is not None:
        m.measured = width
        raise Halt


# Strings (PLRM, 5.3): what is shown is kept before the pen goes where the operator says.


@drawing("show")
def _show(m: Page) -> None:
    m.show(bytes(m.text().data))


@drawing("ashow")
def _ashow(m: Page) -> None:
    text, (x, y) = bytes(m.text().data), m.numbers(2)
    _apart(m, text, (x, y))


@drawing("widthshow")
def _widthshow(m: Page) -> None:
    text, (x, y, code) = bytes(m.text().data), m.numbers(3)
    _justified(m, text, int(code) & 0xFF, (x, y), (0.0, 0.0))


@drawing("awidthshow")
def _awidthshow(m: Page) -> None:
    text, (x, y, code, each_x, each_y) = bytes(m.text().data), m.numbers(5)
    _justified(m, text, int(code) & 0xFF, (x, y), (each_x, each_y))


def _apart(m: Page, text: bytes, each: tuple[float, float]) -> None:
    """Show a string, and move the pen behind each character; groff writes spaces so, between single letters."""
    apart = math.hypot(*distance(m.state.ctm, *each)) > SPACE * m.size()
    for part in (text[at : at + 1] for at in range(len(text))) if apart else (text,):
        m.show(part)
        m.move(each[0] * len(part), each[1] * len(part))


def _justified(m: Page, text: bytes, code: int, by: tuple[float, float], each: tuple[float, float]) -> None:
    """Show a string, and move the pen behind each character and, further, behind those of a code.

    Spaces that are made so narrow that they are none are how groff kerns.
    """
    matrix = m.six(m.state.font.get("FontMatrix"))
    space = m.face().width(SPACES) * matrix[0] + by[0] + each[0]
    narrow = code == SPACES and space < DOUBLE * m.face().unit() * matrix[0]
    for at, part in enumerate(text.split(b" ")) if narrow else ((0, text),):
        if at:
            m.move(space, 0)
        _apart(m, part, each)
    if not narrow and (many := text.count(code)):
        m.move(by[0] * many, by[1] * many)
        if m.pages[-1]:
            m.pages[-1][-1] = m.ended(m.pages[-1][-1])


@drawing("kshow")
def _kshow(m: Page) -> None:
    text = bytes(m.text().data)
    m.array()
    m.show(text)


@drawing("cshow")
def _cshow(m: Page) -> None:
    m.text()
    m.array()


def _steps(name: str, *, wide: bool, high: bool) -> None:
    """Define an operator that takes how far the pen goes behind each character: along, up, or both."""

    def run(m: Page) -> None:
        by = m.pop()
        text = bytes(m.text().data)
        steps = [float(each) for each in by if isinstance(each, int | float)] if isinstance(by, list) else []
        at = m.pen()
        m.show(text)
        if steps:
            m.place(at)
            x = math.fsum(steps[:: 2 if high else 1]) if wide else 0.0
            m.move(x, math.fsum(steps[1 if wide else 0 :: 2 if wide else 1]) if high else 0.0)
        if wide and m.pages[-1]:
            m.pages[-1][-1] = m.ended(m.pages[-1][-1])

    drawing(name)(run)


_steps("xshow", wide=True, high=False)
_steps("yshow", wide=False, high=True)
_steps("xyshow", wide=True, high=True)


@drawing("glyphshow")
def _glyphshow(m: Page) -> None:
    name = m.pop()
    face = m.face()
    if name in face.names:
        m.show(bytes([face.names.index(name)]))


@drawing("stringwidth")
def _stringwidth(m: Page) -> None:
    text = bytes(m.text().data)
    m.pay(len(text))
    face = m.face()
    matrix = m.six(m.state.font.get("FontMatrix"))
    m.operands += distance(matrix, math.fsum([face.width(code) for code in text]), 0)


@drawing("charpath")
def _charpath(m: Page) -> None:
    m.pop()
    m.text()


@drawing("pdfmark")
def _pdfmark(m: Page) -> None:
    record = taken(m)
    if len(m.records) < RECORDS:
        m.records.append(record)


@drawing("eexec")
def _eexec(m: Page) -> None:
    """The encrypted part of a Type 1 font is passed over; it would define the font (Adobe Type 1 Font Format, 7)."""
    source = m.source(m.pop())
    source.until(b"cleartomark", len(source.raw))
    font = m.names[-1] if not m.operands or not isinstance(m.operands[-1], dict) else m.dictionary(m.pop())
    if "FontName" in font:
        m.fonts[key(font["FontName"])] = font
