"""Types of PostScript objects (PLRM, 3.3), the exceptions that end execution, and the bounds."""

from __future__ import annotations

import math
from collections.abc import Iterable

LARGEST = 65_535
"""Maximum elements of a string or an array."""
STACK = 20_000
"""Maximum operands on the stack."""
NESTED = 100
"""Maximum nesting of procedures, of calls as well as of literals."""
MAX_DECODED = 4_194_304
"""Maximum bytes that a filter decodes."""
WORD = 40
"""Maximum characters of a number; PostScript's have 11."""
INTEGER = 1 << 31


class Fault(Exception):  # noqa: N818 - an error of the PostScript file, not of this program
    """An error of the PostScript program (PLRM, 8.1); its text is the error's name."""


class LimitReached(Exception):  # noqa: N818 - control flow, not an error
    """Ends the machine: the steps are used up, or enough text has been collected."""


class Exit(Exception):  # noqa: N818 - control flow, not an error
    """Raised by `exit`: leaves the innermost loop."""


class Halt(Exception):  # noqa: N818 - control flow, not an error
    """Raised by `stop`: leaves the innermost `stopped`."""


class Name(str):
    """A literal name: `/x`."""

    __slots__ = ()


class Word(str):
    """An executable name: `x`."""

    __slots__ = ()


class Immediate(str):
    """A name that is replaced by its value when it is read: `//x`."""

    __slots__ = ()


class Procedure(list[object]):
    """An executable array: `{x y}`; `bound`: whether `bind` has processed it."""

    __slots__ = ("bound",)

    def __init__(self, items: Iterable[object] = ()) -> None:
        super().__init__(items)
        self.bound = False


class Text:
    """A string; `code`: whether it is executable."""

    __slots__ = ("code", "data")

    def __init__(self, data: bytes | bytearray, *, code: bool = False) -> None:
        self.data = bytearray(data)
        self.code = code


class Mark:
    """The mark that `mark`, `[` and `<<` push on the stack."""


MARK = Mark()
OPEN, CLOSE, END = object(), object(), object()
"""Results of the scanner for braces, and for the end of the file."""


def key(value: object) -> object:
    """Return an object as a key of a dictionary: strings become names, of at most 127 characters (PLRM, appendix B)."""
    if isinstance(value, Text):
        return value.data[:127].decode("latin-1")
    return value if isinstance(value, str | int | float) or value is None else id(value)


def bounded(value: float) -> float:
    """Return a number in PostScript's range: an integer that is too large becomes a real. Raises Fault if it is not finite."""
    if not math.isfinite(value):
        raise Fault("undefinedresult")
    return value if -INTEGER <= value < INTEGER else float(value)
