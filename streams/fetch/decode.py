"""Decodes the content codings of HTTP (RFC 9110, 8.4) piece by piece, within limits.

Strategy: a decoder is asked for at most 64 kB at a time, so that a decompression bomb is detected when it has exceeded its limit
by little, before it fills the memory. One coding per body: a chain multiplies the expansion of a byte, and no server needs one.
"""

from __future__ import annotations

import sys
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

import brotli  # type: ignore[import-untyped]

from streams.fetch.answers import FetchError
from streams.fetch.settings import MIB

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

STEP = 65_536
MAX_MEMBERS = 64
"""Maximum members of a gzip body or frames of a zstd body: each costs a new decoder, even if it is empty."""
ZSTD_WINDOW = 23
"""Binary logarithm of the memory that a zstd body may require: 8 MB (RFC 9659)."""


class Decoder(Protocol):
    """Decodes received bytes into pieces of the body."""

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield the decoded pieces, each of about 64 kB at most. Raises ValueError for damaged input."""
        ...

    def ended(self) -> bool:
        """Return whether the end of the encoded stream was reached."""
        ...


class Identity:
    """The decoder of a body without content coding."""

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield the bytes unchanged."""
        yield data

    def ended(self) -> bool:
        """Return True: the framing of HTTP ends a plain body."""
        return True


class _Members(ABC):
    """Common part of gzip and zstd: consecutive members, decoders with `eof` and `unused_data`."""

    def __init__(self) -> None:
        self._decoder: Any = None
        self._members = 0
        self._ignore = False

    @abstractmethod
    def _new(self, data: bytes) -> Any:
        """Return a decoder for a member that begins with `data`, or None if no member begins there."""

    @abstractmethod
    def _pieces(self, data: bytes) -> Iterator[bytes]:
        """Yield the decoded pieces of `data`."""

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield the pieces of all members in order; data behind the last member is ignored, as RFC 1952 readers do."""
        while data and not self._ignore:
            if self._decoder is None or self._decoder.eof:
                if self._members == MAX_MEMBERS:
                    raise ValueError(f"more than {MAX_MEMBERS} members")
                self._decoder = self._new(data)
                self._members += 1
                if self._decoder is None:
                    self._ignore = True
                    return
            yield from self._pieces(data)
            data = self._decoder.unused_data if self._decoder.eof else b""

    def ended(self) -> bool:
        """Return whether the last member is complete; an empty body, which has none, counts as complete."""
        return self._ignore or self._decoder is None or bool(self._decoder.eof)


class Deflate(_Members):
    """gzip (RFC 1952), and deflate as servers send it: zlib's format (RFC 1950) or raw (RFC 1951)."""

    def __init__(self, *, gzip: bool) -> None:
        super().__init__()
        self._gzip = gzip

    def _new(self, data: bytes) -> Any:
        if self._gzip:
            return zlib.decompressobj(31) if not self._members or data.startswith(b"\x1f") else None
        if self._members:
            return None
        # RFC 1950, 2.2: method 8, and a header that is a multiple of 31; if only one byte has arrived, the method decides.
        bare = data[0] & 15 != 8 or (len(data) > 1 and (data[0] << 8 | data[1]) % 31)
        return zlib.decompressobj(-15 if bare else 15)

    def _pieces(self, data: bytes) -> Iterator[bytes]:
        try:
            while not self._decoder.eof:
                piece = self._decoder.decompress(data, STEP)
                data = self._decoder.unconsumed_tail
                if piece:
                    yield piece
                if not data and len(piece) < STEP:
                    return
        except zlib.error as error:
            raise ValueError(str(error)) from error


class Zstd(_Members):
    """zstd (RFC 8878)."""

    def _new(self, data: bytes) -> Any:
        return zstd.ZstdDecompressor(options={zstd.DecompressionParameter.window_log_max: ZSTD_WINDOW})

    def _pieces(self, data: bytes) -> Iterator[bytes]:
        try:
            while not self._decoder.eof:
                piece = self._decoder.decompress(data, max_length=STEP)
                data = b""
                if piece:
                    yield piece
                if self._decoder.eof or self._decoder.needs_input:
                    return
        except zstd.ZstdError as error:
            raise ValueError(str(error)) from error


class Brotli:
    """br (RFC 7932)."""

    def __init__(self) -> None:
        self._decoder = brotli.Decompressor()
        self._fed = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield the decoded pieces."""
        self._fed = True
        try:
            while not self._decoder.is_finished():
                piece = self._decoder.process(data, output_buffer_limit=STEP)
                data = b""
                if piece:
                    yield piece
                # The decoder accepts more input as soon as its own is used up, even if it still has output.
                if not piece and self._decoder.can_accept_more_data():
                    return
        except brotli.error as error:
            raise ValueError(str(error)) from error

    def ended(self) -> bool:
        """Return whether the stream is complete; an empty body counts as complete."""
        return not self._fed or bool(self._decoder.is_finished())


CODINGS: Mapping[str, Callable[[], Decoder]] = {
    "gzip": lambda: Deflate(gzip=True),
    "deflate": lambda: Deflate(gzip=False),
    "br": Brotli,
    "zstd": Zstd,
}
ACCEPT = ", ".join(CODINGS)


class Decoding:
    """Decodes the body of one response within limits on its size and its ratio."""

    def __init__(self, coding: str, max_body: int, max_ratio: int) -> None:
        """Select the decoder. `coding`: the Content-Encoding header. Raises FetchError for an unsupported coding."""
        names = [n for n in (part.strip().lower().removeprefix("x-") for part in coding.split(",")) if n not in ("", "identity")]
        if len(names) > 1 or (names and names[0] not in CODINGS):
            raise FetchError(f"content coding not supported: {coding}", retryable=False)
        self._name = names[0] if names else ""
        self._decoder = CODINGS[self._name]() if names else Identity()
        self._max_body = max_body
        self._max_ratio = max_ratio
        self.received = 0
        self.size = 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield the decoded pieces of the body. Raises FetchError for damaged input and for a body too large."""
        self.received += len(data)
        if self.received > self._max_body:
            raise FetchError(f"body larger than {self._max_body:,} bytes", retryable=False)
        pieces = self._decoder.feed(data)
        while True:
            try:
                piece = next(pieces, None)
            except ValueError as error:
                raise FetchError(f"damaged {self._name} body: {error}", retryable=False) from error
            if piece is None:
                return
            self.size += len(piece)
            self._check()
            yield piece

    def _check(self) -> None:
        if self.size > self._max_body:
            raise FetchError(f"body larger than {self._max_body:,} bytes when decoded", retryable=False)
        if self.size > MIB and self.size > self.received * self._max_ratio:
            raise FetchError(f"{self._name} bomb: unfolds to more than {self._max_ratio} times its bytes", retryable=False)

    def end(self) -> None:
        """Check that the encoded stream is complete after the last byte. Raises FetchError if it is truncated."""
        if not self._decoder.ended():
            raise FetchError(f"truncated {self._name} body", retryable=True)
