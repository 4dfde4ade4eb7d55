from __future__ import annotations

import gzip as reference
import io
import random
import zlib

import pytest

from processors.essence.formats.container import Damaged
from processors.essence.formats.inflate import PIECE, Inflate
from processors.essence.formats.streams import Decoded

CHANCE = random.Random(1952)
WORDS = [f"{CHANCE.choice('bdfgklmnprst')}{CHANCE.choice('aeiou')}{at:x}" for at in range(400)]
TEXT = " ".join(CHANCE.choices(WORDS, k=80_000)).encode()
PACKED = reference.compress(TEXT, mtime=0)


def read(packed: bytes, size: int) -> tuple[bytes, bool]:
    """Return what can be read in steps of `size` bytes, and whether that ended in damage."""
    reader, out = Decoded(io.BytesIO(packed), Inflate()), b""
    try:
        while data := reader.read(size):
            out += data
    except Damaged:
        return out, True
    return out, False


def expected(packed: bytes) -> bytes:
    """Return zlib's output before it fails, fed and read byte by byte."""
    decoder, out = zlib.decompressobj(31), b""
    try:
        for at in range(len(packed)):
            out += decoder.decompress(packed[at : at + 1])
    except zlib.error:
        pass
    return out


@pytest.mark.parametrize("size", [pytest.param(1, marks=pytest.mark.slow), 512, 65_536])
def test_stream_is_read_in_full(size: int) -> None:
    """A stream is read in full for any size of read, and the bytes after it are left."""
    assert len(PACKED) > 4 * PIECE
    assert read(PACKED, size) == (TEXT, False)
    decoder = Inflate()
    out, data = b"", PACKED + b"behind it" * PIECE
    while not decoder.eof:
        out, data = out + decoder.decompress(data, size), b""
    assert (out, decoder.unused_data) == (TEXT, b"behind it" * PIECE)


@pytest.mark.slow
@pytest.mark.parametrize(("size", "places"), [(1, 3), (512, 12)])
def test_bytes_before_damage_are_read(size: int, places: int) -> None:
    """With a flipped bit, everything that zlib reads before the error is read."""
    for at in random.Random(3).sample(range(20, len(PACKED) - 8), places):
        bad = bytearray(PACKED)
        bad[at] ^= 1 << at % 8
        out, damaged = read(bytes(bad), size)
        assert damaged
        sound = expected(bytes(bad))
        assert out[: len(sound)] == sound[: len(out)]
        assert len(out) >= len(sound) - size
