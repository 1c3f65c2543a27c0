"""The consumer without a group: what it reads, where it stands, what it says when it cannot."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from confluent_kafka import Producer

from moldau.client.consumer import Consumer
from moldau.client.errors import (
    ClosedError,
    ConcurrentModificationError,
    CorruptRecordError,
    IllegalStateError,
    InvalidGroupIdError,
    KafkaTimeoutError,
    NoOffsetForPartitionError,
    OffsetOutOfRangeError,
    RecordDeserializationError,
    WakeupError,
)
from moldau.client.topics import OffsetAndMetadata, TopicPartition
from support import asking
from support.consuming import new_topic, numbers, poll_until, put, read, values
from support.either import create_and_wait
from support.processes import BrokerProcess
from support.raw import RawConnection
from support.waiting import eventually

Make = Callable[..., Consumer]


@pytest.fixture
def make(broker: BrokerProcess) -> Iterator[Make]:
    """Consumers that are closed at the end, reading from the start unless told otherwise."""
    made: list[Consumer] = []

    def build(**settings: Any) -> Consumer:
        settings = {"auto_offset_reset": "earliest", "fetch_max_wait_ms": 50} | settings
        consumer = Consumer(bootstrap_servers=broker.bootstrap, **settings)
        made.append(consumer)
        return consumer

    yield build
    for each in made:
        each.close()


def test_records_come_whole_and_in_order(broker: BrokerProcess, make: Make) -> None:
    topic = new_topic(broker)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    producer.produce(topic, b"v0", b"k0", 0, timestamp=1_700_000_000_000, headers={"h": b"1"})
    producer.produce(topic, None, None, 0, headers=[("empty", None)])
    producer.flush(30)
    consumer = make()
    consumer.assign([(topic, 0)])
    first, second = read(consumer, 2)
    assert (first.topic, first.partition, first.offset) == (topic, 0, 0)
    assert (first.key, first.value) == (b"k0", b"v0")
    assert (first.timestamp, first.timestamp_type) == (1_700_000_000_000, 0)
    assert first.headers == (("h", b"1"),)
    assert (second.offset, second.key, second.value) == (1, None, None)
    assert second.headers == (("empty", None),)
    assert consumer.position((topic, 0)) == 2


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_compressed_batches(broker: BrokerProcess, make: Make, codec: str) -> None:
    topic = new_topic(broker)
    put(broker.bootstrap, topic, numbers(700), compression_type=codec, linger_ms=50)
    consumer = make()
    consumer.assign([(topic, 0)])
    assert values(read(consumer, 700)) == numbers(700)


def test_a_poll_gives_at_most_max_poll_records(broker: BrokerProcess, make: Make) -> None:
    topic = new_topic(broker, 2)
    for partition in (0, 1):
        put(broker.bootstrap, topic, numbers(50), partition=partition)
    consumer = make(max_poll_records=30)
    consumer.assign([(topic, 0), (topic, 1)])
    found = []
    while len(found) < 100:
        records = consumer.poll(60.0)
        assert 0 < len(records) <= 30
        for partition in records.partitions():
            part = records.records(partition)
            following = records.next_offsets()[partition]
            assert following.offset == part[-1].offset + 1
            assert following.leader_epoch == 0
        found.extend(records)
    for index in (0, 1):
        assert [r.offset for r in found if r.partition == index] == list(range(50))


def test_seeking(broker: BrokerProcess, make: Make) -> None:
    topic = new_topic(broker)
    times = [1_700_000_000_000 + 1000 * index for index in range(10)]
    put(broker.bootstrap, topic, numbers(10), timestamps=times)
    consumer = make()
    partition = TopicPartition(topic, 0)
    consumer.assign([partition])

    consumer.seek(partition, 4)
    assert values(read(consumer, 6)) == numbers(6, 4)
    consumer.seek(partition, OffsetAndMetadata(7, "", 0))
    assert values(read(consumer, 3)) == numbers(3, 7)
    consumer.seek_to_beginning([partition])
    assert consumer.position(partition) == 0
    assert values(read(consumer, 10)) == numbers(10)
    consumer.seek_to_end()
    assert consumer.position(partition) == 10

    found = consumer.offsets_for_times({partition: times[3] - 1})[partition]
    assert found is not None
    assert (found.offset, found.timestamp) == (3, times[3])
    assert consumer.offsets_for_times({partition: times[9] + 1}) == {partition: None}
    assert consumer.beginning_offsets([partition]) == {partition: 0}
    assert consumer.end_offsets([partition]) == {partition: 10}

    with pytest.raises(ValueError, match="negative"):
        consumer.seek(partition, -1)
    with pytest.raises(ValueError, match="cannot be negative"):
        consumer.offsets_for_times({partition: -1})
    with pytest.raises(IllegalStateError, match="No current assignment"):
        consumer.seek((topic, 1), 0)
    with pytest.raises(IllegalStateError, match="assigned to this consumer"):
        consumer.position((topic, 1))


def test_where_to_begin_without_a_committed_offset(broker: BrokerProcess, make: Make) -> None:
    topic = new_topic(broker)
    now = int(time.time() * 1000)
    put(broker.bootstrap, topic, numbers(4), timestamps=[now - 7_200_000] * 2 + [now - 1000] * 2)
    positions = {}
    for reset in ("earliest", "latest", "by_duration:PT1H", "by_duration:PT0.01S"):
        consumer = make(auto_offset_reset=reset)
        consumer.assign([(topic, 0)])
        positions[reset] = consumer.position((topic, 0))
    assert positions == {
        "earliest": 0,
        "latest": 4,
        "by_duration:PT1H": 2,
        "by_duration:PT0.01S": 4,
    }
    consumer = make(auto_offset_reset="none")
    consumer.assign([(topic, 0)])
    with pytest.raises(NoOffsetForPartitionError) as caught:
        poll_until(consumer, lambda: False, "an error")
    assert caught.value.partitions == {TopicPartition(topic, 0)}
    # It can be mended.
    consumer.seek((topic, 0), 3)
    assert values(read(consumer, 1)) == [b"3"]


def test_a_position_that_the_log_no_longer_has(broker: BrokerProcess, make: Make) -> None:
    topic = new_topic(broker)
    put(broker.bootstrap, topic, numbers(20))
    with RawConnection(broker.port) as to:
        asking.delete_records(to, topic, 0, 12)
    lenient = make()
    lenient.assign([(topic, 0)])
    lenient.seek((topic, 0), 5)
    assert values(read(lenient, 8)) == numbers(8, 12)

    strict = make(auto_offset_reset="none")
    strict.assign([(topic, 0)])
    strict.seek((topic, 0), 5)
    with pytest.raises(OffsetOutOfRangeError, match=f"position 5 .*{topic}-0"):
        poll_until(strict, lambda: False, "an error")


def test_pausing(broker: BrokerProcess, make: Make) -> None:
    topic = new_topic(broker, 2)
    put(broker.bootstrap, topic, numbers(20), partition=0)
    consumer = make(max_poll_records=5)
    consumer.assign([(topic, 0), (topic, 1)])
    first = consumer.poll(60.0)
    assert values(first) == numbers(5)
    # What was fetched of it is kept.
    consumer.pause([(topic, 0)])
    assert consumer.paused() == {TopicPartition(topic, 0)}
    put(broker.bootstrap, topic, numbers(3), partition=1)
    assert {record.partition for record in read(consumer, 3)} == {1}
    assert not consumer.poll(0.05)
    consumer.resume([(topic, 0)])
    assert consumer.paused() == set()
    assert values(read(consumer, 15)) == numbers(15, 5)
    with pytest.raises(IllegalStateError):
        consumer.pause([(topic, 7)])


def test_waking_up(broker: BrokerProcess, make: Make) -> None:
    topic = new_topic(broker)
    consumer = make()
    consumer.assign([(topic, 0)])
    consumer.poll(0)
    timer = threading.Timer(0.2, consumer.wakeup)
    timer.start()
    with pytest.raises(WakeupError):
        consumer.poll(60)
    timer.join()
    # Asked for while nobody waits, it ends the next call, also where records wait.
    put(broker.bootstrap, topic, numbers(1))
    consumer.wakeup()
    with pytest.raises(WakeupError):
        consumer.poll(60)
    assert values(read(consumer, 1)) == [b"0"]
    consumer.wakeup()
    with pytest.raises(WakeupError):
        consumer.end_offsets([(topic, 0)])


def test_two_threads(broker: BrokerProcess, make: Make) -> None:
    consumer = make()
    consumer.assign([(new_topic(broker), 0)])

    woken = threading.Event()

    def wait_inside() -> None:
        while not woken.is_set():
            # It is its turn to be refused when the other is inside.
            with suppress(ConcurrentModificationError):
                try:
                    consumer.poll(60)
                except WakeupError:
                    woken.set()

    inside = threading.Thread(target=wait_inside)
    inside.start()
    with pytest.raises(ConcurrentModificationError):
        eventually(lambda: consumer.paused() is None, what="the other is inside")
    consumer.wakeup()
    inside.join()
    assert consumer.paused() == set()


def abort_between(bootstrap: str, topic: str) -> Producer:
    """a, then an aborted b, then c; the producer has d under way in an open transaction."""
    settings = {"bootstrap.servers": bootstrap, "transactional.id": topic, "log_level": 0}
    producer = Producer(settings)
    producer.init_transactions(30)
    for value, commit in ((b"a", True), (b"b", False), (b"c", True)):
        producer.begin_transaction()
        producer.produce(topic, value, partition=0)
        producer.flush(30)
        if commit:
            producer.commit_transaction(30)
        else:
            producer.abort_transaction(30)
    producer.begin_transaction()
    producer.produce(topic, b"d", partition=0)
    producer.flush(30)
    return producer


def test_transactions(broker: BrokerProcess, make: Make) -> None:
    topic = new_topic(broker)
    producer = abort_between(broker.bootstrap, topic)
    everything = make()
    everything.assign([(topic, 0)])
    assert values(read(everything, 4)) == [b"a", b"b", b"c", b"d"]

    committed = make(isolation_level="read_committed")
    committed.assign([(topic, 0)])
    assert values(read(committed, 2)) == [b"a", b"c"]
    # Past the markers, up to the open transaction.
    poll_until(committed, lambda: committed.position((topic, 0)) == 6, "the position moved on")
    assert committed.end_offsets([(topic, 0)]) == {TopicPartition(topic, 0): 6}
    assert everything.end_offsets([(topic, 0)]) == {TopicPartition(topic, 0): 7}
    producer.commit_transaction(30)
    assert values(read(committed, 1)) == [b"d"]


def refuse_five(topic: str, data: bytes | None, headers: object) -> int:
    if data == b"5":
        raise ValueError("not this one")
    return int(data or b"0")


def test_a_record_that_cannot_be_read(broker: BrokerProcess, make: Make) -> None:
    topic = new_topic(broker)
    put(broker.bootstrap, topic, numbers(8))
    consumer = make(value_deserializer=refuse_five)
    consumer.assign([(topic, 0)])
    assert values(read(consumer, 5)) == [0, 1, 2, 3, 4]
    for _ in range(2):
        with pytest.raises(RecordDeserializationError) as caught:
            consumer.poll(60.0)
        assert (caught.value.topic, caught.value.partition, caught.value.offset) == (topic, 0, 5)
        assert consumer.position((topic, 0)) == 5
    consumer.seek((topic, 0), 6)
    assert values(read(consumer, 2)) == [6, 7]


def test_a_batch_that_is_damaged(broker: BrokerProcess, make: Make) -> None:
    topic = new_topic(broker)
    put(broker.bootstrap, topic, [b"sound"])
    put(broker.bootstrap, topic, [b"damaged"])
    segment = broker.folder_of(topic) / "00000000000000000000.log"
    data = segment.read_bytes()
    segment.write_bytes(data.replace(b"damaged", b"DAMAGED"))
    consumer = make()
    consumer.assign([(topic, 0)])
    assert values(read(consumer, 1)) == [b"sound"]
    with pytest.raises(CorruptRecordError, match=f"{topic}-0.*offset 1"):
        consumer.poll(60.0)
    careless = make(check_crcs=False)
    careless.assign([(topic, 0)])
    assert values(read(careless, 2)) == [b"sound", b"DAMAGED"]


def test_records_larger_than_the_limits(broker: BrokerProcess, make: Make) -> None:
    topic = new_topic(broker)
    put(broker.bootstrap, topic, [bytes(200_000), b"small"])
    consumer = make(max_partition_fetch_bytes=1000, fetch_max_bytes=1000)
    consumer.assign([(topic, 0)])
    assert [len(value) for value in values(read(consumer, 2))] == [200_000, 5]


def test_a_topic_made_anew(broker: BrokerProcess, make: Make) -> None:
    topic = new_topic(broker)
    put(broker.bootstrap, topic, numbers(10))
    consumer = make(allow_auto_create_topics=False)
    consumer.assign([(topic, 0)])
    assert len(read(consumer, 10)) == 10
    with RawConnection(broker.port) as to:
        asking.delete_topic(to, topic)
        eventually(lambda: asking.describe_topic(to, topic).error_code, what="the topic is gone")
        create_and_wait(to, topic)
    put(broker.bootstrap, topic, [b"new"])
    assert values(read(consumer, 1)) == [b"new"]


def test_topics_that_do_not_exist(broker: BrokerProcess, make: Make) -> None:
    consumer = make(allow_auto_create_topics=False)
    assert consumer.partitions_for("no-such-topic") == []
    with pytest.raises(KafkaTimeoutError):
        consumer.end_offsets([("no-such-topic", 0)], timeout=0.3)
    consumer.assign([("no-such-topic", 0)])
    assert not consumer.poll(0.3)
    with pytest.raises(KafkaTimeoutError):
        consumer.position(("no-such-topic", 0), timeout=0.3)


@pytest.mark.timeout(120)
def test_a_partition_without_a_position_does_not_hold_up_the_others(
    broker: BrokerProcess, make: Make
) -> None:
    topic = new_topic(broker)
    put(broker.bootstrap, topic, numbers(20))
    consumer = make(allow_auto_create_topics=False, max_poll_records=5)
    consumer.assign([(topic, 0), ("no-such-topic", 0)])
    for start in range(0, 20, 5):
        assert values(consumer.poll(600)) == numbers(5, start)


def test_what_there_is(broker: BrokerProcess, make: Make) -> None:
    topic = new_topic(broker, 3)
    consumer = make()
    infos = consumer.partitions_for(topic)
    assert [(info.topic, info.partition) for info in infos] == [(topic, n) for n in range(3)]
    assert all(info.leader is not None and info.leader.port == broker.port for info in infos)
    assert len(consumer.list_topics()[topic]) == 3


def test_lag_and_metrics(broker: BrokerProcess, make: Make) -> None:
    topic = new_topic(broker)
    put(broker.bootstrap, topic, numbers(40))
    consumer = make(max_poll_records=10, client_id="measured")
    consumer.assign([(topic, 0)])
    assert len(read(consumer, 10)) == 10
    assert consumer.current_lag((topic, 0)) == 30
    assert len(read(consumer, 30)) == 30
    assert consumer.current_lag((topic, 0)) == 0
    shown = {(name.name, name.tags.get("topic")): each for name, each in consumer.metrics().items()}
    assert shown["records-consumed-total", None].value == 40
    assert shown["records-consumed-total", topic].value == 40
    assert shown["records-lag", topic].value == 0
    assert shown["records-lag-max", None].value == 0
    assert shown["fetch-total", None].value >= 1
    assert shown["fetch-latency-avg", None].value >= 0
    assert shown["bytes-consumed-total", None].value > 0
    assert {name.tags["client-id"] for name in consumer.metrics()} == {"measured"}


class Counting:
    """An interceptor that sees what is read."""

    def __init__(self) -> None:
        self.seen = 0
        self.closed = False

    def on_consume(self, records: Any) -> Any:
        self.seen += len(records)
        return records

    def close(self) -> None:
        self.closed = True


def test_interceptors(broker: BrokerProcess, make: Make) -> None:
    topic = new_topic(broker)
    put(broker.bootstrap, topic, numbers(3))
    interceptor = Counting()
    consumer = make(interceptor_classes=[interceptor])
    consumer.assign([(topic, 0)])
    read(consumer, 3)
    assert interceptor.seen == 3
    consumer.close()
    assert interceptor.closed


def test_iterating_consumes_what_was_given(broker: BrokerProcess, make: Make) -> None:
    topic = new_topic(broker)
    put(broker.bootstrap, topic, numbers(10))
    consumer = make()
    consumer.assign([(topic, 0)])
    for record in consumer:
        if record.value == b"3":
            assert consumer.position((topic, 0)) == 4
            break
    assert consumer.position((topic, 0)) == 4
    for record in consumer:
        if record.offset == 5:
            consumer.seek((topic, 0), 8)
        if record.offset == 9:
            break
        assert record.offset in (4, 5, 8)


def test_what_a_consumer_refuses(broker: BrokerProcess, make: Make) -> None:
    topic = new_topic(broker)
    consumer = make()
    with pytest.raises(IllegalStateError, match="not subscribed"):
        consumer.poll(0)
    for call in (
        lambda: consumer.subscribe([topic]),
        lambda: consumer.commit_sync(),
        lambda: consumer.commit_async(),
        lambda: consumer.committed([(topic, 0)]),
        lambda: consumer.group_metadata(),
        lambda: consumer.enforce_rebalance(),
    ):
        with pytest.raises(InvalidGroupIdError, match=r"group\.id"):
            call()
    consumer.assign([(topic, 0)])
    consumer.unsubscribe()
    assert consumer.assignment() == set()
    consumer.close()
    consumer.close()
    with pytest.raises(ClosedError):
        consumer.poll(0)
