"""Lines and headers (RFC 5322, 2.2), from one forward read: what messages, archives of them and formats after their example share.

Laws:
- Of the bytes of a stream, what was read at once is held (CHUNK), or one line (a longer one comes in pieces).
- A header that was read as a whole is taken apart at once; one that was not, line by line, to the same fields.
"""

from __future__ import annotations

import re
from functools import lru_cache

from processors.essence.formats.container import Reader
from processors.essence.formats.streams import CHUNK

HEADER = 65_536
"""Bytes of one header, with all its fields, that are kept."""
FIELD = 4_096
"""Bytes of a field that is taken apart."""
LINE = CHUNK
"""Bytes of a line, at most; a longer one comes in pieces."""

_FIELD = re.compile(rb"^([!-9;-~]+)[ \t]*:[ \t]*")
_WHOLE = re.compile(rb"(?:[!-9;-~]++[ \t]*+:[^\n]*+\n(?:[ \t][^\n]*+\n|(?!))*+|(?!))++(?=\r?\n)")
"""The fields of a header, up to the empty line that ends it."""
_FIELDS = re.compile(rb"([!-9;-~]++)[ \t]*+:[ \t]*+([^\n]*+\n(?:[ \t][^\n]*+\n|(?!))*+)")


class Lines:
    """A stream, line by line; a line ends with its line feed, but for the last one and the pieces of one that is too long."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._data = b""
        self._at = 0
        self.more = False
        """The line given last goes on."""

    def next(self) -> bytes:
        """The next line; b"" at the end. Raises what the stream raises."""
        while True:
            end = self._data.find(b"\n", self._at) + 1
            if end or len(self._data) - self._at >= LINE:
                return self._cut(end or self._at + LINE, more=not end)
            data = self._reader.read(CHUNK)
            if not data:
                return self._cut(len(self._data), more=False)
            self._data, self._at = self._data[self._at :] + data, 0

    def run(self) -> bytes:
        r"""The next lines, as many as were read, of which none but the first begins with "--"; b"" at the end.

        One that begins so comes alone, and so do the pieces of a long one. Raises what the stream raises.
        """
        if not self.more:
            if self._at == len(self._data):
                self._data, self._at = self._reader.read(CHUNK), 0
            alone = self._data.startswith(b"--", self._at)
            end = 0 if alone else self._data.find(b"\n--", self._at) + 1 or self._data.rfind(b"\n", self._at) + 1
            if end:
                return self._cut(end, more=False)
        return self.next()

    def head(self) -> bytes:
        """The lines of a header with the empty one behind them, if all are there; b"" if not, or where that is no header."""
        if self.more:
            return b""
        if self._at == len(self._data):
            self._data, self._at = self._reader.read(CHUNK), 0
        match = _WHOLE.match(self._data, self._at)
        if match is None or match.end() - self._at >= HEADER:
            return b""
        self._at = self._data.index(b"\n", match.end()) + 1
        return match[0]

    def _cut(self, end: int, *, more: bool) -> bytes:
        line, self._at, self.more = self._data[self._at : end], end, more
        return line


class Header:
    """The fields of a header, by their names in lower case, as they were written."""

    def __init__(self) -> None:
        self.fields: dict[str, list[bytearray]] = {}
        self._room = HEADER
        self._last: list[bytearray] | None = None

    def take(self, line: bytes) -> bool:
        """Add a line; False where it cannot belong to a header."""
        self._room -= len(line)
        if line[:1] in (b" ", b"\t"):
            if self._last and self._room > 0:
                self._last[-1] += line.rstrip(b"\r\n")
            return self._last is not None
        match = _FIELD.match(line)
        if match is None:
            return False
        if self._room > 0:
            name = match[1].decode("ascii").lower()
            self._last = self.fields.setdefault(name, [])
            self._last.append(bytearray(line[match.end() :].rstrip(b"\r\n")))
        return True

    def raw(self, name: str) -> bytes:
        """The first field of a name; b"" without one."""
        return bytes(self.fields[name][0]) if name in self.fields else b""


def header(lines: Lines) -> tuple[Header, bytes]:
    """The header that a message or a part begins with, and the line that ended it where that was not an empty one."""
    if whole := lines.head():
        return _taken(whole), b""
    found = Header()
    while line := lines.next():
        if line in (b"\n", b"\r\n"):
            return found, b""
        ended = not lines.more
        if not found.take(line):
            return found, line
        while not ended and lines.next():
            ended = not lines.more
    return found, b""


@lru_cache(maxsize=32)
def _taken(lines: bytes) -> Header:
    """The header of lines that `Lines.head` has found. A message is read twice: by who summarizes it, and by who opens it.

    Both are handed the same one: nobody may add to it.
    """
    found = Header()
    for name, value in _FIELDS.findall(lines):
        text = value.rstrip(b"\r\n")
        if b"\n" in text:
            text = b"".join([line.rstrip(b"\r\n") for line in value.split(b"\n")])
        found.fields.setdefault(name.decode("ascii").lower(), []).append(bytearray(text))
    return found
