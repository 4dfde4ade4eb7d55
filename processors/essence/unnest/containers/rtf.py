r"""RTF (1.9.1): embedded objects, which are stored as hexadecimal digits after \objdata.

The type of an object is recognized from its own bytes; most are compound files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from processors.essence.formats.container import Budget, Damaged, Member, Reader
from processors.essence.formats.streams import CHUNK, Slice
from processors.essence.unnest import Container
from processors.essence.unnest.containers._embedded import embedded

MARK = b"\\objdata"
SPACE = b" \t\r\n\f\v"

_DIGITS = re.compile(rb"[0-9A-Fa-f\s]*+")


class _Source:
    """A document, read once from its start."""

    def __init__(self, body: Reader) -> None:
        self._body = body
        self.data = b""
        self.at = 0

    def more(self, kept: int = 0) -> bool:
        """Read the next bytes, and discard the bytes before, except the last `kept`; False at the end."""
        chunk = self._body.read(CHUNK)
        self.data = self.data[max(self.at, len(self.data) - kept) :] + chunk
        self.at = 0
        return bool(chunk)

    def find(self, mark: bytes) -> bool:
        """Move to the end of the next mark; False if there is none."""
        while (at := self.data.find(mark, self.at)) < 0:
            if not self.more(len(mark) - 1):
                return False
        self.at = at + len(mark)
        return True


class _Digits:
    """Bytes decoded from digits, up to the first character that is not a digit."""

    def __init__(self, source: _Source) -> None:
        self._source = source
        self._half = b""
        self._out = b""

    def read(self, size: int, /) -> bytes:
        while not self._out and self._more():
            pass
        data, self._out = self._out[:size], self._out[size:]
        return data

    def _more(self) -> bool:
        source = self._source
        if source.at >= len(source.data) and not source.more():
            return False
        match = _DIGITS.match(source.data, source.at)
        assert match is not None  # noqa: S101 - it matches nothing, too
        digits = self._half + match[0].translate(None, SPACE)
        even = len(digits) & ~1
        self._out, self._half = bytes.fromhex(digits[:even].decode("ascii")), digits[even:]
        source.at = match.end()
        return source.at >= len(source.data)


def open_rtf(body: Reader, budget: Budget) -> Iterator[Member]:
    """Yield the embedded objects. Raises Damaged after those that can be read."""
    source, damage, number = _Source(body), None, 0
    while source.find(MARK):
        number += 1
        digits = _Digits(source)
        try:
            name, size = embedded(digits)
        except Damaged as error:
            damage = damage or error
            continue
        if size >= 0:
            yield Member(name=name or b"object-%d" % number, size=size, body=Slice(digits, size))
    if damage:
        raise damage


UNNESTER = Container(("RTF",), open_rtf, summarized=True)
