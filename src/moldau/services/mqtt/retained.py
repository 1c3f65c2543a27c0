"""RetainedStore: retained messages in a compacted topic, all of them in memory too."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

from moldau.client import AsyncAdmin, KafkaError
from moldau.clock import Clock
from moldau.services.mqtt.config import MqttConfig
from moldau.services.mqtt.machine.reasons import MqttError, Reason
from moldau.services.mqtt.machine.records import Message, read_message
from moldau.services.mqtt.machine.retained import RetainedMessages
from moldau.services.mqtt.machine.topics import is_topic_name
from moldau.services.mqtt.state_topic import Record, StateTopic

__all__ = ["RetainedStore"]

logger = logging.getLogger(__name__)
_PART: Final = 1000


class RetainedStore:
    """The key of a record is its MQTT topic, the value the payload, null if there is no message."""

    def __init__(self, config: MqttConfig, clock: Clock) -> None:
        self.messages = RetainedMessages()
        self._count_max = config["retained.messages.max"]
        self._clock = clock
        self._topic = StateTopic(config, config["retained.topic"], self._apply)

    async def start(self, admin: AsyncAdmin) -> None:
        await self._topic.start(admin)

    async def stop(self) -> None:
        await self._topic.stop()

    def check(self, topic: str) -> None:
        """Raises MqttError if there is no room for another message."""
        if len(self.messages) >= self._count_max and self.messages.get(topic) is None:
            raise MqttError(
                Reason.QUOTA_EXCEEDED,
                f"there are as many retained messages as retained.messages.max allows, "
                f"{self._count_max}",
            )

    async def put(self, topic: str, payload: bytes, headers: Sequence[tuple[str, bytes]]) -> None:
        """An empty payload removes the message. Raises KafkaError."""
        await self._topic.append(topic.encode(), payload or None, headers, read_back=True)

    async def remove_expired(self) -> None:
        for topic in self.messages.expired(self._clock.now_ms())[:_PART]:
            try:
                await self._topic.append(topic.encode(), None)
            except KafkaError as error:
                logger.warning("an expired retained message was not removed: %s", error)
                return

    def matching(self, filter_text: str) -> list[Message]:
        now_ms = self._clock.now_ms()
        return [
            each
            for each in self.messages.match(filter_text)
            if not each.expires_ms or each.expires_ms > now_ms
        ]

    def _apply(self, record: Record) -> None:
        topic = (record.key or b"").decode()
        if not is_topic_name(topic):
            raise ValueError(f"{topic[:100]!r} is not a topic name")
        if record.value is None:
            self.messages.remove(topic)
            return
        message = read_message(topic, record.value, record.headers, timestamp_ms=record.timestamp)
        self.messages.put(message)
