from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

import pytest

from streams.fetch.pace import MANY, Pace, TooLongError


class Time:
    """A clock that advances only by sleeps."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds
        await asyncio.sleep(0)


def test_pause_lies_between_end_and_next_start(run: Any) -> None:
    """A host waits one pause after a start, and from the end of a request to the next; the longer pause of the two wins."""

    async def scenario() -> None:
        time = Time()
        pace, starts = Pace(1.0, time, time.sleep), []
        for pause in (0.0, 5.0, 0.0, 0.0):
            async with pace.host("http://a", pause, 10):
                starts.append(time.now)
                time.now += 2
        assert starts == [101, 108, 115, 118]

    run(scenario())


def test_address_waits_one_pause_after_a_start(run: Any) -> None:
    """After a start an address waits one pause; one first used later does not."""

    async def scenario() -> None:
        time = Time()
        pace = Pace(1.0, time, time.sleep)
        async with pace.address("192.0.2.1", 10):
            assert time.now == 101
        async with pace.address("192.0.2.2", 10):
            assert time.now == 101
        async with pace.host("http://a", 0, 10), pace.address("192.0.2.1", 10):
            assert time.now == 102

    run(scenario())


def test_addresses_of_another_process_wait_as_after_a_start(run: Any) -> None:
    """If another process may have used them, known and new addresses wait as after a start."""

    async def scenario() -> None:
        time = Time()
        pace, starts = Pace(1.0, time, time.sleep), []
        async with pace.address("192.0.2.1", 10):
            time.now += 5
        time.now += 0.9
        pace.wait()
        for address in ("192.0.2.1", "192.0.2.2"):
            async with pace.address(address, 10):
                starts.append(round(time.now, 3))
        assert starts == [107.9, 107.9]

    run(scenario())


def test_two_hosts_of_one_address_share_its_pause(run: Any) -> None:
    """Hosts with the same address take turns; each waits for the end of the previous request and a pause."""

    async def scenario() -> None:
        time, spans = Time(), []
        pace = Pace(1.0, time, time.sleep)

        async def ask(host: str) -> None:
            async with pace.host(host, 0, None), pace.address("192.0.2.1", None):
                began = time.now
                await asyncio.sleep(0)
                spans.append((began, time.now))

        await asyncio.gather(*(ask(f"http://h{n}") for n in range(4)))
        assert all(b >= end + 1 for (_, end), (b, _) in pairwise(spans))

    run(scenario())


def test_too_long_wait_is_refused_at_once(run: Any) -> None:
    """A wait longer than the patience is refused at once with an estimate, from the remaining pause and the queue."""

    async def scenario() -> None:
        time = Time()
        pace = Pace(4.0, time, time.sleep)
        async with pace.host("http://a", 0, 10):
            pass
        with pytest.raises(TooLongError) as error:
            async with pace.host("http://a", 0, 3):
                raise AssertionError
        assert (time.now, error.value.wait) == (104, 4)
        async with pace.host("http://a", 0, 10), pace.host("http://b", 0, 10):
            queued = asyncio.create_task(pace.host("http://a", 0, None).__aenter__())
            await asyncio.sleep(0)
            with pytest.raises(TooLongError):
                async with pace.host("http://a", 0, 7):
                    raise AssertionError
        await queued
        assert time.now == 112

    run(scenario())


def test_request_behind_a_slow_one_is_refused_in_time(run: Any) -> None:
    """A request behind one that does not end is refused when its patience is over."""

    async def scenario() -> None:
        pace = Pace(0.0)
        async with pace.host("http://a", 0, 1):
            with pytest.raises(TooLongError):
                async with pace.host("http://a", 0, 0.01):
                    raise AssertionError
        async with pace.host("http://a", 0, 1):
            pass

    run(scenario())


def test_number_of_hosts_is_bounded(run: Any) -> None:
    """The number of remembered hosts is bounded: those without waiting requests are dropped."""

    async def scenario() -> None:
        time = Time()
        pace = Pace(1.0, time, time.sleep)
        for n in range(MANY * 3):
            async with pace.host(f"http://h{n}", 0, 10):
                time.now += 0.01
        assert len(pace._slots) <= MANY + 200

    run(scenario())


def test_request_with_a_too_long_pause_is_deferred(edge: Any, run: Any, split: Any, make_answer: Any, make_request: Any) -> None:
    """A request whose host asks for a pause beyond the patience is deferred with the time to wait; a resolve request waits."""

    async def scenario() -> None:
        time = Time()
        pages = {"/x": make_answer(body=b"1"), "/robots.txt": make_answer(body=b"")}
        async with edge(pages, pace=Pace(1.0, time, time.sleep), patience=10.0) as world:
            got, _ = split(await world.get("/x"))
            assert got is not None
            got, event = split(await world.get("/x", pause=60_000))
            assert (got, event.kind, event.wait) == (None, "deferred", 60_000)
            world.fetcher.pace.hold(world.server.host, 60)
            assert (await world.resolve()).robots == b""
            assert time.now >= 160

    run(scenario())


def test_overloaded_host_is_held(edge: Any, run: Any, split: Any, make_answer: Any) -> None:
    """After 429 or 503 a host gets no request for the wait of Retry-After, or for twice its pause; the event has the status."""

    async def scenario() -> None:
        time = Time()
        busy, slow = make_answer("503 Busy", Retry_After="30"), make_answer("429 Slow down")
        pages = {"/busy": busy, "/slow": slow, "/odd": make_answer("500 Odd"), "/x": make_answer(body=b"1")}
        async with edge(pages, pace=Pace(1.0, time, time.sleep), pause=1.0) as world:
            for path, status, free in (("/busy", 503, 30.0), ("/slow", 429, 2.0), ("/odd", 500, 1.0)):
                got, event = split(await world.get(path))
                assert (got, event.kind, event.status, event.latency) == (None, "failed", status, -1)
                assert world.fetcher.pace.host_free_at(world.server.host, 0.0) - time.now == free
                time.now += free
            _, event = split(await world.get("/x"))
            assert (event.kind, event.status, event.latency >= 0) == ("fetched", 0, True)

    run(scenario())
