"""Channels to other brokers."""

from __future__ import annotations

import asyncio

import pytest

from moldau.peers.channel import ChannelError
from moldau.wire.apis import ApiKey
from moldau.wire.message import Message
from moldau.wire.messages import ListOffsetsRequest, ListOffsetsResponse
from support.other_brokers import FAR, ME, NEAR, OtherBrokers, settle


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


def test_calls_to_a_broker_that_is_fenced_fail() -> None:
    async def scene() -> None:
        brokers = OtherBrokers()
        brokers.peers[NEAR].answer = nothing
        brokers.peers[NEAR].gate.clear()
        asking = ask(brokers, NEAR)
        await settle()
        brokers.fence(NEAR)
        with pytest.raises(ChannelError):
            await asking
        with pytest.raises(ChannelError, match="broker 2 is fenced or gone"):
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
        with pytest.raises(ChannelError, match="this node is stopping"):
            await ask(brokers, NEAR)

    asyncio.run(scene())
