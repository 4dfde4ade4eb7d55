"""Visits of a browser to a gateway, and everything that the browser complains of meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Dialog, Page, Request, Response, WebError

PATIENCE_MS = 20_000.0
"""Time that a page may take on a busy machine."""
ABANDONED = "net::ERR_ABORTED"
"""Failure of a request that the page gave up by itself: a search that further typing replaced, or a page that became a download."""


class Visits:
    """Opens pages of a gateway, each in a context of its own, and records complaints.

    A complaint is a message in the console, an uncaught error, a failed request, an answer of 400 or above, a dialog, or a request
    to another server.
    """

    def __init__(self, browser: Browser, url: str) -> None:
        self._browser, self.url = browser, url
        self._contexts: list[BrowserContext] = []
        self._complaints: list[str] = []
        self._expected: tuple[str, ...] = ()

    def open(self, path: str = "./", *, url: str = "", **options: Any) -> Page:
        """Open a path, relative to the search page of the gateway or of another one, in a new context with options."""
        base = url or self.url
        context = self._browser.new_context(base_url=base, **options)
        self._contexts.append(context)
        context.set_default_timeout(PATIENCE_MS)
        self._watch(context, urlsplit(base).netloc)
        page = context.new_page()
        page.goto(path)
        return page

    def expect(self, *parts: str) -> None:
        """Leave out complaints with one of these texts from now on."""
        self._expected = parts

    @property
    def complaints(self) -> Sequence[str]:
        """What the browser complained of, without what was expected."""
        return [text for text in self._complaints if not any(part in text for part in self._expected)]

    def close(self) -> None:
        """Close the contexts."""
        for context in self._contexts:
            context.close()
        self._contexts.clear()

    def _watch(self, context: BrowserContext, server: str) -> None:
        complain = self._complaints.append

        def on_console(message: ConsoleMessage) -> None:
            complain(f"console {message.type}: {message.text}")

        def on_error(error: WebError) -> None:
            complain(f"uncaught: {error.error}")

        def on_failure(request: Request) -> None:
            if request.failure != ABANDONED:
                complain(f"failed: {request.url} {request.failure}")

        def on_answer(response: Response) -> None:
            if response.status >= 400:
                complain(f"answer: {response.status} {response.url}")

        def on_request(request: Request) -> None:
            if urlsplit(request.url).netloc != server:
                complain(f"request to another server: {request.url}")

        def on_dialog(dialog: Dialog) -> None:
            complain(f"dialog: {dialog.message}")
            dialog.dismiss()

        context.on("console", on_console)
        context.on("weberror", on_error)
        context.on("requestfailed", on_failure)
        context.on("response", on_answer)
        context.on("request", on_request)
        context.on("dialog", on_dialog)
