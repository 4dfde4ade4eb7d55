from __future__ import annotations

import socket
from itertools import pairwise
from typing import Any

import pytest

ROBOTS = b"User-agent: *\nDisallow: /private\n"


def test_resolve_gives_one_event_with_address_and_robots(edge: Any, run: Any, make_answer: Any) -> None:
    """The answer to a resolve request is one event with the pinned address and robots.txt."""

    async def scenario() -> None:
        async with edge({"/robots.txt": make_answer(body=ROBOTS)}) as world:
            event = await world.resolve()
            assert event.host == world.server.host
            assert event.url == world.server.host + "/robots.txt"
        assert (event.kind, event.addresses, event.robots, event.reason) == ("resolved", ("127.0.0.1",), ROBOTS, "")
        assert (event.version, event.rules, event.retryable) == (7, "r1", False)

    run(scenario())


STATUSES = [
    ("404 Not Found", b"", False),
    ("401 Unauthorized", b"", False),
    ("302 Found", b"", False),
    ("429 Slow down", None, True),
    ("500 Oops", None, True),
    ("503 Busy", None, True),
]


@pytest.mark.parametrize("case", STATUSES)
def test_robots_status_allows_or_disallows_all(case: tuple[str, bytes | None, bool], edge: Any, run: Any, make_answer: Any) -> None:
    """RFC 9309, 2.3.1: unavailable allows all; unreachable disallows all, with a reason, until another attempt."""
    status, robots, retryable = case

    async def scenario() -> None:
        async with edge({"/robots.txt": make_answer(status, Retry_After="5")}) as world:
            event = await world.resolve()
        assert (event.kind, event.addresses, event.robots, event.retryable) == ("resolved", ("127.0.0.1",), robots, retryable)
        assert (event.wait, bool(event.reason)) == ((5_000, True) if retryable else (0, False))

    run(scenario())


@pytest.mark.parametrize("hops", [1, 5, 6])
def test_robots_redirects_are_followed_five_times(hops: int, edge: Any, run: Any, make_answer: Any) -> None:
    """Five redirects are followed; after a sixth robots.txt counts as unavailable."""

    async def scenario() -> None:
        chain = ["/robots.txt", *(f"/r{n}" for n in range(hops))]
        pages = {a: make_answer("301 Moved", Location=b) for a, b in pairwise(chain)}
        async with edge({**pages, chain[-1]: make_answer(body=ROBOTS)}) as world:
            event = await world.resolve()
        assert event.robots == (ROBOTS if hops <= 5 else b"")

    run(scenario())


@pytest.mark.parametrize(
    "case", [("http://inner.example/robots.txt", None), ("file:///etc/passwd", b""), ("gopher://a/", b""), ("wais://a/", b"")]
)
def test_robots_redirect_to_forbidden_target_is_refused(
    case: tuple[str, bytes | None], edge: Any, run: Any, make_answer: Any
) -> None:
    """A redirect of robots.txt is checked as any other target: a private address is not connected to."""
    target, robots = case

    def lookup(host: str, port: int) -> list[str]:
        return ["10.0.0.1"] if host == "inner.example" else ["127.0.0.1"]

    async def scenario() -> None:
        async with edge({"/robots.txt": make_answer("302 Found", Location=target)}, lookup=lookup) as world:
            event = await world.resolve()
        assert event.robots == robots
        assert ("private" in event.reason) == (robots is None)

    run(scenario())


ADDRESSES = [
    (["127.0.0.1", "10.0.0.1"], "10.0.0.1 is private"),
    (["93.184.216.34", "::1"], "::1 is loopback"),
    (["::ffff:169.254.169.254"], "link-local"),
    ([], "no address"),
]


@pytest.mark.parametrize("case", ADDRESSES)
def test_one_bad_address_refuses_the_host(case: tuple[list[str], str], edge: Any, run: Any) -> None:
    """All addresses of a host are checked before any is connected to."""
    addresses, reason = case

    async def scenario() -> None:
        async with edge(lookup=lambda *_: addresses) as world:
            event = await world.resolve("http://mixed.example")
            assert not world.server.heard
        assert (event.kind, event.addresses, event.robots) == ("resolved", (), None)
        assert reason in event.reason

    run(scenario())


def test_the_address_that_answers_is_pinned(edge: Any, run: Any, make_answer: Any) -> None:
    """If the first address refuses the connection, the next one is tried and pinned."""

    async def scenario() -> None:
        lookup = lambda *_: ["127.0.0.77", "127.0.0.1"]  # noqa: E731
        async with edge({"/robots.txt": make_answer(body=ROBOTS)}, lookup=lookup) as world:
            event = await world.resolve(f"http://two.example:{world.server.port}")
            assert world.server.heard[0].headers["host"] == f"two.example:{world.server.port}"
        assert (event.addresses, event.robots) == (("127.0.0.1",), ROBOTS)

    run(scenario())


FAILURES: list[tuple[Exception, bool]] = [
    (socket.gaierror(socket.EAI_NONAME, "Name or service not known"), False),
    (socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution"), True),
    (OSError(24, "Too many open files"), True),
    (UnicodeError("label too long"), False),
]


@pytest.mark.parametrize("case", FAILURES)
def test_unresolvable_name_is_reported(case: tuple[Exception, bool], edge: Any, run: Any, make_request: Any) -> None:
    """A name that does not resolve is an event with the reason and whether to retry; so is a request without an address."""
    error, retryable = case

    def lookup(host: str, port: int) -> list[str]:
        raise error

    async def scenario() -> None:
        async with edge(lookup=lookup) as world:
            event = await world.resolve("https://nowhere.example")
            (failed,) = await world.fetcher.fetch(make_request("https://nowhere.example/x"))
        assert (event.kind, event.robots, event.retryable) == ("resolved", None, retryable)
        assert "cannot resolve nowhere.example" in event.reason
        assert (failed.kind, failed.retryable) == ("failed", retryable)

    run(scenario())


def test_name_lookup_has_a_timeout(edge: Any, run: Any) -> None:
    """A lookup has a timeout; the thread that waits for it blocks no other request."""
    import threading

    release = threading.Event()

    def lookup(host: str, port: int) -> list[str]:
        release.wait(30)
        return []

    async def scenario() -> None:
        async with edge(lookup=lookup, dns_timeout=0.05) as world:
            event = await world.resolve("http://slow.example")
            release.set()
        assert (event.robots, event.retryable) == (None, True)
        assert "no answer in time" in event.reason

    run(scenario())


def test_resolve_of_a_folder_allows_all(edge: Any, run: Any, make_request: Any) -> None:
    """A resolve request for a folder is answered at once: no lookup, all allowed."""

    async def scenario() -> None:
        async with edge() as world:
            (event,) = await world.fetcher.fetch(make_request("file:///usr/share/x", kind="resolve"))
        assert (event.kind, event.addresses, event.robots) == ("resolved", (), b"")

    run(scenario())
