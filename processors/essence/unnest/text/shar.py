"""Shell archives: the here-documents that a script would write to files (GNU shar, and its predecessors). Parsed, never run.

Patterns alone recognize the parts: a line that names a file and opens a here-document for cat, sed or uudecode; the prefix that sed
would remove; the delimiter that ends the document. Input of uudecode is a member as it is, and decoded by the unnester of its type.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from processors.essence.formats.container import Budget, Damaged, Member, Reader
from processors.essence.formats.mail.mail_header import Lines
from processors.essence.formats.streams import CHUNK
from processors.essence.unnest import Container

MAX_COMMAND = 1_000
"""Maximum bytes of a line that may open a here-document."""
_HERE = re.compile(rb"<<-?[ \t]*(?:\\?([\w!#%.+@=-]{1,80})|'([^'\n]{1,80})'|\"([^\"\n]{1,80})\")")
_FILE = re.compile(rb"(?<![<>&\d])>>?[ \t]*(?:'([^'\n]{1,400})'|\"([^\"\n]{1,400})\"|([^\s;&|<>'\"]{1,400}))")
_SED = re.compile(rb"\bsed\b[^|;]{0,40}?s(.)\^([^/\n]{1,20}?)\1\1")
_WRITES = re.compile(rb"(?:^|[\s;&|(])(?:cat|g?sed|uudecode|base64)\b")


class _Here:
    """A here-document as a stream. Raises Damaged if its delimiter is missing."""

    def __init__(self, lines: Lines, end: bytes, prefix: bytes) -> None:
        self._lines = lines
        self._end = end
        self._prefix = prefix
        self._data = b""
        self._ended = False

    def read(self, size: int, /) -> bytes:
        while not (self._data or self._ended):
            self._more()
        data, self._data = self._data[:size], self._data[size:]
        return data

    def _more(self) -> None:
        """Read lines until there are enough, or the delimiter is found."""
        taken, room = list[bytes](), CHUNK
        while room > 0:
            line = self._lines.next()
            if not line and not taken:
                raise Damaged("truncated: a file of a shell archive has no end")
            if not line or line.rstrip(b"\r\n") == self._end:
                self._ended = bool(line)
                break
            taken.append(line.removeprefix(self._prefix))
            room -= len(line)
        self._data = b"".join(taken)


def _opened(line: bytes) -> tuple[bytes, bytes, bytes] | None:
    """Return the file name, the delimiter and the prefix if a line opens a here-document for a file."""
    here = _HERE.search(line) if len(line) <= MAX_COMMAND else None
    if here is None or not _WRITES.search(line):
        return None
    file = _FILE.search(line)
    if file is None and b"uudecode" not in line:
        return None
    name = next(filter(None, file.groups()), b"") if file else b"member.uu"
    sed = _SED.search(line)
    return name.replace(b"\\", b""), next(filter(None, here.groups()), b""), sed[2].replace(b"\\", b"") if sed else b""


def open_shar(body: Reader, budget: Budget) -> Iterator[Member]:
    """Yield the files of a shell archive. Raises Damaged."""
    lines, found = Lines(body), False
    while line := lines.next():
        opened = None if line.lstrip().startswith(b"#") else _opened(line)
        if opened is None:
            continue
        found = True
        name, end, prefix = opened
        content = _Here(lines, end, prefix)
        if name != b"/dev/null":
            yield Member(name=name, body=content)
        while content.read(CHUNK):
            pass
    if not found:
        raise Damaged("no shell archive: no file in it")


UNNESTER = Container(("ShellArchive",), open_shar)
