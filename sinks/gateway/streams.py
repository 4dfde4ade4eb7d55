"""Long answers: sent piece by piece, counted while they are sent, and broken off if they cannot be completed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import BinaryIO

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from sinks.gateway.gateway import Gateway, Stream
from sinks.gateway.guard import BrokenOffError

PIECE = 65_536


class LongAnswer(StreamingResponse):
    """Answer of which `end` is called when it has been sent, or cannot be, even if it was never begun."""

    def __init__(
        self,
        pieces: AsyncIterator[bytes | memoryview] | Iterator[bytes],
        end: Callable[[], None],
        media_type: str,
        headers: Mapping[str, str],
    ) -> None:
        super().__init__(pieces, media_type=media_type, headers=headers)
        self._end = end

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the answer."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._end()


async def export_pieces(gateway: Gateway, stream: Stream, first: bytes | None, pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    """Iterate over the pieces of an export. Raises BrokenOffError."""
    piece = first
    while piece is not None:
        yield piece
        try:
            piece = await gateway.piece(stream, pieces)
        except Exception as error:
            raise BrokenOffError(f"the export cannot be continued: {error}") from error


def file_pieces(body: BinaryIO) -> Iterator[bytes]:
    """Iterate over the pieces of an open file. Raises BrokenOffError."""
    try:
        while piece := body.read(PIECE):
            yield piece
    except OSError as error:
        raise BrokenOffError(f"the object cannot be read on: {error}") from error
