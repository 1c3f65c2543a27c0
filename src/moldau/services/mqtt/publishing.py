"""Publisher: what clients publish becomes records, with acks=all and idempotence.

QoS 0 is not waited for, QoS 1 and 2 are acknowledged once all replicas in the ISR have the record,
and retained messages once they are in the retained topic too. A QoS 2 message of a session that is
stored is stored first, with an id that the record carries: if the proxy fails in between, the id is
looked for in the log before the message is sent again.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final

from moldau.client import KafkaError, TopicPartition
from moldau.client.errors import (
    AuthorizationError,
    InvalidTopicError,
    RecordTooLargeError,
)
from moldau.client.producer import RecordFuture
from moldau.clock import Clock
from moldau.services.mqtt.clients import Clients, ClientSet
from moldau.services.mqtt.config import MqttConfig
from moldau.services.mqtt.machine.inbound import Pending
from moldau.services.mqtt.machine.mapping import Target
from moldau.services.mqtt.machine.packets import Publish, Will
from moldau.services.mqtt.machine.reasons import MqttError, Reason
from moldau.services.mqtt.machine.records import (
    MESSAGE_ID,
    RETAIN,
    base_headers,
    property_headers,
)
from moldau.services.mqtt.retained import RetainedStore

__all__ = ["Publisher", "reason_of"]

logger = logging.getLogger(__name__)

#: The clocks of a broker and of proxies may differ by this much.
_SKEW_MS: Final = 60_000
_KNOWN_MAX: Final = 10_000
Done = Callable[[Exception | None], None]
_RETAIN: Final = (RETAIN, b"1")


def reason_of(error: Exception) -> tuple[Reason, str]:
    if isinstance(error, MqttError):
        return error.reason, error.text
    if isinstance(error, AuthorizationError):
        return Reason.NOT_AUTHORIZED, str(error)
    if isinstance(error, InvalidTopicError):
        return Reason.TOPIC_NAME_INVALID, str(error)
    if isinstance(error, RecordTooLargeError):
        return Reason.QUOTA_EXCEEDED, str(error)
    return Reason.IMPLEMENTATION_SPECIFIC_ERROR, str(error)


def _note(written: dict[TopicPartition, int], future: RecordFuture) -> None:
    """Where the partition ends once the record is there. All records of a batch arrive together,
    so that the first of them does for all."""
    if future.where()[1] == 0:
        future.add_done_callback(partial(_note_end, written))


def _note_end(written: dict[TopicPartition, int], future: RecordFuture) -> None:
    if future.exception() is None:
        metadata = future.metadata()
        key = TopicPartition(metadata.topic, metadata.partition)
        written[key] = metadata.offset + future.where()[0].record_count


class Publisher:
    def __init__(
        self, config: MqttConfig, clients: Clients, retained: RetainedStore, clock: Clock
    ) -> None:
        self._mapper = config.mapper
        self._clients = clients
        self._retained = retained
        self._clock = clock
        self._known: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        #: QoS 2 messages on their way, by message id; the result says whether they are in the log.
        self._sending: dict[str, asyncio.Future[bool]] = {}

    def target(self, topic: str) -> Target:
        """Raises MqttError for a topic that maps to none."""
        found = self._mapper.to_kafka(topic)
        if found is None:
            raise MqttError(
                Reason.TOPIC_NAME_INVALID, f"{topic[:100]!r} is mapped to no Kafka topic"
            )
        return found

    def publish_at_once(
        self,
        clients: ClientSet,
        headers: Sequence[Sequence[tuple[str, bytes]]],
        messages: Sequence[tuple[bytes, bytes, int, int]],
    ) -> list[RecordFuture]:
        """Append plain messages, up to the first that would have to wait or is refused; the futures
        of those that were appended. `headers` are by QoS."""
        target_of, known = self._mapper.plain_target, self._known
        send = clients.producer.send_nowait
        sent: list[RecordFuture] = []
        with suppress(KafkaError):
            # Whoever takes the long way meets the same error, and says so to the client.
            for raw, payload, packet_id, _ in messages:
                target = target_of(raw)
                if target is None or target.topic not in known:
                    break
                own = headers[1 if packet_id else 0]
                if target.headers:
                    own = [*own, *target.headers]
                future = send(target.topic, payload, target.key, None, None, own)
                if future is None:
                    break
                sent.append(future)
                _note(clients.written, future)
        return sent

    async def publish(
        self,
        clients: ClientSet,
        headers: Sequence[tuple[str, bytes]],
        packet: Publish,
        done: Done | None,
        pending: Pending | None = None,
    ) -> None:
        """Append the record; `done` is called later, on the loop. Raises MqttError."""
        target = self.target(packet.topic)
        if packet.properties or packet.retain or target.headers or pending is not None:
            headers = [*headers, *target.headers, *property_headers(packet.properties)]
            if packet.retain:
                headers.append(_RETAIN)
            if pending is not None:
                headers.append((MESSAGE_ID, pending.message_id.encode()))
        on_delivery: Any = None
        if packet.retain:
            self._retained.check(packet.topic)
        if pending is not None:
            done = self._tracked(pending.message_id, done)
        if packet.retain:
            on_delivery = self._after_delivery(packet, headers, done)
        elif done is not None:
            finish = done

            def on_delivery(metadata: Any, error: Exception | None) -> None:
                finish(error)

        timestamp = None if pending is None else pending.since_ms
        try:
            future = await clients.producer.send(
                target.topic, packet.payload, target.key, None, timestamp, headers, on_delivery
            )
            _note(clients.written, future)
        except BaseException:
            if pending is not None:
                self._settle(pending.message_id, False)
            raise
        if target.topic not in self._known:
            self._expect(target.topic)

    def _tracked(self, message_id: str, done: Done | None) -> Done:
        self._sending[message_id] = asyncio.get_running_loop().create_future()

        def settle(error: Exception | None) -> None:
            self._settle(message_id, error is None)
            if done is not None:
                done(error)

        return settle

    def _settle(self, message_id: str, written: bool) -> None:
        waiter = self._sending.pop(message_id, None)
        if waiter is not None and not waiter.done():
            waiter.set_result(written)

    def _expect(self, topic: str) -> None:
        """The first message may have created the topic."""
        if len(self._known) >= _KNOWN_MAX:
            self._known.clear()
        self._known.add(topic)
        for each in self._clients.all():
            each.hub.expect(topic)

    def _after_delivery(
        self, packet: Publish, headers: Sequence[tuple[str, bytes]], done: Done | None
    ) -> Callable[[Any, Exception | None], None]:
        async def store() -> None:
            problem: Exception | None = None
            try:
                await self._retained.put(packet.topic, packet.payload, headers)
            except (KafkaError, TimeoutError) as error:
                problem = error
                logger.warning("the retained message of %r was not stored: %s", packet.topic, error)
            if done is not None:
                done(problem)

        def on_delivery(metadata: Any, error: Exception | None) -> None:
            if error is None:
                task = asyncio.get_running_loop().create_task(store())
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
            elif done is not None:
                done(error)

        return on_delivery

    def new_pending(self, topic: str) -> Pending:
        return Pending(uuid.uuid4().hex, self._clock.now_ms(), topic, sending=True)

    async def is_in_log(self, clients: ClientSet, pending: Pending) -> bool:
        """Whether the record of a QoS 2 message was written, by this connection's predecessor or
        before a failure. Raises KafkaError."""
        sending = self._sending.get(pending.message_id)
        if sending is not None:
            return await asyncio.shield(sending)
        target = self.target(pending.topic)
        wanted = pending.message_id.encode()
        async with clients.catch_up_consumer() as consumer:
            partitions = [
                TopicPartition(target.topic, each.partition)
                for each in await consumer.partitions_for(target.topic)
            ]
            since_ms = max(pending.since_ms - _SKEW_MS, 0)
            found = await consumer.offsets_for_times(dict.fromkeys(partitions, since_ms))
            starts = {key: at.offset for key, at in found.items() if at is not None}
            if not starts:
                return False
            ends = await consumer.end_offsets(list(starts))
            consumer.assign(list(starts))
            for key, offset in starts.items():
                consumer.seek(key, offset)
            left = {key for key in starts if starts[key] < ends[key]}
            while left:
                for record in await consumer.poll(1.0):
                    if (MESSAGE_ID, wanted) in (record.headers or ()):
                        return True
                left = {key for key in left if await consumer.position(key) < ends[key]}
        return False

    async def publish_will(self, client_id: str, will: Will, clients: ClientSet | None) -> None:
        packet = Publish(
            will.topic, will.payload, will.qos, will.retain, properties=will.properties
        )
        headers = base_headers(client_id)[will.qos]
        try:
            await self.publish(clients or self._clients.own, headers, packet, None)
        except (MqttError, KafkaError) as error:
            logger.warning("the will of %r was not published: %s", client_id, error)
