"""How Faust's consumer, as `mends` has it, delivers a record: by no task where nothing has to be waited for, else as Faust does."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any

import pytest
from mode.services import Service

from streams.kafka.decide.client_workarounds import Consumer, Prompt


class Plain(Service):
    """What Faust's consumer is."""


class Mended(Prompt):
    """What ours is."""


async def given() -> str:
    """Waits for nothing."""
    return "given"


async def waited() -> str:
    """Waits twice."""
    for _ in range(2):
        await asyncio.sleep(0.01)
    return "waited"


async def failed() -> str:
    """Waits, and fails."""
    await asyncio.sleep(0.01)
    raise KeyError("failed")


async def failed_at_once() -> str:
    """Waits for nothing, and fails."""
    raise KeyError("at once")


async def never() -> str:
    """Waits for ever."""
    await asyncio.Event().wait()
    return "never"


async def begun(ended: list[str]) -> str:
    """Waits for ever, and says when it is let go."""
    try:
        return await never()
    finally:
        ended.append("ended")


def counting(made: list[object]) -> Callable[..., asyncio.Task[Any]]:
    """A factory of tasks that notes each."""

    def factory(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, Any], **more: Any) -> asyncio.Task[Any]:
        made.append(work)
        return asyncio.Task(work, loop=loop, **more)

    return factory


def first(service: type[Service], one: Callable[[], Awaitable[str]], other: Callable[[], Awaitable[str]]) -> tuple[list[Any], int]:
    """What comes first of two, and how many tasks were made to see it."""
    tasks: list[object] = []

    async def ask() -> tuple[list[Any], int]:
        asyncio.get_running_loop().set_task_factory(counting(tasks))
        answer = await service().wait_first(one(), other())
        assert not answer.stopped
        return answer.results, len(tasks)

    return asyncio.run(ask())


def test_it_is_the_consumer() -> None:
    """Faust's consumer delivers by it."""
    assert issubclass(Consumer, Prompt)
    assert Consumer.wait_first is Prompt.wait_first


@pytest.mark.parametrize(("service", "tasks"), [(Plain, 4), (Mended, 0)], ids=["plain", "mended"])
def test_what_waits_for_nothing_needs_no_task(service: type[Service], tasks: int) -> None:
    """Plain, there are four."""
    assert first(service, given, never) == (["given"], tasks)


@pytest.mark.parametrize("service", [Plain, Mended])
def test_what_waits_is_waited_for(service: type[Service]) -> None:
    """From where it waits on, to its end; what waits for longer is let go."""
    assert first(service, waited, never)[0] == ["waited"]


@pytest.mark.parametrize("service", [Plain, Mended])
def test_the_other_may_be_first(service: type[Service]) -> None:
    """Then what was begun is ended where it waits."""
    ended: list[str] = []
    assert first(service, partial(begun, ended), waited)[0] == ["waited"]
    assert ended == ["ended"]


@pytest.mark.parametrize("service", [Plain, Mended])
@pytest.mark.parametrize("fails", [failed, failed_at_once])
def test_what_fails_is_told(service: type[Service], fails: Callable[[], Awaitable[str]]) -> None:
    """At once, or behind what it waited for."""
    with pytest.raises(KeyError):
        first(service, fails, never)


@pytest.mark.parametrize("service", [Plain, Mended])
def test_who_asks_may_be_cancelled(service: type[Service]) -> None:
    """What was begun ends with it."""
    ended: list[str] = []

    async def ask() -> None:
        asking = asyncio.ensure_future(service().wait_first(begun(ended), never()))
        await asyncio.sleep(0.01)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        await asyncio.sleep(0)

    asyncio.run(ask())
    assert ended == ["ended"]
