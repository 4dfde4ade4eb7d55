"""Contents of the targets of hard links in a tar, which stores them once: at the first name (POSIX.1-2017, pax, typeflag 1).

In a file, the place of each plain member is remembered; of a stream, the last contents are kept. Both are bounded, and so are the
bytes that links give in all: a link whose target is not available stays a name.
"""

from __future__ import annotations

from typing import BinaryIO

from processors.essence.formats.container import Reader
from processors.essence.formats.streams import CHUNK, Slice, sought

MAX_TARGETS, MAX_NAMES = 100_000, 8 << 20
"""Maximum number of targets, and bytes of their names."""
MAX_BODY, MAX_KEPT = 1 << 20, 8 << 20
"""Of a stream: maximum bytes of a content that is kept, and of all."""
MAX_LINKED = 64 << 20
"""Maximum bytes that the links of one archive give."""


class _Kept:
    """A body whose bytes are kept as they pass."""

    def __init__(self, body: Slice) -> None:
        self._body = body
        self.data = bytearray()

    def read(self, size: int, /) -> bytes:
        data = self._body.read(size)
        self.data += data
        return data


class _Again:
    """Part of a file, read at its own position; the position of the file is kept."""

    def __init__(self, file: BinaryIO, at: int, size: int) -> None:
        self._file = file
        self._at = at
        self._left = size

    def read(self, size: int, /) -> bytes:
        before = self._file.tell()
        self._file.seek(self._at)
        data = self._file.read(min(size, self._left, CHUNK))
        self._file.seek(before)
        self._at += len(data)
        self._left -= len(data)
        return data


class _Copy:
    """Bytes as a stream."""

    def __init__(self, data: bytes) -> None:
        self._data = memoryview(data)

    def read(self, size: int, /) -> bytes:
        data, self._data = bytes(self._data[:size]), self._data[size:]
        return data


def _key(name: bytes) -> bytes:
    """Return a name without the leading parts that tar adds or removes."""
    while name.startswith((b"./", b"/")):
        name = name[2:] if name.startswith(b"./") else name[1:]
    return name


class Links:
    """Targets of later hard links in one archive."""

    def __init__(self, body: Reader) -> None:
        self._file = sought(body)
        self._places: dict[bytes, tuple[int, int]] = {}
        """Offset and length of members of a file."""
        self._kept: dict[bytes, bytes] = {}
        """Contents of members of a stream, the oldest first."""
        self._names = self._size = 0
        self._left = MAX_LINKED

    def passing(self, name: bytes, body: Slice) -> Reader:
        """Register a plain file at whose content the archive is; return its body."""
        if self._file:
            self._names += len(name)
            if len(self._places) < MAX_TARGETS and self._names < MAX_NAMES:
                self._places[_key(name)] = self._file.tell(), body.left
            return body
        return _Kept(body) if body.left <= MAX_BODY else body

    def passed(self, name: bytes, body: Reader | None, size: int) -> None:
        """Register a plain file that was yielded with the body from `passing`, if all of it was read."""
        if not isinstance(body, _Kept) or len(body.data) != size:
            return
        self._keep(_key(name), bytes(body.data))

    def _keep(self, name: bytes, data: bytes) -> None:
        self._size += len(data) - len(self._kept.pop(name, b""))
        self._kept[name] = data
        while self._size > MAX_KEPT or len(self._kept) > MAX_TARGETS:
            oldest = next(iter(self._kept))
            self._size -= len(self._kept.pop(oldest))

    def linked(self, name: bytes, target: bytes) -> tuple[Reader, int] | None:
        """Return the content of a hard link and its size in bytes; None if it is not available."""
        key = _key(target)
        if (place := self._places.get(key)) and self._file:
            if place[1] > self._left:
                return None
            self._left -= place[1]
            self._places.setdefault(_key(name), place)
            return _Again(self._file, *place), place[1]
        data = self._kept.get(key)
        if data is None or len(data) > self._left:
            return None
        self._left -= len(data)
        self._keep(key, data)
        self._keep(_key(name), data)
        return _Copy(data), len(data)
