"""Routes of the list of Brokers and of the statistics of their words, from which other gateways route their searches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import Response
from pydantic import BaseModel

from processors.query.routing.in_views import has_views
from sinks.gateway.answers import NotFoundError
from sinks.gateway.brokers.ports import Brokers
from sinks.gateway.gateway import Gateway

Name = Annotated[str, Path(pattern=r"^[a-z0-9][a-z0-9-]{0,39}$", description="Name of a Broker.")]
Views = Annotated[list[str], Query(max_length=16, description="Paths of views: `has_views` tells which Brokers have all of them.")]
NONE: list[str] = []
MEDIA = "application/octet-stream"


class BrokerModel(BaseModel):
    """A Broker of this gateway."""

    name: str
    title: str
    summaries: int
    """Number of its summaries, without copies."""
    mark: str
    """Mark of the statistics of its words: equal ones have equal marks; empty: they are counted when they are asked for."""
    has_views: bool
    """Whether it has all views that the request names."""


class BrokersModel(BaseModel):
    """The Brokers of this gateway that have an index."""

    brokers: list[BrokerModel]


class StatisticsRoutes:
    """Answers requests about the Brokers of a gateway."""

    def __init__(self, gateway: Gateway, brokers: Brokers) -> None:
        self._gateway, self._brokers = gateway, brokers

    def add(self, router: APIRouter) -> None:
        """Add the routes to those of the API."""
        media = {200: {"content": {MEDIA: {"schema": {"type": "string", "format": "binary"}}}}}
        missing = {404: {"description": "There is no such Broker, or nothing is in it yet."}}
        router.add_api_route("/api/brokers", self.list, response_model=BrokersModel)
        found = {"response_class": Response, "responses": media | missing}
        router.add_api_route("/api/brokers/{name}/statistics", self.statistics, **found)  # type: ignore[arg-type]

    async def list(self, request: Request, view: Views = NONE) -> BrokersModel:
        """List the Brokers of this gateway."""
        facts = await self._gateway.slow(request, self._brokers.facts)
        having = {each.name for each in facts}
        if view:
            having = await self._gateway.slow(request, lambda: self._having(having, view))
        return BrokersModel(brokers=[BrokerModel(**each._asdict(), has_views=each.name in having) for each in facts])

    def _having(self, names: set[str], views: Sequence[str]) -> set[str]:
        """Return the Brokers that have all of some views."""
        return {name for name in names if has_views(self._brokers.views(name), views)}

    async def statistics(self, request: Request, name: Name) -> Response:
        """Return the document frequencies of a Broker's words, at most 256 kB (`processors/query/routing/statistics.py`)."""
        try:
            known = await self._gateway.slow(request, lambda: self._brokers.counted(name))
            if known is None:
                known = await self._gateway.counting(request, lambda: self._brokers.statistics(name))
        except KeyError:
            raise NotFoundError("there is no such Broker, or nothing is in it yet") from None
        return Response(known, media_type=MEDIA)
