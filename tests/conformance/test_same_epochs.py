"""Leader epochs of a quiet partition with one replica, across restarts: Moldau answers as Apache
Kafka does, and a consumer at the partition's end is not sent back to its beginning."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moldau.wire.apis import ApiKey
from moldau.wire.messages import FetchRequest, ListOffsetsRequest, OffsetForLeaderEpochRequest
from moldau.wire.records import encode_batch
from support import asking
from support.either import create_and_wait, wait_for_leader
from support.processes import BrokerProcess, apache_kafka, kafka_missing, moldau
from support.raw import RawConnection
from support.waiting import eventually

RECORDS = 3
EARLIEST, LATEST = -2, -1
TOPICS = ("quiet", "empty")


def end_of_epoch(to: RawConnection, topic: str, epoch: int) -> tuple[int, int, int]:
    wanted = OffsetForLeaderEpochRequest.OffsetForLeaderPartition(leader_epoch=epoch)
    request = OffsetForLeaderEpochRequest(
        replica_id=-1,
        topics=[OffsetForLeaderEpochRequest.OffsetForLeaderTopic(topic=topic, partitions=[wanted])],
    )
    answer = to.call(ApiKey.OFFSET_FOR_LEADER_EPOCH, 4, request).topics[0].partitions[0]
    return answer.error_code, answer.leader_epoch, answer.end_offset


def fetch(to: RawConnection, topic: str, offset: int, last_fetched_epoch: int) -> Any:
    wanted = FetchRequest.FetchPartition(
        partition=0,
        fetch_offset=offset,
        last_fetched_epoch=last_fetched_epoch,
        partition_max_bytes=1 << 20,
    )
    request = FetchRequest(
        replica_id=-1,
        max_wait_ms=10,
        max_bytes=1 << 20,
        session_epoch=-1,
        topics=[FetchRequest.FetchTopic(topic=topic, partitions=[wanted])],
    )
    answer = to.call(ApiKey.FETCH, 12, request).responses[0].partitions[0]
    diverging = answer.diverging_epoch
    return answer.error_code, answer.high_watermark, (diverging.epoch, diverging.end_offset)


def offset_and_epoch(to: RawConnection, topic: str, timestamp: int) -> tuple[int, int, int]:
    wanted = ListOffsetsRequest.ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    request = ListOffsetsRequest(
        replica_id=-1, topics=[ListOffsetsRequest.ListOffsetsTopic(name=topic, partitions=[wanted])]
    )
    answer = to.call(ApiKey.LIST_OFFSETS, 7, request).topics[0].partitions[0]
    return answer.error_code, answer.offset, answer.leader_epoch


def answers_about(to: RawConnection, topic: str) -> dict[str, Any]:
    """Everything that tells of epochs; the latest is the one that ListOffsets gives."""
    found: dict[str, Any] = {
        "latest": offset_and_epoch(to, topic, LATEST),
        "earliest": offset_and_epoch(to, topic, EARLIEST),
    }
    _, end, latest = found["latest"]
    for epoch in range(latest + 2):
        found[f"end of {epoch}"] = end_of_epoch(to, topic, epoch)
        found[f"fetch after {epoch}"] = fetch(to, topic, end, epoch)
    return found


def fill(broker: BrokerProcess) -> None:
    with RawConnection(broker.port) as to:
        for topic in TOPICS:
            create_and_wait(to, topic, 1, {})
        for _ in range(RECORDS):
            answer = asking.produce(to, "quiet", 0, encode_batch([(None, b"x", 1, ())]))
            assert answer.error_code == 0, answer


def talk(broker: BrokerProcess) -> Iterator[dict[str, dict[str, Any]]]:
    """What a broker says of both topics: at first, after each of two restarts, and after one more
    record."""

    def all_answers() -> dict[str, dict[str, Any]]:
        with RawConnection(broker.port) as to:
            for topic in TOPICS:
                wait_for_leader(to, topic)
            return {topic: answers_about(to, topic) for topic in TOPICS}

    broker.start()
    fill(broker)
    yield all_answers()
    for _ in range(2):
        broker.stop()
        broker.start()
        yield all_answers()
    with RawConnection(broker.port) as to:
        assert asking.produce(to, "quiet", 0, encode_batch([(None, b"x", 1, ())])).error_code == 0
    yield all_answers()


@pytest.mark.skipif(kafka_missing() is not None, reason=str(kafka_missing()))
@pytest.mark.slow("Apache Kafka starts four times")
def test_epochs_without_records_are_answered_as_kafka_does(tmp_path: Path) -> None:
    ours, kafkas = moldau(tmp_path / "moldau"), apache_kafka(tmp_path / "kafka")
    try:
        for our_answers, kafkas_answers in zip(talk(ours), talk(kafkas), strict=True):
            assert our_answers == kafkas_answers
            assert our_answers["quiet"]["latest"][0] == 0
    finally:
        ours.kill()
        kafkas.kill()


def test_a_consumer_at_the_end_of_a_quiet_partition_reads_nothing_again(tmp_path: Path) -> None:
    log: list[str] = []
    values: list[bytes] = []
    with moldau(tmp_path) as broker:
        fill(broker)
        # An epoch without records: the one that ListOffsets gives to the consumer.
        broker.stop()
        broker.start()
        consumer = at_the_end(broker, "quiet", log)

        def poll() -> int:
            message = consumer.poll(0.1)
            if message is not None and not message.error():
                values.append(message.value())
            return len(values)

        eventually(lambda: poll() or logged(log, "offset 3"), what="the consumer is at the end")
        broker.stop()
        broker.start()
        eventually(
            lambda: poll() or logged(log, "epoch validation succeeded"),
            what="the consumer asks for the end of its epoch",
        )
        with RawConnection(broker.port) as to:
            wait_for_leader(to, "quiet")
            answer = asking.produce(to, "quiet", 0, encode_batch([(None, b"new", 1, ())]))
            assert answer.error_code == 0
        eventually(poll, what="the next record is read")
        consumer.close()
    assert values == [b"new"], log


def at_the_end(broker: BrokerProcess, topic: str, log: list[str]) -> Any:
    """A librdkafka consumer that begins at the end; what it logs goes to `log`."""
    from confluent_kafka import OFFSET_END, Consumer, TopicPartition

    class Lines(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            log.append(record.getMessage())

    logger = logging.Logger("librdkafka")
    logger.addHandler(Lines())
    settings = {
        "bootstrap.servers": broker.bootstrap,
        "group.id": "g",
        # Where records that are delivered again would come from.
        "auto.offset.reset": "earliest",
        "reconnect.backoff.max.ms": 200,
        "topic.metadata.refresh.interval.ms": 500,
        "debug": "fetch,topic",
    }
    consumer = Consumer(settings, logger=logger)
    consumer.assign([TopicPartition(topic, 0, OFFSET_END)])
    return consumer


def logged(log: list[str], text: str) -> bool:
    return any(text in line for line in log)
