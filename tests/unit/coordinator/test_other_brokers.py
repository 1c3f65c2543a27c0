"""Channels to other brokers, and calls that share requests."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from moldau.broker.calls.gathering import Gathering
from moldau.broker.coordinator.machine.topics import ImageTopics
from moldau.broker.metadata.machine.model import Node
from moldau.peers.channel import ChannelError
from moldau.wire.apis import ApiKey
from moldau.wire.message import Message
from moldau.wire.messages import ListOffsetsRequest, ListOffsetsResponse
from support.other_brokers import FAR, LISTENER, ME, NEAR, OtherBrokers, settle

# Channels.


async def nothing(key: ApiKey, request: Message) -> Message:
    return ListOffsetsResponse()


def ask(brokers: OtherBrokers, broker_id: int) -> asyncio.Task[Message]:
    return asyncio.ensure_future(
        brokers.out.call(broker_id, ApiKey.LIST_OFFSETS, ListOffsetsRequest(), timeout_ms=100)
    )


def test_a_broker_keeps_its_channel_until_it_moves() -> None:
    async def scene() -> None:
        brokers = OtherBrokers()
        brokers.peers[NEAR].answer = brokers.peers[FAR].answer = nothing
        for broker_id in (NEAR, NEAR, FAR):
            await ask(brokers, broker_id)
        assert [channel.address for channel in brokers.channels] == [
            ("host2", 9_002),
            ("host3", 9_003),
        ]
        brokers.register(NEAR, epoch=2, port=9_100)
        await ask(brokers, NEAR)
        assert brokers.channels[-1].address == ("host2", 9_102)
        assert brokers.channels[0].closed.is_set()
        assert not brokers.channels[1].closed.is_set()

    asyncio.run(scene())


def test_who_waits_for_a_broker_that_is_given_up_is_told() -> None:
    async def scene() -> None:
        brokers = OtherBrokers()
        brokers.peers[NEAR].answer = nothing
        brokers.peers[NEAR].gate.clear()
        asking = ask(brokers, NEAR)
        await settle()
        brokers.fence(NEAR)
        with pytest.raises(ChannelError):
            await asking
        with pytest.raises(ChannelError, match="broker 2 is not alive"):
            await ask(brokers, NEAR)
        brokers.register(NEAR, epoch=2)
        brokers.peers[NEAR].gate.set()
        await ask(brokers, NEAR)

    asyncio.run(scene())


def test_changes_of_others_cut_nobody_off() -> None:
    async def scene() -> None:
        brokers = OtherBrokers()
        brokers.peers[NEAR].answer = nothing
        brokers.peers[NEAR].gate.clear()
        asking = ask(brokers, NEAR)
        await settle()
        brokers.fence(FAR)
        brokers.create_topic("t", ME, NEAR)
        await settle()
        assert not asking.done()
        brokers.out.close()
        with pytest.raises(ChannelError):
            await asking
        with pytest.raises(ChannelError, match="this node stops"):
            await ask(brokers, NEAR)

    asyncio.run(scene())


# Gathering.


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
        sender.errors = [ChannelError("as told")]
        sender.gate.set()
        with pytest.raises(ChannelError):
            await first
        assert await second == "B"

    asyncio.run(scene())


def test_who_gives_up_in_time_is_not_part_of_the_request() -> None:
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


def test_closing_fails_what_waits() -> None:
    async def scene() -> None:
        sender = Sender()
        calls = gathering(sender)
        tasks = [asyncio.ensure_future(calls.call("x", "a"))]
        await settle()
        tasks.append(asyncio.ensure_future(calls.call("x", "b")))
        await settle()
        calls.close()
        for task in tasks:
            with pytest.raises(ChannelError):
                await task

    asyncio.run(scene())


# What FindCoordinator answers from.


def test_a_coordinator_is_named_by_the_listener_that_was_asked() -> None:
    brokers = OtherBrokers()
    brokers.create_topic("__consumer_offsets", NEAR, -1)
    topics = ImageTopics(lambda: brokers.image)
    assert topics.leader("__consumer_offsets", 0, LISTENER) == Node(NEAR, "host2", 9_002)
    assert topics.leader("__consumer_offsets", 0, "EXTERNAL") == Node(NEAR, "nobody", 1)
    assert topics.leader("__consumer_offsets", 0, "UNKNOWN") is None
    assert topics.leader("__consumer_offsets", 1, LISTENER) is None
    brokers.fence(NEAR)
    assert topics.leader("__consumer_offsets", 0, LISTENER) is None
    brokers.move("__consumer_offsets", 0, FAR)
    assert topics.leader("__consumer_offsets", 0, LISTENER) == Node(FAR, "host3", 9_003)
