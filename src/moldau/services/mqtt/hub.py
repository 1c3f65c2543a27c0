"""Hub: one consumer that reads for all sessions of a user, and hands records to those that match.

A topic is read while some subscription wants it, from the end it had when the first one came, and
from its beginning if it was created later. A session that cannot keep up is not waited for: it
remembers where it is and reads the log by itself (`catch_up.py`) until it has reached the hub.

Invariants: `positions` has every partition that is read, and everything below a position was
offered to the sessions; a change of subscriptions and an offer never interleave.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, Final, Protocol

from moldau.client import AsyncAdmin, AsyncConsumer, KafkaError, OffsetSpec, TopicPartition
from moldau.client.admin import AclOperation
from moldau.client.errors import TopicAuthorizationFailedError, WakeupError
from moldau.services.mqtt.config import MqttConfig
from moldau.services.mqtt.machine.reasons import MqttError, Reason
from moldau.services.mqtt.machine.records import Message
from moldau.services.mqtt.machine.subscriptions import Subscription
from moldau.services.mqtt.machine.topics import FilterIndex
from moldau.services.mqtt.reading import message_of

__all__ = ["Hub", "Receiver"]

logger = logging.getLogger(__name__)

_POLL_S: Final = 1.0
_RETRY_S: Final = 0.5
_CLOSE_S: Final = 5.0
#: Records handed out before others get their turn.
_SLICE: Final = 200


class Receiver(Protocol):
    """A session, as the hub sees it."""

    def deliver(self, message: Message, subscriptions: list[Subscription]) -> bool:
        """True if it has something to send now."""
        ...

    def flush(self) -> None: ...


class Hub:
    def __init__(
        self,
        config: MqttConfig,
        settings: dict[str, str],
        admin: AsyncAdmin,
        written: Mapping[TopicPartition, int],
    ) -> None:
        """`written` has the ends of what this proxy has written."""
        self._written = written
        self._config = config
        self._mapper = config.mapper
        self._admin = admin
        self._consumer: AsyncConsumer[bytes | None, bytes | None] = AsyncConsumer(settings)
        self._index: FilterIndex[Subscription] = FilterIndex()
        self._filters: dict[str, int] = {}
        #: Topics that are read, with the number of their partitions.
        self._topics: dict[str, int] = {}
        #: All topics at the last look, so that later ones are known to be new.
        self._seen: set[str] = set()
        self._starts: dict[TopicPartition, int] = {}
        self.positions: dict[TopicPartition, int] = {}
        self._changed = asyncio.Event()
        self._look = asyncio.Event()
        self._looking = asyncio.Lock()
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(self._run()), loop.create_task(self._refresh_often())]

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        for task in self._tasks:
            with suppress(asyncio.CancelledError, Exception):
                await task
        with suppress(KafkaError):
            await self._consumer.close(timeout=_CLOSE_S)

    # Subscriptions.

    async def watch(self, filter_text: str) -> dict[TopicPartition, int]:
        """Read what a filter needs; where its topics end now, as far as that is beyond the hub's
        positions. `leave` undoes it.

        Nothing is asked for topics that are read already: the position of the hub and the offsets
        that this proxy has written are where they end.

        Raises MqttError if the user may not read a topic that the filter names, KafkaError.
        """
        is_known = self._is_read(filter_text)
        self._filters[filter_text] = self._filters.get(filter_text, 0) + 1
        if not is_known:
            try:
                async with self._looking:
                    await self._find_topics([filter_text], new_from_start=False)
            except BaseException:
                self.leave(filter_text)
                raise
        written = self._written
        return {
            key: written[key]
            for key, position in self.positions.items()
            if written.get(key, 0) > position and self._mapper.wants(filter_text, key.topic)
        }

    def _is_read(self, filter_text: str) -> bool:
        """Whether all topics of a filter are read, or known not to exist."""
        if filter_text in self._filters:
            return True
        if self._mapper.is_open(filter_text):
            return False
        return all(each in self._topics for each in self._mapper.named_topics(filter_text))

    def leave(self, filter_text: str) -> None:
        left = self._filters.get(filter_text, 0) - 1
        if left > 0:
            self._filters[filter_text] = left
            return
        self._filters.pop(filter_text, None)
        unused = [
            topic
            for topic in self._topics
            if not any(self._mapper.wants(each, topic) for each in self._filters)
        ]
        for topic in unused:
            self._drop(topic)

    def add(self, subscription: Subscription) -> None:
        self._index.put(subscription.filter, subscription.owner, subscription)

    def remove(self, subscription: Subscription) -> None:
        self._index.remove(subscription.filter, subscription.owner)

    def expect(self, topic: str) -> None:
        """A topic was perhaps created: look soon if some filter wants it."""
        if topic not in self._topics and any(
            self._mapper.wants(each, topic) for each in self._filters
        ):
            self._look.set()

    # Topics.

    async def _find_topics(self, filters: Iterable[str], *, new_from_start: bool) -> None:
        """Begin to read topics that these filters want."""
        filters = list(filters)
        named = {each for text in filters for each in self._mapper.named_topics(text)}
        wanted = {each for each in named if each not in self._topics}
        if any(self._mapper.is_open(text) for text in filters):
            existing = set(await self._admin.list_topics())
            wanted |= {
                topic
                for topic in existing
                if topic not in self._topics
                and any(self._mapper.wants(text, topic) for text in filters)
            }
        if not wanted:
            return
        found = await self._admin.describe_topics(
            sorted(wanted), include_authorized_operations=self._config.authenticates, check=False
        )
        partitions: dict[TopicPartition, int] = {}
        for topic, error in found.errors.items():
            if isinstance(error, TopicAuthorizationFailedError) and topic in named:
                raise _not_authorized(str(topic))
        for description in found.values_by_key.values():
            operations = description.authorized_operations
            if operations is not None and AclOperation.READ not in operations:
                if description.name in named:
                    raise _not_authorized(description.name)
                continue
            for each in description.partitions:
                partitions[TopicPartition(description.name, each.partition)] = 0
        fresh = {key for key in partitions if new_from_start and key.topic not in self._seen}
        ends = await self._end_offsets([key for key in partitions if key not in fresh])
        self._seen |= {str(each) for each in found.values_by_key}
        for key in partitions:
            if key not in self.positions:
                self.positions[key] = self._starts[key] = ends.get(key, 0)
                self._topics[key.topic] = max(self._topics.get(key.topic, 0), key.partition + 1)
        self._notify()

    async def _end_offsets(self, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        if not partitions:
            return {}
        found = await self._admin.list_offsets(
            {key: OffsetSpec.latest() for key in partitions}, check=False
        )
        return {key: info.offset for key, info in found.values_by_key.items()}

    def _drop(self, topic: str) -> None:
        self._topics.pop(topic, None)
        for key in [each for each in self.positions if each.topic == topic]:
            del self.positions[key]
            self._starts.pop(key, None)
        self._notify()

    def _notify(self) -> None:
        self._changed.set()
        self._consumer.wakeup()

    async def _refresh_often(self) -> None:
        """Find topics and partitions that were created, and forget those that were deleted."""
        pause_s = self._config["topics.refresh.ms"] / 1000
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._look.wait(), pause_s)
            self._look.clear()
            if not self._filters:
                continue
            try:
                async with self._looking:
                    await self._refresh()
            except MqttError as error:
                logger.warning("a subscription is not served: %s", error)
            except KafkaError as error:
                logger.warning("looking for topics failed and is retried: %s", error)
                await asyncio.sleep(_RETRY_S)

    async def _refresh(self) -> None:
        missing = [
            text
            for text in self._filters
            if self._mapper.is_open(text)
            or any(each not in self._topics for each in self._mapper.named_topics(text))
        ]
        if missing:
            await self._find_topics(missing, new_from_start=True)
        if not self._topics:
            return
        found = await self._admin.describe_topics(sorted(self._topics), check=False)
        for topic in found.errors:
            self._drop(str(topic))
            self._seen.discard(str(topic))
        for each in found.values_by_key.values():
            for number in range(self._topics.get(each.name, 0), len(each.partitions)):
                key = TopicPartition(each.name, number)
                self.positions[key] = self._starts[key] = 0
                self._topics[each.name] = number + 1
                self._notify()

    # Reading.

    async def _run(self) -> None:
        while True:
            try:
                await self._assign()
                if not self.positions:
                    await self._changed.wait()
                    continue
                records = await self._consumer.poll(_POLL_S)
                for key, several in records.items():
                    await self._hand_out(key, several)
            except WakeupError:
                continue
            except KafkaError as error:
                logger.warning("reading for subscriptions failed and is retried: %s", error)
                await asyncio.sleep(_RETRY_S)

    async def _assign(self) -> None:
        if not self._changed.is_set():
            return
        self._changed.clear()
        if not self.positions:
            await self._consumer.unsubscribe()
            return
        assigned = self._consumer.assignment()
        self._consumer.assign(list(self.positions))
        for key, offset in self._starts.items():
            self._consumer.seek(key, offset)
        for key in self.positions.keys() - assigned - self._starts.keys():
            self._consumer.seek(key, self.positions[key])
        self._starts.clear()

    async def _hand_out(self, key: TopicPartition, records: list[Any]) -> None:
        busy: set[Receiver] = set()
        for number, record in enumerate(records):
            if key not in self.positions:
                break
            if record.offset < self.positions[key]:
                # The partition was dropped and taken up again further on.
                continue
            message = message_of(self._mapper, record)
            if message is not None:
                self._offer(message, busy)
            self.positions[key] = record.offset + 1
            if number % _SLICE == _SLICE - 1:
                _flush(busy)
                await asyncio.sleep(0)
        _flush(busy)

    def _offer(self, message: Message, busy: set[Receiver]) -> None:
        found = self._index.match(message.topic)
        if len(found) == 1:
            if found[0].owner.deliver(message, found):
                busy.add(found[0].owner)
            return
        by_owner: dict[Receiver, list[Subscription]] = {}
        for each in found:
            by_owner.setdefault(each.owner, []).append(each)
        for owner, several in by_owner.items():
            if owner.deliver(message, several):
                busy.add(owner)


def _flush(busy: set[Receiver]) -> None:
    for each in busy:
        each.flush()
    busy.clear()


def _not_authorized(topic: str) -> MqttError:
    return MqttError(Reason.NOT_AUTHORIZED, f"the user may not read the Kafka topic {topic}")
