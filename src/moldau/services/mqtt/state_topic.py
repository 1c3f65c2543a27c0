"""StateTopic: a compacted topic of one partition that every proxy reads and writes.

Invariants: records are applied in the order of the topic, each once; `append` returns after the
record was acknowledged by all replicas in the ISR, and with `read_back` after it was applied here.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final

from moldau.client import (
    AsyncAdmin,
    AsyncConsumer,
    AsyncProducer,
    ConfigResource,
    KafkaError,
    NewTopic,
    TopicExistsError,
    TopicPartition,
)
from moldau.client.consumer_record import ConsumerRecord
from moldau.config.errors import ConfigError
from moldau.services.mqtt.config import MqttConfig

__all__ = ["StateTopic"]

logger = logging.getLogger(__name__)

Record = ConsumerRecord[bytes | None, bytes | None]
_POLL_S: Final = 1.0
_RETRY_S: Final = 0.5
_CLOSE_S: Final = 5.0
READ_BACK_S: Final = 30.0
_CONFIGS: Final = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.1",
    "segment.ms": "86400000",
}


class StateTopic:
    def __init__(self, config: MqttConfig, topic: str, apply: Callable[[Record], None]) -> None:
        self._config = config
        self._topic = topic
        self._partition = TopicPartition(topic, 0)
        self._apply = apply
        self._producer = AsyncProducer(
            {**config.client_settings("producer"), "linger.ms": "0", "client.id": "mqtt-state"}
        )
        self._consumer: AsyncConsumer[bytes | None, bytes | None] = AsyncConsumer(
            {**config.client_settings("consumer"), "client.id": "mqtt-state"}
        )
        self._reading: asyncio.Task[None] | None = None
        self._position = 0
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._numbers = itertools.count()

    async def start(self, admin: AsyncAdmin) -> None:
        """Create the topic if it is missing, and read it to its end.

        Raises ConfigError for a topic that would lose records, KafkaError for a cluster that
        cannot be reached.
        """
        await self._ensure(admin)
        await self._producer.start()
        self._consumer.assign([self._partition])
        self._consumer.seek_to_beginning([self._partition])
        end = (await self._consumer.end_offsets([self._partition]))[self._partition]
        while self._position < end:
            await self._read()
        self._reading = asyncio.get_running_loop().create_task(self._follow())

    async def _ensure(self, admin: AsyncAdmin) -> None:
        if self._topic not in await admin.list_topics(list_internal=True):
            brokers = len((await admin.describe_cluster()).nodes)
            replicas = min(brokers, self._config["state.replication.factor"])
            with suppress(TopicExistsError):
                await admin.create_topics([NewTopic(self._topic, 1, replicas, configs=_CONFIGS)])
                return
        resource = ConfigResource.topic(self._topic)
        values = (await admin.describe_configs([resource]))[resource]
        if values["cleanup.policy"].value != "compact":
            raise ConfigError(
                f"the topic {self._topic} has cleanup.policy="
                f"{values['cleanup.policy'].value}: change it to compact with kafka-configs, or "
                "the broker deletes sessions and retained messages after a while"
            )
        found = (await admin.describe_topics([self._topic]))[self._topic]
        if len(found.partitions) != 1:
            raise ConfigError(
                f"the topic {self._topic} has {len(found.partitions)} partitions instead of one: "
                "choose another with sessions.topic or retained.topic"
            )

    async def stop(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            with suppress(asyncio.CancelledError):
                await self._reading
        for _, _, waiter in self._waiting:
            waiter.cancel()
        with suppress(KafkaError):
            await self._producer.close(timeout=_CLOSE_S)
        with suppress(KafkaError):
            await self._consumer.close(timeout=_CLOSE_S)

    async def append(
        self,
        key: bytes,
        value: bytes | None,
        headers: Sequence[tuple[str, Any]] = (),
        *,
        read_back: bool = False,
    ) -> None:
        """Raises KafkaError."""
        future = await self._producer.send(
            self._topic, value, key, partition=0, headers=list(headers)
        )
        offset = (await future).offset
        if read_back and offset >= self._position:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            heapq.heappush(self._waiting, (offset, next(self._numbers), waiter))
            await asyncio.wait_for(waiter, READ_BACK_S)

    async def _follow(self) -> None:
        while True:
            try:
                await self._read()
            except KafkaError as error:
                logger.warning("reading %s failed and is retried: %s", self._topic, error)
                await asyncio.sleep(_RETRY_S)

    async def _read(self) -> None:
        for record in await self._consumer.poll(_POLL_S):
            try:
                self._apply(record)
            except ValueError as error:
                logger.error("%s offset %d is skipped: %s", self._topic, record.offset, error)
            except Exception:
                # A bug: the records after it must be read all the same.
                logger.exception("%s offset %d was not applied", self._topic, record.offset)
        self._position = await self._consumer.position(self._partition)
        while self._waiting and self._waiting[0][0] < self._position:
            waiter = heapq.heappop(self._waiting)[2]
            if not waiter.done():
                waiter.set_result(None)
