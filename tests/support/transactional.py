"""Transactional producers of three libraries behind one face, and what a reader sees meanwhile.

All calls block and fail with the library's own exception. What a reader sees is asked over a plain
connection: a consumer would wait where a test wants to know that there is nothing yet.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka import TopicPartition as AioPartition
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka import TopicPartition as ConfluentPartition
from kafka import KafkaConsumer, KafkaProducer
from kafka import TopicPartition as PythonPartition
from kafka.structs import OffsetAndMetadata

from moldau.wire.apis import ApiKey
from moldau.wire.errors import ErrorCode
from moldau.wire.messages import FetchRequest, OffsetFetchRequest
from moldau.wire.records import ControlType, decode_batch, decode_control_type, iterate_headers
from support.raw import RawConnection
from support.waiting import eventually

CALL_SECONDS = 60.0
LEADER_MOVES = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.LEADER_NOT_AVAILABLE)


class TransactionalProducer(Protocol):
    """Topics have one partition, 0."""

    def init(self) -> None: ...
    def begin(self) -> None: ...
    def send(self, topic: str, *values: bytes) -> None:
        """The records are in the log when this returns."""
        ...

    def send_offsets(self, offsets: Mapping[str, int], group: str) -> None: ...
    def commit(self) -> None: ...
    def abort(self) -> None: ...
    def close(self) -> None: ...


class ConfluentProducer:
    def __init__(self, bootstrap: str, transactional_id: str, timeout_ms: int = 60_000) -> None:
        self._bootstrap = bootstrap
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "transactional.id": transactional_id,
                "transaction.timeout.ms": timeout_ms,
                "message.timeout.ms": timeout_ms,
                "log_level": 0,
            }
        )

    def init(self) -> None:
        self._producer.init_transactions(CALL_SECONDS)

    def begin(self) -> None:
        self._producer.begin_transaction()

    def send(self, topic: str, *values: bytes) -> None:
        errors: list[Any] = []
        for value in values:
            self._producer.produce(
                topic, value, partition=0, on_delivery=lambda error, _: errors.append(error)
            )
        self._producer.flush(CALL_SECONDS)
        if failed := [error for error in errors if error is not None]:
            raise KafkaException(failed[0])
        assert len(errors) == len(values)

    def send_offsets(self, offsets: Mapping[str, int], group: str) -> None:
        consumer = Consumer({"bootstrap.servers": self._bootstrap, "group.id": group})
        try:
            self._producer.send_offsets_to_transaction(
                [ConfluentPartition(topic, 0, offset) for topic, offset in offsets.items()],
                consumer.consumer_group_metadata(),
                CALL_SECONDS,
            )
        finally:
            consumer.close()

    def commit(self) -> None:
        self._producer.commit_transaction(CALL_SECONDS)

    def abort(self) -> None:
        self._producer.abort_transaction(CALL_SECONDS)

    def close(self) -> None:
        self._producer.purge()


class KafkaPythonProducer:
    def __init__(self, bootstrap: str, transactional_id: str, timeout_ms: int = 60_000) -> None:
        self._producer = KafkaProducer(
            bootstrap_servers=bootstrap,
            transactional_id=transactional_id,
            transaction_timeout_ms=timeout_ms,
        )

    def init(self) -> None:
        self._producer.init_transactions()

    def begin(self) -> None:
        self._producer.begin_transaction()

    def send(self, topic: str, *values: bytes) -> None:
        sent = [self._producer.send(topic, value, partition=0) for value in values]
        self._producer.flush(CALL_SECONDS)
        for future in sent:
            future.get(CALL_SECONDS)

    def send_offsets(self, offsets: Mapping[str, int], group: str) -> None:
        self._producer.send_offsets_to_transaction(
            {
                PythonPartition(topic, 0): OffsetAndMetadata(offset, "", -1)
                for topic, offset in offsets.items()
            },
            group,
        )

    def commit(self) -> None:
        self._producer.commit_transaction()

    def abort(self) -> None:
        self._producer.abort_transaction()

    def close(self) -> None:
        self._producer.close(timeout=0)


class AiokafkaProducer:
    def __init__(self, bootstrap: str, transactional_id: str, timeout_ms: int = 60_000) -> None:
        self._loop = asyncio.new_event_loop()
        self._make = lambda: AIOKafkaProducer(
            bootstrap_servers=bootstrap,
            transactional_id=transactional_id,
            transaction_timeout_ms=timeout_ms,
        )
        self._producer: AIOKafkaProducer

    def _run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self._loop.run_until_complete(asyncio.wait_for(work, CALL_SECONDS))

    def init(self) -> None:
        async def start() -> None:
            self._producer = self._make()
            await self._producer.start()

        self._run(start())

    def begin(self) -> None:
        self._run(self._producer.begin_transaction())

    def send(self, topic: str, *values: bytes) -> None:
        async def work() -> None:
            sent = [await self._producer.send(topic, value, partition=0) for value in values]
            await self._producer.flush()
            await asyncio.gather(*sent)

        self._run(work())

    def send_offsets(self, offsets: Mapping[str, int], group: str) -> None:
        self._run(
            self._producer.send_offsets_to_transaction(
                {AioPartition(topic, 0): offset for topic, offset in offsets.items()}, group
            )
        )

    def commit(self) -> None:
        self._run(self._producer.commit_transaction())

    def abort(self) -> None:
        self._run(self._producer.abort_transaction())

    def close(self) -> None:
        # A producer that was fenced fails to end what it has no right to end.
        self._run(asyncio.wait([self._loop.create_task(self._producer.stop())]))
        self._loop.close()


PRODUCERS: dict[str, type[TransactionalProducer]] = {
    "confluent-kafka": ConfluentProducer,
    "kafka-python": KafkaPythonProducer,
    "aiokafka": AiokafkaProducer,
}


def _confluent_read(bootstrap: str, topic: str, last: bytes) -> list[bytes]:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "reader",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
        }
    )
    consumer.assign([ConfluentPartition(topic, 0, 0)])
    seen: list[bytes] = []
    try:
        while last not in seen:
            message = consumer.poll(CALL_SECONDS)
            assert message is not None, f"only {seen} of {topic} came"
            assert message.error() is None, message.error()
            seen.append(message.value())
    finally:
        consumer.close()
    return seen


def _kafka_python_read(bootstrap: str, topic: str, last: bytes) -> list[bytes]:
    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap,
        isolation_level="read_committed",
        consumer_timeout_ms=int(CALL_SECONDS * 1000),
    )
    place = PythonPartition(topic, 0)
    consumer.assign([place])
    consumer.seek(place, 0)
    seen: list[bytes] = []
    for record in consumer:
        seen.append(record.value)
        if record.value == last:
            break
    consumer.close()
    return seen


def _aiokafka_read(bootstrap: str, topic: str, last: bytes) -> list[bytes]:
    async def work() -> list[bytes]:
        consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, isolation_level="read_committed")
        await consumer.start()
        place = AioPartition(topic, 0)
        consumer.assign([place])
        consumer.seek(place, 0)
        seen: list[bytes] = []
        try:
            while last not in seen:
                record = await asyncio.wait_for(consumer.getone(), CALL_SECONDS)
                assert record.value is not None
                seen.append(record.value)
        finally:
            await consumer.stop()
        return seen

    return asyncio.run(work())


READERS = {
    "confluent-kafka": _confluent_read,
    "kafka-python": _kafka_python_read,
    "aiokafka": _aiokafka_read,
}
"""read_committed from offset 0 until the value `last` comes."""


@dataclass(frozen=True)
class Seen:
    """One partition as a read_committed consumer finds it now."""

    values: tuple[bytes, ...]
    last_stable_offset: int
    high_watermark: int

    @property
    def settled(self) -> bool:
        return self.last_stable_offset == self.high_watermark


def look(port: int, topic: str) -> Seen:
    """Read partition 0 from its start, without waiting, and drop what was aborted."""
    partition = FetchRequest.FetchPartition(
        partition=0, fetch_offset=0, partition_max_bytes=1 << 24
    )
    request = FetchRequest(
        replica_id=-1,
        max_wait_ms=0,
        min_bytes=0,
        isolation_level=1,
        session_epoch=-1,
        topics=[FetchRequest.FetchTopic(topic=topic, partitions=[partition])],
    )

    def fetched() -> Any:
        with RawConnection(port) as to:
            answer = to.call(ApiKey.FETCH, 11, request).responses[0].partitions[0]
        # On three nodes it may just be led by another, and the next one asked is that.
        return None if answer.error_code in LEADER_MOVES else answer

    answer = eventually(fetched, what=f"{topic} can be read")
    assert answer.error_code == 0, answer
    aborted = sorted(
        ((each.first_offset, each.producer_id) for each in answer.aborted_transactions or ()),
        reverse=True,
    )
    dropped: set[int] = set()
    values: list[bytes] = []
    for position, header in iterate_headers(answer.records or b""):
        while aborted and aborted[-1][0] <= header.last_offset:
            dropped.add(aborted.pop()[1])
        for record in decode_batch(answer.records, position):
            if header.is_control:
                if decode_control_type(record.key) == ControlType.ABORT:
                    dropped.discard(header.producer_id)
            elif header.producer_id not in dropped or not header.is_transactional:
                values.append(record.value or b"")
    return Seen(tuple(values), answer.last_stable_offset, answer.high_watermark)


def committed_offset(port: int, group: str, topic: str, *, stable: bool = True) -> tuple[int, int]:
    """(error, offset) of partition 0; the error may be the coordinator's."""
    wanted = OffsetFetchRequest.OffsetFetchRequestTopics(name=topic, partition_indexes=[0])
    request = OffsetFetchRequest(
        groups=[OffsetFetchRequest.OffsetFetchRequestGroup(group_id=group, topics=[wanted])],
        require_stable=stable,
    )
    with RawConnection(port) as to:
        (found,) = to.call(ApiKey.OFFSET_FETCH, 8, request).groups
    if found.error_code:
        return found.error_code, -1
    place = found.topics[0].partitions[0]
    return place.error_code, place.committed_offset
