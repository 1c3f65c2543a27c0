"""CatchUp: reads the log for one session that is not where the hub is.

That is a session whose client has come back, or one whose client was slower than its messages.
Consumers are few (`catch.up.readers.max`) and given back while a client makes no room.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import Any, Final, Protocol

from moldau.client import AsyncConsumer, KafkaError, TopicPartition
from moldau.services.mqtt.clients import ClientSet
from moldau.services.mqtt.config import MqttConfig
from moldau.services.mqtt.machine.flow import Flow, InFlight
from moldau.services.mqtt.machine.outbound import RELEASED, Delivery, Outbound
from moldau.services.mqtt.machine.records import Message
from moldau.services.mqtt.machine.subscriptions import Subscription, matching
from moldau.services.mqtt.reading import message_of

__all__ = ["CatchUp", "Follower"]

logger = logging.getLogger(__name__)

_POLL_S: Final = 0.5
_RETRY_S: Final = 0.5
_ROOM_S: Final = 1.0
_CLOSE_S: Final = 2.0
_SLICE: Final = 100
Consumer = AsyncConsumer[bytes | None, bytes | None]


class Follower(Protocol):
    """The session."""

    client_id: str
    clients: ClientSet
    outbound: Outbound
    behind: dict[TopicPartition, int] | None
    subscriptions: dict[str, Subscription]

    def offer_now(self, message: Message, subscriptions: list[Subscription]) -> bool: ...

    def flush(self) -> None: ...

    def resend(self) -> None: ...


class CatchUp:
    def __init__(self, session: Follower, config: MqttConfig, flow: Flow | None) -> None:
        self._session = session
        self._mapper = config.mapper
        self._flow = flow
        self.room = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def done(self) -> bool:
        return self._task is not None and self._task.done()

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run())

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        while True:
            try:
                if self._flow is not None:
                    await self._restore(self._flow)
                    self._flow = None
                if self._arrived():
                    return
                if not self._session.outbound.is_half_empty:
                    self.room.clear()
                    self._session.flush()
                    if not self._session.outbound.is_half_empty:
                        await self.room.wait()
                async with self._session.clients.catch_up_consumer() as consumer:
                    await self._read(consumer)
            except KafkaError as error:
                logger.warning(
                    "reading for %r failed and is retried: %s", self._session.client_id, error
                )
                await asyncio.sleep(_RETRY_S)

    def _arrived(self) -> bool:
        """Whether the hub can take over, which it then does."""
        behind = self._session.behind
        if behind is None:
            return True
        positions = self._session.clients.hub.positions
        if all(offset >= positions.get(key, 0) for key, offset in behind.items()):
            for key, offset in behind.items():
                if offset > positions.get(key, 0):
                    for each in self._session.subscriptions.values():
                        each.floors[key] = max(offset, each.floors.get(key, 0))
            self._session.behind = None
            return True
        return False

    async def _read(self, consumer: Consumer) -> None:
        """Until the hub is reached, or the client has had no room for a while."""
        behind = self._session.behind
        if not behind:
            return
        consumer.assign(list(behind))
        for key, offset in behind.items():
            consumer.seek(key, offset)
        while not self._arrived():
            assigned = consumer.assignment()
            if behind.keys() - assigned:
                return
            records = await consumer.poll(_POLL_S)
            for key, several in records.items():
                if not await self._offer(key, several):
                    return
            for key, following in records.next_offsets().items():
                behind[key] = max(behind.get(key, 0), following.offset)
            if not records:
                for key in behind:
                    behind[key] = max(behind[key], await consumer.position(key))
            self._session.flush()

    async def _offer(self, key: TopicPartition, records: list[Any]) -> bool:
        behind = self._session.behind
        if behind is None:
            return False
        subscriptions = list(self._session.subscriptions.values())
        for number, record in enumerate(records):
            message = message_of(self._mapper, record)
            if message is not None:
                found = matching(subscriptions, message.topic)
                while found and not self._session.offer_now(message, found):
                    if not await self._wait_for_room():
                        return False
            behind[key] = record.offset + 1
            if number % _SLICE == _SLICE - 1:
                self._session.flush()
                await asyncio.sleep(0)
        return True

    async def _wait_for_room(self) -> bool:
        self.room.clear()
        self._session.flush()
        if self._session.outbound.has_room:
            return True
        with suppress(TimeoutError):
            await asyncio.wait_for(self.room.wait(), _ROOM_S)
        return self._session.outbound.has_room

    # What was in flight when the session was stored.

    async def _restore(self, flow: Flow) -> None:
        wanted = [each for each in flow.in_flight if each.place and each.stage != RELEASED]
        messages: dict[int, Message] = {}
        if wanted:
            async with self._session.clients.catch_up_consumer() as consumer:
                for each in wanted:
                    message = await self._message_at(consumer, each)
                    if message is not None:
                        messages[each.packet_id] = message
        for each in flow.in_flight:
            restored = each.message or messages.get(each.packet_id)
            if restored is None and each.stage == RELEASED:
                restored = Message("released", b"", each.qos)
                if each.place is not None:
                    restored.partition, restored.offset = TopicPartition(*each.place), each.offset
            if restored is not None:
                delivery = Delivery(restored, each.qos, each.retain, each.subscription_ids)
                self._session.outbound.restore(delivery, each.packet_id, each.stage)
        self._session.resend()

    async def _message_at(self, consumer: Consumer, each: InFlight) -> Message | None:
        """None if the log does not have it any more."""
        if each.place is None:
            return None
        key = TopicPartition(*each.place)
        consumer.assign([key])
        first = (await consumer.beginning_offsets([key]))[key]
        end = (await consumer.end_offsets([key]))[key]
        if not first <= each.offset < end:
            return None
        consumer.seek(key, each.offset)
        while await consumer.position(key) <= each.offset:
            for record in (await consumer.poll(_POLL_S)).records(key):
                if record.offset == each.offset:
                    return message_of(self._mapper, record)
                if record.offset > each.offset:
                    return None
        return None
