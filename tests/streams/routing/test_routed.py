"""Routed searches over gateways on the loopback, some of which hang or send what is no answer."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from urllib.parse import unquote

import pytest

from processors.query import parse
from processors.query.routing.in_views import parse_for_all
from processors.query.routing.merging import Routed
from processors.query.routing.statistics import Statistics, decode_statistics
from schemas.ports import Log
from schemas.records import Summary
from sinks.index.errors import IndexUnreachable
from streams.config.settings import SettingsError, load
from streams.fetch.adapters.web import Client
from streams.fetch.name_lookup import NameLookup, lookup
from streams.fetch.settings import FetchSettings
from streams.routing import remote
from streams.routing.local import LocalBrokers
from streams.routing.remote import RemoteBrokers
from streams.routing.search import Options, routed_search
from streams.store import AbsentError
from tests.sinks.gateway.doubles import summary
from tests.streams.routing.gateways import Answer, Good, served

WHALES = [
    summary(f"http://sea.example/{at}", title=f"whale {at}", partial_text="a whale in the sea", more={"md5": f"{at:032x}"})
    for at in range(3)
]
ROSES = [summary("http://garden.example/1", title="roses", partial_text="a rose", more={"md5": "r" * 32})]
COPY = summary("http://other.example/0", title="a copy", partial_text="a whale", more={"md5": f"{0:032x}"})

Search = Callable[..., Routed]


def no_log() -> AbstractContextManager[Log]:
    """Fail: a search over gateways alone reads no log."""
    raise AssertionError


@pytest.fixture
def search(tmp_path: Path) -> Iterator[Search]:
    """Searches over gateways that answer in the given ways."""
    with ExitStack() as stack:

        def run(query: str, *answers: Answer, deadline: float = 30.0, allow: str = "127.0.0.0/8", limit: int = 10) -> Routed:
            urls = tuple(stack.enter_context(served(answer)) for answer in answers)
            local = LocalBrokers(load({"data": str(tmp_path)}, environ={}), no_log, [])
            options = Options(urls, 10, deadline, FetchSettings(allow=(allow,)))
            tree, scope = parse_for_all(query)
            return routed_search(local, options, tree, limit, scope)

        yield run


@pytest.fixture
def never() -> Iterator[threading.Event]:
    """What a hanging gateway waits for; set at the end of the test."""
    event = threading.Event()
    yield event
    event.set()


def test_only_brokers_that_may_answer_are_asked(search: Search) -> None:
    """A Broker without the words of a query is not asked, and the hits of the others are marked with their Broker."""
    sea, garden = Good("sea", WHALES), Good("garden", ROSES)
    found = search("whale", sea, garden)
    assert (sea.asked, garden.asked, found.known, found.silent) == (1, 0, 2, {})
    assert {each.broker.partition("/brokers/")[2] for each in found.hits} == {"sea"}
    assert (found.least, found.most, found.hits[0].hit.snippet) == (3, 3, "\x02wha\x03le 0")


def test_equal_contents_of_two_gateways_are_shown_once(search: Search) -> None:
    """A hit with the digest of another gateway's hit is no second one, and the total does not count it twice."""
    found = search("whale", Good("sea", WHALES), Good("copies", [COPY]))
    assert (found.least, found.is_exact, len(found.hits), sum(len(each.others) for each in found.hits)) == (3, True, 3, 1)


class Viewing(Good):
    """A gateway whose Broker has the view `sea` of some summaries, or none."""

    def __init__(self, name: str, summaries: Sequence[Summary], *, has: bool) -> None:
        super().__init__(name, summaries)
        self.has = has
        self.texts: list[str] = []

    def __call__(self, path: str) -> bytes | Iterator[bytes]:
        """Answer a path."""
        if path == "/api/brokers?view=sea":
            return json.dumps({"brokers": [{"name": self.name, "has_views": self.has}]}).encode()
        return super().__call__(path)

    def search(self, text: str) -> bytes | Iterator[bytes]:
        """Return the hits of a query in the view."""
        self.texts.append(unquote(text))
        return super().search("sea whale")


def test_view_is_asked_of_those_that_have_it(search: Search) -> None:
    """A query that names a view goes as it is to the Brokers that have the view; those without it are left out, and named."""
    sea, garden = Viewing("sea", WHALES, has=True), Viewing("garden", [COPY], has=False)
    found = search("view:Sea whale", sea, garden)
    assert (sea.texts, garden.asked, found.known, len(found.hits)) == (["view:Sea whale"], 0, 1, 3)
    assert [name.partition("/brokers/")[2] for name in found.without] == ["garden"]
    assert not found.silent


def test_three_gateways_hang_and_the_rest_is_there_in_time(search: Search, never: threading.Event) -> None:
    """One that never answers, one that hangs at the search, and one that sends slowly without end: all three are named."""

    class Silent(Good):
        def listed(self) -> bytes | Iterator[bytes]:
            never.wait()
            return super().listed()

    class Stuck(Good):
        def search(self, text: str) -> bytes | Iterator[bytes]:
            never.wait()
            return super().search(text)

    class Dripping(Good):
        def search(self, text: str) -> Iterator[bytes]:
            while not never.wait(0.05):
                yield b" "

    good = Good("good", WHALES)
    found = search("whale", Silent("silent", WHALES), Stuck("stuck", WHALES), good, Dripping("dripping", WHALES), deadline=2.0)
    assert len(found.silent) == 3
    assert sorted(name.partition("/brokers/")[2] for name in found.silent) == ["", "dripping", "stuck"]
    assert [each.hit.title for each in found.hits] == ["whale 0", "whale 1", "whale 2"]


class Html(Good):
    def listed(self) -> bytes | Iterator[bytes]:
        return b"<!doctype html><title>Welcome</title>"


class Endless(Good):
    def statistics(self) -> bytes | Iterator[bytes]:
        while True:
            yield b"x" * 65_536


class Damaged(Good):
    def statistics(self) -> bytes | Iterator[bytes]:
        return b"harvest-words 1\nnothing"


class Infinite(Good):
    def search(self, text: str) -> bytes | Iterator[bytes]:
        body = super().search(text)
        assert isinstance(body, bytes)
        return body.replace(b'"score": 1.0', b'"score": 1e999')


class Nan(Good):
    def search(self, text: str) -> bytes | Iterator[bytes]:
        body = super().search(text)
        assert isinstance(body, bytes)
        return body.replace(b'"score": 1.0', b'"score": NaN')


class Textual(Good):
    def search(self, text: str) -> bytes | Iterator[bytes]:
        body = super().search(text)
        assert isinstance(body, bytes)
        return body.replace(b'"score": 1.0', b'"score": "best"')


class Deep(Good):
    def search(self, text: str) -> bytes | Iterator[bytes]:
        return b"[" * 500_000


class Long(Good):
    def search(self, text: str) -> bytes | Iterator[bytes]:
        while True:
            yield b" " * 65_536


class Lined(Good):
    def listed(self) -> bytes | Iterator[bytes]:
        return b'{"brokers": [{"name": "bad\\n"}]}'


class Named(Good):
    def listed(self) -> bytes | Iterator[bytes]:
        return b'{"brokers": [{"name": "../../gatherer/soif"}]}'


@pytest.mark.parametrize("bad", [Html, Endless, Damaged, Infinite, Nan, Textual, Deep, Long, Lined, Named])
def test_bad_gateway_is_named_and_the_rest_stands(search: Search, bad: type[Good]) -> None:
    """HTML, endless bodies, damaged statistics, scores that are no numbers: the gateway is named with a short reason."""
    found = search("whale", bad("bad", WHALES), Good("good", WHALES))
    assert len(found.silent) == 1
    assert all(0 < len(reason) <= 200 for reason in found.silent.values())
    assert [each.hit.title for each in found.hits] == ["whale 0", "whale 1", "whale 2"]


def test_broker_without_statistics_takes_no_other_of_its_gateway_along(search: Search) -> None:
    """Where a gateway has a Broker that it has counted no words of, that one is named, and the others are asked."""

    class Half(Good):
        def listed(self) -> bytes | Iterator[bytes]:
            return b'{"brokers": [{"name": "sea"}, {"name": "empty"}]}'

    found = search("whale", Half("sea", WHALES))
    assert [name.partition("/brokers/")[2] for name in found.silent] == ["empty"]
    assert (len(found.hits), found.known) == (3, 1)


def test_one_gateway_with_many_brokers_lets_others_have_their_turn(tmp_path: Path) -> None:
    """Between the statistics of two Brokers of a gateway, which are at hand from before, the answers of others are heard."""

    class Many(Good):
        def __call__(self, path: str) -> bytes | Iterator[bytes]:
            if path == "/api/brokers":
                return json.dumps({"brokers": [{"name": f"b{at}", "mark": "m"} for at in range(100)]}).encode()
            return self.statistics()

    async def turns(url: str) -> int:
        settings = FetchSettings(allow=("127.0.0.0/8",))
        client, look = Client(settings), NameLookup(settings, lookup, 1)
        many, decoded, heard = RemoteBrokers(url, client, look, tmp_path), 0, set[int]()
        try:
            marks = (await many.listed()).marks
            for name, mark in marks.items():
                await many.statistics(name, mark)
            asked = asyncio.gather(*(many.statistics(name, mark) for name, mark in marks.items()))

            def count(data: bytes) -> Statistics:
                nonlocal decoded
                decoded += 1
                return decode_statistics(data)

            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(remote, "decode_statistics", count)
                while not asked.done():
                    heard.add(decoded)
                    await asyncio.sleep(0)
        finally:
            look.close()
            await client.close()
        return len(heard)

    with served(Many("many", WHALES)) as url:
        assert asyncio.run(turns(url)) >= 100


def test_many_hits_are_asked_for_within_the_limit_of_the_api(search: Search) -> None:
    """A gateway returns at most 100 hits of a Broker; a search for more asks for these."""

    class Strict(Good):
        def __call__(self, path: str) -> bytes | Iterator[bytes]:
            if "size=" in path and int(path.partition("size=")[2]) > 100:
                raise LookupError(path)
            return super().__call__(path)

    found = search("whale", Strict("sea", WHALES), limit=101)
    assert (found.silent, found.least) == ({}, 3)


def test_loopback_is_refused_unless_it_is_allowed(search: Search) -> None:
    """A gateway on an address that the fetch edge would not dial is not asked."""
    good = Good("sea", WHALES)
    found = search("whale", good, allow="192.0.2.0/24")
    assert (good.asked, found.hits, found.known) == (0, [], 0)
    (reason,) = found.silent.values()
    assert "loopback" in reason
    assert reason.endswith("(fetch.allow)")


@pytest.mark.parametrize("url", ["ftp://h/", "http://", "http://user:secret@h/", "h:8380", "http://h/?q=1"])
def test_server_that_is_no_gateway_is_a_mistake_in_the_settings(url: str) -> None:
    """`routing.servers` takes URLs of gateways alone, without passwords."""
    with pytest.raises(SettingsError, match=r"routing\.servers"):
        load({"routing.servers": [url]}, environ={})


def test_registry_that_hangs_takes_no_time_of_others(
    tmp_path: Path, never: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the index of the registry does not answer, it is named, and the gateways of the settings are asked in time."""

    class Hanging:
        def search(self, *_: object) -> None:
            never.wait(60)
            raise IndexUnreachable

        def close(self) -> None:
            """Do nothing."""

    monkeypatch.setattr("streams.routing.local.open_index", lambda *_: Hanging())

    def absent() -> AbstractContextManager[Log]:
        raise AbsentError("nothing is gathered")

    local = LocalBrokers(load({"data": str(tmp_path)}, environ={}), absent, ["main"])
    with served(Good("sea", WHALES)) as url:
        options = Options((url,), 10, 4.0, FetchSettings(allow=("127.0.0.0/8",)), registry="main")
        found = routed_search(local, options, parse("whale"), 10)
    assert (found.silent, len(found.hits), never.is_set()) == ({"the registry main": "no answer in time"}, 3, False)
