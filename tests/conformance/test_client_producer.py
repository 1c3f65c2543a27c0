"""The producer against one broker: what is sent is read back with another client.

Runs against Moldau, and with --against-kafka against Apache Kafka.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import pairwise
from os import urandom
from typing import Any
from uuid import uuid4

import pytest

from moldau.client import errors
from moldau.client.metrics import MetricName
from moldau.client.producer import AsyncProducer, Producer, ProducerRecord, RecordMetadata
from support.either import create_and_wait
from support.processes import BrokerProcess
from support.raw import RawConnection
from support.reading_back import read_messages, read_values
from support.waiting import eventually

Topic = Callable[..., str]


@pytest.fixture
def topic(broker: BrokerProcess) -> Topic:
    """Makes a topic that nobody else uses."""

    def make(partitions: int = 1, config: dict[str, str] | None = None) -> str:
        name = f"producer-{uuid4().hex[:8]}"
        create_and_wait(RawConnection(broker.port), name, partitions, config)
        return name

    return make


@pytest.fixture
def producer(broker: BrokerProcess) -> Iterator[Producer]:
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        yield producer


def metric(producer: Producer, name: str, group: str = "producer-metrics", **tags: str) -> Any:
    for known, value in producer.metrics().items():
        if (known.name, known.group) == (name, group) and tags.items() <= known.tags.items():
            return value.value
    raise AssertionError(f"no metric {name} in {group}")


def test_a_record_arrives_as_it_was_sent(
    broker: BrokerProcess, producer: Producer, topic: Topic
) -> None:
    name = topic()
    headers = [("trace", b"1"), ("trace", b"2"), ("none", None)]
    future = producer.send(name, b"value", key=b"key", timestamp=1234, headers=headers)
    assert future.result(60) == RecordMetadata(name, 0, 0, 1234, 3, 5)
    assert future.done()
    assert future.exception() is None
    (message,) = read_messages(broker.bootstrap, name)[0]
    assert (message.key(), message.value()) == (b"key", b"value")
    assert message.headers() == headers
    assert message.timestamp() == (1, 1234)


def test_a_record_may_be_an_object_and_have_neither_key_nor_value(
    broker: BrokerProcess, producer: Producer, topic: Topic
) -> None:
    name = topic(2)
    before_ms = time.time_ns() // 1_000_000
    record = ProducerRecord(name, key="tombstone", partition=1, headers={"a": "b"})
    metadata = producer.send(record).result(60)
    assert (metadata.partition, metadata.offset) == (1, 0)
    assert before_ms <= metadata.timestamp <= time.time_ns() // 1_000_000
    assert (metadata.serialized_key_size, metadata.serialized_value_size) == (9, -1)
    (message,) = read_messages(broker.bootstrap, name, partitions=2)[1]
    assert (message.key(), message.value(), message.headers()) == (
        b"tombstone",
        None,
        [("a", b"b")],
    )


def test_many_records_keep_their_order_and_offsets(broker: BrokerProcess, topic: Topic) -> None:
    name = topic()
    told: list[tuple[int, Exception | None]] = []
    # Batches go when they are full, however long it takes to fill one.
    with Producer(bootstrap_servers=broker.bootstrap, linger_ms=60_000) as producer:
        futures = [
            producer.send(
                name,
                b"%06d" % index,
                on_delivery=lambda meta, error: told.append((meta.offset, error)),
            )
            for index in range(5000)
        ]
        producer.flush(60)
        assert [future.result().offset for future in futures] == list(range(5000))
        assert told == [(index, None) for index in range(5000)]
        assert metric(producer, "batch-size-avg") > 10_000
        assert metric(producer, "records-per-request-avg") > 100
    assert read_values(broker.bootstrap, name) == [b"%06d" % index for index in range(5000)]


@pytest.mark.parametrize(
    "settings",
    [
        {"compression.type": "gzip", "compression.gzip.level": 1},
        {"compression.type": "snappy"},
        {"compression.type": "lz4", "compression.lz4.level": 17},
        {"compression.type": "zstd", "compression.zstd.level": 10},
        {"acks": "1"},
        {"acks": 0},
        {"enable.idempotence": False},
        {"max.in.flight.requests.per.connection": 1},
        {"linger.ms": 0, "batch.size": 0},
        {"buffer.memory": 1000},
    ],
    ids=lambda settings: " ".join(f"{key}={value}" for key, value in settings.items()),
)
def test_settings_that_change_the_way_but_not_what_arrives(
    broker: BrokerProcess, topic: Topic, settings: dict[str, Any]
) -> None:
    name = topic()
    values = [b"%d %s" % (index, b"same " * 20) for index in range(300)]
    with Producer({"bootstrap.servers": broker.bootstrap, **settings}) as producer:
        futures = [producer.send(name, value) for value in values]
        producer.flush(60)
        offsets = [future.result().offset for future in futures]
    expected = [-1] * 300 if settings.get("acks") == 0 else list(range(300))
    assert offsets == expected
    if settings.get("acks") == 0:
        # Nobody waits for the broker: a record that another producer has written comes after.
        with Producer(bootstrap_servers=broker.bootstrap) as other:
            other.send(name, b"end").result(60)
        eventually(
            lambda: len(read_values(broker.bootstrap, name)) >= 301, what="all records are there"
        )
    assert (
        sorted(read_values(broker.bootstrap, name))[:300]
        == sorted([*values, *([b"end"] if settings.get("acks") == 0 else [])])[:300]
    )


def test_keys_go_where_kafkas_partitioner_puts_them(
    broker: BrokerProcess, producer: Producer, topic: Topic
) -> None:
    from kafka.partitioner.default import murmur2  # type: ignore[import-untyped]

    name = topic(7)
    keys = [b"key-%d" % index for index in range(50)] + [b"", b"\xff\x80\x00", b"a" * 1000]
    futures = {key: producer.send(name, b"", key=key) for key in keys}
    producer.flush(60)
    assert {key: future.result().partition for key, future in futures.items()} == {
        key: (murmur2(key) & 0x7FFFFFFF) % 7 for key in keys
    }


def test_records_without_a_key_stay_together_and_reach_every_partition(
    broker: BrokerProcess, topic: Topic
) -> None:
    name = topic(3)
    with Producer(bootstrap_servers=broker.bootstrap, batch_size=2000) as producer:
        futures = [producer.send(name, b"x" * 100) for _ in range(2000)]
        producer.flush(60)
    found = [future.result().partition for future in futures]
    changes = sum(1 for one, next_one in pairwise(found) if one != next_one)
    assert set(found) == {0, 1, 2}
    # About 19 records make a batch; a change for each would be no batching.
    assert changes < 2000 / 15


@pytest.mark.parametrize(
    "partitioner",
    [
        "round-robin",
        "org.apache.kafka.clients.producer.RoundRobinPartitioner",
    ],
)
def test_round_robin_takes_one_partition_after_the_other(
    broker: BrokerProcess, topic: Topic, partitioner: str
) -> None:
    name = topic(3)
    with Producer(bootstrap_servers=broker.bootstrap, partitioner_class=partitioner) as producer:
        futures = [producer.send(name, b"", key=b"same") for _ in range(6)]
        producer.flush(60)
    assert [future.result().partition for future in futures] == [0, 1, 2, 0, 1, 2]


def test_ones_own_partitioner_decides(broker: BrokerProcess, topic: Topic) -> None:
    name = topic(3)
    seen: list[tuple[Any, ...]] = []

    def by_length(
        topic: str, key: Any, key_bytes: Any, value: Any, value_bytes: Any, cluster: Any
    ) -> int:
        seen.append((topic, key, key_bytes, value, value_bytes, cluster.partition_count(topic)))
        return len(value_bytes) % 3

    with Producer(bootstrap_servers=broker.bootstrap, partitioner_class=by_length) as producer:
        futures = [producer.send(name, text, key="k") for text in ("", "a", "bb", "ccc")]
        assert [future.result(60).partition for future in futures] == [0, 1, 2, 0]
        assert producer.send(name, "", partition=2).result(60).partition == 2
    assert seen[1] == (name, "k", b"k", "a", b"a", 3)
    assert len(seen) == 4


def test_interceptors_see_each_record_and_may_fail(broker: BrokerProcess, topic: Topic) -> None:
    name = topic()
    acknowledged: list[tuple[Any, Any]] = []

    class Stamp:
        def on_send(self, record: ProducerRecord) -> ProducerRecord:
            record.headers.append(("seen", b"1"))
            return record

        def on_acknowledgement(self, metadata: Any, error: Any) -> None:
            acknowledged.append((metadata, error))

    class Broken:
        def on_send(self, record: ProducerRecord) -> ProducerRecord:
            raise RuntimeError("broken")

        def on_acknowledgement(self, metadata: Any, error: Any) -> None:
            raise RuntimeError("broken")

    with Producer(
        bootstrap_servers=broker.bootstrap, interceptor_classes=[Broken(), Stamp]
    ) as producer:
        metadata = producer.send(name, b"value").result(60)
    assert acknowledged == [(metadata, None)]
    (message,) = read_messages(broker.bootstrap, name)[0]
    assert message.headers() == [("seen", b"1")]


def test_serializers_and_their_errors(broker: BrokerProcess, topic: Topic) -> None:
    name = topic()
    with Producer(
        bootstrap_servers=broker.bootstrap,
        key_serializer="org.apache.kafka.common.serialization.LongSerializer",
        value_serializer="json",
    ) as producer:
        producer.send(name, {"a": [1, None]}, key=1).result(60)
        with pytest.raises(errors.SerializationError, match="long"):
            producer.send(name, {}, key="text")
        with pytest.raises(errors.SerializationError, match="JSON"):
            producer.send(name, object(), key=2)
    (message,) = read_messages(broker.bootstrap, name)[0]
    assert (message.key(), message.value()) == (bytes(7) + b"\x01", b'{"a":[1,null]}')


def test_a_record_that_is_too_large_fails_alone(
    broker: BrokerProcess, producer: Producer, topic: Topic
) -> None:
    name = topic(config={"max.message.bytes": "2000"})
    told: list[Any] = []
    too_large_here = producer.send(
        name, bytes(1_100_000), on_delivery=lambda *outcome: told.append(outcome)
    )
    assert isinstance(too_large_here.exception(), errors.RecordTooLargeError)
    assert told[0][0].offset == -1
    assert told[0][1] is too_large_here.exception()
    too_large_there = producer.send(name, bytes(3000))
    with pytest.raises(errors.RecordTooLargeError):
        too_large_there.result(60)
    assert producer.send(name, b"small").result(60).offset == 0


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_a_batch_that_is_too_large_is_split(
    broker: BrokerProcess, topic: Topic, compression: str
) -> None:
    name = topic(config={"max.message.bytes": "1500"})
    values = [b"%03d" % index + urandom(300) for index in range(40)]
    told: list[int] = []
    with Producer(
        bootstrap_servers=broker.bootstrap, linger_ms=60_000, compression_type=compression
    ) as producer:
        futures = [
            producer.send(name, value, on_delivery=lambda meta, _: told.append(meta.offset))
            for value in values
        ]
        producer.flush(60)
        assert metric(producer, "batch-split-total") > 0
    assert [future.result().offset for future in futures] == list(range(40))
    assert told == list(range(40))
    assert read_values(broker.bootstrap, name) == values


def test_a_topic_that_is_not_there_is_a_timeout_in_the_future(
    broker: BrokerProcess, topic: Topic
) -> None:
    name = topic()
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        future = producer.send("not/a/topic", b"")
        with pytest.raises(errors.InvalidTopicError):
            future.result(60)
    with Producer(bootstrap_servers=broker.bootstrap, max_block_ms=500) as producer:

        def is_known() -> bool:
            with suppress(errors.KafkaTimeoutError):
                return bool(producer.partitions_for(name))
            return False

        eventually(is_known, what="the topic is known to the producer")
        with pytest.raises(errors.UnknownTopicOrPartitionError, match=r"no partition 5: it has 1"):
            producer.send(name, b"", partition=5).result(60)
    with Producer(bootstrap_servers="127.0.0.1:1", max_block_ms=200) as nobody:
        future = nobody.send("any", b"")
    with pytest.raises(errors.KafkaTimeoutError, match=r"not present in metadata.*127.0.0.1:1"):
        future.result(60)


def test_partitions_for_and_metrics(
    broker: BrokerProcess, producer: Producer, topic: Topic
) -> None:
    name = topic(2)
    infos = producer.partitions_for(name)
    assert [info.partition for info in infos] == [0, 1]
    assert all(info.leader is not None for info in infos)
    producer.send(name, bytes(100), partition=0).result(60)
    assert metric(producer, "record-send-total") == 1
    assert metric(producer, "record-error-total") == 0
    # Given back when all who wait for its records have been told.
    eventually(
        lambda: metric(producer, "buffer-available-bytes") == 33_554_432, what="all memory is free"
    )
    assert metric(producer, "request-latency-avg") >= 0
    assert metric(producer, "record-send-total", "producer-topic-metrics", topic=name) == 1
    assert metric(producer, "byte-total", "producer-topic-metrics", topic=name) > 100
    assert all(isinstance(name, MetricName) for name in producer.metrics())


def test_there_is_no_instance_id_where_nobody_wants_metrics(producer: Producer) -> None:
    with pytest.raises(errors.UnsupportedVersionError):
        producer.client_instance_id(60)


def test_threads_share_a_producer(broker: BrokerProcess, producer: Producer, topic: Topic) -> None:
    name = topic(3)

    def run(number: int) -> None:
        for index in range(2000):
            producer.send(name, b"%d:%d" % (number, index), partition=number % 3)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    producer.flush(60)
    found = read_messages(broker.bootstrap, name, partitions=3)
    for number in range(4):
        own = [
            int(message.value().split(b":")[1])
            for message in found[number % 3]
            if message.value().startswith(b"%d:" % number)
        ]
        assert own == list(range(2000))


def test_a_partition_that_does_not_exist_is_named_at_once(
    broker: BrokerProcess, topic: Topic
) -> None:
    name = topic(3)
    # A producer that waited for the partition would do so for longer than a test may take.
    with Producer(bootstrap_servers=broker.bootstrap, max_block_ms=3_600_000) as producer:
        error = producer.send(name, b"x", partition=99).exception(0)
    assert isinstance(error, errors.UnknownTopicOrPartitionError)
    assert f"topic {name} has no partition 99: it has 3, numbered from 0" in str(error)


def test_a_record_that_was_not_acknowledged_may_have_been_written(broker: BrokerProcess) -> None:
    producer = Producer(bootstrap_servers=broker.bootstrap, linger_ms=60_000)
    future = producer.send("closed-early", b"x")
    assert repr(future) == "<RecordFuture closed-early-0 pending>"
    assert "1 records to be acknowledged" in repr(producer)
    producer.close(0)
    with pytest.raises(errors.ClosedError, match="it may or may not have been written"):
        future.result()
    assert repr(future).startswith("<RecordFuture closed-early-0 failed: ")


def test_close_sends_what_is_left_and_refuses_the_rest(broker: BrokerProcess, topic: Topic) -> None:
    name = topic()
    producer = Producer(bootstrap_servers=broker.bootstrap, linger_ms=60_000)
    futures = [producer.send(name, b"%d" % index) for index in range(3)]
    assert not futures[0].done()
    producer.close()
    assert [future.result().offset for future in futures] == [0, 1, 2]
    with pytest.raises(errors.ClosedError):
        producer.send(name, b"late")
    producer.close()


def test_callbacks_may_send_but_not_wait(broker: BrokerProcess, topic: Topic) -> None:
    name = topic()
    outcome: list[Any] = []
    done = threading.Event()

    def on_delivery(metadata: Any, error: Any) -> None:
        second = producer.send(name, b"second")
        try:
            second.result(60)
        except errors.IllegalStateError as problem:
            outcome.append(problem)
        second.add_done_callback(lambda future: (outcome.append(future.result()), done.set()))

    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        producer.send(name, b"first", on_delivery=on_delivery)
        assert done.wait(60)
    assert "advice" not in str(outcome[0])
    assert outcome[1].offset == 1


def test_a_callback_may_close_the_producer(broker: BrokerProcess, topic: Topic) -> None:
    name = topic()
    told: list[Any] = []
    closed = threading.Event()

    def close(*_: object) -> None:
        late.append(producer.send(name, b"late", on_delivery=lambda *outcome: told.append(outcome)))
        producer.close()
        late[0].add_done_callback(lambda _: closed.set())

    late: list[Any] = []
    producer = Producer(bootstrap_servers=broker.bootstrap, linger_ms=50)
    producer.send(name, b"first", on_delivery=close)
    assert closed.wait(60)
    assert isinstance(late[0].exception(), errors.ClosedError)
    assert isinstance(told[0][1], errors.ClosedError)
    with pytest.raises(errors.ClosedError):
        producer.send(name, b"more")


def test_asyncio_producer_does_the_same(broker: BrokerProcess, topic: Topic) -> None:
    name = topic()

    async def run() -> list[int]:
        async with AsyncProducer(bootstrap_servers=broker.bootstrap) as producer:
            first = await (await producer.send(name, "first"))
            futures = [await producer.send(name, b"%d" % index) for index in range(2000)]
            await producer.flush()
            assert len(await producer.partitions_for(name)) == 1
            metadata = await asyncio.gather(*(_result(future) for future in futures))
            with pytest.raises(errors.SerializationError):
                await producer.send(name, 1.5)
        return [first.offset, *(each.offset for each in metadata)]

    assert asyncio.run(run()) == list(range(2001))
    assert read_values(broker.bootstrap, name) == [b"first", *(b"%d" % i for i in range(2000))]


async def _result(future: Any) -> RecordMetadata:
    found: RecordMetadata = await future
    return found


def test_an_asyncio_producer_that_was_never_used_is_closed_at_once() -> None:
    async def run() -> None:
        producer = AsyncProducer(bootstrap_servers="127.0.0.1:1")
        await producer.close()
        with pytest.raises(errors.ClosedError):
            await producer.send("any", b"")

    asyncio.run(run())


def test_a_closed_asyncio_producer_fails_what_was_not_sent(topic: Topic) -> None:
    async def run() -> None:
        producer = AsyncProducer(bootstrap_servers="127.0.0.1:1", max_block_ms=60_000)
        waiting = asyncio.create_task(producer.send("any", b""))
        await asyncio.sleep(0)
        await producer.close(timeout=0.1)
        with pytest.raises(errors.KafkaError):
            await (await waiting)

    asyncio.run(run())
