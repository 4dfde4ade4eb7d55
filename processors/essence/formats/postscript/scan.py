"""The scanner: files, and the objects that stand in them (PLRM, 3.2)."""

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
"""Numbers and names by how they are written: they never change, and each file has the same few again and again."""


class Source:
    """A file: the bytes that the machine reads, tokens or data, from where it is."""

    def __init__(self, raw: bytes) -> None:
        self._raw = raw
        self.at = 0
        self.marked = True
        """Whether there may be a mark behind data that is not read yet."""
        self.bitmaps = ""
        """The font of TeX that is to come, as dvips names it in a comment."""

    @property
    def raw(self) -> bytes:
        """The bytes. May raise Enough where they are decoded first."""
        return self._raw

    def skip(self, size: int) -> None:
        """Pass over so many bytes of a picture."""
        self.at = min(self.at + max(size, 0), len(self._raw))

    def token(self) -> object:
        """The next token, or END; braces are OPEN and CLOSE."""
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
        """A string behind its bracket, with brackets and escapes in it (PLRM, 3.2.2)."""
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
        """What comments say to a reader: how much data follows (DSC 3.0, 5.2), and the font that dvips makes next."""
        if not comment.startswith((b"%%B", b"%D")):
            return
        if counted := _COUNT.match(comment):
            end = self.raw.find(b"%%End", self.at) if self.marked else -1
            self.marked = end >= 0
            self.at = end if self.marked else self.at + int(counted[1])
        elif font := _FONT.match(comment):
            self.bitmaps = font[2].decode("latin-1")

    def read(self, size: int) -> bytes:
        """So many bytes, or what there is; one white space behind the operator that reads has gone before."""
        part = self.raw[self.at : self.at + size]
        self.at += len(part)
        return part

    def until(self, end: bytes, size: int = MAX_DECODED) -> bytes:
        """The bytes before a mark, which is left out; all that there are where it is missing."""
        found = self.raw.find(end, self.at, self.at + size)
        part = self.raw[self.at : found if found >= 0 else self.at + size]
        self.at += len(part) + (len(end) if found >= 0 else 0)
        return part

    def digits(self, size: int) -> bytes:
        """So many bytes that are written in hexadecimal; other characters between them are passed over."""
        kept = b""
        while len(kept) < 2 * size and (found := _HEX.search(self.raw, self.at)):
            self.at = found.start()
            # Never beyond the last digit, since what stands behind it is not of the data.
            kept += _NO_HEX.sub(b"", self.read(2 * size - len(kept)))
        return unhex(kept)


def _plain(raw: bytes) -> object:
    """A number, or the name that it is otherwise."""
    known = _KNOWN.get(raw)
    if known is None:
        known = number(raw)
        if len(_KNOWN) < STACK:
            _KNOWN[raw] = known
    return known


class Program:
    """A file as an executable object: it is run where it is met; as a literal one it is left on the stack."""

    __slots__ = ("source",)

    def __init__(self, source: Source) -> None:
        self.source = source


def number(raw: bytes) -> object:
    """A number, or the name that it is otherwise (PLRM, 3.2.2)."""
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
    """What is written in hexadecimal; other characters are passed over."""
    kept = _NO_HEX.sub(b"", digits)
    return unhexlify(kept + b"0" * (len(kept) % 2))


def base_85(raw: bytes) -> bytes:
    """What is written in base 85 (PLRM, 3.13.3); b"" where that is damaged."""
    try:
        return a85decode(_WHITE.sub(b"", raw))
    except ValueError:
        return b""
