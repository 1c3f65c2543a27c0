"""A cluster of three brokers as one of them sees it: metadata to change, and peers with responses
that a test chooses. Requests and responses are encoded and decoded."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from uuid import NAMESPACE_DNS, UUID, uuid5

from moldau.broker.calls.brokers import BrokerChannels, PartitionLeaders
from moldau.broker.calls.leader_calls import Brokers
from moldau.broker.metadata.machine.delta import MetadataDelta
from moldau.broker.metadata.machine.image import MetadataImage
from moldau.peers.channel import ChannelError, RawResponse
from moldau.wire.apis import API_BY_KEY, ApiKey
from moldau.wire.codec import decode, encode
from moldau.wire.message import Message
from moldau.wire.messages import (
    BrokerRegistrationChangeRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from moldau.wire.uuids import DIRECTORY_UNASSIGNED

ME, NEAR, FAR = 1, 2, 3
LISTENER = "INTERNAL"

Answer = Callable[[ApiKey, Message], Awaitable[Message]]


class OtherBroker:
    """Keeps what it was asked, and answers with `answer` once `gate` is open."""

    def __init__(self) -> None:
        self.asked: list[Message] = []
        self.answer: Answer | None = None
        self.gate = asyncio.Event()
        self.gate.set()
        self.cut = False
        self.cut_after = False
        """The request is carried out, but its answer is lost."""


class _Channel:
    def __init__(self, broker: OtherBroker, address: tuple[str, int]) -> None:
        self.address = address
        self.closed = asyncio.Event()
        self._broker = broker

    async def call(
        self, key: ApiKey, request: Message, *, timeout_ms: int, max_version: int | None = None
    ) -> Message:
        api, broker = API_BY_KEY[key], self._broker
        assert timeout_ms > 0
        assert max_version is None
        version = api.max_version
        request = decode(api.request, version, encode(request, version))
        if self.closed.is_set() or broker.cut:
            raise ChannelError("cut, as told")
        broker.asked.append(request)
        answering = asyncio.ensure_future(self._answered(key, request))
        closing = asyncio.ensure_future(self.closed.wait())
        await asyncio.wait([answering, closing], return_when=asyncio.FIRST_COMPLETED)
        closing.cancel()
        if not answering.done():
            answering.cancel()
            raise ChannelError("closed while waiting")
        response = answering.result()
        if broker.cut_after:
            raise ChannelError("the answer is lost, as told")
        return decode(api.response, version, encode(response, version))

    async def _answered(self, key: ApiKey, request: Message) -> Message:
        await self._broker.gate.wait()
        assert self._broker.answer is not None, f"nobody expects {request}"
        return await self._broker.answer(key, request)

    async def call_raw(
        self, key: ApiKey, request: Message, *, timeout_ms: int, max_version: int | None = None
    ) -> RawResponse:
        raise AssertionError("nobody reads bytes here")

    def close(self) -> None:
        self.closed.set()


class OtherBrokers:
    def __init__(self) -> None:
        self.image = MetadataImage()
        self.peers = {NEAR: OtherBroker(), FAR: OtherBroker()}
        self.channels: list[_Channel] = []
        self.leaders = PartitionLeaders(lambda: self.image, LISTENER)
        self.out = BrokerChannels(self, self.leaders)
        self.brokers = Brokers(
            node_id=ME, leaders=self.leaders, channels=self.out, timeout_ms=lambda: 30_000
        )
        for broker_id in (ME, NEAR, FAR):
            self.register(broker_id)

    def channel(self, node_id: int, host: str, port: int, listener_name: str) -> _Channel:
        """Implements `Transport`."""
        assert listener_name == LISTENER
        channel = _Channel(self.peers[node_id], (host, port))
        self.channels.append(channel)
        return channel

    def apply(self, *records: Message) -> None:
        delta = MetadataDelta()
        for record in records:
            self.image.replay(record, delta)
        self.out.apply(delta, self.image)

    def register(self, broker_id: int, *, epoch: int = 1, port: int = 9_000) -> None:
        endpoint = RegisterBrokerRecord.BrokerEndpoint
        self.apply(
            RegisterBrokerRecord(
                broker_id=broker_id,
                broker_epoch=epoch,
                fenced=False,
                rack=None,
                end_points=[
                    endpoint(name="EXTERNAL", host="nobody", port=1),
                    endpoint(name=LISTENER, host=f"host{broker_id}", port=port + broker_id),
                ],
            )
        )

    def fence(self, broker_id: int, *, epoch: int = 1) -> None:
        self.apply(
            BrokerRegistrationChangeRecord(broker_id=broker_id, broker_epoch=epoch, fenced=1)
        )

    def create_topic(self, name: str, *leaders: int) -> UUID:
        topic_id = uuid5(NAMESPACE_DNS, name)
        self.apply(
            TopicRecord(name=name, topic_id=topic_id),
            *(
                PartitionRecord(
                    partition_id=index,
                    topic_id=topic_id,
                    replicas=[ME, NEAR, FAR],
                    directories=[DIRECTORY_UNASSIGNED] * 3,
                    isr=[ME, NEAR, FAR],
                    leader=leader,
                    leader_epoch=0,
                    partition_epoch=0,
                )
                for index, leader in enumerate(leaders)
            ),
        )
        return topic_id

    def move(self, name: str, index: int, leader: int) -> None:
        topic_id = self.image.topics_by_name[name].id
        self.apply(PartitionChangeRecord(partition_id=index, topic_id=topic_id, leader=leader))

    def delete_topic(self, name: str) -> None:
        self.apply(RemoveTopicRecord(topic_id=self.image.topics_by_name[name].id))


async def settle(rounds: int = 20) -> None:
    """Let everything happen that needs no time to pass."""
    for _ in range(rounds):
        await asyncio.sleep(0)
