"""A web site that changes between two passes of a Gatherer, and counts the requests by path and status.

A `with` statement serves it from a thread, on a free port of 127.0.0.1. "/" leads to every page by way of lists of links, with or
without a sitemap. Half of the pages have an ETag, the others a Last-Modified field alone; an unchanged page is answered with 304.

A sitemap (an index of sitemaps) states a date for each page. A change that is not `stated` leaves the sitemap as it was.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from functools import partial
from html import escape
from http import HTTPStatus
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.samples.connection import Connection

LINKS = 500
"""Links of a list, and URLs of a sitemap."""
MOVED = "moved-"
"""Before the name of a page that has moved."""
FIRST = datetime(2024, 1, 1, tzinfo=UTC)
HTML = "text/html; charset=utf-8"
Answer = tuple[HTTPStatus, Mapping[str, str], bytes]
"""Status, fields and body of an answer."""


@dataclass(slots=True)
class Page:
    """A page: its content, or the file that has it; `changes` counts its changes."""

    source: bytes | Path
    has_etag: bool
    changes: int = 0

    @property
    def body(self) -> bytes:
        """The content, which ends with the number of changes."""
        body = self.source if isinstance(self.source, bytes) else self.source.read_bytes()
        return body + (f"<p>change{self.changes}</p>\n".encode() if self.changes else b"")


class ChangingSite:
    """The running site: `url` is its root, `asked` has the requests by path and status.

    `pages` has the pages by path, `moved` the new path by old one, `failing` paths that answer 503, and `listed` the paths of the
    sitemap, with the number of changes that it states; None: there is no sitemap.
    """

    def __init__(self, sources: Mapping[str, bytes | Path], port: int = 0) -> None:
        """`sources`: pages by path; `port`: 0 for a free one."""
        self._port = port
        self.pages = {path: Page(source, has_etag=number % 2 == 0) for number, (path, source) in enumerate(sources.items())}
        self._lists = self._list()
        self.moved: dict[str, str] = {}
        self.failing: set[str] = set()
        self.listed: dict[str, int] | None = None
        self.asked: Counter[tuple[str, int]] = Counter()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="site", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        made = self._loop.create_server(partial(Connection, self._answer), "127.0.0.1", self._port, backlog=512)
        self._server = asyncio.run_coroutine_threadsafe(made, self._loop).result()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._loop.call_soon_threadsafe(self._server.close)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    @property
    def url(self) -> str:
        """The URL of the root, with a trailing slash."""
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/"

    @property
    def lists(self) -> list[str]:
        """Paths of the lists of links, "/" among them, which do not change."""
        return [*self._lists]

    # ---- changes ---------------------------------------------------------------------------------------------------

    def publish(self) -> None:
        """Have a sitemap, of all pages."""
        self.listed = {path: page.changes for path, page in self.pages.items()}

    def change(self, paths: Iterable[str], *, stated: bool = True) -> None:
        """Change pages, each to a content of its own; `stated`: the sitemap states it."""
        for path in paths:
            self.pages[path].changes += 1
            if stated and self.listed is not None:
                self.listed[path] += 1

    def delete(self, paths: Iterable[str], *, stated: bool = True) -> None:
        """Delete pages; `stated`: from the sitemap too."""
        for path in paths:
            del self.pages[path]
            if stated and self.listed is not None:
                del self.listed[path]

    def move(self, paths: Iterable[str], *, stated: bool = True) -> None:
        """Move pages, so that the old paths redirect to the new ones; `stated`: the sitemap has the new ones instead."""
        for path in paths:
            folder, _, name = path.rpartition("/")
            # In the same folder, so that its relative links lead to the same pages.
            self.moved[path] = f"{folder}/{MOVED}{name}"
            self.pages[self.moved[path]] = self.pages.pop(path)
            if stated and self.listed is not None:
                self.listed[self.moved[path]] = self.listed.pop(path)

    # ---- answers ---------------------------------------------------------------------------------------------------

    def _list(self) -> dict[str, bytes]:
        """Return the lists of links by path: "/" has links to all others."""
        paths = [*self.pages]
        parts = {f"/lists/{start // LINKS}.html": paths[start : start + LINKS] for start in range(0, len(paths), LINKS)}
        return {path: _links(path, children) for path, children in {"/": [*parts], **parts}.items()}

    def _answer(self, request: bytes) -> bytes:
        line, *rest = request.decode("latin-1").split("\r\n")
        path = line.split(" ")[1]
        fields = {name.lower(): value.strip() for name, _, value in (each.partition(":") for each in rest)}
        status, headers, body = self._respond(path, fields)
        self.asked[path, int(status)] += 1
        length = {} if status == HTTPStatus.NOT_MODIFIED else {"Content-Length": str(len(body))}
        head = "".join(f"{name}: {value}\r\n" for name, value in {**headers, **length}.items())
        return f"HTTP/1.1 {int(status)} {status.phrase}\r\n{head}\r\n".encode() + body

    def _respond(self, path: str, fields: Mapping[str, str]) -> Answer:
        if path in self.failing:
            return HTTPStatus.SERVICE_UNAVAILABLE, {"Content-Type": "text/plain"}, b"Later.\n"
        if path in self.moved:
            return HTTPStatus.MOVED_PERMANENTLY, {"Location": self.moved[path]}, b""
        page = self.pages.get(path)
        if page is not None:
            return _conditional(page, fields)
        if path in self._lists:
            return _conditional(Page(self._lists[path], has_etag=True), fields)
        if self.listed is not None and path.startswith("/sitemap"):
            return HTTPStatus.OK, {"Content-Type": "application/xml"}, self._sitemap(path)
        return HTTPStatus.NOT_FOUND, {"Content-Type": "text/plain"}, b"There is nothing here.\n"

    def _sitemap(self, path: str) -> bytes:
        """Return the index of sitemaps, or one of these: `/sitemap-3.xml`."""
        listed = list((self.listed or {}).items())
        if path == "/sitemap.xml":
            parts = range((len(listed) + LINKS - 1) // LINKS)
            return self._entries("sitemap", {f"/sitemap-{part}.xml": "" for part in parts})
        start = int(path.removeprefix("/sitemap-").removesuffix(".xml")) * LINKS
        part = listed[start : start + LINKS]
        return self._entries("url", {child: f"{FIRST + timedelta(days=stated):%Y-%m-%d}" for child, stated in part})

    def _entries(self, entry: str, dates: Mapping[str, str]) -> bytes:
        name = "urlset" if entry == "url" else "sitemapindex"
        marks = {path: f"<lastmod>{date}</lastmod>" if date else "" for path, date in dates.items()}
        entries = (f"<{entry}><loc>{self.url[:-1]}{escape(path)}</loc>{mark}</{entry}>\n" for path, mark in marks.items())
        return f'<{name} xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n{"".join(entries)}</{name}>\n'.encode()


def made_pages(count: int) -> dict[str, bytes]:
    """Return small pages by path, each with a text of its own and a link to another one."""
    texts = (f"<title>Page {number}</title><p>The whale of lake {number}.</p>" for number in range(count))
    return {
        f"/pages/{number}.html": f'<!DOCTYPE html>\n{text}<a href="{(7 * number + 1) % count}.html">Another</a>\n'.encode()
        for number, text in enumerate(texts)
    }


def _links(title: str, paths: Iterable[str]) -> bytes:
    items = "".join(f'<li><a href="{escape(path)}">{escape(path)}</a></li>\n' for path in paths)
    return f"<!DOCTYPE html>\n<html><head><title>Pages of {title}</title></head><body><ul>\n{items}</ul></body></html>\n".encode()


def _conditional(page: Page, fields: Mapping[str, str]) -> Answer:
    """Answer with a page, or with 304 if the client has it (RFC 9110, 13.1)."""
    etag, modified = f'"{page.changes}"', format_datetime(FIRST + timedelta(days=page.changes), usegmt=True)
    headers = {"Last-Modified": modified, "Content-Type": HTML} | ({"ETag": etag} if page.has_etag else {})
    known = fields.get("if-none-match") == etag if page.has_etag else fields.get("if-modified-since") == modified
    return (HTTPStatus.NOT_MODIFIED, headers, b"") if known else (HTTPStatus.OK, headers, page.body)
