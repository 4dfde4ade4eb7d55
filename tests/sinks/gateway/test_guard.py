"""The guard: names, tokens, methods, rates; and the turns of searches."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Callable, Iterator

import pytest
from starlette.testclient import TestClient

from sinks.gateway.guard import Allowance, client_key, is_loopback
from sinks.gateway.slots import SHARE, BusyError, GoneError, Slots

Client = Callable[..., TestClient]
TOKEN = "correct horse battery staple"


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200), ("LOCALHOST:8380", 200), ("127.0.0.1:1", 200), ("[::1]:8380", 200), ("localhost.", 200),
        ("search.example.org", 200), ("evil.example", 421), ("localhost.evil.example", 421), ("", 421), ("127.0.0.1.evil", 421),
        ("localhost:1@evil.example", 421), ("localhost:x", 421), ("[::1", 421),
    ],
)  # fmt: skip
def test_only_our_names_are_answered(client: Client, host: str, status: int) -> None:
    """A page of another site cannot reach the gateway by a name that it controls."""
    ask = client(hosts=("search.example.org",))
    assert ask.get("/api/search", headers={"Host": host}).status_code == status
    assert ask.get("/livez", headers={"Host": host}).status_code == 200


def test_every_answer_has_the_headers_of_safety(client: Client) -> None:
    """Pages, refusals and errors alike: nothing of another host, no frame, no guessing of types."""
    ask = client()
    for answer in (ask.get("/api/search"), ask.get("/api/search", headers={"Host": "evil"}), ask.post("/api/search")):
        assert answer.headers["content-security-policy"].startswith("default-src 'self'; ")
        assert answer.headers["x-content-type-options"] == "nosniff"


def test_nothing_can_be_changed(client: Client) -> None:
    """No method but GET and HEAD is answered, whatever the path."""
    ask = client()
    assert [ask.request(method, "/api/search").status_code for method in ("POST", "PUT", "DELETE", "PATCH", "TRACE")] == [405] * 5


def test_token_is_asked_for(client: Client) -> None:
    """Without the token there is no answer but the probes; with it, as a bearer or by the login, there is."""
    ask = client(token=TOKEN)
    assert ask.get("/api/search").status_code == 401
    assert ask.get("/api/search", headers={"Authorization": "Bearer wrong"}).status_code == 401
    assert ask.get("/api/search", headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200
    assert [ask.get(path).status_code for path in ("/livez", "/readyz", "/metrics")] == [200] * 3
    assert ask.get("/api/search", auth=("any", TOKEN)).status_code == 200
    assert ask.get("/api/search", auth=(TOKEN, "wrong")).status_code == 401
    assert ask.get("/api/search", headers={"Authorization": "Basic ?"}).json() == {"error": "A token is needed (serve.token)."}
    page = ask.get("/?q=whale", headers={"Accept": "text/html"}, follow_redirects=False)
    assert (page.status_code, page.headers["location"]) == (303, "/login?next=%2F%3Fq%3Dwhale")


def test_cookie_of_the_login_opens(client: Client) -> None:
    """Who knows the token gets a cookie that scripts cannot read, and is led back; nobody is led to another site."""
    ask = client(token=TOKEN)
    answer = ask.post("/login", data={"token": TOKEN, "next": "/api/search?q=whale"}, follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "/api/search?q=whale")
    assert "HttpOnly" in answer.headers["set-cookie"]
    assert TOKEN not in answer.headers["set-cookie"]
    assert ask.get("/api/search").status_code == 200
    for other in ("//evil.example/", "https://evil.example/", "/\\evil.example", "javascript:alert(1)", "/\t/evil.example"):
        answer = ask.post("/login", data={"token": TOKEN, "next": other}, follow_redirects=False)
        assert answer.headers["location"] == "/", other


def test_root_path_may_be_taken_off_or_passed_on(client: Client) -> None:
    """Behind a proxy, both forms of a path are the same page."""
    ask = client(root_path="/find")
    assert [ask.get(path).status_code for path in ("/find/api/search", "/api/search", "/find/livez", "/livez")] == [200] * 4
    assert 'template="http://localhost/find/?q={searchTerms}"' in ask.get("/opensearch.xml").text


def test_rate_is_limited_by_client() -> None:
    """A client may save up some seconds of requests; another one has its own."""
    now = 0.0
    allowance = Allowance(2.0, lambda: now)
    assert [allowance.take("a") for _ in range(10)] == [0.0] * 10
    assert allowance.take("a") == 0.5
    assert allowance.take("b") == 0.0
    now = 0.5
    assert [allowance.take("a"), allowance.take("a")] == [0.0, 0.5]


def test_refused_request_says_when_to_come_again(client: Client) -> None:
    """429 has Retry-After; styles and probes are free."""
    ask = client(rate=0.01)
    assert ask.get("/api/search").status_code == 200
    answer = ask.get("/api/search")
    assert answer.status_code == 429
    assert int(answer.headers["retry-after"]) > 1
    assert ask.get("/livez").status_code == 200


def test_client_is_its_address_or_its_network() -> None:
    """An IPv6 client has 64 bits of addresses of its own."""
    assert client_key("10.0.0.1") == client_key("::ffff:10.0.0.1") == "10.0.0.1"
    assert client_key("2001:db8::1") == client_key("2001:db8::ffff:1") != client_key("2001:db8:0:1::1")
    assert [is_loopback(host) for host in ("127.8.8.8", "[::1]", "localhost", "0.0.0.0", "::", "example.org")] == [True] * 3 + [
        False
    ] * 3


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """Lets blocked searches end."""
    event = threading.Event()
    yield event
    event.set()


async def _waiting(slots: Slots, count: int) -> None:
    async with asyncio.timeout(30):
        while slots.waiting != count:  # noqa: ASYNC110 - the number is all there is to see
            await asyncio.sleep(0.001)


def test_queue_is_bounded_and_in_order(gate: threading.Event) -> None:
    """What exceeds the queue is refused at once; the others are answered in order, one client's share at most."""
    done: list[str] = []

    def search(name: str) -> Callable[[], str]:
        def ask() -> str:
            gate.wait(30)
            done.append(name)
            return name

        return ask

    async def run() -> None:
        slots = Slots(1, 3, 30)
        tasks = [asyncio.create_task(slots.run(f"client {at}", search(str(at)))) for at in range(4)]
        await _waiting(slots, 3)
        with pytest.raises(BusyError):
            await slots.run("another", search("refused"))
        gate.set()
        assert await asyncio.gather(*tasks) == ["0", "1", "2", "3"]
        slots.close()

    asyncio.run(run())
    assert done == ["0", "1", "2", "3"]


def test_clients_take_turns(gate: threading.Event) -> None:
    """A client with many searches gets as many turns as one with a single search; its share of the queue is bounded."""
    done: list[str] = []

    def search(name: str) -> Callable[[], None]:
        def ask() -> None:
            gate.wait(30)
            done.append(name)

        return ask

    async def run() -> None:
        slots = Slots(1, 100, 30)
        tasks = [asyncio.create_task(slots.run("greedy", search("greedy"))) for _ in range(SHARE + 1)]
        await _waiting(slots, SHARE)
        with pytest.raises(BusyError):
            await slots.run("greedy", search("refused"))
        tasks += [asyncio.create_task(slots.run(name, search(name))) for name in ("a", "b")]
        await _waiting(slots, SHARE + 2)
        gate.set()
        await asyncio.gather(*tasks)
        slots.close()

    asyncio.run(run())
    assert done == ["greedy", "greedy", "a", "b", *["greedy"] * (SHARE - 1)]


def test_full_queue_has_room_for_those_with_less_in_it(gate: threading.Event) -> None:
    """Who has most in a full queue loses the newest search; a newcomer is refused if nobody has more than it."""

    async def run() -> None:
        slots = Slots(1, 3, 30)
        tasks = [asyncio.create_task(slots.run("greedy", lambda: gate.wait(30))) for _ in range(4)]
        await _waiting(slots, 3)
        tasks += [asyncio.create_task(slots.run(name, lambda: gate.wait(30))) for name in ("a", "b")]
        await asyncio.wait([tasks[2], tasks[3]])
        with pytest.raises(BusyError):
            await slots.run("c", lambda: True)
        gate.set()
        found = await asyncio.gather(*tasks, return_exceptions=True)
        assert [isinstance(one, BusyError) for one in found] == [False, False, True, True, False, False]
        slots.close()

    asyncio.run(run())


def test_search_of_a_client_that_has_gone_is_not_begun(gate: threading.Event) -> None:
    """Its turn is free for others."""

    async def gone() -> bool:
        return True

    async def run() -> None:
        slots = Slots(1, 3, 30)
        with pytest.raises(GoneError):
            await slots.run("a", lambda: pytest.fail("begun"), gone)
        assert await slots.run("b", lambda: True)
        slots.close()

    asyncio.run(run())


def test_failure_of_a_search_whose_client_has_gone_is_no_unhandled_error(gate: threading.Event) -> None:
    """A search that has begun ends with an error after its client has gone: the event loop has nothing to report."""
    reported: list[str] = []
    begun = threading.Event()

    def fail() -> None:
        begun.set()
        gate.wait(30)
        raise OSError("its file was closed")

    async def run() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(str(context["message"])))
        slots = Slots(1, 3, 30)
        task = asyncio.create_task(slots.run("a", fail))
        await asyncio.to_thread(begun.wait, 30)
        task.cancel()
        await asyncio.wait([task])
        gate.set()
        assert await slots.run("b", lambda: True)
        slots.close()

    asyncio.run(run())
    gc.collect()
    assert reported == []


def test_search_that_waits_no_longer_makes_room(gate: threading.Event) -> None:
    """A search that was cancelled at the moment when it would lose its place is no error for the newcomer."""

    async def run() -> None:
        slots = Slots(1, 3, 30)
        tasks = [asyncio.create_task(slots.run("greedy", lambda: gate.wait(30))) for _ in range(4)]
        await _waiting(slots, 3)
        for task in tasks[1:]:
            task.cancel()
        newcomer = asyncio.create_task(slots.run("a", lambda: True))
        await asyncio.wait(tasks[1:])
        gate.set()
        assert await newcomer
        slots.close()

    asyncio.run(run())


def test_turn_that_does_not_come_is_refused(gate: threading.Event) -> None:
    """A search waits for its turn as long as the time-out; a slot is free when its search is over, not when its client is gone."""

    async def run() -> None:
        slots = Slots(1, 10, 0.05)
        first = asyncio.create_task(slots.run("a", lambda: gate.wait(30)))
        await asyncio.sleep(0.01)
        first.cancel()
        with pytest.raises(BusyError):
            await slots.run("b", lambda: True)
        gate.set()
        async with asyncio.timeout(30):
            while True:
                try:
                    assert await slots.run("b", lambda: True)
                    break
                except BusyError:
                    continue
        slots.close()

    asyncio.run(run())
