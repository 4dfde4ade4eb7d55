"""Routes of the administration page: each page, and each action as a form that is posted, redirects, and is shown with a message.

Laws:
- Nothing but the login is answered without a session's cookie or the token as a bearer; the cookie of the search pages is neither.
- An action of a session needs a form of that session (its token) and an Origin that is ours. A program with the bearer needs no
  form token, since no browser adds that header for another site; a foreign Origin is refused all the same.
- Every action that is asked for is in the journal, also one that is refused.
- A user's mistake is one line on the form again; nothing is changed then.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode, urlsplit

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response

from sinks.gateway.admin.actions import ACTIONS, Ask
from sinks.gateway.admin.description import description
from sinks.gateway.admin.journal import Journal
from sinks.gateway.admin.ports import Administration, AdministrationError
from sinks.gateway.admin.session import LIFETIME, Sessions
from sinks.gateway.explanations import explained
from sinks.gateway.gateway import Gateway
from sinks.gateway.guard import ADMIN, client_of, presented
from sinks.gateway.pages import local_path, read_form
from sinks.gateway.rendering import Pages

COOKIE = "harvest-admin"
MAX_FORM = 65_536
"""Maximum length of a form in bytes."""
MAX_URL = 8_000
"""Maximum characters of a URL whose history is asked for."""
PAGES = ("roots", "brokers", "views", "rejected", "registrations", "log")
FILLED = {"views": ("broker", "path", "title", "query")}
"""Fields of the form of a page that its URL can fill in, as links on the search page do."""
HEADERS = {
    # With no-referrer, as on the other pages, browsers send `Origin: null` with a form.
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
}

FOREIGN = "this form was sent by another site, or the proxy does not pass the browser's Host on"

Answer = Callable[[Request], Awaitable[Response]]


class Visit(NamedTuple):
    """A request of somebody who is logged in."""

    request: Request
    cookie: str
    """Cookie of the session; empty for a program that has the token as a bearer."""


class AdminRoutes:
    """Answers the requests for the administration page. The gateway has a token for it."""

    def __init__(self, gateway: Gateway, pages: Pages, port: Administration, sessions: Sessions | None = None) -> None:
        self._gateway, self._pages, self._port = gateway, pages, port
        self._sessions = sessions or Sessions(gateway.options.admin_token)
        self._journal = Journal(port.log)

    def router(self) -> APIRouter:
        """Return the routes."""
        pages = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)
        seen = ["GET", "HEAD"]
        pages.add_api_route(ADMIN, self._page(self._overview), methods=seen)
        pages.add_api_route(f"{ADMIN}/why", self._page(self._why), methods=seen)
        pages.add_api_route(f"{ADMIN}/roots/remove", self._page(self._confirm), methods=seen)
        for name in PAGES:
            pages.add_api_route(f"{ADMIN}/{name}", self._page(self._listed(name)), methods=seen)
        pages.add_api_route(f"{ADMIN}/login", self.login, methods=seen)
        pages.add_api_route(f"{ADMIN}/login", self.log_in, methods=["POST"])
        pages.add_api_route(f"{ADMIN}/logout", self.log_out, methods=["POST"])
        router = APIRouter()
        router.include_router(pages)
        for ask in ACTIONS:
            router.add_api_route(f"{ADMIN}/{ask.page}/{ask.name}", self._action(ask), methods=["POST"], **description(ask))
        return router

    # ---- login -------------------------------------------------------------------------------------------------------

    async def login(self, request: Request) -> Response:
        """Return the page that asks for the token."""
        return self._asked(request, local_path(request.query_params.get("next", ADMIN)), 200)

    async def log_in(self, request: Request) -> Response:
        """Give a cookie to who knows the token."""
        if not self._is_same_origin(request, needed=True):
            return self._refused(request, "log in", FOREIGN, 403)
        form = await read_form(request)
        back = local_path(form.get("next", ADMIN))
        if not self._sessions.is_token(form.get("token", "").strip().encode()):
            self._journal.note(client_of(request), "log in", {}, "refused: not the token", stranger=True)
            return self._asked(request, back, 403, wrong=True)
        self._journal.note(client_of(request), "log in", {}, "done")
        response = RedirectResponse(f"{request.scope.get('root_path', '')}{back}", 303, HEADERS)
        response.set_cookie(
            COOKIE, self._sessions.begin(), LIFETIME, path=_cookie_path(request), secure=request.url.scheme == "https",
            httponly=True, samesite="strict",
        )  # fmt: skip
        return response

    async def log_out(self, request: Request) -> Response:
        """End a session."""
        visit = self._visit(request)
        if visit is not None:
            if refusal := self._refusal(visit, await read_form(request)):
                return self._refused(request, "log out", refusal, 403)
            self._sessions.end(visit.cookie)
            self._journal.note(client_of(request), "log out", {}, "done")
        response = RedirectResponse(f"{request.scope.get('root_path', '')}{ADMIN}/login", 303, HEADERS)
        response.delete_cookie(COOKIE, path=_cookie_path(request))
        return response

    def _asked(self, request: Request, back: str, status: int, *, wrong: bool = False) -> Response:
        """Return the page that asks for the token."""
        return _with_headers(self._pages.page(request, "admin/login.html", {"back": back, "wrong": wrong}, status))

    def _visit(self, request: Request) -> Visit | None:
        """Return the request as one of somebody who is logged in; None if nobody is."""
        given = request.headers.get("authorization", "")
        if given.lower().startswith("bearer ") and self._sessions.is_token(presented(given)):
            return Visit(request, "")
        cookie = request.cookies.get(COOKIE, "")
        return Visit(request, cookie) if self._sessions.is_valid(cookie) else None

    def _is_same_origin(self, request: Request, *, needed: bool) -> bool:
        """Return whether a form was sent by a page of this gateway. `needed`: also if a request does not say so."""
        origins = request.headers.getlist("origin")
        if not origins:
            return not needed
        parts = urlsplit(origins[0]) if len(origins) == 1 and _is_origin(origins[0]) else None
        # The guard has checked that Host is one of our names.
        return parts is not None and parts.scheme in ("http", "https") and parts.netloc == request.headers["host"].lower()

    def _refusal(self, visit: Visit, form: Mapping[str, str]) -> str:
        """Return why an action is refused; empty if it is not."""
        if not self._is_same_origin(visit.request, needed=bool(visit.cookie)):
            return FOREIGN
        if visit.cookie and not self._sessions.is_form_token(visit.cookie, form.get("form", "")):
            return "this form is not of your session: load the page again"
        return ""

    def _refused(self, request: Request, action: str, reason: str, status: int) -> Response:
        """Record the refusal of an action, and return the answer."""
        self._journal.note(client_of(request), action, {}, f"refused: {reason}", stranger=self._visit(request) is None)
        self._gateway.metrics.refused.labels("form").inc()
        return PlainTextResponse(f"{reason}\n", status, HEADERS)

    # ---- pages -------------------------------------------------------------------------------------------------------

    def _page(self, answer: Callable[[Visit], Awaitable[Response]]) -> Answer:
        """Return a route that is answered to those who are logged in."""

        async def answered(request: Request) -> Response:
            visit = self._visit(request)
            return _with_headers(await answer(visit)) if visit is not None else self._unknown(request)

        return answered

    def _unknown(self, request: Request) -> Response:
        """Return the answer to somebody who is not logged in."""
        if "text/html" not in request.headers.get("accept", ""):
            headers = HEADERS | {"WWW-Authenticate": "Bearer"}
            return PlainTextResponse("A login, or the token as a bearer, is needed (serve.admin_token).\n", 401, headers)
        root = request.scope.get("root_path", "")
        back = request.url.path.removeprefix(root) + (f"?{request.url.query}" if request.url.query else "")
        return RedirectResponse(f"{root}{ADMIN}/login?next={quote(back, safe='')}", 303, HEADERS)

    async def _overview(self, visit: Visit) -> Response:
        collection, request = self._gateway.collection, visit.request
        checks = bool(request.query_params.get("checks"))
        status = await self._gateway.slow(request, collection.status)
        sizes = await self._gateway.slow(request, self._port.sizes)
        findings = await self._gateway.slow(request, lambda: list(collection.findings())) if checks else None
        return self._shown(visit, "overview", {"status": status, "sizes": sizes, "findings": findings})

    async def _why(self, visit: Visit) -> Response:
        url = visit.request.query_params.get("url", "")[:MAX_URL]
        events = await self._gateway.history(visit.request, url) if url else ()
        return self._shown(visit, "why", {"url": url, "events": events})

    async def _confirm(self, visit: Visit) -> Response:
        return self._shown(visit, "remove", {"root": visit.request.query_params.get("root", "")[:MAX_URL]})

    def _listed(self, name: str) -> Callable[[Visit], Awaitable[Response]]:
        async def answer(visit: Visit) -> Response:
            asked = visit.request.query_params
            return await self._list(visit, name, form={field: asked.get(field, "")[:MAX_URL] for field in FILLED.get(name, ())})

        return answer

    async def _list(
        self, visit: Visit, name: str, problem: str = "", form: Mapping[str, str] | None = None, status: int = 200
    ) -> Response:
        """Return a page that lists things. `problem`: why the action of `form` was not carried out."""
        found = await self._gateway.slow(visit.request, lambda: self._read(name))
        return self._shown(visit, name, {"found": found, "problem": problem, "given": form or {}}, status)

    def _read(self, name: str) -> Any:
        """Return what a page lists; it may block."""
        match name:
            case "roots":
                return self._port.roots()
            case "brokers":
                lags = {stage.name: stage.lag for stage in self._gateway.collection.status().stages}
                return self._port.brokers(), lags, self._port.task()
            case "views":
                return self._port.views()
            case "rejected":
                return self._port.rejections()
            case "registrations":
                return self._port.registrations()
        return self._journal.latest()

    def _shown(self, visit: Visit, name: str, values: Mapping[str, Any], status: int = 200) -> Response:
        asked = visit.request.query_params
        message = self._sessions.message(visit.cookie, asked.get("message", ""), asked.get("mark", "")) if visit.cookie else ""
        form_token = self._sessions.form_token(visit.cookie) if visit.cookie else ""
        shared = {"current": f"admin {name}", "page": name, "message": message, "form_token": form_token, "problem": ""}
        return self._pages.page(visit.request, f"admin/{name}.html", shared | dict(values), status)

    # ---- actions -----------------------------------------------------------------------------------------------------

    def _action(self, ask: Ask) -> Answer:
        """Return a route that carries out an action."""
        title = f"{ask.page} {ask.name}"

        async def answered(request: Request) -> Response:
            visit = self._visit(request)
            if visit is None:
                return self._refused(request, title, "a login, or the token as a bearer, is needed (serve.admin_token)", 401)
            form = await read_form(request, MAX_FORM)
            if refusal := self._refusal(visit, form):
                return self._refused(request, title, refusal, 403)
            return _with_headers(await self._done(visit, ask, {field: form.get(field, "").strip() for field in ask.fields}))

        return answered

    async def _done(self, visit: Visit, ask: Ask, form: Mapping[str, str]) -> Response:
        """Carry out an action, record it, and return the answer."""
        request, title = visit.request, f"{ask.page} {ask.name}"
        try:
            message = await self._gateway.slow(request, lambda: ask.do(self._port, form))
        except AdministrationError as error:
            self._journal.note(client_of(request), title, form, f"refused: {error}")
            if not visit.cookie:
                return PlainTextResponse(f"{error}\n", error.status)
            return await self._list(visit, ask.page, str(error), form, error.status)
        except Exception as error:
            self._journal.note(client_of(request), title, form, f"failed: {explained(error).message}")
            raise
        self._journal.note(client_of(request), title, form, f"done: {message}")
        if not visit.cookie:
            return PlainTextResponse(f"{message}\n")
        shown = urlencode(self._sessions.signed(visit.cookie, message))
        return RedirectResponse(f"{request.scope.get('root_path', '')}{ADMIN}/{ask.page}?{shown}", 303)


def _cookie_path(request: Request) -> str:
    return f"{request.scope.get('root_path', '')}{ADMIN}"


def _is_origin(text: str) -> bool:
    """Return whether text can be split as a URL."""
    try:
        urlsplit(text)
    except ValueError:
        return False
    return True


def _with_headers(response: Response) -> Response:
    response.headers.update(HEADERS)
    return response
