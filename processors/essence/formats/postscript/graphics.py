"""Operators of graphics state, paths and images (PLRM, 8.2), as far as they move the pen or the file's position."""

from __future__ import annotations

import math

from processors.essence.formats.postscript.objects import LARGEST, Fault, Name, Procedure, Text
from processors.essence.formats.postscript.page import PAGE, Drawing, Matrix, Page, Save, distance, inverse, product
from processors.essence.formats.postscript.scan import Program, Source

GRAPHICS = Drawing()

GRAPHICS.ignore("newpath clippath initclip clip eoclip fill eofill ufill stroke closepath flattenpath reversepath", 0)
GRAPHICS.ignore("strokepath ucache nulldevice erasepage initgraphics", 0)
GRAPHICS.ignore("setlinewidth setlinecap setlinejoin setmiterlimit setgray setflat setcolor setcolorspace setstrokeadjust", 1)
GRAPHICS.ignore("settransfer setblackgeneration setundercolorremoval sethalftone setpattern setoverprint setsmoothness", 1)
GRAPHICS.ignore("setcolorrendering shfill execform setcachelimit setcachedparams uappend upath setrenderingintent", 1)
GRAPHICS.ignore("setdash", 2)
GRAPHICS.ignore("setrgbcolor sethsbcolor setscreen", 3)
GRAPHICS.ignore("setcmykcolor setbbox", 4)
GRAPHICS.ignore("rectfill rectstroke rectclip", 4)
GRAPHICS.ignore("setcolortransfer", 4)
GRAPHICS.ignore("setcolorscreen", 12)
GRAPHICS.ignore("currentlinewidth currentgray currentflat currentmiterlimit currentsmoothness", 0, (1.0,))
GRAPHICS.ignore("currentlinecap currentlinejoin", 0, (0,))
GRAPHICS.ignore("currentdash", 0, ([], 0))
GRAPHICS.ignore("currentrgbcolor currenthsbcolor", 0, (0.0, 0.0, 0.0))
GRAPHICS.ignore("currentcmykcolor", 0, (0.0, 0.0, 0.0, 1.0))
GRAPHICS.ignore("currentscreen", 0, (60, 0, Procedure()))
GRAPHICS.ignore("currentcolor", 0, (0.0,))
GRAPHICS.ignore("currentcolorspace", 0, ([Name("DeviceGray")],))
GRAPHICS.ignore("currenttransfer currentblackgeneration currentundercolorremoval", 0, (Procedure(),))
GRAPHICS.ignore("currentstrokeadjust currentoverprint", 0, (False,))
GRAPHICS.ignore("currenthalftone", 0, ({},))
GRAPHICS.ignore("currentcolortransfer", 0, (Procedure(),) * 4)
GRAPHICS.ignore("currentpagedevice", 0, ({"PageSize": [612, 792]},))
GRAPHICS.ignore("pathbbox", 0, (0.0, 0.0, 0.0, 0.0))
GRAPHICS.ignore("pathforall", 4)
GRAPHICS.ignore("infill ineofill instroke inufill", 2, (False,))
GRAPHICS.ignore("cachestatus", 0, (0,) * 7)
GRAPHICS.ignore("findcolorrendering", 1, (Name("Default"), False))


@GRAPHICS.on_page("gsave")
def _gsave(m: Page) -> None:
    if len(m.saved) > LARGEST:
        raise Fault("limitcheck")
    m.saved.append(m.state)


@GRAPHICS.on_page("grestore")
def _grestore(m: Page) -> None:
    if m.saved:
        m.state = m.saved.pop()


@GRAPHICS.on_page("grestoreall")
def _grestoreall(m: Page) -> None:
    if m.saved:
        m.state = m.saved[0]
        m.saved.clear()


@GRAPHICS.on_page("save")
def _save(m: Page) -> None:
    m.push(Save(m.state, len(m.saved)))


@GRAPHICS.on_page("restore")
def _restore(m: Page) -> None:
    save = m.pop()
    if isinstance(save, Save):
        m.state = save.state
        del m.saved[save.depth :]


@GRAPHICS.on_page("gstate")
def _gstate(m: Page) -> None:
    m.push(Save(m.state, len(m.saved)))


@GRAPHICS.on_page("currentgstate")
def _currentgstate(m: Page) -> None:
    m.pop()
    _gstate(m)


@GRAPHICS.on_page("setgstate")
def _setgstate(m: Page) -> None:
    save = m.pop()
    m.state = save.state if isinstance(save, Save) else m.state


# Transformations.


def _matrix_or_numbers(m: Page, many: int) -> tuple[list[float], list[object] | None]:
    """Pop `many` numbers, and the matrix behind them that receives the result, if there is one."""
    into = m.array() if m.operands and isinstance(m.operands[-1], list) else None
    return m.numbers(many), into


def _transformed(m: Page, by: Matrix, into: list[object] | None) -> None:
    """Store a transformation in a matrix, or apply it to the graphics state."""
    if into is not None:
        into[:] = by
        m.push(into)
    else:
        m.state = m.state._replace(ctm=product(by, m.state.ctm))


@GRAPHICS.on_page("translate")
def _translate(m: Page) -> None:
    (x, y), into = _matrix_or_numbers(m, 2)
    _transformed(m, (1.0, 0.0, 0.0, 1.0, x, y), into)


@GRAPHICS.on_page("scale")
def _scale(m: Page) -> None:
    (x, y), into = _matrix_or_numbers(m, 2)
    _transformed(m, (x, 0.0, 0.0, y, 0.0, 0.0), into)


@GRAPHICS.on_page("rotate")
def _rotate(m: Page) -> None:
    (degrees,), into = _matrix_or_numbers(m, 1)
    turn = math.radians(degrees)
    _transformed(m, (math.cos(turn), math.sin(turn), -math.sin(turn), math.cos(turn), 0.0, 0.0), into)


@GRAPHICS.on_page("concat")
def _concat(m: Page) -> None:
    _transformed(m, m.six(m.pop()), None)


@GRAPHICS.on_page("concatmatrix")
def _concatmatrix(m: Page) -> None:
    into, then, first = m.array(), m.six(m.pop()), m.six(m.pop())
    _transformed(m, product(first, then), into)


@GRAPHICS.on_page("invertmatrix")
def _invertmatrix(m: Page) -> None:
    into, of = m.array(), m.six(m.pop())
    _transformed(m, inverse(of), into)


@GRAPHICS.on_page("matrix")
def _matrix(m: Page) -> None:
    m.push(list(PAGE))


@GRAPHICS.on_page("identmatrix", "defaultmatrix")
def _identmatrix(m: Page) -> None:
    _transformed(m, PAGE, m.array())


@GRAPHICS.on_page("currentmatrix")
def _currentmatrix(m: Page) -> None:
    _transformed(m, m.state.ctm, m.array())


@GRAPHICS.on_page("setmatrix")
def _setmatrix(m: Page) -> None:
    m.state = m.state._replace(ctm=m.six(m.pop()))


@GRAPHICS.on_page("initmatrix")
def _initmatrix(m: Page) -> None:
    m.state = m.state._replace(ctm=PAGE)


def _point(name: str, *, back: bool, far: bool) -> None:
    """Define an operator that transforms a point, or (`far`) a distance, to the device's space or `back`."""

    def run(m: Page) -> None:
        matrix = m.six(m.pop()) if m.operands and isinstance(m.operands[-1], list) else m.state.ctm
        x, y = m.numbers(2)
        by = inverse(matrix) if back else matrix
        to = distance(by, x, y)
        m.operands += to if far else (to[0] + by[4], to[1] + by[5])

    GRAPHICS.on_page(name)(run)


_point("transform", back=False, far=False)
_point("dtransform", back=False, far=True)
_point("itransform", back=True, far=False)
_point("idtransform", back=True, far=True)


# Paths: the position of the pen.


@GRAPHICS.on_page("currentpoint")
def _currentpoint(m: Page) -> None:
    at = m.pen()
    by = inverse(m.state.ctm)
    x, y = distance(by, *at)
    m.operands += (x + by[4], y + by[5])


def _to(name: str, operands: int) -> None:
    """Define an operator that moves the pen to the last of its points."""

    def run(m: Page) -> None:
        x, y = m.numbers(operands)[-2:]
        to = distance(m.state.ctm, x, y)
        m.place((to[0] + m.state.ctm[4], to[1] + m.state.ctm[5]))

    GRAPHICS.on_page(name)(run)


def _by(name: str, operands: int) -> None:
    """Define an operator that moves the pen by the last of its distances."""
    GRAPHICS.on_page(name)(lambda m: m.move(*m.numbers(operands)[-2:]))


_to("moveto", 2)
_to("lineto", 2)
_to("curveto", 6)
_by("rmoveto", 2)
_by("rlineto", 2)
_by("rcurveto", 6)


@GRAPHICS.on_page("arc", "arcn")
def _arc(m: Page) -> None:
    x, y, r, _, end = m.numbers(5)
    turn = math.radians(end)
    to = distance(m.state.ctm, x + r * math.cos(turn), y + r * math.sin(turn))
    m.place((to[0] + m.state.ctm[4], to[1] + m.state.ctm[5]))


@GRAPHICS.on_page("arct")
def _arct(m: Page) -> None:
    m.numbers(5)


@GRAPHICS.on_page("arcto")
def _arcto(m: Page) -> None:
    m.operands += m.numbers(5)[:4]


# Images: the data follows the operator in the file.


def _skip_image_data(m: Page, size: int, of: object) -> None:
    """Skip so many bytes of an image's data."""
    if isinstance(of, Source | Program):
        m.source(of).skip(size)
    elif isinstance(of, Procedure):
        while size > 0:
            m.call(of)
            given = m.pop()
            if not isinstance(given, Text) or not given.data:
                return
            size -= len(given.data)


@GRAPHICS.on_page("image", "imagemask")
def _image(m: Page) -> None:
    given = m.pop()
    if isinstance(given, dict):
        _skip_image_data(m, _size(m, given), given.get("DataSource"))
        return
    m.array()
    bits = m.pop()
    width, height = m.numbers(2)
    depth = bits if isinstance(bits, int) and not isinstance(bits, bool) else 1
    _skip_image_data(m, (int(width) * depth + 7) // 8 * int(height), given)


def _size(m: Page, image: dict[object, object]) -> int:
    """Return the size of an image's data in bytes, from its dictionary (PLRM, 4.10.5); Decode tells the number of colours."""
    width, height, bits = image.get("Width"), image.get("Height"), image.get("BitsPerComponent", 1)
    if not isinstance(width, int) or not isinstance(height, int) or not isinstance(bits, int):
        raise Fault("typecheck")
    decode = image.get("Decode")
    colours = max(len(decode) // 2, 1) if isinstance(decode, list) else 1
    return (width * bits * colours + 7) // 8 * height


@GRAPHICS.on_page("colorimage")
def _colorimage(m: Page) -> None:
    colours, several = m.whole(), m.pop()
    sources = [m.pop() for _ in range(colours if several is True and 0 < colours <= 4 else 1)]
    m.array()
    width, height, bits = m.numbers(3)
    size = (int(width) * int(bits) * (1 if several is True else colours) + 7) // 8 * int(height)
    for source in reversed(sources):
        _skip_image_data(m, size, source)


@GRAPHICS.on_page("showpage", "copypage")
def _showpage(m: Page) -> None:
    if m.pages[-1]:
        m.pages.append([])
    m.place(None)
