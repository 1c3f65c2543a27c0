"""Idempotent producers: known across restarts, forgotten when they have been silent for long.

`--against-kafka` runs the same against Apache Kafka.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moldau.wire.apis import ApiKey
from moldau.wire.errors import ErrorCode
from moldau.wire.messages import DescribeProducersRequest, InitProducerIdRequest
from moldau.wire.records import encode_batch
from support import asking
from support.either import create_and_wait, either_broker, wait_for_leader
from support.processes import BrokerProcess
from support.raw import RawConnection
from support.waiting import eventually

TOPIC = "t"
SETTINGS = {
    "node.id": "1",
    "producer.id.expiration.ms": "2000",
    "producer.id.expiration.check.interval.ms": "100",
}


@pytest.fixture
def broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BrokerProcess]:
    with either_broker(request, tmp_path, SETTINGS) as process:
        with RawConnection(process.port) as to:
            create_and_wait(to, TOPIC)
        yield process


def new_producer_id(to: RawConnection) -> int:
    def probe() -> Any:
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0)
        answer = to.call(ApiKey.INIT_PRODUCER_ID, 4, request)
        return answer if answer.error_code == ErrorCode.NONE else None

    return int(eventually(probe, what="a producer id").producer_id)


def send(
    to: RawConnection, producer_id: int, sequence: int, timestamp: int, epoch: int = 0
) -> tuple[ErrorCode, int]:
    batch = encode_batch(
        [(b"k", b"v", timestamp, ())],
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
    )
    answer = asking.produce(to, TOPIC, 0, batch)
    return ErrorCode(answer.error_code), answer.base_offset


def known(to: RawConnection) -> set[int]:
    topic = DescribeProducersRequest.TopicRequest(name=TOPIC, partition_indexes=[0])
    request = DescribeProducersRequest(topics=[topic])
    (answer,) = to.call(ApiKey.DESCRIBE_PRODUCERS, 0, request).topics[0].partitions
    assert answer.error_code == ErrorCode.NONE
    return {each.producer_id for each in answer.active_producers}


@pytest.mark.parametrize("how", ["stopped", "killed"])
def test_producer_ids_and_sequences_survive_a_restart(broker: BrokerProcess, how: str) -> None:
    # Far in the future, so that nothing is forgotten meanwhile.
    later = time.time_ns() // 1_000_000 + 1_000_000
    with RawConnection(broker.port) as to:
        first = new_producer_id(to)
        assert [send(to, first, each, later) for each in range(7)] == [
            (ErrorCode.NONE, each) for each in range(7)
        ]
    broker.kill() if how == "killed" else broker.stop()
    broker.start()
    with RawConnection(broker.port) as to:
        wait_for_leader(to, TOPIC)
        assert new_producer_id(to) != first
        assert send(to, first, 6, later) == (ErrorCode.NONE, 6), "a duplicate of the last batch"
        refused, _ = send(to, first, 8, later)
        assert refused is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert send(to, first, 7, later) == (ErrorCode.NONE, 7)
        assert send(to, first, 0, later, epoch=1) == (ErrorCode.NONE, 8)
        fenced, _ = send(to, first, 8, later)
        assert fenced is ErrorCode.INVALID_PRODUCER_EPOCH


def test_silent_producers_are_forgotten(broker: BrokerProcess) -> None:
    with RawConnection(broker.port) as to:
        silent, busy = new_producer_id(to), new_producer_id(to)
        now_ms = time.time_ns() // 1_000_000
        assert send(to, silent, 0, now_ms) == (ErrorCode.NONE, 0)
        assert send(to, busy, 0, now_ms + 1_000_000) == (ErrorCode.NONE, 1)
        eventually(lambda: known(to) == {busy}, what="the silent one is forgotten")
        # Nothing is known of it, so nothing can be out of order.
        assert send(to, silent, 5, now_ms + 1_000_000) == (ErrorCode.NONE, 2)
