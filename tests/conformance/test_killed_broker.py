"""SIGKILL in the middle of writing: what was acknowledged can be read, once, where it was put."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from support.processes import free_port, moldau

PARTITIONS = 3
TOPIC = "survivors"
# Small segments and flushes, so that kills also hit rolls, index writes and checkpoints.
CONFIG = {"segment.bytes": "1048576", "flush.messages": "500"}
OVERRIDES = ["log.flush.offset.checkpoint.interval.ms=200"]

Acknowledged = dict[tuple[int, int], bytes]


class Writer:
    """An idempotent producer that never stops, in a thread, while the broker dies and returns."""

    def __init__(self, bootstrap: str) -> None:
        self.acknowledged: Acknowledged = {}
        self.refused: list[KafkaError] = []
        self.progress = threading.Condition()
        self._stop = threading.Event()
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "linger.ms": 2,
                "reconnect.backoff.ms": 5,
                "reconnect.backoff.max.ms": 50,
                "retry.backoff.ms": 10,
                "message.timeout.ms": 120_000,
                "queue.buffering.max.messages": 5000,
                "compression.type": "lz4",
                # The fatal-error path of librdkafka is not what is tested here.
                "error_cb": lambda _: None,
            }
        )
        self._thread = threading.Thread(target=self._write)
        self._thread.start()

    def _write(self) -> None:
        number = 0
        while not self._stop.is_set():
            value = b"%d " % number + bytes(number * 37 % 2000)
            try:
                self._producer.produce(
                    TOPIC, value, partition=number % PARTITIONS, on_delivery=self._delivered
                )
                number += 1
            except BufferError:
                self._producer.poll(0.02)
            self._producer.poll(0)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.refused.append(error)
            return
        with self.progress:
            partition, offset, value = message.partition(), message.offset(), message.value()
            assert partition is not None
            assert offset is not None
            self.acknowledged[partition, offset] = bytes(value or b"")
            self.progress.notify_all()

    def wait_for_more(self, count: int) -> None:
        target = len(self.acknowledged) + count
        with self.progress:
            arrived = self.progress.wait_for(lambda: len(self.acknowledged) >= target, timeout=60)
        assert arrived, f"no {count} further acknowledgements; refused so far: {self.refused[:3]}"

    def finish(self) -> None:
        self._stop.set()
        self._thread.join()
        assert self._producer.flush(60) == 0


def read_everything(bootstrap: str) -> Acknowledged:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "g", "check.crcs": True})
    partitions = [TopicPartition(TOPIC, index) for index in range(PARTITIONS)]
    ends = {
        index: consumer.get_watermark_offsets(partitions[index], 30)[1]
        for index in range(PARTITIONS)
    }
    consumer.assign([TopicPartition(TOPIC, index, 0) for index in range(PARTITIONS)])
    seen: Acknowledged = {}
    deadline = time.monotonic() + 120
    while len(seen) < sum(ends.values()):
        assert time.monotonic() < deadline, f"{len(seen)} of {sum(ends.values())} records came"
        for message in consumer.consume(1000, 0.1):
            assert message.error() is None, message.error()
            seen[message.partition(), message.offset()] = message.value()
    consumer.close()
    return seen


@pytest.mark.timeout(900)
@pytest.mark.slow("a broker starts again after each kill")
@pytest.mark.parametrize(
    "kills", [6, pytest.param(30, marks=pytest.mark.long("more kills; `make kills` has 1,000"))]
)
def test_nothing_acknowledged_is_lost_or_doubled(tmp_path: Path, kills: int) -> None:
    chance = random.Random(20_251)
    port = free_port()
    broker = moldau(tmp_path, OVERRIDES, port).start()
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1, config=CONFIG)])[TOPIC].result(30)
    writer = Writer(broker.bootstrap)
    try:
        for _ in range(kills):
            # A random amount of progress, so that each kill meets another point of the writing.
            writer.wait_for_more(chance.randrange(1, 1500))
            broker.kill()
            broker.start()
        writer.wait_for_more(100)
        writer.finish()
        seen = read_everything(broker.bootstrap)
    finally:
        writer._stop.set()
        broker.kill()

    assert writer.refused == []
    missing = {at: value for at, value in writer.acknowledged.items() if seen.get(at) != value}
    assert missing == {}, f"{len(missing)} of {len(writer.acknowledged)} acknowledged are not there"
    doubled = [value for value, times in Counter(seen.values()).items() if times > 1]
    assert doubled == [], f"{len(doubled)} values of an idempotent producer are there twice"
