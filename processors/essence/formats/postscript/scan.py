"""The scanner: files, and the objects in them (PLRM, 3.2)."""

from __future__ import annotations

import math
import re
from base64 import a85decode
from binascii import unhexlify

from processors.essence.formats.postscript.objects import (
    CLOSE,
    END,
    MAX_DECODED,
    OPEN,
    STACK,
    WORD,
    Immediate,
    Name,
    Text,
    Word,
    bounded,
)

_REGULAR = rb"[^\0\t\n\f\r ()<>\[\]{}/%]"
_TOKEN = re.compile(
    rb"[\0\t\n\f\r ]*+(?:(?P<plain>"
    + _REGULAR
    + rb"++)(?:\r\n|[\0\t\n\f\r ])?+|(?P<name>//?+"
    + _REGULAR
    + rb"*+)|\((?P<text>[^()\\\r]*+)\)"
    rb"|(?P<comment>%[^\r\n]*+)|<~(?P<base>[^~]*+)~?>?|(?P<mark><<|>>|[\[\]])|<(?P<hex>[^>]*+)>?|(?P<open>\{)|(?P<close>\})"
    rb"|(?P<nested>\()|[)>])"
)
_PART = re.compile(rb"[^()\\\r]++|\\(?:[0-7]{1,3}|\r\n|[^\0]|)|\r\n?+|[()]", re.DOTALL)
_INTEGER = re.compile(rb"[+-]?[0-9]++")
_REAL = re.compile(rb"[+-]?(?:[0-9]++\.?+[0-9]*+|\.[0-9]++)(?:[eE][+-]?[0-9]{1,3})?")
_RADIX = re.compile(rb"([0-9]{1,2})#([0-9a-zA-Z]++)")
_COUNT = re.compile(rb"%%Begin(?:Data|Binary): *+([0-9]{1,9})")
_FONT = re.compile(rb"%DVIPSBitmapFont: (\S{1,20}) (\S{1,40})")
_HEX = re.compile(rb"[0-9A-Fa-f]")
_NO_HEX = re.compile(rb"[^0-9A-Fa-f]++")
_WHITE = re.compile(rb"[\0\t\n\f\r ]++")
_ESCAPES = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"b": b"\b", b"f": b"\f", b"\n": b"", b"\r": b"", b"\r\n": b"", b"": b""}
_KNOWN: dict[bytes, object] = {}
"""Cache of numbers and names by their spelling: they are immutable, and each file repeats the same few."""


class Source:
    """A file: the bytes that the machine reads, as tokens or data, and the position in them."""

    def __init__(self, raw: bytes) -> None:
        self._raw = raw
        self.at = 0
        self.marked = True
        """Whether there may be an end mark in the part that is not yet read."""
        self.bitmaps = ""
        """Name of the TeX font that comes next, from a comment of dvips."""

    @property
    def raw(self) -> bytes:
        """The bytes. A filter raises Enough when decoding them takes too many steps."""
        return self._raw

    def skip(self, size: int) -> None:
        """Skip so many bytes of an image."""
        self.at = min(self.at + max(size, 0), len(self._raw))

    def token(self) -> object:
        """Return the next token, or END; braces are OPEN and CLOSE."""
        raw = self.raw
        while found := _TOKEN.match(raw, self.at):
            self.at = found.end()
            kind = found.lastgroup
            if kind == "plain":
                return _plain(found["plain"])
            if kind == "name":
                name = found["name"].decode("latin-1")
                return Immediate(name[2:]) if name.startswith("//") else Name(name[1:])
            if kind == "comment":
                self._comment(found["comment"])
            elif kind is not None:
                return self._composite(kind, found)
        self.at = len(raw)
        return END

    def _composite(self, kind: str, found: re.Match[bytes]) -> object:
        if kind == "open":
            return OPEN
        if kind == "close":
            return CLOSE
        if kind == "mark":
            return Word(found["mark"].decode())
        if kind == "text":
            return Text(found["text"])
        if kind == "hex":
            return Text(unhex(found["hex"]))
        return Text(base_85(found["base"]) if kind == "base" else self._nested())

    def _nested(self) -> bytes:
        """Return a string with nested parentheses or escapes, from behind its opening parenthesis (PLRM, 3.2.2)."""
        kept: list[bytes] = []
        depth = 1
        while (found := _PART.match(self.raw, self.at)) and depth:
            part = found[0]
            self.at = found.end()
            depth += {b"(": 1, b")": -1}.get(part, 0)
            if part[0] == 0x5C:
                kept.append(_escape(part[1:]))
            elif depth:
                kept.append(b"\n" if part[0] == 0x0D else part)
        return b"".join(kept)

    def _comment(self, comment: bytes) -> None:
        """Interpret a comment: skip the data that it announces (DSC 3.0, 5.2), or note the name of dvips's next font."""
        if not comment.startswith((b"%%B", b"%D")):
            return
        if counted := _COUNT.match(comment):
            end = self.raw.find(b"%%End", self.at) if self.marked else -1
            self.marked = end >= 0
            self.at = end if self.marked else self.at + int(counted[1])
        elif font := _FONT.match(comment):
            self.bitmaps = font[2].decode("latin-1")

    def read(self, size: int) -> bytes:
        """Return `size` bytes, or the rest; the one white space behind the reading operator is already skipped."""
        part = self.raw[self.at : self.at + size]
        self.at += len(part)
        return part

    def until(self, end: bytes, size: int = MAX_DECODED) -> bytes:
        """Return the bytes before an end mark, and skip the mark; all bytes if it is missing."""
        found = self.raw.find(end, self.at, self.at + size)
        part = self.raw[self.at : found if found >= 0 else self.at + size]
        self.at += len(part) + (len(end) if found >= 0 else 0)
        return part

    def digits(self, size: int) -> bytes:
        """Return `size` bytes from hexadecimal digits; other characters between the digits are skipped."""
        kept = b""
        while len(kept) < 2 * size and (found := _HEX.search(self.raw, self.at)):
            self.at = found.start()
            # Never beyond the last digit: the characters behind it are not data.
            kept += _NO_HEX.sub(b"", self.read(2 * size - len(kept)))
        return unhex(kept)


def _plain(raw: bytes) -> object:
    """Return a number, or an executable name, from the cache if possible."""
    known = _KNOWN.get(raw)
    if known is None:
        known = number(raw)
        if len(_KNOWN) < STACK:
            _KNOWN[raw] = known
    return known


class Program:
    """An executable file: it runs when it is executed, while a literal one is pushed on the stack."""

    __slots__ = ("source",)

    def __init__(self, source: Source) -> None:
        self.source = source


def number(raw: bytes) -> object:
    """Return a number, or an executable name if it is not one (PLRM, 3.2.2)."""
    if len(raw) > WORD:
        return Word(raw[:WORD].decode("latin-1"))
    if _INTEGER.fullmatch(raw):
        return bounded(int(raw))
    if _REAL.fullmatch(raw):
        value = float(raw)
        return value if math.isfinite(value) else Word(raw.decode("latin-1"))
    if radix := _RADIX.fullmatch(raw):
        try:
            return bounded(int(radix[2], int(radix[1])))
        except ValueError:
            pass
    return Word(raw.decode("latin-1"))


def _escape(code: bytes) -> bytes:
    return bytes([int(code, 8) & 0xFF]) if code[:1].isdigit() and code[0] < 0x38 else _ESCAPES.get(code, code)


def unhex(digits: bytes) -> bytes:
    """Decode hexadecimal digits; other characters are skipped."""
    kept = _NO_HEX.sub(b"", digits)
    return unhexlify(kept + b"0" * (len(kept) % 2))


def base_85(raw: bytes) -> bytes:
    """Decode base 85 (PLRM, 3.13.3); b"" if it is damaged."""
    try:
        return a85decode(_WHITE.sub(b"", raw))
    except ValueError:
        return b""
