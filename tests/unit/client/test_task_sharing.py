"""Tasks that several wait for: whoever is cancelled leaves them running, and nothing is logged."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from moldau.client.coordinator_finder import CoordinatorFinder
from moldau.client.errors import ClosedError
from moldau.client.machine.coordinators import CoordinatorType
from moldau.client.task_sharing import shared
from moldau.wire.message import Message


def run(test: Callable[[], Awaitable[None]]) -> list[dict[str, Any]]:
    """What asyncio would have logged."""
    logged: list[dict[str, Any]] = []

    async def watched() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: logged.append(context))
        await test()
        gc.collect()

    asyncio.run(watched())
    return logged


def test_a_failure_that_all_who_waited_have_left_is_not_logged() -> None:
    async def test() -> None:
        fails = asyncio.Event()

        async def fail() -> None:
            await fails.wait()
            raise OSError("no connection")

        task = asyncio.create_task(fail())
        waiter = asyncio.create_task(shared(task, lambda: False))
        await asyncio.sleep(0)
        waiter.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiter
        assert not task.done()
        fails.set()
        await asyncio.wait([task])

    assert run(test) == []


def test_those_who_stay_are_told() -> None:
    async def test() -> None:
        fails = asyncio.Event()

        async def fail() -> None:
            await fails.wait()
            raise OSError("no connection")

        task = asyncio.create_task(fail())
        leaves, stays = (asyncio.create_task(shared(task, lambda: False)) for _ in range(2))
        await asyncio.sleep(0)
        leaves.cancel()
        await asyncio.wait([leaves])
        fails.set()
        with pytest.raises(OSError, match="no connection"):
            await stays

    assert run(test) == []


def test_the_end_of_the_client_is_said() -> None:
    async def test() -> None:
        task = asyncio.create_task(asyncio.Event().wait())
        waiter = asyncio.create_task(shared(task, lambda: True))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(ClosedError):
            await waiter

    assert run(test) == []


def test_a_question_about_a_coordinator_that_fails_after_its_caller_left_is_not_logged() -> None:
    """A consumer that is closed leaves its question; then the connections go away."""

    async def test() -> None:
        closes = asyncio.Event()

        async def call_any(request: Message, *, max_version: int | None = None) -> Any:
            await closes.wait()
            raise ClosedError("the client was closed")

        finder = CoordinatorFinder(call_any, closes.is_set)
        caller = asyncio.create_task(finder.find(CoordinatorType.GROUP, "group"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        caller.cancel()
        await asyncio.wait([caller])
        closes.set()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        await finder.close()

    assert run(test) == []
