"""`wait_first` of Faust's consumer with the workaround: it makes no asyncio task for an awaitable that does not wait."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any

import pytest
from mode.services import Service

from streams.kafka.decide.client_workarounds import Consumer, Prompt


class Plain(Service):
    """Faust's own service."""


class Mended(Prompt):
    """The service with the workaround."""


async def given() -> str:
    """Returns without waiting."""
    return "given"


async def waited() -> str:
    """Waits twice, then returns."""
    for _ in range(2):
        await asyncio.sleep(0.01)
    return "waited"


async def failed() -> str:
    """Waits, then fails."""
    await asyncio.sleep(0.01)
    raise KeyError("failed")


async def failed_at_once() -> str:
    """Fails without waiting."""
    raise KeyError("at once")


async def never() -> str:
    """Waits forever."""
    await asyncio.Event().wait()
    return "never"


async def begun(ended: list[str]) -> str:
    """Waits forever; appends to `ended` when it is cancelled."""
    try:
        return await never()
    finally:
        ended.append("ended")


def counting(made: list[object]) -> Callable[..., asyncio.Task[Any]]:
    """A task factory that records each task in `made`."""

    def factory(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, Any], **more: Any) -> asyncio.Task[Any]:
        made.append(work)
        return asyncio.Task(work, loop=loop, **more)

    return factory


def first(service: type[Service], one: Callable[[], Awaitable[str]], other: Callable[[], Awaitable[str]]) -> tuple[list[Any], int]:
    """The results of `wait_first` for two awaitables, and the number of tasks that it made."""
    tasks: list[object] = []

    async def ask() -> tuple[list[Any], int]:
        asyncio.get_running_loop().set_task_factory(counting(tasks))
        answer = await service().wait_first(one(), other())
        assert not answer.stopped
        return answer.results, len(tasks)

    return asyncio.run(ask())


def test_consumer_uses_prompt_wait_first() -> None:
    """The consumer that delivers records uses the workaround."""
    assert issubclass(Consumer, Prompt)
    assert Consumer.wait_first is Prompt.wait_first


@pytest.mark.parametrize(("service", "tasks"), [(Plain, 4), (Mended, 0)], ids=["plain", "mended"])
def test_immediate_result_needs_no_task(service: type[Service], tasks: int) -> None:
    """An awaitable that returns at once needs no task; plain Faust makes four."""
    assert first(service, given, never) == (["given"], tasks)


@pytest.mark.parametrize("service", [Plain, Mended])
def test_waiting_awaitable_is_completed(service: type[Service]) -> None:
    """An awaitable that waits is resumed where it waits, and completed; the slower one is cancelled."""
    assert first(service, waited, never)[0] == ["waited"]


@pytest.mark.parametrize("service", [Plain, Mended])
def test_slower_awaitable_is_cancelled(service: type[Service]) -> None:
    """If the second awaitable is first, the first one is cancelled where it waits."""
    ended: list[str] = []
    assert first(service, partial(begun, ended), waited)[0] == ["waited"]
    assert ended == ["ended"]


@pytest.mark.parametrize("service", [Plain, Mended])
@pytest.mark.parametrize("fails", [failed, failed_at_once])
def test_error_of_awaitable_is_raised(service: type[Service], fails: Callable[[], Awaitable[str]]) -> None:
    """An error of an awaitable is raised, at once or after a wait."""
    with pytest.raises(KeyError):
        first(service, fails, never)


@pytest.mark.parametrize("service", [Plain, Mended])
def test_cancelled_caller_cancels_awaitable(service: type[Service]) -> None:
    """The cancellation of the caller cancels the awaitable that was begun."""
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
