"""Operators of fonts and strings (PLRM, 5 and 8.2)."""

from __future__ import annotations

import math
import re

from processors.essence.formats.postscript.lines import DOUBLE, SPACE
from processors.essence.formats.postscript.objects import Fault, Halt, key
from processors.essence.formats.postscript.operators import pop_to_mark
from processors.essence.formats.postscript.page import PAGE, RECORDS, SPACES, Drawing, Matrix, Page, distance, product

SHOWING = Drawing()

_END_OF_FONT = re.compile(rb"cleartomark|%%End(?:Font|Resource)\b")
"""End of a font's encrypted part."""

# Fonts (PLRM, 5 and 8.2).


@SHOWING.on_page("definefont")
def _definefont(m: Page) -> None:
    font, name = m.dictionary(m.pop()), key(m.pop())
    font.setdefault("FontName", name)
    m.fonts[name] = font
    m.push(font)


@SHOWING.on_page("defineresource")
def _defineresource(m: Page) -> None:
    category, value, name = key(m.pop()), m.pop(), key(m.pop())
    if category == "Font" and isinstance(value, dict):
        m.fonts[name] = value
    m.resources[category, name] = value
    m.push(value)


@SHOWING.on_page("findresource")
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


@SHOWING.on_page("undefinefont")
def _undefinefont(m: Page) -> None:
    m.fonts.pop(key(m.pop()), None)


@SHOWING.on_page("findfont")
def _findfont(m: Page) -> None:
    m.push(_font(m, key(m.pop())))


@SHOWING.on_page("findencoding")
def _findencoding(m: Page) -> None:
    m.push(m.find(key(m.pop())))


def _font(m: Page, name: object) -> dict[object, object]:
    """Return a font that the file has defined, or one that is built into printers."""
    if not isinstance(m.fonts.get(name), dict):
        m.pay(256)
        m.fonts[name] = m.builtin_font(name)
    return m.dictionary(m.fonts[name])


def _transformed_font(m: Page, font: dict[object, object], by: Matrix) -> dict[object, object]:
    """Return a transformed font; the same object for the same transformation, as in a printer's font cache."""
    known = m.scaled.get((id(font), by))
    if known is None:
        m.pay(len(font))
        matrix: list[object] = list(product(m.six(font.get("FontMatrix")), by))
        known = m.scaled[id(font), by] = (font, {**font, "FontMatrix": matrix})
    return known[1]


@SHOWING.on_page("scalefont")
def _scalefont(m: Page) -> None:
    by, font = m.number(), m.dictionary(m.pop())
    m.push(_transformed_font(m, font, (by, 0.0, 0.0, by, 0.0, 0.0)))


@SHOWING.on_page("makefont")
def _makefont(m: Page) -> None:
    by, font = m.six(m.pop()), m.dictionary(m.pop())
    m.push(_transformed_font(m, font, by))


@SHOWING.on_page("setfont")
def _setfont(m: Page) -> None:
    m.state = m.state._replace(font=m.dictionary(m.pop()))


@SHOWING.on_page("selectfont")
def _selectfont(m: Page) -> None:
    by = m.pop()
    font = _font(m, key(m.pop()))
    matrix = m.six(by) if isinstance(by, list) else None
    if matrix is None and isinstance(by, int | float):
        matrix = (by, 0.0, 0.0, by, 0.0, 0.0)
    m.state = m.state._replace(font=_transformed_font(m, font, matrix or PAGE))


@SHOWING.on_page("currentfont", "rootfont")
def _currentfont(m: Page) -> None:
    m.push(m.state.font)


@SHOWING.on_page("setcachedevice")
def _setcachedevice(m: Page) -> None:
    _states(m, m.numbers(6)[0])


@SHOWING.on_page("setcachedevice2")
def _setcachedevice2(m: Page) -> None:
    _states(m, m.numbers(10)[0])


@SHOWING.on_page("setcharwidth")
def _setcharwidth(m: Page) -> None:
    _states(m, m.numbers(2)[0])


def _states(m: Page, width: float) -> None:
    """Record the width that a glyph procedure states, and end the procedure: only the width is needed."""
    if m.measured is not None:
        m.measured = width
        raise Halt


# Strings (PLRM, 5.3): the string is collected before the operator moves the pen further.


@SHOWING.on_page("show")
def _show(m: Page) -> None:
    m.show(bytes(m.text().data))


@SHOWING.on_page("ashow")
def _ashow(m: Page) -> None:
    text, (x, y) = bytes(m.text().data), m.numbers(2)
    _apart(m, text, (x, y))


@SHOWING.on_page("widthshow")
def _widthshow(m: Page) -> None:
    text, (x, y, code) = bytes(m.text().data), m.numbers(3)
    _justified(m, text, int(code) & 0xFF, (x, y), (0.0, 0.0))


@SHOWING.on_page("awidthshow")
def _awidthshow(m: Page) -> None:
    text, (x, y, code, each_x, each_y) = bytes(m.text().data), m.numbers(5)
    _justified(m, text, int(code) & 0xFF, (x, y), (each_x, each_y))


def _apart(m: Page, text: bytes, each: tuple[float, float]) -> None:
    """Show a string with extra space after each character; groff writes letter-spaced text so."""
    apart = math.hypot(*distance(m.state.ctm, *each)) > SPACE * m.size()
    for part in (text[at : at + 1] for at in range(len(text))) if apart else (text,):
        m.show(part)
        m.move(each[0] * len(part), each[1] * len(part))


def _justified(m: Page, text: bytes, code: int, by: tuple[float, float], each: tuple[float, float]) -> None:
    """Show a string with extra space after each character, and more after each `code`.

    groff kerns with spaces of almost no width; such spaces are not part of the text.
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


@SHOWING.on_page("kshow")
def _kshow(m: Page) -> None:
    text = bytes(m.text().data)
    m.array()
    m.show(text)


@SHOWING.on_page("cshow")
def _cshow(m: Page) -> None:
    m.text()
    m.array()


def _steps(name: str, *, wide: bool, high: bool) -> None:
    """Define an operator that takes the pen's advance for each character: horizontal, vertical, or both."""

    def run(m: Page) -> None:
        by = m.pop()
        text = bytes(m.text().data)
        steps = [each for each in by if isinstance(each, int | float) and math.isfinite(each)] if isinstance(by, list) else []
        at = m.pen()
        m.show(text)
        if steps:
            m.place(at)
            x = math.fsum(steps[:: 2 if high else 1]) if wide else 0.0
            m.move(x, math.fsum(steps[1 if wide else 0 :: 2 if wide else 1]) if high else 0.0)
        if wide and m.pages[-1]:
            m.pages[-1][-1] = m.ended(m.pages[-1][-1])

    SHOWING.on_page(name)(run)


_steps("xshow", wide=True, high=False)
_steps("yshow", wide=False, high=True)
_steps("xyshow", wide=True, high=True)


@SHOWING.on_page("glyphshow")
def _glyphshow(m: Page) -> None:
    name = m.pop()
    face = m.face()
    if name in face.names:
        m.show(bytes([face.names.index(name)]))


@SHOWING.on_page("stringwidth")
def _stringwidth(m: Page) -> None:
    text = bytes(m.text().data)
    m.pay(len(text))
    face = m.face()
    matrix = m.six(m.state.font.get("FontMatrix"))
    m.operands += distance(matrix, math.fsum([face.width(code) for code in text]), 0)


@SHOWING.on_page("charpath")
def _charpath(m: Page) -> None:
    m.pop()
    m.text()


@SHOWING.on_page("pdfmark")
def _pdfmark(m: Page) -> None:
    record = pop_to_mark(m)
    if len(m.records) < RECORDS:
        m.records.append(record)


@SHOWING.on_page("eexec")
def _eexec(m: Page) -> None:
    """Skip the encrypted part of a Type 1 font, which would define the font (Adobe Type 1 Font Format, 7)."""
    source = m.source(m.pop())
    if end := _END_OF_FONT.search(source.raw, source.at):
        source.at = end.end()
    font = m.names[-1] if not m.operands or not isinstance(m.operands[-1], dict) else m.dictionary(m.pop())
    if "FontName" in font:
        m.fonts[key(font["FontName"])] = font
