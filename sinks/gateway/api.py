"""Routes of the API. It is strict where the pages are lenient: a mistake in a query is an error with its place."""

from __future__ import annotations

import re
from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Path, Query, Request
from fastapi.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse

from processors.query import unparse
from processors.query.snippet import CLOSE, OPEN
from schemas.jsonform import to_json
from sinks.gateway import models
from sinks.gateway.answers import Answer, ShownHit, Wanted
from sinks.gateway.export import ENDING, MEDIA, export, soif
from sinks.gateway.feed import description, feed, newest
from sinks.gateway.gateway import Gateway
from sinks.gateway.state import MAX_HIT
from sinks.gateway.streams import LongAnswer, export_pieces

Oid = Annotated[str, Path(pattern=r"^[0-9a-f]{64}$", description="OID of a summary.")]
Word = Annotated[str, Query(max_length=400, description="Text that a user has typed so far.")]
Limit = Annotated[int, Query(ge=1, le=100)]
Responses = dict[int | str, dict[str, Any]]


def error_described(description: str) -> dict[str, Any]:
    """Describe an error; it is JSON, whatever the type of the answer would be."""
    return {"description": description, "content": {"application/json": {"schema": models.ErrorModel.model_json_schema()}}}


BAD: Responses = {400: error_described("The query, or a refinement, is none.")}
MISSING: Responses = {404: error_described("There is no such summary or event.")}
UNWRITABLE: Responses = {409: error_described("The summary cannot be written so.")}
ANY: Responses = {
    401: {"description": "A token is needed."},
    414: {"description": "The address is too long."},
    422: error_described("A parameter is impossible or unknown."),
    429: {"description": "Too many requests of this client."},
    431: {"description": "The head of the request is too long."},
    503: error_described("Too many searches, or the index or the log cannot be read now."),
}
_MARKS = re.compile(f"[{OPEN}{CLOSE}]")
_LAST = re.compile(r"[^\s()\":]+$")
"""The word that is being typed."""


class ApiRoutes:
    """Answers the requests of programs."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    def router(self) -> APIRouter:
        """Return the routes."""
        router = APIRouter(responses=ANY)
        add = router.add_api_route
        add("/api/search", self.search, response_model=models.SearchModel, responses=BAD | MISSING)
        add("/api/complete", self.complete, response_model=models.CompletionModel)
        add("/api/views", self.views, response_model=models.ViewsModel, responses=BAD | MISSING)
        add("/api/summary/{oid}", self.summary, response_model=models.SummaryModel, responses=MISSING)
        add("/api/summary/{oid}/soif", self.soif, response_class=PlainTextResponse, responses=MISSING | UNWRITABLE)
        add("/api/export", self.export, response_class=StreamingResponse, responses=BAD | MISSING | _media())
        add("/api/status", self.status, response_model=models.StatusModel)
        add("/api/why", self.why, response_model=models.HistoryModel, responses=MISSING)
        add("/feed", self.feed, include_in_schema=False)
        add("/opensearch.xml", self.description, include_in_schema=False)
        add("/suggestions", self.suggestions, include_in_schema=False)
        return router

    async def search(self, request: Request, asked: Annotated[models.SearchParameters, Query()]) -> models.SearchModel:
        """Search: a page of hits, and how many there are of each type, site, language, author, year and gatherer."""
        if asked.page * asked.size > MAX_HIT:
            raise HTTPException(422, f"page: hits beyond the first {MAX_HIT:,} are in /api/export only")
        state = asked.state(asked.sort, asked.size, asked.page)
        answer = await self._gateway.search(
            request, lambda searcher: searcher.answer(state, Wanted(facets=asked.facets, strict=True)), state
        )  # fmt: skip
        return search_model(answer)

    async def views(self, request: Request, asked: Annotated[models.Parameters, Query()]) -> models.ViewsModel:
        """Count the hits in each view of the Broker, by the tags of the summaries; views without a hit are left out.

        A view that the query begins with is left out of the query, so that each number is what `view:PATH` in its place finds.
        """
        state = asked.state()
        found = await self._gateway.search(request, lambda searcher: searcher.views(state, strict=True), state)
        return models.ViewsModel(views=[models.ViewModel(path=path, total=total) for path, total in sorted(found)])

    async def complete(self, request: Request, q: Word = "", limit: Limit = 10) -> models.CompletionModel:
        """Complete the last word of a query that is being typed."""
        words = await self._completed(request, q, limit)
        return models.CompletionModel(words=[models.WordModel(word=word, total=total) for word, total in words])

    async def _completed(self, request: Request, typed: str, limit: int) -> list[tuple[str, int]]:
        last = _LAST.search(typed)
        if last is None:
            return []
        return await self._gateway.search(request, lambda searcher: searcher.completed(last[0], limit))

    async def summary(self, request: Request, oid: Oid) -> Response:
        """Return a whole summary."""
        return JSONResponse(to_json(await self._gateway.search(request, lambda searcher: searcher.summary(oid))))

    async def soif(self, request: Request, oid: Oid) -> Response:
        """Return a whole summary as SOIF."""
        found = await self._gateway.search(request, lambda searcher: searcher.summary(oid))
        return PlainTextResponse(soif(found))

    async def export(self, request: Request, asked: Annotated[models.ExportParameters, Query()]) -> Response:
        """Return all matches as one stream, in order of OID, copies included."""
        state = asked.state()
        tree = await self._gateway.search(request, lambda searcher: searcher.asked(state, strict=True).tree, state)
        stream = self._gateway.stream(request)
        pieces = export(self._gateway.indexes, tree, asked.format, asked.compression)
        try:
            # The first piece tells whether the index answers at all.
            first = await self._gateway.piece(stream, pieces)
        except BaseException:
            stream.end()
            raise
        name = f"harvest.{asked.format}{ENDING[asked.compression]}"
        media = MEDIA[asked.format] if asked.compression == "none" else "application/octet-stream"
        sent = export_pieces(self._gateway, stream, first, pieces)
        return LongAnswer(sent, stream.end, media, {"Content-Disposition": f'attachment; filename="{name}"'})

    async def status(self, request: Request) -> Response:
        """Return what the pipeline is doing: roots, hosts, lag of each stage, rejections by reason."""
        found = await self._gateway.slow(request, self._gateway.collection.status)
        lists = {name: [one._asdict() for one in getattr(found, name)] for name in ("roots", "hosts", "stages", "rejections")}
        return JSONResponse({"gatherer": found.gatherer, "run": found.run, **lists, "more": list(found.more)})

    async def why(self, request: Request, url: Annotated[str, Query(min_length=1, max_length=8_000)]) -> Response:
        """Return every event that concerned a URL (of a member: object#path), in order."""
        events = await self._gateway.history(request, url)
        if not events:
            return JSONResponse({"error": "nothing is known of this URL"}, 404)
        return JSONResponse({"events": [event._asdict() for event in events]})

    async def feed(self, request: Request, asked: Annotated[models.Parameters, Query()]) -> Response:
        """Return the newest matches of a query as an Atom feed."""
        state = newest(asked.state(size=50))
        wanted = Wanted(facets=False, strict=True)
        answer = await self._gateway.search(request, lambda searcher: searcher.answer(state, wanted), state)
        return Response(feed(answer, base(request)), media_type="application/atom+xml")

    async def description(self, request: Request) -> Response:
        """Return the description with which a browser adds this search."""
        return Response(description(base(request)), media_type="application/opensearchdescription+xml")

    async def suggestions(self, request: Request, q: Word = "") -> Response:
        """Return completions of a query in the form that browsers ask for."""
        head = _LAST.sub("", q)
        return JSONResponse([q, [head + word for word, _ in await self._completed(request, q, 8)]])


def search_model(answer: Answer) -> models.SearchModel:
    """Return an answer as the API states it."""
    return models.SearchModel(
        query=unparse(answer.asked.tree),
        total=answer.total,
        hits=[_hit(hit) for hit in answer.hits],
        facets={name: [models.FacetModel(value=v, total=total) for v, total in each] for name, each in answer.facets.items()},
        left_out=list(answer.left_out),
        spelling=answer.spelling,
    )


def _hit(hit: ShownHit) -> models.HitModel:
    snippet, marks = ranges(hit.snippet)
    return models.HitModel(
        oid=hit.oid, url=hit.url, title=_MARKS.sub("", hit.title), type=hit.type, date=hit.date, score=hit.score,
        snippet=snippet, marks=marks, attributes={name: _MARKS.sub("", text) for name, text in hit.attributes},
        copies=[url for url, _ in hit.copies], copies_count=hit.copies_count,
    )  # fmt: skip


def ranges(marked: str) -> tuple[str, list[tuple[int, int]]]:
    """Return a text without its marks, and the ranges that they enclose, in code points."""
    found: list[tuple[int, int]] = []
    text = ""
    for at, piece in enumerate(_MARKS.split(marked)):
        if at % 2:
            found.append((len(text), len(text) + len(piece)))
        text += piece
    return text, found


def base(request: Request) -> str:
    """Return the URL of the gateway as this client names it, without a slash at its end."""
    return f"{request.url.scheme}://{request.headers['host']}{request.scope.get('root_path', '')}"


def _media() -> Responses:
    kinds = [media.partition(";")[0] for media in MEDIA.values()]
    return {200: {"content": {kind: {"schema": {"type": "string"}} for kind in (*kinds, "application/octet-stream")}}}
