"""Rows of a push query on their way from the query's thread to the event loop."""

from __future__ import annotations

import asyncio
import threading
from collections import deque

import pytest

from moldau.services.sql.pushing import RowQueue


def test_rows_that_wait_are_taken_together_and_in_order() -> None:
    async def scenario() -> None:
        queue = RowQueue(10, asyncio.get_running_loop())
        for number in range(5):
            queue.put(number)
        assert await queue.take() == [0, 1, 2, 3, 4]
        queue.put(5)
        assert await queue.take() == [5]

    asyncio.run(scenario())


def test_a_thread_waits_until_there_is_room_and_nothing_is_lost() -> None:
    async def scenario() -> None:
        queue = RowQueue(3, asyncio.get_running_loop())
        writer = threading.Thread(target=lambda: deque(map(queue.put, range(100)), 0))
        writer.start()
        taken: list[int] = []
        while len(taken) < 100:
            rows = await queue.take()
            assert len(rows) <= 3
            taken += rows
        assert taken == list(range(100))
        await asyncio.to_thread(writer.join, 10)

    asyncio.run(scenario())


def test_without_rows_the_wait_ends() -> None:
    async def scenario() -> None:
        queue = RowQueue(3, asyncio.get_running_loop())
        with pytest.raises(TimeoutError):
            await queue.take()

    asyncio.run(scenario())


def test_closing_frees_a_thread_that_waits() -> None:
    async def scenario() -> None:
        queue = RowQueue(1, asyncio.get_running_loop())
        queue.put("first")
        writer = threading.Thread(target=queue.put, args=("second",))
        writer.start()
        queue.close()
        await asyncio.to_thread(writer.join, 10)
        assert not writer.is_alive()
        queue.put("third")
        assert await queue.take() == ["first"]

    asyncio.run(scenario())
