"""Routes of the streams of Brokers: the archive of a Broker for other Gatherers, whole, or what matches a query (bulk query).

Streams, parts, marks and changes are those of the Gatherer's database (`sinks/gateway/gatherer.py`). With `q`, a stream has what
matches; what has changed since the mark and does not match, is stated as removed (`sinks/feed/choosing.py`).
"""

from __future__ import annotations

from contextlib import closing
from typing import Annotated

from fastapi import APIRouter, HTTPException, Query, Request
from fastapi.responses import Response, StreamingResponse

from processors.query import QueryError, parse, predicate, unparse
from processors.query.forms import Analyzer
from sinks.feed.choosing import ChoosingReader
from sinks.feed.reader import FeedReader
from sinks.gateway.answers import check_budget
from sinks.gateway.api import ANY, BAD, MISSING
from sinks.gateway.brokers.ports import Brokers, StreamSource
from sinks.gateway.brokers.statistics import Name
from sinks.gateway.gateway import Gateway
from sinks.gateway.gatherer import ANSWERS, ANSWERS_OF_PARTS, Part, Prefix, Since, Streams
from sinks.gateway.ports import ObjectError
from sinks.gateway.state import MAX_TEXT

BROKER = "BROKER"
"""Type of the template that describes a Broker."""
Chosen = Annotated[str, Query(max_length=MAX_TEXT, description="A query: only what matches it; empty: everything.")]


class StreamRoutes:
    """Answers requests for the streams of Brokers."""

    def __init__(self, gateway: Gateway, brokers: Brokers) -> None:
        self._gateway, self._brokers, self._streams = gateway, brokers, Streams(gateway)

    def router(self) -> APIRouter:
        """Return the routes."""
        router = APIRouter(responses=ANY | MISSING)
        add = router.add_api_route
        add("/brokers/{name}", self.about, response_class=Response, responses={200: {"content": {"text/plain": {}}}})
        add("/brokers/{name}/soif", self.whole, response_class=StreamingResponse, responses=ANSWERS)
        add("/brokers/{name}/soif/", self.parts, response_class=Response, responses=BAD | ANSWERS_OF_PARTS)
        add("/brokers/{name}/soif/{part}", self.part, response_class=StreamingResponse, responses=ANSWERS)
        return router

    async def about(self, request: Request, name: Name) -> Response:
        """Return name and title of a Broker, the number of its summaries, and the mark of the last change."""
        source = await self._gateway.slow(request, lambda: self._source(name))
        return await self._streams.about(request, source.open, BROKER, broker_name=name, title=source.title)

    async def parts(self, request: Request, name: Name, q: Chosen = "") -> Response:
        """Return the parts of a Broker's archive with their marks, as SOIF."""
        return await self._streams.parts(request, lambda: self._open(name, q), q.strip())

    async def part(
        self, request: Request, name: Name, part: Part, since: Since = "", prefix: Prefix = "", q: Chosen = ""
    ) -> Response:
        """Return a sixteenth of the summaries of a Broker as one stream."""
        return await self._streams.answer(request, lambda: self._open(name, q), part, since, prefix)

    async def whole(self, request: Request, name: Name, since: Since = "", prefix: Prefix = "", q: Chosen = "") -> Response:
        """Return all summaries of a Broker as one stream."""
        return await self._streams.answer(request, lambda: self._open(name, q), None, since, prefix)

    def _source(self, name: str) -> StreamSource:
        try:
            return self._brokers.stream(name)
        except KeyError:
            raise ObjectError("there is no such Broker, or it has no stream (stream = true in its definition)", 404) from None

    def _open(self, name: str, text: str) -> FeedReader:
        """Return a reader of a Broker's feed. Raises ObjectError, CollectionError, and HTTPException for a wrong query."""
        source, text = self._source(name), text.strip()
        if not text:
            return source.open()
        try:
            tree = parse(text, source.views() if "view:" in text.casefold() else None)
            check_budget(tree, self._gateway.options.budget)
            matches = predicate(tree, Analyzer(source.languages))
        except QueryError as error:
            raise HTTPException(400, f"q: {error.line(text)}") from None
        with closing(source.open()) as whole:
            return ChoosingReader(whole, text, f"{unparse(tree)}\n{' '.join(source.languages)}", matches)
