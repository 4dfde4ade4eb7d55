"""Streams that unnesting is made of: exact reads, slices, digests, decoders, and bodies that can be sought in.

Laws:
- No read asks for more than CHUNK bytes at once because of a number that the input states.
- A stream that failed fails again in the same way; it never goes on behind damage.
"""

from __future__ import annotations

import hashlib
import io
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import BinaryIO, NamedTuple, Protocol, cast

from processors.essence.formats.container import Budget, Damaged, Reader, Refused, UnnestError, UnnestLimits

CHUNK = 1 << 16
SIGNATURE = 8
"""Bytes that tell the beginning of a compressed stream, at least."""


class Digest(NamedTuple):
    """Length in bytes and digests (hex) of what was read; sha256 is "" where that was not all."""

    size: int
    md5: str
    sha256: str


def exact(reader: Reader, size: int) -> bytes:
    """The next `size` bytes; fewer only where the stream ends."""
    data = reader.read(min(size, CHUNK)) if size else b""
    if len(data) == size or not data:
        return data
    parts, left = [data], size - len(data)
    while left and (data := reader.read(min(left, CHUNK))):
        parts.append(data)
        left -= len(data)
    return b"".join(parts)


def need(reader: Reader, size: int, what: str) -> bytes:
    """The next `size` bytes. Raises Damaged where the stream ends before."""
    data = exact(reader, size)
    if len(data) < size:
        raise Damaged(f"truncated: {what}")
    return data


def skip(reader: Reader, size: int, what: str) -> None:
    """Pass over `size` bytes. Raises Damaged where the stream ends before."""
    while size:
        data = reader.read(min(size, CHUNK))
        if not data:
            raise Damaged(f"truncated: {what}")
        size -= len(data)


class Slice:
    """The next `size` bytes of a stream, as a stream. Raises Damaged where the stream ends before."""

    def __init__(self, reader: Reader, size: int) -> None:
        self._reader = reader
        self.left = size

    def read(self, size: int, /) -> bytes:
        if not self.left:
            return b""
        data = self._reader.read(min(size, self.left, CHUNK))
        if not data:
            raise Damaged("truncated: the body ends early")
        self.left -= len(data)
        return data

    def drain(self) -> None:
        """Pass over what was not read."""
        while self.read(CHUNK):
            pass


class Failing:
    """A body of which nothing can be read, for a known reason."""

    def __init__(self, error: UnnestError) -> None:
        self._error = error

    def read(self, size: int, /) -> bytes:
        raise self._error


class Joined:
    """Bytes that were read ahead, then the rest of their stream."""

    def __init__(self, head: bytes, rest: Reader) -> None:
        self._head = memoryview(head)
        self._rest = rest

    def read(self, size: int, /) -> bytes:
        if not self._head:
            return self._rest.read(size)
        data, self._head = bytes(self._head[:size]), self._head[size:]
        return data


def partly(reader: Reader, size: int) -> tuple[bytes, UnnestError | None]:
    """The next `size` bytes, or what can be read of them and why that is not all; the stream fails again when read on."""
    parts: list[bytes] = []
    try:
        while size and (data := reader.read(min(size, CHUNK))):
            parts.append(data)
            size -= len(data)
    except UnnestError as error:
        return b"".join(parts), error
    return b"".join(parts), None


def peek(reader: Reader, size: int) -> tuple[bytes, Reader]:
    """The first `size` bytes of a stream, and the stream from its start. Raises UnnestError where nothing can be read of it."""
    head, damage = partly(reader, size)
    if damage and not head:
        raise damage
    if file := sought(reader):
        file.seek(0)
        return head, reader
    return head, Joined(head, reader)


class Counted:
    """A stream whose bytes are paid for."""

    def __init__(self, reader: Reader, budget: Budget) -> None:
        self._reader = reader
        self._spend = budget.spend

    def read(self, size: int, /) -> bytes:
        data = self._reader.read(size)
        self._spend(len(data))
        return data


class Hashed:
    """A stream whose bytes are paid for, counted and digested as they pass."""

    def __init__(self, reader: Reader, budget: Budget) -> None:
        self._reader = reader
        self._spend = budget.spend
        self._md5 = hashlib.md5(usedforsecurity=False)
        self._sha256 = hashlib.sha256()
        self._size = 0
        self._whole = False

    def read(self, size: int, /) -> bytes:
        data = self._reader.read(size)
        length = len(data)
        self._spend(length)
        self._md5.update(data)
        self._sha256.update(data)
        self._size += length
        self._whole = not data
        return data

    def digest(self) -> Digest:
        """The digest of all that passed."""
        return Digest(self._size, self._md5.hexdigest(), self._sha256.hexdigest() if self._whole else "")


class Decoder(Protocol):
    """What bz2 and lzma offer, and `gzip` after their example."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int = -1) -> bytes: ...


class Decoded:
    """What a compressed stream gives, at most CHUNK bytes a read, so that a bomb costs no more memory than a text.

    `another` makes a decoder for the stream that follows, of which it is given the first bytes, or gives None where that is
    none; without it, nothing behind the first stream is read. Decoders raise what they like on bad data. One that can give more
    than is asked for (`ahead`) does: each call costs as much as 2 kB of text, and the headers of a tar are 512 bytes.
    """

    def __init__(self, reader: Reader, decoder: Decoder, another: Callable[[bytes], Decoder | None] | None = None) -> None:
        self._reader = reader
        self._decoder: Decoder | None = decoder
        self._another = another
        self._data = b""
        self._out = b""
        """What came out ahead, and how much of it was read."""
        self._at = 0
        self._error: UnnestError | None = None

    def read(self, size: int, /) -> bytes:
        if self._out:
            data = self._out[self._at : self._at + size]
            self._at += len(data)
            if self._at == len(self._out):
                self._out, self._at = b"", 0
            return data
        if self._error:
            raise self._error
        try:
            data = self._next(min(size, CHUNK))
        except UnnestError as error:
            self._error = error
            raise
        except Exception as error:  # noqa: BLE001 - zlib, bz2 and lzma each have errors of their own
            self._error = Damaged(f"damaged: {str(error) or type(error).__name__}")
            raise self._error from None
        if len(data) > size:
            self._out, self._at = data, size
            return data[:size]
        return data

    def _next(self, size: int) -> bytes:
        while decoder := self._decoder:
            if decoder.eof:
                self._decoder = self._follow(decoder)
                continue
            if not self._data and decoder.needs_input:
                self._data = self._reader.read(CHUNK)
                if not self._data:
                    raise Damaged("truncated: the compressed data end early")
            data, self._data = self._data, b""
            out: bytes = getattr(decoder, "ahead", decoder.decompress)(data, size)
            if out:
                return out
        return b""

    def _follow(self, ended: Decoder) -> Decoder | None:
        """Padding of zeros is passed over; what then follows is another stream, or of no concern."""
        if not self._another:
            return None
        data = ended.unused_data or self._reader.read(CHUNK)
        while data and not data.strip(b"\0"):
            data = self._reader.read(CHUNK)
        self._data = data.lstrip(b"\0")
        if 0 < len(self._data) < SIGNATURE:
            self._data += exact(self._reader, SIGNATURE)
        return self._another(self._data)


def sought(reader: Reader) -> BinaryIO | None:
    """The reader itself, if it is a file that can be sought in."""
    return cast("BinaryIO", reader) if isinstance(reader, io.IOBase) and reader.seekable() else None


def anonymous() -> BinaryIO:
    """A file without a name, in memory where the system has such files: a sandbox may have no folder to write to."""
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("member"), "w+b")
    return cast("BinaryIO", tempfile.TemporaryFile())


@contextmanager
def seekable(reader: Reader, limits: UnnestLimits, *, damaged: bool = False) -> Iterator[BinaryIO]:
    """A stream from its start as a file at its start. Raises Refused where it is longer than `limits.member`.

    `damaged`: where the stream fails on the way, what could be read of it is given, and the failure is raised at the end.
    """
    if file := sought(reader):
        file.seek(0)
        yield file
        return
    head, damage = partly(reader, limits.memory + 1)
    with io.BytesIO(head) if len(head) <= limits.memory else anonymous() as spool:
        if len(head) > limits.memory:
            spool.write(head)
            damage = damage or _copy(reader, spool, limits)
        del head
        if damage and not (damaged and isinstance(damage, Damaged)):
            raise damage
        spool.seek(0)
        yield spool
        if damage:
            raise damage


def _copy(reader: Reader, spool: BinaryIO, limits: UnnestLimits) -> UnnestError | None:
    """Write the rest of a stream behind what is there, and give the failure that ended it. Raises Refused."""
    size = spool.tell()
    while True:
        data, damage = partly(reader, CHUNK)
        size += len(data)
        if size > limits.member:
            raise Refused(f"larger than {limits.member} bytes")
        spool.write(data)
        if damage or not data:
            return damage
