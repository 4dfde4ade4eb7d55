"""Objects of PostScript (PLRM, 3.3), what ends a program, and its bounds."""

from __future__ import annotations

import math
from collections.abc import Iterable

LARGEST = 65_535
"""Elements of a string or an array."""
STACK = 20_000
"""Operands."""
NESTED = 100
"""Procedures that run within each other, or stand within each other."""
MAX_DECODED = 4_194_304
"""Bytes that a filter gives."""
WORD = 40
"""Characters of a number; PostScript's have 11."""
INTEGER = 1 << 31


class Fault(Exception):  # noqa: N818 - an error of the file's; those of ours are errors
    """An error as PostScript has them (PLRM, 8.1); its text is the name."""


class Enough(Exception):  # noqa: N818 - no error
    """The steps are used up, or the text is long enough: the machine ends."""


class Exit(Exception):  # noqa: N818 - no error
    """`exit`: leaves the innermost loop."""


class Halt(Exception):  # noqa: N818 - no error
    """`stop`: leaves the innermost `stopped`."""


class Name(str):
    """A literal name: `/x`."""

    __slots__ = ()


class Word(str):
    """An executable name: `x`."""

    __slots__ = ()


class Immediate(str):
    """A name that stands for its value when it is read: `//x`."""

    __slots__ = ()


class Procedure(list[object]):
    """An executable array: `{x y}`; `bound`: whether `bind` has been there."""

    __slots__ = ("bound",)

    def __init__(self, items: Iterable[object] = ()) -> None:
        super().__init__(items)
        self.bound = False


class Text:
    """A string; `code`: an executable one."""

    __slots__ = ("code", "data")

    def __init__(self, data: bytes | bytearray, *, code: bool = False) -> None:
        self.data = bytearray(data)
        self.code = code


class Mark:
    """What `mark`, `[` and `<<` leave on the stack."""


MARK = Mark()
OPEN, CLOSE, END = object(), object(), object()
"""What a scanner gives for braces, and at the end."""


def key(value: object) -> object:
    """What an object is in a dictionary: strings are names there, which have 127 characters (PLRM, appendix B)."""
    if isinstance(value, Text):
        return value.data[:127].decode("latin-1")
    return value if isinstance(value, str | int | float) or value is None else id(value)


def bounded(value: float) -> float:
    """A number as PostScript has them: a whole one that is too large is a real one. Raises Fault where it is no number."""
    if not math.isfinite(value):
        raise Fault("undefinedresult")
    return value if -INTEGER <= value < INTEGER else float(value)
