"""Consumer instances of API v2: a consumer with its group, kept between requests for a while.

An instance belongs to the user that made it. It is closed when nobody has used it for
`consumer.instance.timeout.ms`. Records that a response had no room for are kept for the next one;
what is committed without offsets is what was returned, not what was read ahead.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
import uuid
from collections import deque
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

from moldau.client import ConsumerRecord, OffsetAndMetadata, TopicPartition
from moldau.client.errors import ConfigError, KafkaError, WakeupError
from moldau.http.machine.errors import HttpError
from moldau.http.request import Principal
from moldau.services.rest.clients import Clients, Consumer
from moldau.services.rest.config import RestConfig
from moldau.services.rest.machine.errors import (
    instance_exists,
    instance_not_found,
    invalid_consumer_config,
)

__all__ = ["Instance", "InstanceOptions", "Instances"]

logger = logging.getLogger(__name__)

SWEEP_S: Final = 1.0
Record = ConsumerRecord[bytes | None, bytes | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceOptions:
    """What a client may set when it makes an instance."""

    name: str | None = None
    format: str = "BINARY"
    auto_offset_reset: str | None = None
    auto_commit_enable: str | None = None
    fetch_min_bytes: int | None = None
    request_timeout_ms: int | None = None

    def settings(self) -> dict[str, str]:
        found = {}
        if self.auto_offset_reset is not None:
            found["auto.offset.reset"] = self.auto_offset_reset
        if self.auto_commit_enable is not None:
            found["enable.auto.commit"] = self.auto_commit_enable
        return found


@dataclass(slots=True)
class Instance:
    """`lock` is held by whoever uses the consumer."""

    group: str
    name: str
    owner: Principal
    options: InstanceOptions
    consumer: Consumer
    used_s: float
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    ahead: deque[Record] = field(default_factory=deque)
    returned: dict[TopicPartition, int] = field(default_factory=dict)
    closed: bool = False

    async def read(
        self, *, timeout_s: float, bytes_min: int, bytes_max: int, stopping: asyncio.Event
    ) -> list[Record]:
        """Records until there are enough bytes or the time is over; at least one if there is one,
        however large."""
        records: list[Record] = []
        size = 0
        until_s = time.monotonic() + timeout_s
        while True:
            size, full = self._take(records, size, bytes_max)
            left_s = until_s - time.monotonic()
            if full or size > bytes_min or left_s <= 0 or stopping.is_set():
                break
            # In short steps, so that a stop does not wait for a poll.
            found = await self.consumer.poll(min(left_s, 0.5))
            self.ahead.extend(found)
        for record in records:
            self.returned[TopicPartition(record.topic, record.partition)] = record.offset + 1
        return records

    def _take(self, records: list[Record], size: int, bytes_max: int) -> tuple[int, bool]:
        while self.ahead:
            record = self.ahead[0]
            more = max(record.serialized_key_size, 0) + max(record.serialized_value_size, 0)
            if records and size + more >= bytes_max:
                return size, True
            records.append(self.ahead.popleft())
            size += more
        return size, size >= bytes_max

    def forget(self, partitions: Iterable[TopicPartition] | None = None) -> None:
        """What was read ahead of these partitions, or of all, is not returned."""
        if partitions is None:
            self.ahead.clear()
            self.returned.clear()
            return
        moved = set(partitions)
        kept = [r for r in self.ahead if TopicPartition(r.topic, r.partition) not in moved]
        self.ahead = deque(kept)
        for each in moved:
            self.returned.pop(each, None)

    async def commit_returned(self) -> None:
        """Positions after what was returned; of partitions that are still assigned."""
        assigned = self.consumer.assignment()
        offsets = {
            each: OffsetAndMetadata(offset)
            for each, offset in self.returned.items()
            if each in assigned
        }
        if offsets:
            await self.consumer.commit_sync(offsets)


class Instances:
    """All instances of this proxy."""

    def __init__(self, config: RestConfig, clients: Clients) -> None:
        self._config = config
        self._clients = clients
        self._instances: dict[tuple[str, str], Instance] = {}
        self._sweeping: asyncio.Task[None] | None = None

    @property
    def count(self) -> int:
        return len(self._instances)

    def start(self) -> None:
        self._sweeping = asyncio.create_task(self._sweep())

    async def stop(self) -> None:
        if self._sweeping is not None:
            self._sweeping.cancel()
        await asyncio.gather(*(self._close(each) for each in list(self._instances.values())))

    def create(self, group: str, options: InstanceOptions, owner: Principal) -> Instance:
        """Raises HttpError."""
        server_id = self._config["id"]
        prefix = f"rest-consumer-{server_id}-" if server_id else "rest-consumer-"
        name = options.name or f"{prefix}{uuid.uuid4()}"
        if (group, name) in self._instances:
            raise instance_exists()
        if len(self._instances) >= self._config["consumer.instances.max"]:
            raise HttpError(
                429,
                "There are too many consumer instances. Delete those that are no longer used.",
                headers={"Retry-After": "1"},
            )
        settings = {"group.id": group, "client.id": name, **options.settings()}
        try:
            with self._clients.of(owner) as clients:
                consumer = clients.new_consumer(settings)
        except ConfigError as error:
            raise invalid_consumer_config(error.message) from None
        made = Instance(group, name, owner, options, consumer, time.monotonic())
        self._instances[group, name] = made
        return made

    @asynccontextmanager
    async def use(self, group: str, name: str, user: Principal) -> AsyncIterator[Instance]:
        """The instance, alone. Raises HttpError."""
        found = self._instances.get((group, name))
        if found is None or found.owner != user:
            raise instance_not_found()
        async with found.lock:
            if found.closed:
                raise instance_not_found()
            try:
                yield found
            except WakeupError:
                # It was deleted while this request waited for records.
                raise instance_not_found() from None
            finally:
                found.used_s = time.monotonic()

    async def delete(self, group: str, name: str, user: Principal) -> None:
        found = self._instances.get((group, name))
        if found is None or found.owner != user:
            raise instance_not_found()
        await self._close(found)

    async def _close(self, instance: Instance) -> None:
        self._instances.pop((instance.group, instance.name), None)
        if instance.closed:
            return
        instance.closed = True
        if instance.lock.locked():
            instance.consumer.wakeup()
        async with instance.lock:
            with contextlib.suppress(KafkaError, WakeupError):
                await instance.consumer.close(5.0)

    async def _sweep(self) -> None:
        limit_s = self._config["consumer.instance.timeout.ms"] / 1000
        while True:
            await asyncio.sleep(min(SWEEP_S, limit_s))
            now_s = time.monotonic()
            for each in list(self._instances.values()):
                if not each.lock.locked() and now_s - each.used_s > limit_s:
                    logger.info("consumer %s of group %s was not used", each.name, each.group)
                    await self._close(each)
