"""Routes of the pages. Each state of a page is a URL, and none needs the script: it asks for parts of the same pages."""

from __future__ import annotations

import time
from typing import Annotated
from urllib.parse import parse_qs

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response

from processors.query import QueryError, unparse
from processors.query.language import TABLE
from schemas.query import Or
from schemas.records import Summary
from sinks.gateway.answers import ALL, Answer, NotFoundError, Searcher, Wanted, container
from sinks.gateway.brokers.fallback import completion
from sinks.gateway.brokers.ports import Brokers
from sinks.gateway.export import UnwritableError, soif
from sinks.gateway.gateway import Gateway
from sinks.gateway.guard import COOKIE, is_token, session
from sinks.gateway.objects import object_body
from sinks.gateway.rendering import Pages
from sinks.gateway.state import read

OID = r"^[0-9a-f]{64}$"
Oid = Annotated[str, Path(pattern=OID)]
MAX_FORM = 8_192
"""Maximum length of a form in bytes."""
REMEMBERED = 30 * 86_400
"""Seconds that a login is remembered."""


class PageRoutes:
    """Answers the requests for pages."""

    def __init__(self, gateway: Gateway, pages: Pages, brokers: Brokers | None = None) -> None:
        self._gateway, self._pages, self._brokers = gateway, pages, brokers

    def router(self) -> APIRouter:
        """Return the routes."""
        router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)
        for path, answer in (
            ("/", self.search),
            ("/results", self.results),
            ("/facets", self.facets),
            ("/expert", self.expert),
            ("/summary/{oid}", self.summary),
            ("/summary/{oid}/soif", self.soif),
            ("/object/{oid}", self.object),
            ("/help", self.help),
            ("/status", self.status),
            ("/why", self.why),
            ("/login", self.login),
        ):
            router.add_api_route(path, answer, methods=["GET", "HEAD"])
        router.add_api_route("/login", self.log_in, methods=["POST"])
        return router

    async def search(self, request: Request) -> Response:
        """Return the search page: the form, and the answer to what its URL asks for."""
        return await self._answered(request, "search.html", ALL)

    async def results(self, request: Request) -> Response:
        """Return the part of the search page with the hits."""
        return await self._answered(request, "_results.html", Wanted(facets=False))

    async def facets(self, request: Request) -> Response:
        """Return the part of the search page with the facets."""
        return await self._answered(request, "_facets.html", Wanted(hits=False, views=True))

    async def expert(self, request: Request) -> Response:
        """Return the page that shows what becomes of a query."""
        return await self._answered(request, "expert.html", Wanted(facets=False, expert=True))

    async def _answered(self, request: Request, template: str, wanted: Wanted) -> Response:
        began = time.monotonic()
        state, refused = read(request.query_params.multi_items()), ""
        answer: Answer | None = None
        try:
            answer = await self._gateway.search(request, lambda searcher: searcher.answer(state, wanted), state)
        except QueryError as error:
            refused = error.message
        behind = await completion(self._gateway, self._brokers, request, answer) if wanted.hits else None
        values = {"state": state, "answer": answer, "refused": refused, "seconds": time.monotonic() - began, "behind": behind}
        return self._pages.page(request, template, values | {"tree": _written(answer)})

    async def summary(self, request: Request, oid: Oid) -> Response:
        """Return the page of a whole summary."""
        found, copies = await self._gateway.search(request, lambda searcher: _with_copies(searcher, oid))
        try:
            written = soif(found).decode("utf-8", "replace")
        except UnwritableError as error:
            written = str(error)
        values = {"summary": found, "copies": copies, "container": container(found.shown_url), "soif": written}
        return self._pages.page(request, "summary.html", values)

    async def soif(self, request: Request, oid: Oid) -> Response:
        """Return a summary as SOIF."""
        found = await self._gateway.search(request, lambda searcher: searcher.summary(oid))
        return PlainTextResponse(soif(found), headers={"Content-Disposition": f'inline; filename="{oid}.soif"'})

    async def object(self, request: Request, oid: Oid) -> Response:
        """Return the bytes of an object or a member, to be saved as a file."""
        return await object_body(self._gateway, request, oid)

    async def help(self, request: Request) -> Response:
        """Return the page about the query language."""
        return self._pages.page(request, "help.html", {"table": TABLE})

    async def status(self, request: Request, checks: Annotated[bool, Query()] = False) -> Response:
        """Return the page about the pipeline; with `checks`, it also runs those of `harvest doctor`."""
        collection = self._gateway.collection
        found = await self._gateway.slow(request, collection.status)
        findings = await self._gateway.slow(request, lambda: list(collection.findings())) if checks else None
        return self._pages.page(request, "status.html", {"status": found, "findings": findings})

    async def why(self, request: Request, url: Annotated[str, Query(max_length=8_000)] = "") -> Response:
        """Return the page with the history of a URL."""
        events = await self._gateway.history(request, url) if url else ()
        return self._pages.page(request, "why.html", {"url": url, "events": events})

    async def login(self, request: Request, back: Annotated[str, Query(alias="next")] = "/") -> Response:
        """Return the page that asks for the token."""
        return self._pages.page(request, "login.html", {"back": local_path(back), "wrong": False})

    async def log_in(self, request: Request) -> Response:
        """Give a cookie to who knows the token."""
        form = await read_form(request)
        back = local_path(form.get("next", "/"))
        token = self._gateway.options.token
        if not token or not is_token(self._gateway.options, form.get("token", "").strip().encode()):
            return self._pages.page(request, "login.html", {"back": back, "wrong": True}, 403)
        root = request.scope.get("root_path", "")
        response = RedirectResponse(f"{root}{back}", 303)
        secure = request.url.scheme == "https"
        response.set_cookie(COOKIE, session(token), REMEMBERED, path=root or "/", secure=secure, httponly=True, samesite="lax")
        return response


def _written(answer: Answer | None) -> str:
    """Return the query of an answer as text."""
    return unparse(answer.asked.tree) if answer is not None and answer.asked.tree != Or(()) else ""


def _with_copies(searcher: Searcher, oid: str) -> tuple[Summary, tuple[str, ...]]:
    found = searcher.summary(oid)
    if not found.copy_of:
        return found, found.copies
    try:
        return found, (searcher.summary(found.copy_of).shown_url,)
    except NotFoundError:
        # Removed: until dedup chooses another one, a copy has no canonical summary.
        return found, ()


def local_path(path: str) -> str:
    """Return a path of this gateway; `/` for anything that a browser might take for another site."""
    return path if path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable() else "/"


async def read_form(request: Request, limit: int = MAX_FORM) -> dict[str, str]:
    """Return the fields of a form; none of one that is longer than `limit` bytes."""
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > limit:
            return {}
    return {name: values[-1] for name, values in parse_qs(body.decode("utf-8", "replace")).items()}
