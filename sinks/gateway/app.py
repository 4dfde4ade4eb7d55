"""The application: routes, the guard around them, and what becomes of errors."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from importlib.resources import files
from typing import Any
from urllib.parse import unquote

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Receive, Scope, Send

from sinks.gateway.admin.ports import Administration
from sinks.gateway.admin.routes import AdminRoutes
from sinks.gateway.api import ApiRoutes
from sinks.gateway.brokers.ports import Brokers
from sinks.gateway.brokers.registry import Registry, RegistryRoutes
from sinks.gateway.brokers.routed import RoutedRoutes
from sinks.gateway.brokers.streams import StreamRoutes
from sinks.gateway.explanations import HANDLED, explained
from sinks.gateway.gateway import Gateway
from sinks.gateway.gatherer import GathererRoutes
from sinks.gateway.guard import REGISTRY, Guard
from sinks.gateway.metrics import CONTENT_TYPE
from sinks.gateway.options import GatewayOptions
from sinks.gateway.pages import PageRoutes
from sinks.gateway.ports import Collection, OpenIndex
from sinks.gateway.rendering import Pages

DAY = 86_400
PROGRAMS = ("/api/", "/gatherer", "/brokers/", REGISTRY)
"""Beginnings of the paths that programs ask for."""


class RootPath:
    """ASGI middleware for a gateway below a path: proxies may pass that path on, or take it off."""

    def __init__(self, app: ASGIApp, root_path: str) -> None:
        self._app, self._root = app, unquote(root_path)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; its path begins with the root path from here on."""
        if scope["type"] == "http" and self._root:
            path = scope["path"]
            whole = path if path == self._root or path.startswith(f"{self._root}/") else self._root + path
            scope = {**scope, "root_path": self._root, "path": whole}
        await self._app(scope, receive, send)


def application(
    options: GatewayOptions,
    open_index: OpenIndex,
    collection: Collection,
    brokers: Brokers | None = None,
    administration: Administration | None = None,
    registry: Registry | None = None,
) -> ASGIApp:
    """Return the application of a gateway.

    `brokers`: all of its Brokers, None: it has no pages and searches over all of them. It has an administration page if
    `administration` and the token of that are given, and servers can register there if `registry` and a token are.
    """
    gateway = Gateway(options, open_index, collection)
    pages = Pages(options, has_brokers=brokers is not None)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        gateway.close()

    app = FastAPI(
        title="Harvest", version=version("harvest"), summary="Search the summaries of a Harvest Broker.",
        docs_url=None, redoc_url=None, lifespan=lifespan,
    )  # fmt: skip
    app.include_router(PageRoutes(gateway, pages, brokers).router())
    app.include_router(ApiRoutes(gateway).router())
    app.include_router(GathererRoutes(gateway).router())
    if administration is not None and options.admin:
        app.include_router(AdminRoutes(gateway, pages, administration).router())
    if registry is not None and options.token and options.registry:
        app.include_router(RegistryRoutes(gateway, registry).router())
    if brokers is not None:
        app.include_router(RoutedRoutes(gateway, pages, brokers).router())
        app.include_router(StreamRoutes(gateway, brokers).router())
    _add_probes(app, gateway)
    _add_errors(app, pages)
    app.mount("/static", _Static(directory=str(files("sinks.gateway").joinpath("static"))))
    return RootPath(Guard(app, options, gateway.metrics), options.root_path)


class _Static(StaticFiles):
    """Static files; their addresses name their content, so that they may be kept."""

    def file_response(self, *args: Any, **extra: Any) -> Response:
        response = super().file_response(*args, **extra)
        response.headers["Cache-Control"] = f"public, max-age={30 * DAY}"
        return response


def _add_probes(app: FastAPI, gateway: Gateway) -> None:
    @app.get("/livez", include_in_schema=False)
    async def alive() -> Response:
        return PlainTextResponse("ok\n")

    @app.get("/readyz", include_in_schema=False)
    async def ready() -> Response:
        reason = await gateway.is_ready()
        return PlainTextResponse(f"{reason or 'ok'}\n", 503 if reason else 200)

    @app.get("/metrics", include_in_schema=False)
    async def metrics() -> Response:
        return Response(gateway.metrics.text(), media_type=CONTENT_TYPE)


def _add_errors(app: FastAPI, pages: Pages) -> None:
    """Turn errors into answers: JSON for programs, and pages elsewhere."""

    async def answer(request: Request, error: Exception) -> Response:
        found = explained(error)
        path = request.url.path.removeprefix(request.scope.get("root_path", ""))
        response: Response
        if path.startswith(PROGRAMS):
            position = {} if found.position is None else {"position": found.position}
            response = JSONResponse({"error": found.message} | position, found.status)
        else:
            response = pages.page(request, "error.html", {"status": found.status, "message": found.message}, found.status)
        response.headers.update(found.headers)
        return response

    for kind in HANDLED:
        app.add_exception_handler(kind, answer)
