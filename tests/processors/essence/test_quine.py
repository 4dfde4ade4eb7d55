from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Sequence

import pytest

from processors.essence.stage import Output
from schemas.records import Partial, Rejected, Summary

Run = Callable[..., list[Output]]
Pack = Callable[[Sequence[tuple[str, bytes]]], bytes]

HEAD = b"\x1f\x8b\x08\x08" + bytes(6) + b"q\0"


def literal(size: int) -> bytes:
    """Return the 5-byte header of a stored block, whose content follows."""
    return struct.pack("<BHH", 0, size, size ^ 0xFFFF)


def repeat(size: int) -> bytes:
    """Return a 5-byte block that repeats the last `size` (17 to 20) bytes: two matches of one distance, fixed codes."""
    bits = "010"
    for length in (10, size - 10):
        bits += f"{length - 2:07b}" + f"{8:05b}" + f"{size - 17:03b}"[::-1]
    return int((bits + "0" * 7)[::-1], 2).to_bytes(5, "little")


def quine(crc: int) -> bytes:
    """Return a gzip file that contains itself if `crc` is its checksum (R. Cox, "Zip Files All The Way Down", 2010)."""
    ahead, behind, five, twenty = len(HEAD) + 5, 18, literal(5), literal(20)
    data = (
        (HEAD + literal(ahead)) * 2 + repeat(ahead) + five + repeat(ahead) + five * 2 + twenty + repeat(ahead) + five * 2 + twenty
    )
    data += (repeat(20) + twenty) * 4 + (repeat(20) + literal(0) * 2 + literal(behind)) * 2
    tail = struct.pack("<BHHII", 1, 0, 0xFFFF, crc, len(data) + 2 * behind)
    return data + (repeat(behind) + tail) * 2


def solved() -> bytes:
    """Return the quine with its correct checksum: CRC-32 is linear, so the fixed point solves 32 equations."""
    constant = zlib.crc32(quine(0))
    basis: dict[int, tuple[int, int]] = {}

    def reduced(value: int, mask: int) -> tuple[int, int]:
        while value and value.bit_length() in basis:
            other = basis[value.bit_length()]
            value, mask = value ^ other[0], mask ^ other[1]
        return value, mask

    for bit in range(32):
        value, mask = reduced(zlib.crc32(quine(1 << bit)) ^ constant ^ 1 << bit, 1 << bit)
        if value:
            basis[value.bit_length()] = value, mask
    return quine(reduced(constant, 0)[1])


@pytest.fixture(scope="module")
def itself() -> bytes:
    """A gzip file that contains itself."""
    data = solved()
    assert zlib.decompress(data, zlib.MAX_WBITS | 16) == data
    return data


def test_gzip_quine_ends_at_depth_limit(itself: bytes, run: Run) -> None:
    """A file that contains itself is rejected at the depth limit, with the default limits."""
    rejected, summary, end = run(itself, "file:///d/q.gz")
    assert isinstance(rejected, Rejected)
    assert isinstance(summary, Summary)
    assert isinstance(end, Partial)
    assert (rejected.reason, summary.type) == ("nested more than 16 deep", "GNUCompressed")


def test_members_beside_quine_are_read(itself: bytes, run: Run, tar: Pack) -> None:
    """The members beside a quine are read."""
    records = run(tar([("a.txt", b"words\n"), ("q.gz", itself), ("b.txt", b"words\n")]), "file:///d/x.tar")
    assert {r.path: r.type for r in records if isinstance(r, Summary)} == {
        "a.txt": "RawText",
        "q.gz": "GNUCompressed",
        "b.txt": "RawText",
        "": "Tar",
    }
