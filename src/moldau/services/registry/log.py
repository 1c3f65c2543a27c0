"""TopicLog: a topic behind the registry, read from its beginning and written with acks=all.

Invariants: records are applied in the order of the topic, each once; a write returns after its
records were read back, so that whoever asks next sees them. What became of a write that timed out
is unknown (`uncertain`): `settle` waits until everything that was sent is decided and read.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

from moldau.client import AsyncConsumer, AsyncProducer, KafkaError, TopicPartition
from moldau.client.consumer_record import ConsumerRecord
from moldau.services.registry.config import RegistryConfig
from moldau.services.registry.machine.journals import Journal
from moldau.services.registry.machine.records import UnreadableRecord
from moldau.services.registry.topic import StoreError

__all__ = ["StoreTimeout", "TopicLog"]

logger = logging.getLogger(__name__)

#: Carries the term of the primary that wrote a record.
EPOCH_HEADER: Final = "moldau.registry.epoch"
_POLL_S: Final = 1.0
_RETRY_S: Final = 0.5
_REFUSED_KEPT: Final = 10_000


class StoreTimeout(StoreError):
    """A write or read took longer than `kafkastore.timeout.ms`."""


class TopicLog:
    def __init__(self, config: RegistryConfig, journal: Journal) -> None:
        self._config = config
        self._journal = journal
        self._topic = journal.topic
        self._partition = TopicPartition(journal.topic, 0)
        self._producer = AsyncProducer(
            {
                **config.clients,
                "acks": "all",
                "enable.idempotence": "true",
                "linger.ms": "0",
                "client.id": f"{config.group_id}-writer",
            }
        )
        self._consumer: AsyncConsumer[bytes, bytes] = AsyncConsumer(
            {
                **config.clients,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": "false",
                "client.id": f"{config.group_id}-reader",
            }
        )
        self._reading: asyncio.Task[None] | None = None
        self._position = 0
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []
        self._refused: OrderedDict[int, None] = OrderedDict()
        self.uncertain = False
        """Whether something was sent of which it is not known what became of it."""

    def check(self) -> None:
        """Raise StoreError if nothing is read any more."""
        if self._reading is None or self._reading.done():
            raise StoreError(f"the topic {self._topic} is not read")

    @property
    def position(self) -> int:
        """The offset after the last record that was applied."""
        return self._position

    async def start(self) -> None:
        """Read everything there is. Raises StoreError."""
        await self._producer.start()
        self._consumer.assign([self._partition])
        self._consumer.seek_to_beginning([self._partition])
        try:
            async with asyncio.timeout(self._config.init_timeout_ms / 1000):
                end = (await self._consumer.end_offsets([self._partition]))[self._partition]
                while await self._read() < end:
                    pass
        except TimeoutError:
            raise StoreTimeout(
                f"the topic {self._topic} could not be read within "
                f"kafkastore.init.timeout.ms ({self._config.init_timeout_ms} ms)"
            ) from None
        self._reading = asyncio.get_running_loop().create_task(self._follow())

    async def stop(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            with suppress(asyncio.CancelledError):
                await self._reading
        for _, waiter in self._waiting:
            waiter.cancel()
        await self._producer.close(timeout=5)
        await self._consumer.close(timeout=5)

    # Reading.

    async def _follow(self) -> None:
        while True:
            try:
                await self._read()
            except KafkaError as error:
                logger.warning("reading %s failed and is retried: %s", self._topic, error)
                await asyncio.sleep(_RETRY_S)

    async def _read(self) -> int:
        """Apply what there is; the position afterwards."""
        for record in await self._consumer.poll(_POLL_S):
            self._apply_one(record)
        self._advance(await self._consumer.position(self._partition))
        return self._position

    def _apply_one(self, raw: ConsumerRecord[bytes, bytes]) -> None:
        try:
            counts = self._journal.read(
                raw.key, raw.value, timestamp_ms=raw.timestamp, epoch=_epoch(raw.headers)
            )
        except UnreadableRecord as error:
            logger.error("%s offset %d is skipped: %s", raw.topic, raw.offset, error)
            return
        except Exception:
            # A bug: the records after it must be read all the same.
            logger.exception("%s offset %d could not be replayed", raw.topic, raw.offset)
            return
        if not counts:
            self._refused[raw.offset] = None
            if len(self._refused) > _REFUSED_KEPT:
                self._refused.popitem(last=False)

    def _advance(self, position: int) -> None:
        self._position = position
        done = [each for each in self._waiting if each[0] <= position]
        if done:
            self._waiting = [each for each in self._waiting if each[0] > position]
            for _, waiter in done:
                if not waiter.done():
                    waiter.set_result(None)

    async def reach(self, position: int, *, timeout_ms: int | None = None) -> None:
        """Return when the records below a position are applied. Raises StoreTimeout."""
        if position <= self._position:
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((position, waiter))
        limit_ms = self._config.timeout_ms if timeout_ms is None else timeout_ms
        try:
            async with asyncio.timeout(limit_ms / 1000):
                await waiter
        except TimeoutError:
            raise StoreTimeout(
                f"offset {position - 1} of {self._topic} was not read within {limit_ms} ms"
            ) from None

    # Writing. One caller at a time.

    async def write(self, records: Sequence[Any], epoch: int) -> bool:
        """Append records and read them back; False if a newer primary has made them void.

        Raises KafkaError for what the broker refuses, StoreTimeout for what takes too long.
        """
        headers = [(EPOCH_HEADER, str(epoch).encode())]
        self.uncertain = True
        try:
            async with asyncio.timeout(self._config.timeout_ms / 1000):
                sent = []
                for record in records:
                    key, value = self._journal.encode(record)
                    sent.append(
                        await self._producer.send(
                            self._topic, value, key, partition=0, headers=headers
                        )
                    )
                offsets = [(await each).offset for each in sent]
        except TimeoutError:
            raise StoreTimeout(
                f"writing to {self._topic} took longer than kafkastore.timeout.ms "
                f"({self._config.timeout_ms} ms)"
            ) from None
        await self.reach(offsets[-1] + 1)
        self.uncertain = False
        return not any(each in self._refused for each in offsets)

    async def settle(self) -> None:
        """Wait for the end of everything that was sent, and read it."""
        await self._producer.flush(timeout=self._config.timeout_ms / 1000)
        await self.catch_up()
        self.uncertain = False

    async def catch_up(self, *, timeout_ms: int | None = None) -> None:
        """Read up to what is the end now."""
        partition = self._partition
        probe: AsyncConsumer[bytes, bytes] = AsyncConsumer(dict(self._config.clients))
        try:
            end = (await probe.end_offsets([partition]))[partition]
        finally:
            await probe.close(timeout=1)
        await self.reach(end, timeout_ms=timeout_ms)


def _epoch(headers: Sequence[tuple[str, Any]]) -> int | None:
    for name, value in headers or ():
        if name == EPOCH_HEADER and value is not None:
            with suppress(ValueError):
                return int(value)
    return None
