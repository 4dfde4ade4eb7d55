from __future__ import annotations

import contextlib
import gzip
import sys
import zlib
from collections.abc import Callable

import brotli  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.fetch.answers import FetchError
from streams.fetch.decode import CODINGS, Decoding

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd


def bare(data: bytes) -> bytes:
    """Compress to raw deflate (RFC 1951): no header, no checksum."""
    return zlib.compress(data)[2:-4]


ENCODERS: list[tuple[str, Callable[[bytes], bytes]]] = [
    ("", bytes),
    ("identity", bytes),
    ("gzip", gzip.compress),
    ("x-gzip", gzip.compress),
    ("gzip", lambda data: gzip.compress(data[:10]) + gzip.compress(data[10:])),
    ("gzip", lambda data: gzip.compress(data) + bytes(20)),
    ("deflate", zlib.compress),
    ("deflate", bare),
    ("br", brotli.compress),
    ("zstd", zstd.compress),
    ("zstd", lambda data: zstd.compress(data[:10]) + zstd.compress(data[10:])),
]


def unfold(coding: str, data: bytes, step: int) -> bytes:
    """Decode a body that arrives in pieces of `step` bytes."""
    decoding = Decoding(coding, 10_000_000, 100_000)
    body = b"".join(piece for at in range(0, len(data), step) for piece in decoding.feed(data[at : at + step]))
    decoding.end()
    return body


@pytest.mark.parametrize("case", ENCODERS)
@given(body=st.binary(max_size=3_000), step=st.sampled_from([1, 7, 65_536]))
def test_encoded_bodies_decode_to_the_original(case: tuple[str, Callable[[bytes], bytes]], body: bytes, step: int) -> None:
    """Every encoded body is decoded to the original, fed whole or byte by byte."""
    coding, encoder = case
    if encoder is bare and step == 1:
        step = 2  # a single byte does not distinguish raw deflate from zlib's format
    assert unfold(coding, encoder(body), step) == body


@pytest.mark.parametrize("coding", CODINGS)
def test_decoded_pieces_are_small(coding: str) -> None:
    """A highly compressed body is decoded in pieces of about 64 kB."""
    body = bytes(3_000_000)
    encoded = {"gzip": gzip.compress, "deflate": zlib.compress, "br": brotli.compress, "zstd": zstd.compress}[coding](body)
    decoding = Decoding(coding, 10_000_000, 1_000_000)
    pieces = list(decoding.feed(encoded))
    decoding.end()
    assert b"".join(pieces) == body
    assert max(map(len, pieces)) <= 4 * 65_536


@pytest.mark.parametrize("coding", CODINGS)
@given(data=st.binary(min_size=1, max_size=200))
def test_random_bytes_are_a_failure_or_a_body(coding: str, data: bytes) -> None:
    """Random bytes give a FetchError or a body, and no other exception."""
    with contextlib.suppress(FetchError):
        assert isinstance(unfold(coding, data, 50), bytes)


@pytest.mark.parametrize("coding", CODINGS)
def test_empty_body_decodes_to_empty(coding: str) -> None:
    """An empty body decodes to an empty one, whatever its Content-Encoding."""
    assert unfold(coding, b"", 1) == b""
