"""The blocks of a tar."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processors.essence.unnest.containers._tar_header import BLOCK, checked, number

MODULUS = 65_521
"""Of Adler-32."""


@given(st.integers(0, BLOCK), st.integers(0, 127), st.integers(0, 1 << 32))
def test_a_header_holds_if_its_checksum_is_the_sum_of_its_bytes(zeros: int, most: int, seed: int) -> None:
    """However many bytes are zero, and however large the others are: the sum that POSIX defines is accepted, and no other."""
    chance = random.Random(seed)
    block = bytearray(zeros) + bytearray(chance.choices((most // 2, most), k=BLOCK - zeros))
    block[148:156] = b" " * 8
    plain = sum(block)
    for stated in (plain, plain + 1, plain + MODULUS, abs(plain - MODULUS)):
        block[148:156] = b"%06o\0 " % stated
        assert checked(bytes(block)) == (stated == plain)


def test_large_bytes_come_to_no_other_sum() -> None:
    """Bytes whose sum is above what Adler-32 tells apart are summed in full; as signed bytes too, as some old tars did."""
    block = bytearray(b"\xff" * BLOCK)
    block[148:156] = b" " * 8
    plain = sum(block)
    signed = plain - 256 * (BLOCK - 8)
    assert plain > MODULUS > plain - MODULUS > signed
    for stated, holds in ((plain, True), (plain - MODULUS, False)):
        block[148:156] = b"%06o\0 " % stated
        assert checked(bytes(block)) == holds


@pytest.mark.parametrize("field", [b"0001234\0", b"001234\0 ", b" 1234 \0 ", b"1234\0999"])
def test_a_number_ends_where_its_digits_do(field: bytes) -> None:
    """NULs and spaces behind a number are none of it, nor is what follows them."""
    assert number(field) == 0o1234
