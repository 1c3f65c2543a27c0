"""A plain subscribe with each client: a group shares the partitions and resumes where it was."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from aiokafka import AIOKafkaConsumer
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from kafka import KafkaConsumer

from support.processes import BrokerProcess
from support.waiting import eventually

PARTITIONS = 4
PER_PARTITION = 25


def filled_topic(bootstrap: str, name: str) -> set[bytes]:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(name, PARTITIONS, 1)])[name].result(30)
    return add_records(bootstrap, name, "first")


def add_records(bootstrap: str, name: str, mark: str) -> set[bytes]:
    producer = Producer({"bootstrap.servers": bootstrap})
    values = set()
    for number in range(PARTITIONS * PER_PARTITION):
        value = f"{mark} {number}".encode()
        producer.produce(name, value, partition=number % PARTITIONS)
        values.add(value)
    assert producer.flush(30) == 0
    return values


def confluent_reads(bootstrap: str, topic: str, count: int) -> list[bytes]:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"{topic}-group",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([topic])
    values: list[bytes] = []
    while len(values) < count:
        message = consumer.poll(30)
        assert message is not None
        assert message.error() is None, message.error()
        values.append(message.value())
    consumer.commit(asynchronous=False)
    consumer.close()
    return values


def kafka_python_reads(bootstrap: str, topic: str, count: int) -> list[bytes]:
    consumer = KafkaConsumer(
        topic, bootstrap_servers=bootstrap, group_id=f"{topic}-group",
        auto_offset_reset="earliest", enable_auto_commit=False, consumer_timeout_ms=30_000,
    )  # fmt: skip
    values: list[bytes] = []
    for record in consumer:
        values.append(record.value)
        if len(values) == count:
            break
    consumer.commit()
    consumer.close()
    return values


def aiokafka_reads(bootstrap: str, topic: str, count: int) -> list[bytes]:
    async def work() -> list[bytes]:
        consumer = AIOKafkaConsumer(
            topic, bootstrap_servers=bootstrap, group_id=f"{topic}-group",
            auto_offset_reset="earliest", enable_auto_commit=False,
        )  # fmt: skip
        await consumer.start()
        values = [(await consumer.getone()).value for _ in range(count)]
        await consumer.commit()
        await consumer.stop()
        return values

    return asyncio.run(asyncio.wait_for(work(), 60))


READERS: dict[str, Callable[[str, str, int], list[bytes]]] = {
    "confluent-kafka": confluent_reads,
    "kafka-python": kafka_python_reads,
    "aiokafka": aiokafka_reads,
}


@pytest.mark.parametrize("client", READERS)
def test_a_group_resumes_where_it_committed(broker: BrokerProcess, client: str) -> None:
    topic = f"resume-{client}"
    read = READERS[client]
    first = filled_topic(broker.bootstrap, topic)
    assert set(read(broker.bootstrap, topic, len(first))) == first
    second = add_records(broker.bootstrap, topic, "second")
    assert set(read(broker.bootstrap, topic, len(second))) == second


def test_two_members_share_the_partitions(broker: BrokerProcess) -> None:
    topic = "shared-by-two"
    sent = filled_topic(broker.bootstrap, topic)
    config = {
        "bootstrap.servers": broker.bootstrap,
        "group.id": "two",
        "session.timeout.ms": 6000,
        "auto.offset.reset": "earliest",
    }
    members = [Consumer(config), Consumer(config)]
    for member in members:
        member.subscribe([topic])
    seen: set[bytes] = set()

    def poll_both() -> bool:
        for member in members:
            for message in member.consume(100, 0.05):
                assert message.error() is None, message.error()
                seen.add(message.value())
        return [len(member.assignment()) for member in members] == [2, 2] and seen == sent

    eventually(poll_both, what="both members own two partitions and every record was seen")
    owned = [{partition.partition for partition in member.assignment()} for member in members]
    assert owned[0] | owned[1] == set(range(PARTITIONS))

    members[0].close()

    def survivor_owns_all() -> bool:
        members[1].poll(0.05)
        return len(members[1].assignment()) == PARTITIONS

    eventually(survivor_owns_all, what="the member that stays takes over all partitions")
    members[1].close()


def test_groups_are_listed_and_described(broker: BrokerProcess) -> None:
    topic = "described"
    sent = filled_topic(broker.bootstrap, topic)
    confluent_reads(broker.bootstrap, topic, len(sent))
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    listed = admin.list_consumer_groups().result(30)
    assert f"{topic}-group" in {group.group_id for group in listed.valid}
    group = admin.describe_consumer_groups([f"{topic}-group"])[f"{topic}-group"].result(30)
    assert group.state.name == "EMPTY"
    admin.delete_consumer_groups([f"{topic}-group"])[f"{topic}-group"].result(30)
    listed = admin.list_consumer_groups().result(30)
    assert f"{topic}-group" not in {group.group_id for group in listed.valid}
