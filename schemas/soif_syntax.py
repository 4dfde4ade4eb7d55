"""Syntax of SOIF: templates and attributes as values, tables of the bytes of their heads, and the error.

A head is a table of steps: which bytes, how few, how many. It is compiled to one pattern, which reads whole heads; where the
pattern does not match, the table is walked step by step to report where it stops and what could have followed there. Neighbouring
steps share no byte, so that the walk never has a choice. Use `schemas.soif`, which exports these names and the parser.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

BLANK = b" \t"


class TemplateLimits(NamedTuple):
    """Limits of a template; anything beyond is malformed, and refused before it is read."""

    name: int = 1024
    """Bytes of an attribute's name, or of a template's type."""
    url: int = 1 << 16
    """Bytes of a URL."""
    value: int = 16 << 20
    """Bytes of one value."""
    attributes: int = 1 << 16
    """Attributes of one template."""
    template: int = 64 << 20
    """Bytes of the names and values of one template."""
    depth: int = 8
    """Nesting depth of collections."""


DEFAULT_LIMITS = TemplateLimits()


class SoifError(ValueError):
    """The bytes are not SOIF; the fault is the writer's.

    `offset` is that of the first wrong byte, counted from the start of the stream (its length, if the data ends too early);
    `expected` and `found` are bounded text.
    """

    def __init__(self, offset: int, expected: str, found: str) -> None:
        super().__init__(f"byte {offset}: expected {expected}, found {found}")
        self.offset = offset
        self.expected = expected
        self.found = found


class Attribute(NamedTuple):
    """A name and its value. A template may have several of one name; their order counts."""

    name: str
    value: bytes


class Template(NamedTuple):
    """One summary object: its type (FILE), its URL ("" if it has none), its attributes in order."""

    type: str
    url: str = ""
    attributes: tuple[Attribute, ...] = ()
    within: tuple[str, ...] = ()
    """Types of the enclosing collections, the outermost first: ("UPDATE",)."""

    def values(self, name: str) -> tuple[bytes, ...]:
        """Return the values of an attribute, in order; names are compared without regard to case."""
        wanted = name.lower()
        return tuple(a.value for a in self.attributes if a.name.lower() == wanted)


class Step(NamedTuple):
    """Run of bytes of one kind in a head."""

    what: str
    kind: bytes
    """Class of bytes as a regular expression."""
    least: int = 1
    most: int = 1


class Head:
    """Compiled table of steps. The groups of a match are the steps, counted from 1."""

    def __init__(self, *steps: Step) -> None:
        self._steps = tuple((step, re.compile(b"%b{0,%d}" % (step.kind, step.most))) for step in steps)
        self._whole = re.compile(b"".join(b"(%b{%d,%d})" % (s.kind, s.least, s.most) for s in steps))

    def match(self, buffer: bytearray, at: int) -> re.Match[bytes] | None:
        """Match a complete head in the buffer at `at`."""
        return self._whole.match(buffer, at)

    def stop(self, buffer: bytearray, at: int) -> tuple[int, str]:
        """Return where an incomplete or malformed head at `at` stops, and what could have followed there.

        If it stops at the end of the buffer, more bytes may complete it.
        """
        wanted: list[str] = []
        bound = ""
        for step, pattern in self._steps:
            found = pattern.match(buffer, at)
            length = found.end() - at if found else 0
            at += length
            if length:
                # Bytes read here settle the steps before; a step that may continue, or be left out, leaves several possibilities.
                wanted, bound = [], ""
            if length < step.most:
                wanted.append(step.what)
            elif step.most > 1:
                bound = f" behind at most {step.most} bytes of {step.what}"
            if length < step.least:
                break
        return at, " or ".join(wanted) + bound


class Grammar(NamedTuple):
    """Heads of SOIF under given limits."""

    header: Head
    """`@FILE { http://example.org/` and the newline: type is group 2, the rest of the line group 5."""
    attribute: Head
    """`title{5}:` and the tab: name is group 1, size group 3."""


@cache
def grammar(limits: TemplateLimits) -> Grammar:
    """Return the heads of SOIF under given limits."""
    return Grammar(
        header=Head(
            Step("'@'", b"@"),
            Step("a type", rb"[0-9A-Za-z_.-]", 1, limits.name),
            Step("blanks", rb"[ \t]", 0, limits.name),
            Step("'{'", rb"\{"),
            Step("a URL", rb"[\t\x20-\x7e\x80-\xff]", 0, limits.url + 1),
            Step("a newline", rb"\n"),
        ),
        attribute=Head(
            Step("a name", rb"[^\x00-\x20@{}\x7f]", 1, limits.name),
            Step("'{'", rb"\{"),
            Step("digits", b"[0-9]", 1, 10),
            Step("'}'", rb"\}"),
            Step("':'", b":"),
            Step("a tab", rb"\t"),
        ),
    )


def shown(found: int | str) -> str:
    """Return a byte, or a name, for an error message: printable and short."""
    if isinstance(found, int):
        return repr(chr(found)) if 0x20 < found < 0x7F else f"0x{found:02x}"
    return repr(found if len(found) <= 40 else found[:40] + "...")
