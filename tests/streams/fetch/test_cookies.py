"""Cookies within a chain of redirects: the jar by RFC 6265, and what the edge follows."""

from __future__ import annotations

from typing import Any

import pytest

from schemas.records import CrawlEvent, FetchedObject, Record, Validators
from streams.fetch.adapters.chain import MAX_HOPS
from streams.fetch.adapters.cookies import MAX_COOKIE, MAX_COOKIES, MAX_SENT, Jar
from streams.fetch.pace import Pace

NOW = 1_700_000_000_000
PAST, FUTURE = "Sun, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 2094 08:49:37 GMT"

SENT: dict[str, tuple[str, list[str], str, str]] = {
    # from, Set-Cookie fields, to, Cookie header
    "plain": ("http://a.example/x", ["a=1"], "http://a.example/y", "a=1"),
    "empty value": ("http://a.example/x", ["a="], "http://a.example/", "a="),
    "value with equals, quotes and blanks": ("http://a.example/", ['a = "b = c" '], "http://a.example/", 'a="b = c"'),
    "two": ("http://a.example/", ["a=1", "b=2"], "http://a.example/", "a=1; b=2"),
    "replaced": ("http://a.example/", ["a=1", "b=2", "a=3"], "http://a.example/", "a=3; b=2"),
    "no equals": ("http://a.example/", ["a"], "http://a.example/", ""),
    "no name": ("http://a.example/", ["=a"], "http://a.example/", ""),
    "no field": ("http://a.example/", [], "http://a.example/", ""),
    "own path": ("http://a.example/d/x", ["a=1"], "http://a.example/e", ""),
    "own folder": ("http://a.example/d/x", ["a=1"], "http://a.example/d/e?q", "a=1"),
    "path": ("http://a.example/", ["a=1; Path=/d"], "http://a.example/d/e", "a=1"),
    "path itself": ("http://a.example/", ["a=1; path=/d"], "http://a.example/d", "a=1"),
    "like the path": ("http://a.example/", ["a=1; Path=/d"], "http://a.example/de", ""),
    "relative path": ("http://a.example/d/x", ["a=1; Path=e"], "http://a.example/d/", "a=1"),
    "longer path first": ("http://a.example/", ["a=1; Path=/", "a=2; Path=/d"], "http://a.example/d/", "a=2; a=1"),
    "domain": ("http://a.b.example/", ["a=1; Domain=B.Example"], "http://a.b.example/", "a=1"),
    "dotted domain": ("http://a.b.example/", ["a=1; Domain=.b.example"], "http://a.b.example/", "a=1"),
    "sibling": ("http://a.b.example/", ["a=1; Domain=c.b.example"], "http://a.b.example/", ""),
    "suffix of the name": ("http://ab.example/", ["a=1; Domain=b.example"], "http://ab.example/", ""),
    "part of an address": ("http://127.0.0.1/", ["a=1; Domain=0.0.1"], "http://127.0.0.1/", ""),
    "address": ("http://127.0.0.1/", ["a=1; Domain=127.0.0.1"], "http://127.0.0.1/", "a=1"),
    "secure": ("https://a.example/", ["a=1; Secure; HttpOnly"], "https://a.example/", "a=1"),
    "secure without TLS": ("http://a.example/", ["a=1; Secure"], "http://a.example/", ""),
    "expired": ("http://a.example/", ["a=1", f"a=; Expires={PAST}"], "http://a.example/", ""),
    "not expired": ("http://a.example/", [f"a=1; Expires={FUTURE}"], "http://a.example/", "a=1"),
    "expiry of another form": ("http://a.example/", ["a=1; Expires=Sunday, 06-Nov-94 08:49:37 GMT"], "http://a.example/", ""),
    "odd expiry": ("http://a.example/", ["a=1; Expires=soon"], "http://a.example/", "a=1"),
    "no age": ("http://a.example/", ["a=1; Max-Age=0"], "http://a.example/", ""),
    "below no age": ("http://a.example/", ["a=1; Max-Age=-5"], "http://a.example/", ""),
    "age first": ("http://a.example/", [f"a=1; Max-Age=60; Expires={PAST}"], "http://a.example/", "a=1"),
    "odd age": ("http://a.example/", ["a=1; Max-Age=x"], "http://a.example/", "a=1"),
    "immense age": ("http://a.example/", ["a=1; Max-Age=" + "9" * 400], "http://a.example/", "a=1"),
    "last attribute": ("http://a.example/", ["a=1; Path=/d; Path=/"], "http://a.example/e", "a=1"),
    "control": ("http://a.example/", ["a=1\x07", "b=2\r\nX: y", "c=3\x00"], "http://a.example/", ""),
    "not UTF-8": ("http://a.example/", ["a=\udce9"], "http://a.example/", ""),
    "UTF-8": ("http://a.example/", ["a=é"], "http://a.example/", "a=é"),
    "too long": ("http://a.example/", ["a=" + "x" * MAX_COOKIE, "b=1"], "http://a.example/", "b=1"),
}


@pytest.mark.parametrize("case", SENT.values(), ids=SENT)
def test_cookies_are_sent_as_the_standard_says(case: tuple[str, list[str], str, str]) -> None:
    """A cookie is taken and sent by RFC 6265, by its path, domain, expiry and Secure; a malformed one is ignored."""
    source, fields, target, sent = case
    jar = Jar(NOW)
    jar.update(source, fields)
    assert jar.header(target) == sent


def test_jar_is_bounded() -> None:
    """A jar keeps a limited number of cookies and sends a limited number of bytes."""
    jar = Jar(NOW)
    jar.update("http://a.example/", [f"c{n}={'x' * 2_000}" for n in range(1_000)])
    sent = jar.header("http://a.example/")
    assert len(sent) <= MAX_SENT
    assert sent.count("; ") == 3
    jar = Jar(NOW)
    jar.update("http://a.example/", [f"c{n}=" for n in range(1_000)])
    assert jar.header("http://a.example/").count(";") == MAX_COOKIES - 1


class Wall:
    """Pages of a server whose answers depend on the cookies of a request."""

    def __init__(self, make_answer: Any) -> None:
        self.make_answer = make_answer
        self.asked: list[tuple[str, str]] = []
        self.rules: dict[str, Any] = {}

    def page(self, path: str, *rules: tuple[str, str, dict[str, str]]) -> None:
        """Answer a path by the first rule whose first part, a cookie, was sent."""
        self.rules[path] = rules

    @property
    def pages(self) -> dict[str, Any]:
        return dict.fromkeys(self.rules, self._serve)

    async def _serve(self, heard: Any, writer: Any) -> None:
        sent = heard.headers.get("cookie", "")
        self.asked.append((heard.path, sent))
        for cookie, status, headers in self.rules[heard.path]:
            if cookie in sent:
                body = b"" if status.startswith("3") else b"the page"
                writer.write(self.make_answer(status, body, **headers))
                await writer.drain()
                return


@pytest.fixture
def wall(make_answer: Any) -> Wall:
    """A wall without pages."""
    return Wall(make_answer)


def to(location: str, cookie: str = "") -> dict[str, str]:
    """The header fields of a redirect that may set a cookie."""
    return {"Location": location} | ({"Set-Cookie": cookie} if cookie else {})


WALLS = {
    "same path": ("/ck", "302 Found", "/ck?cookieSet=1", "302 Found"),
    "itself": ("/ck", "302 Found", "/ck", "302 Found"),
    "another path": ("/d/page?x=1", "303 See Other", "/check?to=%2Fd%2Fpage%3Fx%3D1", "307 Temporary Redirect"),
    "absolute": ("/a/b", "307 Temporary Redirect", "{host}/c", "302 Found"),
    "back by a permanent redirect": ("/a", "302 Found", "/b", "301 Moved Permanently"),
    "permanent on one path": ("/a", "301 Moved Permanently", "/a?set", "301 Moved Permanently"),
}


@pytest.mark.parametrize("case", WALLS.values(), ids=WALLS)
def test_page_behind_a_cookie_wall_is_fetched(case: tuple[str, str, str, str], edge: Any, run: Any, split: Any, wall: Wall) -> None:
    """A page that is there only with a cookie from its own redirect is fetched under its URL; the cookie is then forgotten."""
    path, status, check, back = case

    async def scenario() -> None:
        async with edge(wall.pages) as world:
            inner = check.format(host=world.server.host)
            wall.page(path, ("k=1", "200 OK", {"ETag": '"e"'}), ("", status, to(inner, "k=1; Path=/")))
            if check != path:
                wall.page(inner.removeprefix(world.server.host), ("", back, to(path)))
            world.server.pages |= wall.pages
            for _ in range(2):
                got, event = split(await world.get(path))
                assert (got.url, got.body, event.kind) == (world.server.host + path, b"the page", "fetched")
                first, *_, last = wall.asked
                assert (first, last) == ((path, ""), (path, "k=1"))
                assert len(wall.asked) == (2 if check == path else 3)
                wall.asked.clear()

    run(scenario())


def test_known_page_behind_a_wall_is_unchanged(edge: Any, run: Any, split: Any, wall: Wall) -> None:
    """A chain that returns to its URL sends the validators again, and a 304 means unchanged."""
    wall.page("/a", ("k=1", "304 Not Modified", {}), ("", "302 Found", to("/b", "k=1; Path=/")))
    wall.page("/b", ("", "302 Found", to("/a")))

    async def scenario() -> None:
        async with edge(wall.pages) as world:
            got, event = split(await world.get("/a", validators=Validators(etag='"e"', md5="m", size=3)))
            heard = [(h.path, h.headers.get("if-none-match")) for h in world.server.heard if h.path != "/robots.txt"]
        assert (got, event.kind, event.validators.md5) == (None, "unchanged", "m")
        assert heard == [("/a", '"e"'), ("/b", None), ("/a", '"e"')]

    run(scenario())


def moved_to(records: list[Record]) -> tuple[str, tuple[str, ...], int]:
    """The target, the trail and the number of redirects of an answer that says that a URL has moved."""
    gone, ended, found = records
    assert isinstance(gone, FetchedObject)
    assert isinstance(ended, CrawlEvent)
    assert isinstance(found, CrawlEvent)
    assert (gone.outcome, gone.reason, ended.kind, found.kind) == ("gone", "moved", "gone", "discovered")
    (link,) = found.links
    return link.url, found.trail, found.moves


def test_chain_that_ends_elsewhere_is_a_redirect(edge: Any, run: Any, wall: Wall) -> None:
    """If a chain with cookies ends at another URL, the answer is a redirect to that URL, with all URLs in between in its trail."""
    wall.page("/a", ("", "302 Found", to("/b", "k=1")))
    wall.page("/b", ("", "302 Found", to("/c")))
    wall.page("/c", ("", "200 OK", {}))
    wall.page("/to-404", ("", "302 Found", to("/none", "k=1")))
    wall.page("/to-other", ("", "302 Found", to("http://other.example/", "k=1")))

    async def scenario() -> None:
        async with edge(wall.pages) as world:
            host = world.server.host
            assert moved_to(await world.get("/a")) == (f"{host}/c", (f"{host}/a", f"{host}/b"), 2)
            assert moved_to(await world.get("/to-404")) == (f"{host}/none", (f"{host}/to-404",), 1)
            assert moved_to(await world.get("/to-other")) == ("http://other.example/", (f"{host}/to-other",), 1)

    run(scenario())


@pytest.mark.parametrize("robots", [b"User-agent: *\nDisallow: /private/", b"User-agent: Harvest\nDisallow: /*?set", None])
def test_robots_rules_hold_within_a_chain(robots: bytes | None, edge: Any, run: Any, wall: Wall, make_answer: Any) -> None:
    """A target that robots.txt forbids, or whose robots.txt is out of order, is not requested: the redirect is the frontier's."""
    wall.page("/a", ("k=1", "200 OK", {}), ("", "302 Found", to("/private/c?set=1", "k=1; Path=/")))
    wall.page("/private/c?set=1", ("", "302 Found", to("/a")))
    answer = make_answer("503 Later") if robots is None else make_answer(body=robots)

    async def scenario() -> None:
        async with edge(wall.pages | {"/robots.txt": answer}) as world:
            assert moved_to(await world.get("/a"))[0] == world.server.host + "/private/c?set=1"
        assert [path for path, _ in wall.asked] == ["/a"]

    run(scenario())


def test_robots_txt_is_read_once_for_many_chains(edge: Any, run: Any, split: Any, wall: Wall) -> None:
    """The robots.txt that a chain needs is read once for the chains of a host, and not at all without cookies."""
    wall.page("/a", ("k=1", "200 OK", {}), ("", "302 Found", to("/b", "k=1")))
    wall.page("/b", ("", "302 Found", to("/a")))
    wall.page("/plain", ("", "302 Found", to("/a")))

    async def scenario() -> None:
        async with edge(wall.pages) as world:
            await world.get("/plain")
            assert [heard.path for heard in world.server.heard] == ["/plain"]
            for _ in range(3):
                split(await world.get("/a"))
            assert [heard.path for heard in world.server.heard].count("/robots.txt") == 1

    run(scenario())


REFUSED = {
    "other host": "k=1; Domain=other.example",
    "secure": "k=1; Secure",
    "expired": "k=1; Max-Age=0",
    "malformed": "k",
}


@pytest.mark.parametrize("cookie", REFUSED.values(), ids=REFUSED)
def test_redirect_without_a_usable_cookie_is_not_followed(cookie: str, edge: Any, run: Any, wall: Wall) -> None:
    """A redirect is not followed if no cookie was set that may be sent back."""
    wall.page("/a", ("", "302 Found", to("/b", cookie)))

    async def scenario() -> None:
        async with edge(wall.pages) as world:
            assert moved_to(await world.get("/a"))[0] == world.server.host + "/b"
        assert wall.asked == [("/a", "")]

    run(scenario())


def test_permanent_redirect_to_another_path_is_not_followed(edge: Any, run: Any, wall: Wall) -> None:
    """A permanent redirect that sets a cookie is not followed: its target is the URL of the page."""
    wall.page("/a", ("", "301 Moved Permanently", to("/a/", "session=1")))

    async def scenario() -> None:
        async with edge(wall.pages) as world:
            assert moved_to(await world.get("/a"))[0] == world.server.host + "/a/"
        assert wall.asked == [("/a", "")]

    run(scenario())


@pytest.mark.parametrize("there", ["/a?set", "/b"])
def test_circle_despite_cookies_fails(there: str, edge: Any, run: Any, split: Any, wall: Wall) -> None:
    """A circle that goes on with the cookies is a permanent failure, after each URL was requested once with them."""
    wall.page("/a", ("", "302 Found", to(there, "k=1; Path=/")))
    wall.page(there, ("", "302 Found", to("/a")))

    async def scenario() -> None:
        async with edge(wall.pages) as world:
            got, event = split(await world.get("/a"))
        assert (got, event.kind, event.reason, event.retryable) == (None, "failed", "moved in a circle", False)
        assert wall.asked == [("/a", ""), (there, "k=1"), ("/a", "k=1")]

    run(scenario())


def test_endless_chain_is_bounded(edge: Any, run: Any, make_answer: Any) -> None:
    """A chain whose cookies and URLs change for ever is followed five times, and then left to the limit of the frontier."""

    async def serve(heard: Any, writer: Any) -> None:
        number = int(heard.path[1:]) + 1
        writer.write(make_answer("302 Found", Location=f"/{number}", Set_Cookie=f"k={number}"))

    async def scenario() -> None:
        async with edge({f"/{n}": serve for n in range(20)}) as world:
            target, trail, moves = moved_to(await world.get("/0"))
            asked = [heard.path for heard in world.server.heard if heard.path != "/robots.txt"]
            assert asked == [f"/{n}" for n in range(MAX_HOPS + 1)]
            assert (target, len(trail), moves) == (world.server.host + "/6", 6, 6)
            (event,) = await world.get("/0", moves=5)
            assert (event.kind, event.reason) == ("failed", "moved too often")

    run(scenario())


@pytest.mark.parametrize("status", ["503 Later", "429 Too Many Requests"])
def test_failure_within_a_chain_is_retryable(status: str, edge: Any, run: Any, split: Any, wall: Wall) -> None:
    """A transient failure of any URL of a chain is one of the request: a known page stays."""
    wall.page("/a", ("", "302 Found", to("/b", "k=1")))
    wall.page("/b", ("", status, {"Retry-After": "7"}))

    async def scenario() -> None:
        async with edge(wall.pages) as world:
            got, event = split(await world.get("/a"))
        assert (got, event.kind, event.retryable, event.wait) == (None, "failed", True, 7_000)

    run(scenario())


def test_requests_of_a_chain_are_paced(edge: Any, run: Any, split: Any, wall: Wall) -> None:
    """Each request of a chain starts one pause of the host after the one before, and no other of that host comes in between."""
    wall.page("/a", ("k=1", "200 OK", {}), ("", "302 Found", to("/b", "k=1")))
    wall.page("/b", ("", "302 Found", to("/a")))
    slept: list[float] = []

    class Time:
        now = 100.0

        async def sleep(self, seconds: float) -> None:
            slept.append(seconds)
            self.now += seconds

    async def scenario() -> None:
        time = Time()
        pace = Pace(1.0, lambda: time.now, time.sleep)
        async with edge(wall.pages, pace=pace) as world:
            await world.get("/none")
            slept.clear()
            split(await world.get("/a", pause=4_000))
        # The first wait is that of the request, by its own pause; the address waits after robots.txt; the host asks for four
        # seconds each time.
        assert slept == [4.0, 4.0, 1.0, 4.0]

    run(scenario())
