"""Odd things that applications do with their clients, and what must not come of them."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from moldau.client import (
    Admin,
    AsyncConsumer,
    Consumer,
    ConsumerRebalanceListener,
    NewTopic,
    OffsetAndMetadata,
    Producer,
    ProducerRecord,
    TopicPartition,
    errors,
)
from moldau.testing import Broker, wait_until


@pytest.fixture(scope="module")
def node() -> Iterator[Broker]:
    with Broker(topics=["loops", "left"]) as node:
        yield node


def test_a_delivery_callback_that_exits_does_not_end_the_producer(node: Broker) -> None:
    def leave(_: Any, __: Any) -> None:
        sys.exit(3)

    with Producer(bootstrap_servers=node.bootstrap_servers) as producer:
        producer.send("exits", b"1", on_delivery=leave).result(60)
        future = producer.send("exits", b"2")
        future.add_done_callback(lambda _: sys.exit(4))
        assert future.result(60).offset == 1
        assert producer.send("exits", b"3").result(60).offset == 2


def test_a_topic_without_a_name_is_forgotten_at_once(node: Broker) -> None:
    with Producer(bootstrap_servers=node.bootstrap_servers) as producer:
        with pytest.raises(TypeError, match="topic must be a str"):
            producer.partitions_for(None)  # type: ignore[arg-type]
        assert producer.send("nameless", b"1").result(60).offset == 0
        assert len(producer.partitions_for("nameless")) == 1


def test_loops_in_loops_over_a_consumer_skip_nothing(node: Broker) -> None:
    node.produce("loops", *range(20))
    partition = TopicPartition("loops", 0)
    with Consumer(
        bootstrap_servers=node.bootstrap_servers,
        group_id="loops",
        auto_offset_reset="earliest",
        fetch_max_wait_ms=20,
    ) as consumer:
        consumer.assign([partition])
        first, second = iter(consumer), iter(consumer)
        seen = [next(each).offset for each in (first, first, second, second, first, second)]
        seen += [record.offset for record in consumer.poll(60)][:3]
        assert seen == list(range(9))
        consumer.seek(partition, 9)
        assert next(first).offset == 9
        consumer.commit_sync()
        committed = consumer.committed([partition])[partition]
        assert committed is not None
        assert committed.offset == 10


def test_a_poll_goes_on_where_an_asyncio_loop_was_left(node: Broker) -> None:
    node.produce("left", *range(20))

    async def read() -> list[int]:
        async with AsyncConsumer(
            bootstrap_servers=node.bootstrap_servers,
            auto_offset_reset="earliest",
            max_poll_records=10,
        ) as consumer:
            consumer.assign([("left", 0)])
            seen = []
            async for record in consumer:
                seen.append(record.offset)
                if len(seen) == 3:
                    break
            while len(seen) < 20:
                seen += [record.offset for record in await consumer.poll(60)]
            return seen

    assert asyncio.run(read()) == list(range(20))


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_topic_that_is_deleted_and_made_anew_does_not_hold_up_its_reader(
    node: Broker, protocol: str
) -> None:
    topic = f"deleted-{protocol}"
    node.create_topic(topic)
    node.produce(topic, b"old")
    seen: list[bytes] = []
    with (
        Admin(bootstrap_servers=node.bootstrap_servers) as admin,
        Consumer(
            bootstrap_servers=node.bootstrap_servers,
            group_id=topic,
            group_protocol=protocol,
            auto_offset_reset="earliest",
            allow_auto_create_topics=False,
            metadata_max_age_ms=100,
            # Longer than the test may take: nothing may wait for the topic to come back.
            default_api_timeout_ms=600_000,
        ) as consumer,
    ):
        consumer.subscribe([topic])

        def read(count: int) -> bool:
            seen.extend(record.value for record in consumer.poll(0.1))
            return len(seen) >= count

        wait_until(lambda: read(1), timeout=60)
        admin.delete_topics([topic])
        wait_until(lambda: not consumer.poll(0.1) and not consumer.assignment(), timeout=60)
        admin.create_topics([NewTopic(topic, num_partitions=1)])
        node.produce(topic, b"new")
        wait_until(lambda: read(2), timeout=60)
    assert seen == [b"old", b"new"]


def test_a_cluster_that_is_not_there_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    with (
        caplog.at_level("WARNING", logger="moldau.client"),
        Consumer(bootstrap_servers="127.0.0.1:1", group_id="alone") as consumer,
    ):
        consumer.subscribe(["nothing"])
        wait_until(lambda: not consumer.poll(0.05) and bool(caplog.messages), timeout=60)
    assert any("127.0.0.1:1" in message for message in caplog.messages)


def test_a_producer_of_before_a_fork_is_refused_in_the_child(node: Broker) -> None:
    with Producer(bootstrap_servers=node.bootstrap_servers) as producer:
        producer.send("forks", b"1").result(60)
        child = os.fork()
        if not child:
            with suppress(BaseException):
                try:
                    producer.send("forks", b"2")
                except errors.IllegalStateError:
                    os._exit(0)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert producer.send("forks", b"3").result(60).offset == 1


def test_a_name_in_place_of_several_is_not_taken_for_its_letters(node: Broker) -> None:
    with Admin(bootstrap_servers=node.bootstrap_servers) as admin:
        for operation in (
            admin.create_topics,
            admin.delete_topics,
            admin.describe_topics,
            admin.delete_consumer_groups,
            admin.fence_producers,
        ):
            with pytest.raises(TypeError, match=r"\['ab'\]"):
                operation("ab")
        assert not {"a", "b"} & set(admin.list_topics())


def test_a_consumer_that_its_listener_closed_says_so(node: Broker) -> None:
    class Closes(ConsumerRebalanceListener):
        def on_partitions_assigned(self, partitions: list[TopicPartition]) -> None:
            consumer.close()

    with Consumer(bootstrap_servers=node.bootstrap_servers, group_id="closes") as consumer:
        consumer.subscribe(["left"], Closes())
        with pytest.raises(errors.ClosedError, match="closed inside a callback"):
            wait_until(lambda: bool(consumer.poll(1)), timeout=60)


def test_partitioners_that_leave_keys_out(node: Broker) -> None:
    node.create_topic("keyless", partitions=3)
    for settings in (
        {"partitioner.ignore.keys": True},
        {"partitioner.class": "org.apache.kafka.clients.producer.UniformStickyPartitioner"},
        {"partitioner.class": "uniform-sticky"},
    ):
        with Producer(
            {"bootstrap.servers": node.bootstrap_servers, **settings}, linger_ms=60_000
        ) as producer:
            futures = [producer.send("keyless", b"x", key=b"%d" % key) for key in range(20)]
            producer.flush()
            found = {future.result(60).partition for future in futures}
        # By their keys they would go to all three.
        assert len(found) == 1


def test_seconds_are_not_taken_for_milliseconds(node: Broker) -> None:
    # Such a record would be of 1970, and gone with the next look at retention.ms.
    with Producer(bootstrap_servers=node.bootstrap_servers) as producer:
        producer.send("seconds", b"x").result(60)
        with pytest.raises(TypeError, match="whole number of milliseconds"):
            producer.send("seconds", b"x", timestamp=1_700_000_000.5)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="invalid timestamp"):
            producer.send("seconds", b"x", timestamp=2**63)
        assert producer.send("seconds", b"x", timestamp=7).result(60).timestamp == 7


def test_nothing_is_given_beside_a_record(node: Broker) -> None:
    with (
        Producer(bootstrap_servers=node.bootstrap_servers) as producer,
        pytest.raises(TypeError, match="ProducerRecord"),
    ):
        producer.send(ProducerRecord("t", "v"), "w")


def test_time_stamps_of_the_log(node: Broker) -> None:
    node.create_topic("stamped", config={"message.timestamp.type": "LogAppendTime"})
    with Producer(bootstrap_servers=node.bootstrap_servers) as producer:
        stamp = producer.send("stamped", b"x", timestamp=5).result(60).timestamp
    with Consumer(
        bootstrap_servers=node.bootstrap_servers, auto_offset_reset="earliest"
    ) as consumer:
        consumer.assign([("stamped", 0)])
        (record,) = consumer.poll(60)
    assert stamp > 5
    assert (record.timestamp, record.timestamp_type) == (stamp, 1)


def test_little_is_waited_for_and_then_fetched_ahead(node: Broker) -> None:
    node.create_topic("ahead", partitions=1)
    with (
        Producer(bootstrap_servers=node.bootstrap_servers) as producer,
        Consumer(
            bootstrap_servers=node.bootstrap_servers,
            auto_offset_reset="earliest",
            fetch_min_bytes=2000,
            fetch_max_wait_ms=60_000,
        ) as consumer,
    ):
        consumer.assign([("ahead", 0)])
        producer.send("ahead", b"few").result(60)
        assert not consumer.poll(0.3)
        producer.send("ahead", b"x" * 2000).result(60)
        assert consumer.poll(60).count() == 2
        # Nobody polls, and yet what comes now is there when somebody does.
        producer.send("ahead", b"x" * 2000).result(60)
        fetched = next(
            metric
            for name, metric in consumer.metrics().items()
            if name.name == "fetch-total" and name.group == "consumer-fetch-manager-metrics"
        )
        wait_until(lambda: fetched.value >= 2, timeout=60)
        # It is counted a moment before it can be had.
        wait_until(lambda: consumer.poll(0).count() == 1, timeout=60)


@pytest.mark.parametrize("protocol", ["cooperative-sticky", "consumer"])
def test_what_is_paused_stays_so_through_a_rebalance(node: Broker, protocol: str) -> None:
    topic = f"paused-{protocol}"
    node.create_topic(topic, partitions=2)
    settings: dict[str, Any] = {
        "bootstrap.servers": node.bootstrap_servers,
        "group.id": topic,
        "auto.offset.reset": "earliest",
    }
    if protocol == "consumer":
        settings["group.protocol"] = protocol
    else:
        settings |= {"partition.assignment.strategy": protocol, "heartbeat.interval.ms": 100}
    with Consumer(settings) as first, Consumer(settings) as second:
        first.subscribe([topic])
        wait_until(lambda: not first.poll(0.05) and len(first.assignment()) == 2, timeout=60)
        first.pause(first.assignment())
        second.subscribe([topic])

        def divided() -> bool:
            assert not first.poll(0.05)
            second.poll(0.05)
            return len(first.assignment()) == len(second.assignment()) == 1

        wait_until(divided, timeout=60)
        assert first.paused() == first.assignment()
        assert not second.paused()


def test_offsets_of_a_transaction_are_given_as_to_a_commit(node: Broker) -> None:
    node.produce("left", *range(20))
    with (
        Producer(bootstrap_servers=node.bootstrap_servers, transactional_id="plain") as producer,
        Consumer(
            bootstrap_servers=node.bootstrap_servers, group_id="plain", auto_offset_reset="earliest"
        ) as consumer,
    ):
        producer.init_transactions()
        producer.begin_transaction()
        with pytest.raises(TypeError, match=r"consumer.group_metadata\(\)"):
            producer.send_offsets_to_transaction({("left", 0): 7}, "plain")
        producer.send_offsets_to_transaction({("left", 0): 7}, consumer.group_metadata())
        producer.commit_transaction()
        partition = TopicPartition("left", 0)
        assert consumer.committed([partition]) == {partition: OffsetAndMetadata(7)}
        consumer.assign([partition])
        records = consumer.poll(60)
        consumer.commit_sync(records.next_offsets())
        assert consumer.committed([partition]) == records.next_offsets()


def test_what_is_no_partition_and_no_listener_is_refused(node: Broker) -> None:
    with Consumer(bootstrap_servers=node.bootstrap_servers, group_id="refusing") as consumer:
        for wrong in ("topic", [("topic", "0")], [("topic", 0, 5)]):
            with pytest.raises(TypeError, match=r"a partition is a |a list of partitions is "):
                consumer.assign(wrong)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="on_partitions_assigned"):
            consumer.subscribe(["topic"], print)
