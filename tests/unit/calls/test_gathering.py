"""Many calls in few requests."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from moldau.broker.calls.gathering import Gathering
from moldau.peers.channel import ChannelError
from support.other_brokers import settle


class Sender:
    def __init__(self) -> None:
        self.requests: list[tuple[str, list[str]]] = []
        self.gate = asyncio.Event()
        self.errors: list[Exception] = []

    async def __call__(self, destination: str, items: Sequence[str]) -> list[str]:
        self.requests.append((destination, list(items)))
        await self.gate.wait()
        if self.errors:
            raise self.errors.pop()
        return [item.upper() for item in items]


def gathering(sender: Sender, item_count_max: int = 10) -> Gathering[str, str, str]:
    return Gathering(sender, key=lambda item: item[0], item_count_max=item_count_max)


def test_what_is_asked_while_a_request_is_under_way_goes_into_the_next() -> None:
    async def scene() -> None:
        sender = Sender()
        calls = gathering(sender, item_count_max=3)
        tasks = [asyncio.ensure_future(calls.call("x", item)) for item in ("a", "b")]
        await settle()
        tasks += [asyncio.ensure_future(calls.call("x", item)) for item in "cdefg"]
        tasks.append(asyncio.ensure_future(calls.call("y", "z")))
        await settle()
        assert sender.requests == [("x", ["a", "b"]), ("y", ["z"])]
        sender.gate.set()
        assert await asyncio.gather(*tasks) == ["A", "B", "C", "D", "E", "F", "G", "Z"]
        assert sender.requests[2:] == [("x", ["c", "d", "e"]), ("x", ["f", "g"])]

    asyncio.run(scene())


def test_calls_of_one_key_go_one_after_the_other() -> None:
    async def scene() -> None:
        sender = Sender()
        sender.gate.set()
        calls = gathering(sender)
        items = ["a1", "a2", "b1", "a3"]
        assert await asyncio.gather(*(calls.call("x", each) for each in items)) == [
            "A1",
            "A2",
            "B1",
            "A3",
        ]
        assert [items for _, items in sender.requests] == [["a1", "b1"], ["a2"], ["a3"]]

    asyncio.run(scene())


def test_a_failed_request_fails_its_calls_and_no_others() -> None:
    async def scene() -> None:
        sender = Sender()
        calls = gathering(sender)
        first = asyncio.ensure_future(calls.call("x", "a"))
        await settle()
        second = asyncio.ensure_future(calls.call("x", "b"))
        sender.errors = [ChannelError("planted")]
        sender.gate.set()
        with pytest.raises(ChannelError):
            await first
        assert await second == "B"

    asyncio.run(scene())


def test_a_call_that_is_cancelled_in_time_is_not_part_of_the_request() -> None:
    async def scene() -> None:
        sender = Sender()
        calls = gathering(sender)
        sent = asyncio.ensure_future(calls.call("x", "a"))
        await settle()
        waiting = [asyncio.ensure_future(calls.call("x", each)) for each in "bc"]
        await settle()
        sent.cancel()
        waiting[0].cancel()
        await settle()
        sender.gate.set()
        assert await waiting[1] == "C"
        assert sender.requests == [("x", ["a"]), ("x", ["c"])]

    asyncio.run(scene())


def test_calls_fail_when_their_task_is_cancelled() -> None:
    async def scene() -> None:
        sender = Sender()
        calls = gathering(sender)
        tasks = [asyncio.ensure_future(calls.call("x", "a"))]
        await settle()
        tasks.append(asyncio.ensure_future(calls.call("x", "b")))
        await settle()
        (draining,) = calls._tasks.values()
        draining.cancel()
        for task in tasks:
            with pytest.raises(ChannelError):
                await task

    asyncio.run(scene())
