"""Compaction in a running broker: the last value of each key stays, clients notice nothing."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from support.either import either_broker
from support.processes import BrokerProcess
from support.waiting import eventually

TOPIC = "state"
KEYS = 50
CONFIG = {
    "cleanup.policy": "compact",
    "segment.bytes": "1048576",
    "min.cleanable.dirty.ratio": "0.01",
    "delete.retention.ms": "0",
}


@pytest.fixture
def broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BrokerProcess]:
    with either_broker(request, tmp_path, {"log.cleaner.backoff.ms": "100"}) as process:
        yield process


def read_state(bootstrap: str) -> list[tuple[int, bytes, bytes | None]]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "state", "check.crcs": True})
    partition = TopicPartition(TOPIC, 0)
    _, end = consumer.get_watermark_offsets(partition, 30)
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    rows: list[tuple[int, bytes, bytes | None]] = []
    deadline = time.monotonic() + 60
    while not rows or rows[-1][0] < end - 1:
        assert time.monotonic() < deadline, f"{len(rows)} records came"
        for message in consumer.consume(1000, 0.1):
            assert message.error() is None, message.error()
            rows.append((message.offset(), message.key(), message.value()))
    consumer.close()
    return rows


def test_only_the_last_value_of_a_key_remains(broker: BrokerProcess) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([NewTopic(TOPIC, 1, config=CONFIG)])[TOPIC].result(30)
    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap,
            "compression.type": "lz4",
            "linger.ms": 5,
            "enable.idempotence": True,
        }
    )
    last: dict[bytes, tuple[int, bytes | None]] = {}

    def delivered(error: object, message: object) -> None:
        assert error is None, error
        last[message.key()] = message.offset(), message.value()  # type: ignore[attr-defined]

    def write(rounds: int) -> None:
        for number in range(rounds * KEYS):
            key = f"key-{number % KEYS}".encode()
            filler = bytes((number * step) % 251 for step in range(400))
            producer.produce(TOPIC, b"%d " % number + filler, key, 0, on_delivery=delivered)
            producer.poll(0)
        assert producer.flush(30) == 0

    write(200)
    producer.produce(TOPIC, None, b"key-7", 0, on_delivery=delivered)
    assert producer.flush(30) == 0
    # The cleaner never touches the active segment: what comes next closes the one before.
    write(200)

    def compacted() -> bool:
        rows = read_state(broker.bootstrap)
        closed = [row for row in rows if row[0] < rows[-1][0] - 3 * 1048576 // 400]
        return len(closed) <= KEYS

    eventually(compacted, what="the closed segments hold each key once at most", seconds_max=120)

    rows = read_state(broker.bootstrap)
    state = {key: (offset, value) for offset, key, value in rows}
    assert state == last
    offsets = [offset for offset, _, _ in rows]
    assert offsets == sorted(set(offsets))

    # A producer of before the cleaning goes on in sequence.
    write(1)
    assert {key: (offset, value) for offset, key, value in read_state(broker.bootstrap)} == last
