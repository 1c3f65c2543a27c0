"""Transactions with each client library: all or nothing, once, and nobody else's.

`--against-kafka` runs the same against Apache Kafka.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import pytest

from moldau.wire.apis import API_BY_KEY, ApiKey
from moldau.wire.errors import ErrorCode
from moldau.wire.framing import decode_response
from moldau.wire.messages import (
    EndTxnRequest,
    FindCoordinatorRequest,
    InitProducerIdRequest,
    InitProducerIdResponse,
    ProduceRequest,
)
from moldau.wire.records import encode_batch
from support import asking
from support.either import create_and_wait, either_broker
from support.processes import BrokerProcess
from support.raw import RawConnection
from support.repeats import mostly_long
from support.transactional import (
    PRODUCERS,
    READERS,
    TransactionalProducer,
    committed_offset,
    look,
)
from support.waiting import eventually

SETTINGS = {
    "node.id": "1",
    "group.initial.rebalance.delay.ms": "0",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "100",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
    # Some records here are old enough to expire whenever a broker looks.
    "log.retention.ms": "-1",
}
END = b"end"
# From this version on a produce request adds its partitions to the transaction.
ADDS_PARTITIONS = 12

Open = Callable[..., TransactionalProducer]


@pytest.fixture(scope="module")
def broker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BrokerProcess]:
    with either_broker(request, tmp_path_factory.mktemp("broker"), SETTINGS) as process:
        yield process


@pytest.fixture(params=mostly_long(PRODUCERS, "the same with another client"))
def library(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """Topics, groups and transactional ids of a test are its own."""
    return "".join(c if c.isalnum() else "-" for c in request.node.name)


@pytest.fixture
def topic(broker: BrokerProcess, name: str) -> str:
    with RawConnection(broker.port) as to:
        create_and_wait(to, name)
    return name


@contextmanager
def producing(
    broker: BrokerProcess, library: str, transactional_id: str, timeout_ms: int = 60_000
) -> Iterator[TransactionalProducer]:
    producer = PRODUCERS[library](broker.bootstrap, transactional_id, timeout_ms)  # type: ignore[call-arg]
    producer.init()
    try:
        yield producer
    finally:
        with suppress(Exception):
            producer.close()


def write_end(broker: BrokerProcess, topic: str) -> None:
    """A plain record behind everything, so that a reader knows when it has seen all."""
    with RawConnection(broker.port) as to:
        answer = asking.produce(to, topic, 0, encode_batch([(None, END, 1_700_000_000_000, ())]))
        assert answer.error_code == 0


def test_commits_are_read_and_aborts_are_not(
    broker: BrokerProcess, library: str, topic: str
) -> None:
    with producing(broker, library, topic) as producer:
        for number in range(6):
            values = [b"%d-%d" % (number, part) for part in range(3)]
            producer.begin()
            producer.send(topic, *values[:2])
            producer.send(topic, values[2])
            seen = look(broker.port, topic)
            assert not seen.settled, "an open transaction holds readers back"
            assert not set(values) & set(seen.values)
            producer.commit() if number % 2 == 0 else producer.abort()
        # The next transaction can only begin when the markers of the last one are written.
        producer.begin()
        producer.send(topic, b"last")
        producer.commit()
    write_end(broker, topic)
    expected = [b"%d-%d" % (number, part) for number in (0, 2, 4) for part in range(3)]
    assert READERS[library](broker.bootstrap, topic, END) == [*expected, b"last", END]
    eventually(lambda: look(broker.port, topic).settled, what="everything is decided")


def test_offsets_are_committed_with_the_records(
    broker: BrokerProcess, library: str, topic: str
) -> None:
    group = f"{topic}-group"
    with producing(broker, library, topic) as producer:
        producer.begin()
        producer.send(topic, b"a")
        producer.send_offsets({topic: 7}, group)
        assert committed_offset(broker.port, group, topic) == (
            ErrorCode.UNSTABLE_OFFSET_COMMIT,
            -1,
        )
        assert committed_offset(broker.port, group, topic, stable=False) == (0, -1)
        producer.commit()
        eventually(lambda: committed_offset(broker.port, group, topic) == (0, 7), what="offset 7")
        producer.begin()
        producer.send(topic, b"b")
        producer.send_offsets({topic: 9}, group)
        producer.abort()
        eventually(
            lambda: committed_offset(broker.port, group, topic) == (0, 7), what="still offset 7"
        )
    eventually(lambda: look(broker.port, topic).settled, what="everything is decided")
    assert look(broker.port, topic).values == (b"a",)


def test_a_zombie_can_no_longer_commit(broker: BrokerProcess, library: str, topic: str) -> None:
    with ExitStack() as both:
        zombie = both.enter_context(producing(broker, library, topic))
        zombie.begin()
        zombie.send(topic, b"zombie")
        successor = both.enter_context(producing(broker, library, topic))
        assert look(broker.port, topic).settled, "its transaction is aborted before all else"
        successor.begin()
        successor.send(topic, b"successor")
        with pytest.raises(Exception, match=r"(?i)fenced|epoch"):
            zombie.commit()
        successor.commit()
    eventually(lambda: look(broker.port, topic).settled, what="everything is decided")
    assert look(broker.port, topic).values == (b"successor",)


def test_the_broker_aborts_what_takes_too_long(
    broker: BrokerProcess, library: str, topic: str
) -> None:
    with producing(broker, library, topic, timeout_ms=1_000) as producer:
        producer.begin()
        producer.send(topic, b"slow")
        eventually(lambda: look(broker.port, topic).settled, what="the transaction is aborted")
        assert look(broker.port, topic).values == ()
        with pytest.raises(Exception, match=r"(?i)fenced|epoch|timed out"):
            producer.commit()
    with producing(broker, library, topic) as producer:
        producer.begin()
        producer.send(topic, b"again")
        producer.commit()
    eventually(lambda: look(broker.port, topic).values == (b"again",), what="the next one")


def test_requests_sent_ahead_stay_in_order_while_the_first_is_verified(
    broker: BrokerProcess, topic: str
) -> None:
    with RawConnection(broker.port) as to:
        producer = init_producer(to, topic)
        for sequence in range(5):
            produce_ahead(to, topic, producer, {0: sequence})
        assert answered(to, 5) == [[(0, offset)] for offset in range(5)]
        ended = to.call(
            ApiKey.END_TXN,
            5,
            EndTxnRequest(
                transactional_id=topic,
                producer_id=producer.producer_id,
                producer_epoch=producer.producer_epoch,
                committed=True,
            ),
        )
        assert (ended.error_code, ended.producer_epoch) == (0, producer.producer_epoch + 1)
    eventually(lambda: look(broker.port, topic).settled, what="the commit is written")
    assert look(broker.port, topic).values == (b"0", b"1", b"2", b"3", b"4")


def test_requests_sent_ahead_stay_in_order_when_the_transaction_gets_another_partition(
    broker: BrokerProcess, name: str
) -> None:
    """The third request waits for the coordinator, and the fourth must not overtake it."""
    with RawConnection(broker.port) as to:
        create_and_wait(to, name, 2)
        producer = init_producer(to, name)
        produce_ahead(to, name, producer, {0: 0})
        assert answered(to, 1) == [[(0, 0)]]
        for each in ({0: 1}, {0: 2, 1: 0}, {0: 3}, {0: 4, 1: 1}):
            produce_ahead(to, name, producer, each)
        assert answered(to, 4) == [[(0, 1)], [(0, 2), (0, 0)], [(0, 3)], [(0, 4), (0, 1)]]


def produce_ahead(
    to: RawConnection, topic: str, producer: InitProducerIdResponse, sequences: Mapping[int, int]
) -> None:
    """Send a record to each partition with its sequence number, and wait for no answer."""
    data = [
        ProduceRequest.PartitionProduceData(
            index=index,
            records=encode_batch(
                [(None, b"%d" % sequence, time.time_ns() // 1_000_000, ())],
                producer_id=producer.producer_id,
                producer_epoch=producer.producer_epoch,
                base_sequence=sequence,
                is_transactional=True,
            ),
        )
        for index, sequence in sequences.items()
    ]
    request = ProduceRequest(
        transactional_id=topic,
        acks=-1,
        timeout_ms=30_000,
        topic_data=[ProduceRequest.TopicProduceData(name=topic, partition_data=data)],
    )
    to.send(ApiKey.PRODUCE, ADDS_PARTITIONS, request)


def answered(to: RawConnection, count: int) -> list[list[tuple[int, int]]]:
    """The error and base offset of each partition, of so many answers to Produce."""
    answers: list[Any] = [
        decode_response(API_BY_KEY[ApiKey.PRODUCE], ADDS_PARTITIONS, to.receive_frame())[1]
        for _ in range(count)
    ]
    return [
        [(part.error_code, part.base_offset) for part in answer.responses[0].partition_responses]
        for answer in answers
    ]


def init_producer(to: RawConnection, transactional_id: str) -> InitProducerIdResponse:
    def probe() -> InitProducerIdResponse | None:
        find = FindCoordinatorRequest(key_type=1, coordinator_keys=[transactional_id])
        to.call(ApiKey.FIND_COORDINATOR, 6, find)
        request = InitProducerIdRequest(
            transactional_id=transactional_id, transaction_timeout_ms=60_000
        )
        answer: InitProducerIdResponse = to.call(ApiKey.INIT_PRODUCER_ID, 5, request)
        return answer if answer.error_code == ErrorCode.NONE else None

    found = eventually(probe, what="a producer id")
    assert found is not None
    return found
