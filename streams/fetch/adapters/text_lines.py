"""Text in lines as Gopher and NNTP send it: CR LF, dots doubled at the start of a line, a line `.` at the end. No I/O.

Laws:
- The result does not depend on how the bytes are cut into pieces.
- At most `MAX_HELD` bytes, and one piece, are held back.
"""

from __future__ import annotations

import re

MAX_HELD = 65_536
_TAIL = 5
"""Bytes of the longest end of a text: CR LF, a dot, CR LF."""
_END = re.compile(rb"(?:\A|\n)\.\r?\n")
_CLOSING = re.compile(rb"(?:\A|\n)\.\r?\n\Z")


def _undoubled(text: bytes, *, inside: bool) -> bytes:
    """Return text with its doubled dots undone. `inside`: it begins within a line."""
    found = text.replace(b"\n..", b"\n.")
    return found[1:] if found.startswith(b"..") and not inside else found


class GopherText:
    """Decodes a text item (RFC 1436, 3.7): lines with LF, once with dots as received, and once undoubled.

    Whether dots are doubled shows only at the end: by RFC 1436 a text ends with the line `.`, and then they are. Many servers send
    a file as it is, and close the connection.
    """

    def __init__(self) -> None:
        self._held = b""
        self._inside = False
        """Whether what is held back begins within a line."""

    def feed(self, data: bytes) -> tuple[bytes, bytes]:
        """Return what follows of the text as received, and undoubled."""
        self._held += data
        cut = self._held.rfind(b"\n", 0, max(0, len(self._held) - _TAIL)) + 1
        if not cut and len(self._held) > MAX_HELD:
            cut = len(self._held) - _TAIL
            cut -= self._held[cut - 1 : cut] == b"\r"  # its LF may follow
        return self._take(cut)

    def end(self) -> tuple[bytes, bytes]:
        """Return the rest of the text, without the line that ends it."""
        if self.terminated:
            self._held = self._held[: self._held.rindex(b".")]
        return self._take(len(self._held))

    @property
    def terminated(self) -> bool:
        """Whether what was received so far ends with the line `.`."""
        found = _CLOSING.search(self._held)
        return found is not None and not (self._inside and self._held.startswith(b".") and found.start() == 0)

    def _take(self, cut: int) -> tuple[bytes, bytes]:
        taken, self._held = self._held[:cut], self._held[cut:]
        plain, inside = taken.replace(b"\r\n", b"\n"), self._inside
        if taken:
            self._inside = not taken.endswith(b"\n")
        return plain, _undoubled(plain, inside=inside)


class DotBlock:
    """Decodes a multi-line data block (RFC 3977, 3.1.1) to lines as they are, with their CR LF."""

    def __init__(self) -> None:
        self._held = b""
        self._inside = False
        self.ended = False
        """Whether the line `.` was received; what follows it is ignored."""

    def feed(self, data: bytes) -> bytes:
        """Return what follows of the block."""
        if self.ended:
            return b""
        self._held += data
        for end in _END.finditer(self._held):
            if end.start() or not self._inside or self._held.startswith(b"\n"):
                self.ended = True
                return self._take(end.start() + (self._held[end.start()] == 0x0A))
        cut = self._held.rfind(b"\n") + 1
        if not cut and len(self._held) > MAX_HELD:
            cut = len(self._held)
        return self._take(cut)

    def _take(self, cut: int) -> bytes:
        taken, self._held = self._held[:cut], self._held[cut:]
        found = _undoubled(taken, inside=self._inside)
        if taken:
            self._inside = not taken.endswith(b"\n")
        return found
