"""Routes of searches in one Broker of several, and the page over all Brokers, whose search is sent to the best of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, Response
from pydantic import BaseModel

from processors.query import QueryError, parse
from processors.query.routing.in_views import parse_for_all
from processors.query.routing.merging import Answered
from processors.query.snippet import plain
from schemas.query import Every
from sinks.gateway.answers import NotFoundError
from sinks.gateway.api import ANY, BAD, MISSING, ranges
from sinks.gateway.brokers.ports import Brokers
from sinks.gateway.brokers.statistics import Name, StatisticsRoutes
from sinks.gateway.gateway import Gateway
from sinks.gateway.rendering import Pages
from sinks.gateway.state import MAX_TEXT

Text = Annotated[str, Query(max_length=MAX_TEXT, description="The query; empty: all.")]
Size = Annotated[int, Query(ge=0, le=100, description="Number of hits.")]
SHOWN = 20
"""Number of hits on the page."""


class BrokerHitModel(BaseModel):
    """A hit of one Broker. `snippet` is plain text; `marks` are the ranges in it that matched, in code points."""

    oid: str
    url: str
    title: str
    type: str
    score: float
    snippet: str
    marks: list[tuple[int, int]]
    digest: str
    """Digest of the content; empty if it is not known. Hits of equal digests are copies of each other."""


class BrokerSearchModel(BaseModel):
    """The best hits of a Broker. `total`: the number of matches."""

    total: int
    hits: list[BrokerHitModel]


class RoutedRoutes:
    """Answers searches over all Brokers of a gateway."""

    def __init__(self, gateway: Gateway, pages: Pages, brokers: Brokers) -> None:
        self._gateway, self._pages, self._brokers = gateway, pages, brokers

    def router(self) -> APIRouter:
        """Return the routes, with those of the statistics."""
        router = APIRouter(responses=ANY)
        StatisticsRoutes(self._gateway, self._brokers).add(router)
        router.add_api_route(
            "/api/brokers/{name}/search", self.search, response_model=BrokerSearchModel, responses=BAD | MISSING
        )  # fmt: skip
        shown: dict[str, Any] = {"response_class": HTMLResponse, "include_in_schema": False, "methods": ["GET", "HEAD"]}
        router.add_api_route("/brokers", self.page, **shown)
        return router

    async def search(self, request: Request, name: Name, q: Text = "", size: Size = 10) -> BrokerSearchModel:
        """Search one Broker: the best hits, with digests by which hits of several Brokers are compared."""
        try:
            views = await self._gateway.slow(request, lambda: self._brokers.views(name)) if "view:" in q.casefold() else None
            tree = parse(q, views) if q.strip() else Every()
            found = await self._gateway.ask(request, tree, lambda: self._brokers.search(name, tree, size))
        except KeyError:
            raise NotFoundError("there is no such Broker") from None
        return _model(found)

    async def page(self, request: Request, q: Text = "") -> Response:
        """Return the page with all Brokers; with a query, the hits of those that answer it best."""
        values: dict[str, Any] = {"text": q, "answer": None, "refused": ""}
        if q.strip():
            values |= await self._answer(request, q)
        facts = await self._gateway.slow(request, self._brokers.facts)
        return self._pages.page(request, "brokers.html", values | {"brokers": facts})

    async def _answer(self, request: Request, text: str) -> Mapping[str, Any]:
        try:
            tree, scope = parse_for_all(text)
            return {"answer": await self._gateway.routed(request, tree, lambda: self._brokers.routed(tree, SHOWN, scope))}
        except QueryError as error:
            return {"refused": error.message}


def _model(found: Answered) -> BrokerSearchModel:
    hits = []
    for at, hit in enumerate(found.hits):
        snippet, marks = ranges(hit.snippet)
        digest = found.digests[at] if found.digests else ""
        shown = BrokerHitModel(
            oid=hit.oid, url=hit.url, title=plain(hit.title), type=hit.type, score=hit.score,
            snippet=snippet, marks=marks, digest=digest,
        )  # fmt: skip
        hits.append(shown)
    return BrokerSearchModel(total=found.total, hits=hits)
