from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

import pytest

from streams.fetch.pace import MANY, Pace, TooLongError


class Time:
    """A clock that moves only when someone sleeps."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds
        await asyncio.sleep(0)


def test_a_pause_between_end_and_start(run: Any) -> None:
    """The next request of a host starts one pause after the end of the one before; the longer pause wins."""

    async def scenario() -> None:
        time = Time()
        pace, starts = Pace(1.0, time, time.sleep), []
        for pause in (0.0, 5.0, 0.0, 0.0):
            async with pace.host("http://a", pause, 10):
                starts.append(time.now)
                time.now += 2
        assert starts == [100, 103, 110, 113]

    run(scenario())


def test_an_address_rests_after_a_start(run: Any) -> None:
    """An address is not asked in the first pause after a start; one met later is asked at once."""

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


def test_addresses_rest_when_they_come_from_elsewhere(run: Any) -> None:
    """When another process may have asked them, known addresses and new ones wait as after a start."""

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
    """Hosts of one address take turns; each waits for the end of the other, and a pause."""

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


def test_who_would_wait_too_long_is_told_at_once(run: Any) -> None:
    """A wait beyond the patience is refused at once with an estimate, by the time left and by those ahead."""

    async def scenario() -> None:
        time = Time()
        pace = Pace(4.0, time, time.sleep)
        async with pace.host("http://a", 0, 10):
            pass
        with pytest.raises(TooLongError) as error:
            async with pace.host("http://a", 0, 3):
                raise AssertionError
        assert error.value.wait == 4
        async with pace.host("http://a", 0, 10), pace.host("http://b", 0, 10):
            queued = asyncio.create_task(pace.host("http://a", 0, None).__aenter__())
            await asyncio.sleep(0)
            with pytest.raises(TooLongError):
                async with pace.host("http://a", 0, 7):
                    raise AssertionError
        await queued
        assert time.now == 108

    run(scenario())


def test_a_host_that_is_slow_does_not_keep_the_others(run: Any) -> None:
    """Who waits behind a request that does not end is let go when its patience is over."""

    async def scenario() -> None:
        pace = Pace(0.0)
        async with pace.host("http://a", 0, 1):
            with pytest.raises(TooLongError):
                async with pace.host("http://a", 0, 0.01):
                    raise AssertionError
        async with pace.host("http://a", 0, 1):
            pass

    run(scenario())


def test_hosts_are_forgotten(run: Any) -> None:
    """The memory of hosts is bounded: those that nobody waits for go."""

    async def scenario() -> None:
        time = Time()
        pace = Pace(1.0, time, time.sleep)
        for n in range(MANY * 3):
            async with pace.host(f"http://h{n}", 0, 10):
                time.now += 0.01
        assert len(pace._slots) <= MANY + 200

    run(scenario())


def test_deferred(edge: Any, run: Any, split: Any, make_answer: Any, make_request: Any) -> None:
    """A request whose host asks for a longer pause than our patience goes back with the time to wait; resolving waits."""

    async def scenario() -> None:
        time = Time()
        pages = {"/x": make_answer(body=b"1"), "/robots.txt": make_answer(body=b"")}
        async with edge(pages, pace=Pace(1.0, time, time.sleep), patience=10.0) as world:
            got, _ = split(await world.get("/x", pause=60_000))
            assert got is not None
            got, event = split(await world.get("/x", pause=60_000))
            assert (got, event.kind, event.wait) == (None, "deferred", 60_000)
            assert (await world.resolve()).robots == b""
            assert time.now >= 160

    run(scenario())
