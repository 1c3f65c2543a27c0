"""Transactions of the producer against one broker, read back with librdkafka.

Runs against Moldau, and with --against-kafka against Apache Kafka. Once with transactions of
version 2 (KIP-890) and once of version 1, as older clusters have them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as TheirPartition

from moldau.client import errors
from moldau.client.admin import Admin, FeatureUpdate, UpgradeType
from moldau.client.consumer import Consumer as OurConsumer
from moldau.client.consumer.membership_interface import ConsumerGroupMetadata
from moldau.client.producer import AsyncProducer, Producer
from moldau.client.topics import OffsetAndMetadata, TopicPartition
from support.either import create_and_wait, either_broker
from support.processes import BrokerProcess
from support.raw import RawConnection
from support.reading_back import read_values

Make = Callable[..., Producer]

# Transactions before version 2; an upgrade from it is always tried.
OLDER = pytest.mark.long("the older version; the broker's part is in test_same_transaction_answers")
VERSIONS = [pytest.param(2, id="version 2"), pytest.param(1, id="version 1", marks=OLDER)]


@pytest.fixture(scope="module", params=VERSIONS)
def broker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BrokerProcess]:
    folder = tmp_path_factory.mktemp("broker")
    with either_broker(request, folder, {"group.initial.rebalance.delay.ms": "0"}) as process:
        if request.param == 1:
            with Admin(bootstrap_servers=process.bootstrap) as admin:
                admin.update_features(
                    {"transaction.version": FeatureUpdate(1, UpgradeType.SAFE_DOWNGRADE)}
                )
        yield process


@pytest.fixture
def topic(broker: BrokerProcess) -> str:
    name = f"transactions-{uuid4().hex[:8]}"
    create_and_wait(RawConnection(broker.port), name, 2)
    return name


@pytest.fixture
def make(broker: BrokerProcess) -> Iterator[Make]:
    made: list[Producer] = []

    def make(transactional_id: str | None = None, **settings: Any) -> Producer:
        producer = Producer(
            bootstrap_servers=broker.bootstrap,
            transactional_id=transactional_id or f"id-{uuid4().hex[:8]}",
            **settings,
        )
        made.append(producer)
        return producer

    yield make
    for producer in made:
        producer.close(timeout=5)


def committed(broker: BrokerProcess, topic: str) -> list[bytes | None]:
    return read_values(broker.bootstrap, topic, partitions=2, committed_only=True)


def test_what_is_committed_is_seen_and_what_is_aborted_is_not(
    broker: BrokerProcess, topic: str, make: Make
) -> None:
    producer = make()
    producer.init_transactions()
    for round_number in range(3):
        producer.begin_transaction()
        kept = [producer.send(topic, b"kept %d" % round_number, partition=n) for n in (0, 1)]
        producer.commit_transaction()
        assert all(future.done() for future in kept)
        producer.begin_transaction()
        sent = producer.send(topic, b"sent and aborted", partition=0)
        producer.flush()
        unsent = producer.send(topic, b"never sent", partition=1)
        producer.abort_transaction()
        assert sent.exception() is None
        assert isinstance(unsent.exception(), (errors.TransactionAbortedError, type(None)))
    assert committed(broker, topic) == [b"kept 0", b"kept 1", b"kept 2"] * 2
    everything = read_values(broker.bootstrap, topic, partitions=2)
    assert everything.count(b"sent and aborted") == 3


def test_an_empty_transaction_costs_nothing(broker: BrokerProcess, topic: str, make: Make) -> None:
    producer = make()
    producer.init_transactions()
    producer.begin_transaction()
    producer.commit_transaction()
    producer.begin_transaction()
    producer.abort_transaction()
    producer.begin_transaction()
    producer.send(topic, b"value")
    producer.commit_transaction()
    assert committed(broker, topic) == [b"value"]


def test_offsets_are_committed_with_the_records(
    broker: BrokerProcess, topic: str, make: Make
) -> None:
    producer = make()
    producer.init_transactions()
    group = f"group-{uuid4().hex[:8]}"
    key = TopicPartition(topic, 0)

    def committed_offset() -> int:
        consumer = Consumer(
            {"bootstrap.servers": broker.bootstrap, "group.id": group, "log_level": 0}
        )
        (found,) = consumer.committed([TheirPartition(topic, 0)], timeout=60)
        consumer.close()
        return int(found.offset)

    producer.begin_transaction()
    producer.send(topic, b"first")
    producer.send_offsets_to_transaction(
        {key: OffsetAndMetadata(5, "note")}, ConsumerGroupMetadata(group)
    )
    producer.commit_transaction()
    assert committed_offset() == 5
    producer.begin_transaction()
    producer.send_offsets_to_transaction({key: OffsetAndMetadata(9)}, ConsumerGroupMetadata(group))
    producer.abort_transaction()
    assert committed_offset() == 5
    producer.begin_transaction()
    with pytest.raises(errors.CommitFailedError):
        producer.send_offsets_to_transaction(
            {key: OffsetAndMetadata(9)}, ConsumerGroupMetadata(group, 7, "nobody")
        )
    with pytest.raises(errors.KafkaError, match="error state"):
        producer.commit_transaction()
    producer.abort_transaction()
    assert committed_offset() == 5


def test_records_do_not_linger_while_offsets_are_sent(topic: str, make: Make) -> None:
    producer = make(linger_ms=300_000)
    producer.init_transactions()
    producer.begin_transaction()
    future = producer.send(topic, b"value", partition=0)
    group = ConsumerGroupMetadata(f"group-{uuid4().hex[:8]}")
    producer.send_offsets_to_transaction({TopicPartition(topic, 0): 1}, group)
    assert future.result(timeout=60).partition == 0
    producer.commit_transaction()


def test_records_are_read_changed_and_sent_exactly_once(
    broker: BrokerProcess, topic: str, make: Make
) -> None:
    source, group = f"source-{uuid4().hex[:8]}", f"group-{uuid4().hex[:8]}"
    create_and_wait(RawConnection(broker.port), source, 1)
    with Producer(bootstrap_servers=broker.bootstrap) as plain:
        for index in range(100):
            plain.send(source, b"%d" % index)
    producer = make()
    producer.init_transactions()
    settings = {
        "bootstrap.servers": broker.bootstrap,
        "group.id": group,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "max.poll.records": 10,
    }

    def work(portions: int, *, crash: bool) -> None:
        """Each portion in a transaction of its own; a crash comes between sending and commit."""
        with OurConsumer(settings) as consumer:
            consumer.subscribe([source])
            while portions:
                records = list(consumer.poll(timeout=1.0))
                if not records:
                    continue
                portions -= 1
                producer.begin_transaction()
                for record in records:
                    producer.send(topic, b"seen " + record.value, partition=0)
                offsets = {TopicPartition(source, 0): OffsetAndMetadata(records[-1].offset + 1)}
                producer.send_offsets_to_transaction(offsets, consumer.group_metadata())
                if crash and not portions:
                    producer.flush()
                    producer.abort_transaction()
                else:
                    producer.commit_transaction()

    work(4, crash=True)
    work(7, crash=False)
    assert committed(broker, topic) == [b"seen %d" % index for index in range(100)]


def test_a_newer_producer_fences_an_older_one(
    broker: BrokerProcess, topic: str, make: Make
) -> None:
    older = make("same")
    older.init_transactions()
    older.begin_transaction()
    older.send(topic, b"of the older").result(60)
    newer = make("same")
    newer.init_transactions()
    late = older.send(topic, b"late")
    with pytest.raises((errors.ProducerFencedError, errors.InvalidProducerEpochError)):
        older.commit_transaction()
    assert late.exception() is not None
    with pytest.raises((errors.ProducerFencedError, errors.InvalidProducerEpochError)):
        older.begin_transaction()
    newer.begin_transaction()
    newer.send(topic, b"of the newer")
    newer.commit_transaction()
    assert committed(broker, topic) == [b"of the newer"]


def test_calls_in_the_wrong_order_are_refused(
    broker: BrokerProcess, topic: str, make: Make
) -> None:
    producer = make()
    with pytest.raises(errors.IllegalStateError, match="init_transactions"):
        producer.send(topic, b"")
    with pytest.raises(errors.IllegalStateError):
        producer.begin_transaction()
    producer.init_transactions()
    with pytest.raises(errors.IllegalStateError, match="begin_transaction"):
        producer.send(topic, b"")
    with pytest.raises(errors.IllegalStateError):
        producer.commit_transaction()
    with pytest.raises(errors.IllegalStateError):
        producer.abort_transaction()
    producer.begin_transaction()
    with pytest.raises(errors.IllegalStateError):
        producer.begin_transaction()
    producer.send(topic, b"after all")
    producer.commit_transaction()
    assert committed(broker, topic) == [b"after all"]
    with (
        Producer(bootstrap_servers=broker.bootstrap) as plain,
        pytest.raises(errors.IllegalStateError, match=r"transactional\.id"),
    ):
        plain.init_transactions()


def test_a_record_that_fails_spoils_its_transaction_but_not_the_producer(
    broker: BrokerProcess, topic: str, make: Make
) -> None:
    producer = make()
    producer.init_transactions()
    producer.begin_transaction()
    producer.send(topic, b"good").result(60)
    bad = producer.send(topic, bytes(2_000_000))
    assert isinstance(bad.exception(), errors.RecordTooLargeError)
    with pytest.raises(errors.KafkaError, match="error state"):
        producer.commit_transaction()
    with pytest.raises(errors.KafkaError, match="error state"):
        producer.send(topic, b"more")
    producer.abort_transaction()
    producer.begin_transaction()
    producer.send(topic, b"next")
    producer.commit_transaction()
    assert committed(broker, topic) == [b"next"]


def test_closing_aborts_what_was_not_committed(
    broker: BrokerProcess, topic: str, make: Make
) -> None:
    producer = make()
    producer.init_transactions()
    producer.begin_transaction()
    producer.send(topic, b"forgotten", partition=0).result(60)
    producer.close()
    other = make()
    other.init_transactions()
    other.begin_transaction()
    other.send(topic, b"after", partition=0)
    other.commit_transaction()
    # An open transaction would hold back what comes after it.
    assert committed(broker, topic) == [b"after"]


def test_asyncio_transactions(broker: BrokerProcess, topic: str) -> None:
    async def run() -> None:
        async with AsyncProducer(
            bootstrap_servers=broker.bootstrap, transactional_id=f"async-{uuid4().hex[:8]}"
        ) as producer:
            await producer.init_transactions()
            for outcome in (producer.commit_transaction, producer.abort_transaction):
                await producer.begin_transaction()
                for index in range(200):
                    await producer.send(topic, b"%d" % index, partition=0)
                await outcome()

    asyncio.run(run())
    assert committed(broker, topic) == [b"%d" % index for index in range(200)]


def test_a_producer_is_usable_by_the_version_that_the_cluster_has(
    broker: BrokerProcess, make: Make, request: pytest.FixtureRequest
) -> None:
    producer = make()
    producer.init_transactions()
    before = producer._core.transactions.status.producer_id  # type: ignore[union-attr]
    producer.begin_transaction()
    producer.send(f"made-{uuid4().hex[:8]}", b"value")
    producer.commit_transaction()
    after = producer._core.transactions.status.producer_id  # type: ignore[union-attr]
    # With version 2 every transaction has an epoch of its own.
    is_v2 = "version 2" in request.node.name
    assert (after.epoch > before.epoch or after.producer_id != before.producer_id) is is_v2


class _Stop(Exception):
    """Raised inside a transaction."""


def test_a_transaction_is_a_with_statement(broker: BrokerProcess, make: Make, topic: str) -> None:
    producer = make()
    with producer.transaction() as inner:
        assert inner is producer
        producer.send(topic, b"kept", partition=0)

    def fail() -> None:
        with producer.transaction():
            producer.send(topic, b"dropped", partition=0)
            raise _Stop

    def begin_twice() -> None:
        with producer.transaction():
            producer.send(topic, b"dropped too", partition=0)
            producer.begin_transaction()

    with pytest.raises(_Stop):
        fail()
    with producer.transaction():
        producer.send(topic, b"given up", partition=0)
        producer.abort_transaction()
    with pytest.raises(errors.IllegalStateError, match="a transaction is open already"):
        begin_twice()
    with producer.transaction():
        producer.send(topic, b"kept too", partition=0)
    assert committed(broker, topic) == [b"kept", b"kept too"]


def test_a_transaction_is_an_async_with_statement(broker: BrokerProcess, topic: str) -> None:
    async def fail(producer: AsyncProducer) -> None:
        async with producer.transaction():
            await producer.send(topic, b"dropped", partition=0)
            raise _Stop

    async def main() -> None:
        settings = {"bootstrap.servers": broker.bootstrap}
        async with AsyncProducer(settings, transactional_id=f"async-{topic}") as producer:
            async with producer.transaction():
                await producer.send(topic, b"kept", partition=0)
            with pytest.raises(_Stop):
                await fail(producer)
            async with producer.transaction():
                await producer.send(topic, b"kept too", partition=0)

    asyncio.run(main())
    assert committed(broker, topic) == [b"kept", b"kept too"]


def test_a_fenced_producer_raises_that_out_of_the_block(make: Make, topic: str) -> None:
    producer = make("fenced-in-block")

    def be_fenced() -> None:
        with producer.transaction():
            producer.send(topic, b"lost", partition=0).result(30)
            make("fenced-in-block").init_transactions()

    with pytest.raises(errors.ProducerFencedError):
        be_fenced()


def test_the_time_for_a_call_may_be_given(make: Make) -> None:
    producer = make(max_block_ms=60_000)
    with pytest.raises(errors.KafkaTimeoutError, match="was not done within 0 ms"):
        producer.init_transactions(timeout=0)
    producer.init_transactions(timeout=60)
