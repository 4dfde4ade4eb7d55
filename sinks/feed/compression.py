"""A gzip stream that is put together from ready pieces: one member, since many HTTP clients read no more than the first.

A piece is raw deflate (RFC 1951) that ends at a byte boundary (zlib's full flush) and refers to nothing before it, so pieces can
follow each other in any order. The checksum at the end of the stream (RFC 1952, 2.3.1) is computed from those of the pieces: that
of A followed by B is crc(A) * x^(8 |B|) + crc(B) over GF(2), modulo the polynomial of CRC-32. The factor is stored with a piece.
"""

from __future__ import annotations

import struct
import zlib
from typing import NamedTuple

LEVEL, FAST = 6, 1
"""Compression of stored pieces, which are made once and sent often, and of what is made for one reader."""

_HEAD = b"\x1f\x8b\x08\0\0\0\0\0\0\xff"
"""A member without name and time, from an unknown system."""
_LAST = b"\x03\0"
"""An empty last block."""
_POLYNOMIAL = 0xEDB88320
_ONE = 1 << 31
"""The polynomial 1: bits are reflected, the highest is x^0."""


class Piece(NamedTuple):
    """Compressed data, with the length and the checksum of the data, and the factor of the length."""

    data: bytes
    size: int
    crc: int
    factor: int


def piece(data: bytes, level: int = LEVEL) -> Piece:
    """Return data as a piece."""
    return Piece(_deflated(data, level), len(data), zlib.crc32(data), _factor(len(data)))


def content(data: bytes) -> bytes:
    """Return the data of a piece."""
    return zlib.decompressobj(-zlib.MAX_WBITS).decompress(data)


class GzipStream:
    """Puts a stream together; each method returns the bytes to send."""

    def __init__(self) -> None:
        self._begun = False
        self._crc = 0
        self._size = 0

    def ready(self, one: Piece) -> bytes:
        """Add a stored piece."""
        self._crc = _product(one.factor, self._crc) ^ one.crc
        self._size += one.size
        return self._begin() + one.data

    def text(self, data: bytes) -> bytes:
        """Add data."""
        self._crc = zlib.crc32(data, self._crc)
        self._size += len(data)
        return self._begin() + _deflated(data, FAST)

    def end(self) -> bytes:
        """End the stream."""
        return self._begin() + _LAST + struct.pack("<II", self._crc, self._size & 0xFFFFFFFF)

    def _begin(self) -> bytes:
        begun, self._begun = self._begun, True
        return b"" if begun else _HEAD


def _deflated(data: bytes, level: int) -> bytes:
    engine = zlib.compressobj(level, zlib.DEFLATED, -zlib.MAX_WBITS)
    return engine.compress(data) + engine.flush(zlib.Z_FULL_FLUSH)


def _product(a: int, b: int) -> int:
    """Return a * b modulo the polynomial."""
    found, bit = 0, _ONE
    while bit:
        if a & bit:
            found ^= b
        bit >>= 1
        b = (b >> 1) ^ _POLYNOMIAL if b & 1 else b >> 1
    return found


def _squares() -> tuple[int, ...]:
    """Return x^(8 * 2^n) for n from 0 to 31."""
    found = [1 << 23]
    for _ in range(31):
        found.append(_product(found[-1], found[-1]))
    return tuple(found)


_POWERS = _squares()


def _factor(size: int) -> int:
    """Return x^(8 size)."""
    found = _ONE
    for power in _POWERS[: size.bit_length()]:
        if size & 1:
            found = _product(power, found)
        size >>= 1
    return found
