"""Header blocks of a tar."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processors.essence.unnest.containers._tar_header import BLOCK, checked, number

MODULUS = 65_521
"""The modulus of Adler-32."""


@given(st.integers(0, BLOCK), st.integers(0, 127), st.integers(0, 1 << 32))
def test_header_with_correct_checksum_is_accepted(zeros: int, most: int, seed: int) -> None:
    """A header is accepted exactly if its checksum is the sum that POSIX defines, for any number of zeros and any other bytes."""
    chance = random.Random(seed)
    block = bytearray(zeros) + bytearray(chance.choices((most // 2, most), k=BLOCK - zeros))
    block[148:156] = b" " * 8
    plain = sum(block)
    for stated in (plain, plain + 1, plain + MODULUS, abs(plain - MODULUS)):
        block[148:156] = b"%06o\0 " % stated
        assert checked(bytes(block)) == (stated == plain)


def test_large_sums_are_computed_in_full() -> None:
    """Sums beyond the modulus of Adler-32 are computed in full; sums of signed bytes, as in some old tars, are accepted, too."""
    block = bytearray(b"\xff" * BLOCK)
    block[148:156] = b" " * 8
    plain = sum(block)
    signed = plain - 256 * (BLOCK - 8)
    assert plain > MODULUS > plain - MODULUS > signed
    for stated, holds in ((plain, True), (plain - MODULUS, False)):
        block[148:156] = b"%06o\0 " % stated
        assert checked(bytes(block)) == holds


@pytest.mark.parametrize("field", [b"0001234\0", b"001234\0 ", b" 1234 \0 ", b"1234\0999"])
def test_number_ends_at_last_digit(field: bytes) -> None:
    """A number ends at its last digit: NULs, spaces and anything after them are ignored."""
    assert number(field) == 0o1234
