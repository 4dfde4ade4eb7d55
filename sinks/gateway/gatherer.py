"""Streams of a feed: one compressed stream of SOIF, whole, by part, or changed since a mark or a time; those of the Gatherer.

A collector keeps the ETag of its last answer, and sends it as If-None-Match. With `A-IM: soif` (RFC 3229) the answer has only what
has changed: 226, as long as the mark is known. Otherwise everything is sent: 200.
"""

from __future__ import annotations

import re
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from pathlib import Path as FilePath
from typing import Annotated, BinaryIO, NamedTuple, TypeVar

from fastapi import APIRouter, HTTPException, Path, Query, Request
from fastapi.responses import Response, StreamingResponse

from sinks.feed.database import PARTS
from sinks.feed.mark import Mark, parse_mark, parse_since
from sinks.feed.reader import FeedReader
from sinks.feed.ready import ReadyStreams
from sinks.feed.templates import GATHERER, LISTING, MEDIA, template
from sinks.gateway.api import ANY, BAD, Responses
from sinks.gateway.file_sending import FileAnswer
from sinks.gateway.gateway import Gateway
from sinks.gateway.ports import CollectionError
from sinks.gateway.streams import LongAnswer, export_pieces

PIECE, SENT = 1 << 20, 256 << 10
"""Bytes that a thread makes at a time at least, and that are sent at a time at most: readers have `guard.PATIENCE` to take them."""
TURN = 1.0
"""Seconds after which the next piece of another stream is made."""
_TAG = re.compile(r'(?:W/)?"([^"]*)"')
Value = TypeVar("Value")

Part = Annotated[int, Path(ge=0, lt=PARTS, description="First hex digit of the OIDs, as a number.")]
Since = Annotated[str, Query(max_length=100, description="A mark, seconds since the epoch, or a time (ISO 8601).")]
Prefix = Annotated[str, Query(max_length=8_000, description="Beginning of the URLs that are wanted.")]
ANSWERS: Responses = BAD | {
    200: {"description": "Everything, or what `since` asks for.", "content": {MEDIA: {"schema": {"type": "string"}}}},
    226: {"description": "What has changed since the mark in If-None-Match, with `A-IM: soif`.", "content": {MEDIA: {}}},
    304: {"description": "Nothing has changed since the mark in If-None-Match."},
}

ANSWERS_OF_PARTS: Responses = {200: {"content": {LISTING: {}}}, 304: ANSWERS[304]}


class Wanted(NamedTuple):
    """What a request asks for."""

    part: int | None
    since: Mark | None
    """None: everything."""
    prefix: str
    delta: bool
    """Whether the mark comes from If-None-Match: the answer is 226."""

    @property
    def is_everything(self) -> bool:
        """Whether it is the whole stream."""
        return self.part is None and self.since is None and not self.prefix


class Source(NamedTuple):
    """What an answer is made from: an open reader, its mark, and the ready file of the stream, if there is one."""

    reader: FeedReader
    mark: Mark
    ready: BinaryIO | None

    def close(self) -> None:
        """Close the files."""
        self.reader.close()
        if self.ready is not None:
            self.ready.close()


Open = Callable[[], FeedReader]
"""Opens a feed that is whole. Raises CollectionError, ObjectError, NotFoundError, HTTPException."""


class Streams:
    """Answers the requests of collectors, for any feed."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._ready: dict[FilePath, ReadyStreams] = {}

    async def about(self, request: Request, opens: Open, kind: str = GATHERER, **said: str) -> Response:
        """Return the name of the Gatherer, the number of its summaries, and the mark of the last change; `said`: what else."""
        found = await self._ask(request, opens, lambda reader: reader.state())
        text = template(kind, **said, gatherer_name=found.gatherer, summaries=found.summaries, mark=found.mark)
        return Response(text, media_type="text/plain; charset=utf-8", headers=_tag(found.mark))

    async def parts(self, request: Request, opens: Open, query: str = "") -> Response:
        """Return the parts with their marks, as SOIF; their numbers of summaries are not known with a query."""
        found = await self._ask(request, opens, lambda reader: reader.state())
        if str(found.mark) in _tags(request):
            return Response(status_code=304, headers=_tag(found.mark))
        # As it was written, so that the parts of a listing are below it for those who compare URLs.
        end = f"?{request.url.query}" if query else ""
        head = template(GATHERER, gatherer_name=found.gatherer, summaries=None if query else found.summaries, mark=found.mark)
        listed = [
            template("PART", f"{one.part}{end}", mark=one.mark, summaries=None if query else one.summaries) for one in found.parts
        ]
        return Response(b"".join([head, *listed]), media_type=LISTING, headers=_tag(found.mark))

    async def answer(self, request: Request, opens: Open, part: int | None, since: str, prefix: str) -> Response:
        """Return the stream that is asked for."""
        given = _since(since)
        tags, delta = _tags(request), _takes_changes(request)

        def want(reader: FeedReader) -> tuple[Wanted, Source]:
            mark, known = reader.state().mark_of(part), None
            if given is not None:
                known = reader.known(given, part)
            elif delta:
                marks = (tag for each in tags if (tag := parse_mark(each)) is not None)
                known = next((one for one in marks if reader.known(one, part)), None)
            wanted = Wanted(part, known, prefix, delta=given is None and known is not None)
            is_kept = wanted.is_everything and reader.keeps
            return wanted, Source(reader, mark, self._kept(reader).open(reader.path, mark) if is_kept else None)

        wanted, source = await self._ask(request, opens, want, keep=True)
        try:
            if str(source.mark) in tags and not since:
                source.close()
                return Response(status_code=304, headers=_tag(source.mark))
            return self._stream(request, wanted, source)
        except BaseException:
            source.close()
            raise

    def _stream(self, request: Request, wanted: Wanted, source: Source) -> Response:
        """Return the answer with a stream, which closes its source; its pieces are made in a thread, one at a time."""
        stream = self._gateway.stream(request)

        def end() -> None:
            stream.end()
            source.close()

        headers = {**_tag(source.mark), "Content-Encoding": "gzip"}
        if source.ready is not None:
            return FileAnswer(source.ready, end, MEDIA, headers)
        if wanted.delta:
            headers |= {"IM": "soif", "Delta-Base": f'"{wanted.since}"'}
        pieces = self._pieces(wanted, source)

        def drop() -> None:
            stream.end()
            self._gateway.drop(pieces, source.close)

        answer = LongAnswer(_sliced(export_pieces(self._gateway, stream, b"", pieces)), drop, MEDIA, headers)
        answer.status_code = 226 if wanted.delta else 200
        return answer

    def _pieces(self, wanted: Wanted, source: Source) -> Iterator[bytes]:
        reader = source.reader
        if wanted.is_everything and reader.keeps:
            return self._kept(reader).kept(
                reader.path, source.mark, merged(reader.complete()), lambda: reader.state().mark == source.mark
            )
        if wanted.since is None and not wanted.prefix:
            return merged(reader.complete(wanted.part))
        return merged(reader.changes(wanted.since, wanted.part, wanted.prefix))

    def _kept(self, reader: FeedReader) -> ReadyStreams:
        return self._ready.setdefault(reader.path, ReadyStreams())

    async def _ask(self, request: Request, opens: Open, ask: Callable[[FeedReader], Value], *, keep: bool = False) -> Value:
        """Return what `ask` returns for a reader of the feed; `keep`: do not close it.

        Raises CollectionError, BusyError, and what opening it raises.
        """

        def asked() -> Value:
            kept = False
            reader = opens()
            try:
                found = ask(reader)
                kept = keep
            except OSError as error:
                raise CollectionError("the stream cannot be read now") from error
            finally:
                if not kept:
                    reader.close()
            return found

        return await self._gateway.slow(request, asked)


class GathererRoutes:
    """Answers requests for the Gatherer's database."""

    def __init__(self, gateway: Gateway) -> None:
        self._streams = Streams(gateway)
        self._opens: Open = lambda: gateway.collection.feed()  # noqa: PLW0108 - the tests hand in another collection

    def router(self) -> APIRouter:
        """Return the routes."""
        router = APIRouter(responses=ANY | {403: {"description": "The Broker that is served accepts only some summaries."}})
        add = router.add_api_route
        add("/gatherer", self.about, response_class=Response, responses={200: {"content": {"text/plain": {}}}})
        add("/gatherer/soif", self.whole, response_class=StreamingResponse, responses=ANSWERS)
        add("/gatherer/soif/", self.parts, response_class=Response, responses=ANSWERS_OF_PARTS)
        add("/gatherer/soif/{part}", self.part, response_class=StreamingResponse, responses=ANSWERS)
        return router

    async def about(self, request: Request) -> Response:
        """Return the name of the Gatherer, the number of its summaries, and the mark of the last change."""
        return await self._streams.about(request, self._opens)

    async def parts(self, request: Request) -> Response:
        """Return the parts with their marks, as SOIF."""
        return await self._streams.parts(request, self._opens)

    async def part(self, request: Request, part: Part, since: Since = "", prefix: Prefix = "") -> Response:
        """Return a sixteenth of the summaries as one stream."""
        return await self._streams.answer(request, self._opens, part, since, prefix)

    async def whole(self, request: Request, since: Since = "", prefix: Prefix = "") -> Response:
        """Return all summaries as one stream."""
        return await self._streams.answer(request, self._opens, None, since, prefix)


def merged(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Iterate over pieces of at least PIECE bytes each, but for the last, and for those that take longer than TURN."""
    waiting: list[bytes] = []
    size, begun = 0, time.monotonic()
    for piece in pieces:
        waiting.append(piece)
        size += len(piece)
        if size >= PIECE or time.monotonic() - begun > TURN:
            yield b"".join(waiting)
            waiting, size, begun = [], 0, time.monotonic()
    if waiting:
        yield b"".join(waiting)


async def _sliced(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes | memoryview]:
    """Iterate over pieces of SENT bytes at most, without copying them."""
    async for piece in pieces:
        view = memoryview(piece)
        for at in range(0, len(view), SENT):
            yield view[at : at + SENT]


def _tag(mark: Mark) -> Mapping[str, str]:
    return {"ETag": f'"{mark}"', "Vary": "A-IM, Authorization, Cookie"}


def _tags(request: Request) -> list[str]:
    """Return the entity tags that the client has (RFC 9110, 13.1.2)."""
    return [tag for value in request.headers.getlist("if-none-match") for tag in _TAG.findall(value)]


def _takes_changes(request: Request) -> bool:
    """Return whether the client accepts changes in place of everything (RFC 3229, 10.5.3)."""
    names = (name for value in request.headers.getlist("a-im") for name in value.split(","))
    return any(name.partition(";")[0].strip().lower() == "soif" for name in names)


def _since(text: str) -> Mark | int | None:
    """Return what `since` asks for; None: nothing. Raises HTTPException."""
    try:
        return parse_since(text) if text else None
    except ValueError:
        raise HTTPException(400, f"since: neither a mark nor a time: {text!r:.60}") from None
