"""Shared subscriptions: `$share/NAME/FILTER` is the share group `mqtt:NAME:FILTER`.

One share consumer per group and proxy takes records for all members that are connected here, and
gives each to one of them in turn; the broker divides records between proxies. A record is accepted
once its client has acknowledged it, and released if the client goes away before. While clients
have records, their locks are renewed.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from contextlib import suppress
from typing import Any, Final, Protocol

from moldau.client import (
    AcknowledgeType,
    AsyncAdmin,
    AsyncShareConsumer,
    KafkaError,
    OffsetSpec,
    TopicPartition,
)
from moldau.client.consumer_record import ConsumerRecord
from moldau.services.mqtt.config import MqttConfig
from moldau.services.mqtt.machine.outbound import Delivery
from moldau.services.mqtt.machine.subscriptions import Subscription
from moldau.services.mqtt.machine.topics import SharedFilter, matches
from moldau.services.mqtt.reading import message_of

__all__ = ["Member", "SharedReaders", "Token"]

logger = logging.getLogger(__name__)

_POLL_S: Final = 1.0
_RETRY_S: Final = 0.5
_CLOSE_S: Final = 5.0
#: Clients that take longer have their locks renewed.
_SETTLE_S: Final = 2.0


class Member(Protocol):
    """A session, as a shared subscription sees it."""

    def offer_shared(self, delivery: Delivery) -> bool: ...


class Token:
    """A record that a client has; `settle` it once."""

    __slots__ = ("_reader", "holder", "outcome", "record")

    def __init__(self, reader: _Reader, record: ConsumerRecord[Any, Any]) -> None:
        self._reader = reader
        self.record = record
        self.holder: Member | None = None
        self.outcome: AcknowledgeType | None = None

    def settle(self, *, accepted: bool) -> None:
        if self.outcome is None:
            self.outcome = AcknowledgeType.ACCEPT if accepted else AcknowledgeType.RELEASE
            self._reader.settled.set()


class _Reader:
    """The share consumer of one group."""

    def __init__(
        self, config: MqttConfig, settings: dict[str, str], admin: AsyncAdmin, name: SharedFilter
    ) -> None:
        self._config = config
        self._mapper = config.mapper
        self._admin = admin
        self._filter = name.filter
        self.group = f"mqtt:{name.name}:{name.filter}"
        self._consumer: AsyncShareConsumer[bytes | None, bytes | None] = AsyncShareConsumer(
            {**settings, "group.id": self.group, "client.id": "mqtt-shared"}
        )
        self.members: dict[Member, Subscription] = {}
        self._turn: deque[Member] = deque()
        self._tokens: dict[tuple[str, int, int], Token] = {}
        self.settled = asyncio.Event()
        self._stopping = False
        self._task: asyncio.Task[None] | None = None
        self._starting: asyncio.Task[None] | None = None

    async def start(self) -> None:
        if self._starting is None:
            self._starting = asyncio.get_running_loop().create_task(self._start())
        await asyncio.shield(self._starting)

    async def _start(self) -> None:
        topics = await self._topics()
        existing = await self._admin.list_share_group_offsets(self.group, check=False)
        known = existing.values_by_key.get(self.group) or {}
        missing = [topic for topic in topics if not any(key.topic == topic for key in known)]
        if missing:
            # Else the group would begin at the end it finds when its consumer has joined, and
            # messages between SUBACK and that moment would be lost.
            found = await self._admin.describe_topics(missing, check=False)
            keys = [
                TopicPartition(each.name, part.partition)
                for each in found.values_by_key.values()
                for part in each.partitions
            ]
            ends = await self._admin.list_offsets({key: OffsetSpec.latest() for key in keys})
            if ends:
                offsets = {key: ends[key].offset for key in ends}
                await self._admin.alter_share_group_offsets(self.group, offsets, check=False)
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def _topics(self) -> list[str]:
        named = self._mapper.named_topics(self._filter)
        if self._mapper.is_open(self._filter):
            listed = await self._admin.list_topics()
            named |= {each for each in listed if self._mapper.wants(self._filter, each)}
        return sorted(named)

    async def stop(self) -> None:
        self._stopping = True
        tasks = [each for each in (self._starting, self._task) if each is not None]
        for task in tasks:
            task.cancel()
        if tasks:
            # A wait that ends just now can swallow the cancellation: then the flag ends the task.
            await asyncio.wait(tasks, timeout=_CLOSE_S)
        with suppress(KafkaError):
            await self._consumer.close(timeout=_CLOSE_S)

    def join(self, member: Member, subscription: Subscription) -> None:
        if member not in self.members:
            self._turn.append(member)
        self.members[member] = subscription

    def quit(self, member: Member) -> None:
        """What the member has not acknowledged goes to others."""
        if self.members.pop(member, None) is not None:
            self._turn.remove(member)
        for token in self._tokens.values():
            if token.holder is member:
                token.settle(accepted=False)

    async def _run(self) -> None:
        topics: list[str] = []
        refreshed_s = 0.0
        refresh_s = self._config["topics.refresh.ms"] / 1000
        loop = asyncio.get_running_loop()
        while not self._stopping:
            try:
                if not topics or loop.time() - refreshed_s > refresh_s:
                    refreshed_s = loop.time()
                    found = await self._topics()
                    if found != topics and found:
                        topics = found
                        self._consumer.subscribe(topics)
                if not topics:
                    await asyncio.sleep(_RETRY_S)
                    continue
                records = list(await self._consumer.poll(_POLL_S))
                self._hand_out(records)
                await self._wait(records)
                self._acknowledge(records)
                await self._consumer.commit_async()
            except KafkaError as error:
                logger.warning("the share group %s cannot be read now: %s", self.group, error)
                self._tokens.clear()
                await asyncio.sleep(_RETRY_S)

    def _hand_out(self, records: list[ConsumerRecord[Any, Any]]) -> None:
        for record in records:
            key = (record.topic, record.partition, record.offset)
            if key not in self._tokens:
                self._tokens[key] = Token(self, record)
            token = self._tokens[key]
            if token.holder is None and token.outcome is None:
                self._give(token)

    def _give(self, token: Token) -> None:
        message = message_of(self._mapper, token.record)
        if message is None or not matches(self._filter, message.topic):
            token.settle(accepted=True)
            return
        # Its place in the log is not the session's position.
        message.partition = None
        for _ in range(len(self._turn)):
            member = self._turn[0]
            self._turn.rotate(-1)
            subscription = self.members[member]
            ids = (subscription.subscription_id,) if subscription.subscription_id else ()
            retain = message.retain and subscription.retain_as_published
            qos = min(message.qos, subscription.qos)
            token.holder = member
            if member.offer_shared(Delivery(message, qos, retain, ids, token)):
                return
        token.holder = None

    async def _wait(self, records: list[ConsumerRecord[Any, Any]]) -> None:
        """Until all are settled, or locks must be renewed."""
        keys = [(each.topic, each.partition, each.offset) for each in records]
        deadline_s = asyncio.get_running_loop().time() + _SETTLE_S
        while any(self._tokens[key].outcome is None for key in keys if key in self._tokens):
            left_s = deadline_s - asyncio.get_running_loop().time()
            self.settled.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self.settled.wait(), max(left_s, 0.0))
            if left_s <= 0:
                break
            for key in keys:
                token = self._tokens.get(key)
                if token is not None and token.holder is None and token.outcome is None:
                    self._give(token)

    def _acknowledge(self, records: list[ConsumerRecord[Any, Any]]) -> None:
        for record in records:
            key = (record.topic, record.partition, record.offset)
            outcome = self._tokens[key].outcome
            if outcome is None:
                self._consumer.acknowledge(record, AcknowledgeType.RENEW)
            else:
                self._consumer.acknowledge(record, outcome)
                del self._tokens[key]


class SharedReaders:
    """The share groups of one user."""

    def __init__(self, config: MqttConfig, settings: dict[str, str], admin: AsyncAdmin) -> None:
        self._config = config
        self._settings = settings
        self._admin = admin
        self._readers: dict[SharedFilter, _Reader] = {}
        self._closing: set[asyncio.Task[None]] = set()

    async def join(self, name: SharedFilter, member: Member, subscription: Subscription) -> None:
        """Raises KafkaError."""
        reader = self._readers.get(name)
        if reader is None:
            reader = _Reader(self._config, self._settings, self._admin, name)
            self._readers[name] = reader
        reader.join(member, subscription)
        try:
            await reader.start()
        except BaseException:
            self.quit(name, member)
            raise

    def quit(self, name: SharedFilter, member: Member) -> None:
        reader = self._readers.get(name)
        if reader is None:
            return
        reader.quit(member)
        if not reader.members:
            del self._readers[name]
            task = asyncio.get_running_loop().create_task(reader.stop())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

    async def stop(self) -> None:
        for reader in self._readers.values():
            await reader.stop()
        if self._closing:
            await asyncio.wait(self._closing, timeout=_CLOSE_S)
