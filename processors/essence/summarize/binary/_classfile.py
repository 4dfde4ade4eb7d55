"""Java class files (JVMS 4): name, superclass, interfaces, fields, methods, and the Java version they are compiled for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from processors.essence.summarize._base import Found
from processors.essence.summarize.binary._binary import unpack

MAX_READ = 1 << 20
MEMBERS = 1_000
WIDTHS = {3: 5, 4: 5, 5: 9, 6: 9, 7: 3, 8: 3, 9: 5, 10: 5, 11: 5, 12: 5, 15: 4, 16: 3, 17: 5, 18: 5, 19: 3, 20: 3}
"""Bytes of a constant with its tag, by tag, except texts (1)."""
KINDS = ((0x8000, "module"), (0x2000, "annotation"), (0x0200, "interface"), (0x4000, "enum"))
SYNTHETIC = 0x1000
"""The flag of members that the compiler added."""
FIRST = 44
"""Difference between the version of a class file and the Java version."""


class _Class:
    """The bytes of a class file, and the offsets of its constants."""

    def __init__(self, raw: bytes) -> None:
        self.raw = raw
        self.places: dict[int, int] = {}
        at, number = 10, 1
        while number < (unpack(">H", raw, 8) or (0,))[0] and at < len(raw):
            tag = raw[at]
            width = 3 + (unpack(">H", raw, at + 1) or (0,))[0] if tag == 1 else WIDTHS.get(tag, 0)
            if not width:
                break
            self.places[number] = at
            at += width
            # A long or double takes two numbers (4.4.5).
            number += 2 if tag in (5, 6) else 1
        self.end = at

    def text(self, number: int) -> str:
        """Return a text constant; "" if it is a constant of another kind."""
        at = self.places.get(number, len(self.raw))
        length = (unpack(">H", self.raw, at + 1) or (0,))[0]
        return self.raw[at + 3 : at + 3 + length].decode("utf-8", "replace") if self.raw[at : at + 1] == b"\1" else ""

    def name(self, number: int) -> str:
        """Return the name of a class, as sources write it."""
        at = self.places.get(number, len(self.raw))
        index = (unpack(">H", self.raw, at + 1) or (0,))[0] if self.raw[at : at + 1] == b"\7" else 0
        return self.text(index).replace("/", ".")

    def numbers(self, at: int, count: int) -> tuple[int, ...]:
        return tuple(unpack(f">{count}H", self.raw, at))

    def members(self, at: int) -> tuple[list[tuple[int, str]], int]:
        """Return the fields or the methods, each with its flags, and the offset behind them."""
        count = min((unpack(">H", self.raw, at) or (0,))[0], MEMBERS)
        found: list[tuple[int, str]] = []
        at += 2
        for _ in range(count):
            head = self.numbers(at, 4)
            if not head:
                break
            found.append((head[0], self.text(head[1])))
            at = self.behind(at + 6)
        return found, at

    def behind(self, at: int) -> int:
        """Return the end offset of the attributes whose count is at offset `at`."""
        return [end for _, _, end in self.attributes(at)][-1]

    def attributes(self, at: int) -> Iterator[tuple[str, bytes, int]]:
        """Yield name, content and end offset of each attribute; `at`: offset of their count. The first item is ("", b"", start)."""
        count = (unpack(">H", self.raw, at) or (0,))[0]
        at += 2
        # The end offset of an empty list is needed, too.
        yield "", b"", at
        for _ in range(min(count, MEMBERS)):
            name, length = unpack(">HI", self.raw, at) or (0, 0)
            held = self.raw[at + 6 : at + 6 + length]
            at += 6 + length
            yield self.text(name), held, at


def add_class(body: BinaryIO, found: Found) -> None:
    """Add title (the full name of the class), format, superclass, interfaces, functions, fields and source-file."""
    body.seek(0)
    one = _Class(body.read(MAX_READ))
    version = (unpack(">H", one.raw, 6) or (0,))[0]
    flags, this, above, count = one.numbers(one.end, 4) or (0, 0, 0, 0)
    kind = next((name for flag, name in KINDS if flags & flag), "class")
    found.add("title", one.name(this), 300)
    found.add("format", f"Java {kind}, for Java {version - FIRST}")
    found.add("superclass", one.name(above) if one.name(above) != "java.lang.Object" else "", 300)
    at = one.end + 8 + 2 * count
    for number in one.numbers(one.end + 8, count)[:MEMBERS]:
        found.add("interfaces", one.name(number), 300)
    for meant in ("fields", "functions"):
        members, at = one.members(at)
        for flag, name in members:
            # <init> and <clinit> are in most classes; names with $ are generated.
            if not flag & SYNTHETIC and not name.startswith("<") and "$" not in name:
                found.add(meant, name, 200)
    for name, held, _ in one.attributes(at):
        if name == "SourceFile":
            found.add("source-file", one.text((unpack(">H", held) or (0,))[0]), 200)
