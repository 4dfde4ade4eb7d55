"""Compression: a stream of ready pieces is one member that every reader of gzip accepts."""

from __future__ import annotations

import zlib

from hypothesis import given
from hypothesis import strategies as st

from sinks.feed.compression import GzipStream, content, piece


@given(st.lists(st.tuples(st.booleans(), st.binary(max_size=300))))
def test_any_order_of_pieces(parts: list[tuple[bool, bytes]]) -> None:
    """Ready pieces and text, in any order, give one member with the right checksum and length."""
    stream = GzipStream()
    sent = b"".join([*(stream.ready(piece(data)) if ready else stream.text(data) for ready, data in parts), stream.end()])
    reader = zlib.decompressobj(31)
    assert reader.decompress(sent) == b"".join(data for _, data in parts)
    assert reader.eof
    assert not reader.unused_data


@given(st.binary(max_size=3_000))
def test_content_of_a_piece(data: bytes) -> None:
    """A piece has its data."""
    assert content(piece(data).data) == data


def test_large_pieces() -> None:
    """The checksum is right for lengths of all magnitudes."""
    stream = GzipStream()
    parts = [bytes([number % 251]) * (1 << number) for number in range(20)]
    sent = b"".join([*(stream.ready(piece(data)) for data in parts), stream.end()])
    assert zlib.decompress(sent, 31) == b"".join(parts)
