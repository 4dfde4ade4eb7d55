"""uuencode, xxencode, and uuencode's base64 (POSIX.1-2017, uuencode): any number of files in a text, with prose between them.

A `begin` line opens a file only if a line of data follows. A file ends at its `end` line; one without it is damaged. The prose
before the first file becomes part of the summary of the whole.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Callable, Iterator

from processors.essence.formats.container import Budget, Damaged, Member, Reader, UnnestError
from processors.essence.formats.streams import CHUNK
from processors.essence.unnest import Container

MAX_LINE = 1 << 12
"""Maximum bytes of a line; a longer one is cut into several, none of which is data."""
MAX_PROSE = 2_048
AT_ONCE = 8_192

UU = bytes(range(32, 96))
XX = b"+-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_XX_TO_UU = bytes.maketrans(XX, UU)
_BEGIN = re.compile(rb"begin(-base64)? ([0-7]{3,4}) (\S.*)")
_SUBJECT = re.compile(r"^Subject:[ \t]*+(\S.*)$", re.MULTILINE | re.IGNORECASE)

Decode = Callable[[bytes], bytes]


class _Lines:
    """The lines of a stream without their ends; records how the stream failed."""

    def __init__(self, body: Reader) -> None:
        self._body = body
        self._lines: list[bytes] = []
        self._rest = b""
        self._error: UnnestError | None = None

    def next(self) -> bytes | None:
        """Return the next line; None at the end. Raises UnnestError after all lines before the damage."""
        while not self._lines:
            if self._error:
                raise self._error
            if not self._more():
                return None
        return self._lines.pop()

    def back(self, line: bytes) -> None:
        """Push a line back, to be returned again."""
        self._lines.append(line)

    def _more(self) -> bool:
        """Read on; return whether there is more."""
        try:
            data = self._body.read(CHUNK)
        except UnnestError as error:
            self._error, data = error, b""
        lines = (self._rest + data).split(b"\n")
        self._rest = lines.pop() if data else b""
        if len(self._rest) > MAX_LINE:
            lines.append(self._rest)
            self._rest = b""
        self._lines = [line.removesuffix(b"\r") for line in reversed(lines)]
        return bool(data) or any(lines) or self._error is not None


def _uu(line: bytes) -> bytes:
    """Decode a line of uuencode; it may have lost blanks at its end, or have an extra checksum. Raises Damaged."""
    size = (line[0] - 32 & 63) if line else 0
    chars = -(-size // 3) * 4
    if len(line) > chars + 3:
        raise Damaged("a line longer than it says")
    try:
        # The unused bits of the last character may have any value.
        return binascii.a2b_uu(line[: 1 + (size * 8 + 5) // 6])
    except binascii.Error as error:
        raise Damaged(f"a line that is no data: {error}") from error


def _xx(line: bytes) -> bytes:
    """Decode a line of xxencode. Raises Damaged."""
    if line.strip(XX):
        raise Damaged("a line that is no data")
    return _uu(line.translate(_XX_TO_UU))


def _base64(line: bytes) -> bytes:
    """Decode a line of base64. Raises Damaged."""
    try:
        return binascii.a2b_base64(line, strict_mode=True)
    except binascii.Error as error:
        raise Damaged(f"a line that is no data: {error}") from error


def _fits(line: bytes, alphabet: bytes) -> bool:
    """Whether the length of a line agrees with its first character."""
    if not line or line.replace(b"`", b" ").strip(alphabet) or line[0] not in alphabet + b"`":
        return False
    size = alphabet.find(line.replace(b"`", b" ")[:1])
    return abs(len(line) - 1 - -(-size // 3) * 4) <= 2


def _decoder(line: bytes | None) -> Decode | None:
    """Return the decoder for the first line of a file; None if it is not data."""
    if line is None:
        return None
    if line in (b"", b" ", b"end") or _fits(line, UU):
        return _uu
    if line == b"+" or _fits(line, XX):
        return _xx
    return None


class _File:
    """Content of a file, decoded line by line. Raises Damaged, and raises it again on further reads."""

    def __init__(self, lines: _Lines, decode: Decode) -> None:
        self._lines = lines
        self._decode = decode
        self._data = memoryview(b"")
        self._ended = False
        self._error: UnnestError | None = None

    def read(self, size: int, /) -> bytes:
        if not (self._data or self._ended):
            self._fill()
        if self._error and not self._data:
            raise self._error
        data, self._data = bytes(self._data[:size]), self._data[size:]
        return data

    def _fill(self) -> None:
        parts, size = [], 0
        try:
            while size < AT_ONCE and (data := self._line()):
                parts.append(data)
                size += len(data)
        except UnnestError as error:
            self._error, self._ended = error, True
        self._data = memoryview(b"".join(parts))

    def _line(self) -> bytes:
        """Return the next bytes; none at the end. Raises UnnestError."""
        line = self._lines.next()
        if line is None:
            raise Damaged("truncated: a file without its end")
        if line.startswith(b"begin") and _BEGIN.fullmatch(line):
            self._lines.back(line)
            raise Damaged("truncated: a file without its end")
        last = b"====" if self._decode is _base64 else b"end"
        data = b"" if line == last else self._decode(line)
        if data:
            return data
        self._ended = True
        # The terminating line follows the line without data; if it is missing, no data is missing.
        if line != last and (after := self._lines.next()) not in (last, None):
            self._lines.back(after or b"")
        return b""


def open_uuencoded(body: Reader, budget: Budget) -> Iterator[Member]:
    """Yield the files in a text. Raises Damaged at the end if there is none."""
    lines, found = _Lines(body), False
    while (line := lines.next()) is not None:
        begin = _BEGIN.fullmatch(line)
        if not begin:
            continue
        first = lines.next()
        if first is not None:
            lines.back(first)
        decode = _base64 if begin[1] else _decoder(first)
        if decode is None and first is not None:
            continue
        found = True
        content = _File(lines, decode or _uu)
        yield Member(name=begin[3].rstrip(), mode=int(begin[2], 8), body=content)
        try:
            while content.read(CHUNK):
                pass
        except Damaged:
            # The reader of the body gets this error. The next file is found by its first line.
            continue
    if not found:
        raise Damaged("no file in it")


def about_uuencoded(head: bytes) -> Iterator[tuple[str, str]]:
    """Yield the prose before the first file, and its subject."""
    start = b"\n" + head
    end = min((at for at in (start.find(b"\nbegin "), start.find(b"\nbegin-base64 ")) if at >= 0), default=len(start))
    prose = start[1:end].decode("utf-8", "replace")[:MAX_PROSE]
    if subject := _SUBJECT.search(prose):
        yield "title", subject[1]
    yield "partial-text", prose


UNNESTER = Container(("Uuencoded",), open_uuencoded, about_uuencoded)
