"""A broker in a test: what the plugin and `moldau.testing` give to users of any client."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import Consumer, Producer
from kafka import KafkaConsumer, KafkaProducer

from moldau.client import Consumer as MoldauConsumer
from moldau.client.errors import TopicExistsError
from moldau.testing import (
    AsyncBroker,
    Broker,
    BrokerNotRunning,
    BrokerStartError,
    Cluster,
    Topic,
    WaitTimeout,
    wait_until,
)


def test_a_client_writes_and_reads(moldau_broker: Broker) -> None:
    producer = Producer({"bootstrap.servers": moldau_broker.bootstrap_servers})
    moldau_broker.create_topic("orders", partitions=3)
    producer.produce("orders", b"first", key=b"k")
    assert producer.flush(10) == 0
    consumer = Consumer(
        {
            "bootstrap.servers": moldau_broker.bootstrap_servers,
            "group.id": "readers",
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe(["orders"])
    message = consumer.poll(15)
    assert message is not None
    assert (message.key(), message.value()) == (b"k", b"first")
    consumer.close()


def test_topics_are_made_by_name(moldau_broker: Broker, moldau_topic: Callable[..., Topic]) -> None:
    orders = moldau_topic("orders", partitions=3)
    unnamed = moldau_topic()
    assert moldau_broker.topics == {"orders": 3, unnamed: 1}
    orders.produce("a", b"b", {"c": 1}, None, key="k", partition=2)
    assert orders.values(count=4) == [b"a", b"b", b'{"c": 1}', None]
    assert [record.key for record in orders.records(partition=2)] == [b"k"] * 4
    assert orders.end_offsets() == {0: 0, 1: 0, 2: 4}


@pytest.mark.moldau(topics={"orders": 2}, config={"auto.create.topics.enable": False}, seed=7)
def test_a_marker_says_how_the_broker_is_made(moldau_broker: Broker) -> None:
    assert moldau_broker.topics == {"orders": 2}
    assert moldau_broker.seed == 7
    assert moldau_broker.nodes[1].properties["auto.create.topics.enable"] == "false"


def test_each_test_has_a_broker_of_its_own(moldau_broker: Broker) -> None:
    assert moldau_broker.topics == {}


def test_a_session_broker_stays(
    moldau_session_broker: Broker, moldau_topic: Callable[..., Topic]
) -> None:
    pids.add(moldau_session_broker.nodes[1].pid)
    moldau_topic("mine").produce("x")
    # Other files of this run may have left topics of theirs.
    assert moldau_session_broker.topics["mine"] == 1


def test_a_session_broker_is_shared_but_not_its_topics(moldau_session_broker: Broker) -> None:
    pids.add(moldau_session_broker.nodes[1].pid)
    assert len(pids) == 1
    moldau_session_broker.wait_until(lambda: "mine" not in moldau_session_broker.topics)
    moldau_session_broker.fail("Metadata", error="LEADER_NOT_AVAILABLE")
    moldau_session_broker.kill()


def test_a_session_broker_is_healed_between_tests(moldau_session_broker: Broker) -> None:
    assert not moldau_session_broker.disturbed
    producer = Producer({"bootstrap.servers": moldau_session_broker.bootstrap_servers})
    producer.produce("healed", b"x")
    assert producer.flush(10) == 0


pids: set[int | None] = set()


def test_a_cluster_has_three_brokers(moldau_cluster: Cluster) -> None:
    assert sorted(moldau_cluster.nodes) == [1, 2, 3]
    moldau_cluster.create_topic("orders", partitions=6)
    assert len(moldau_cluster.bootstrap_servers.split(",")) == 3
    assert {moldau_cluster.leader("orders", index).id for index in range(6)} == {1, 2, 3}
    assert len(moldau_cluster.data_of("orders", 0)) == 3


def test_nothing_is_left_behind() -> None:
    with Broker() as broker:
        node = broker.nodes[1]
        folder, pid, port = node.folder, node.pid, node.port
        assert folder.is_dir()
        socket.create_connection(("127.0.0.1", port)).close()
    assert pid is not None
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))
    wait_until(lambda: not folder.exists())
    with pytest.raises(BrokerNotRunning):
        node.known_brokers()


def test_a_broker_that_cannot_start_says_why() -> None:
    broker = Broker(config={"log.segment.bytes": "much"})
    with pytest.raises(BrokerStartError, match=r"log\.segment\.bytes"):
        broker.start()


def test_a_template_that_died_is_replaced() -> None:
    with Broker(brokers=2, topics=["orders"]) as broker:
        assert broker.template is not None
        folder = broker.nodes[1].folder
        pids = [node.pid for node in broker.nodes.values()]
        os.kill(broker.template.process_id, signal.SIGKILL)
        wait_until(
            lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids),
            what="its nodes to end with it",
        )
        with Broker() as other:
            assert other.topics == {}
        assert not broker.nodes[1].running
        broker.nodes[1].spawn()
        assert not broker.nodes[2].running
        broker.start_nodes()
        assert broker.topics == {"orders": 1}
    wait_until(lambda: not folder.exists())


def test_brokers_can_be_made_in_threads() -> None:
    def use(number: int) -> list[bytes | None]:
        with Broker(topics=["orders"]) as broker:
            broker.produce("orders", str(number))
            return broker.values("orders")

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(use, range(4))) == [[b"0"], [b"1"], [b"2"], [b"3"]]


def test_other_clients_work_too(moldau_broker: Broker) -> None:
    address = moldau_broker.bootstrap_servers
    producer = KafkaProducer(bootstrap_servers=address)
    producer.send("orders", b"hello").get(10)
    producer.close()
    consumer = KafkaConsumer(
        "orders", bootstrap_servers=address, group_id="g", auto_offset_reset="earliest"
    )
    assert next(iter(consumer)).value == b"hello"
    consumer.close()
    with MoldauConsumer(
        bootstrap_servers=address, group_id="h", auto_offset_reset="earliest"
    ) as own:
        own.subscribe(["orders"])
        records = wait_until(lambda: own.poll(timeout=1.0))
        assert [record.value for record in records] == [b"hello"]


def test_records_are_waited_for_and_missed(moldau_broker: Broker) -> None:
    moldau_broker.create_topic("orders")
    moldau_broker.produce("orders", "one")
    with pytest.raises(WaitTimeout, match="1 records"):
        moldau_broker.records("orders", count=2, timeout=0.1)


def test_records_that_are_deleted_while_they_are_read_are_no_failure(
    moldau_broker: Broker,
) -> None:
    moldau_broker.produce(moldau_broker.create_topic("orders"), "one")
    error = "OFFSET_OUT_OF_RANGE"
    fault = moldau_broker.fail("Fetch", error=error, times=1, client_id="moldau-testing")
    assert moldau_broker.values("orders") == [b"one"]
    assert fault.hits == 1


def test_what_a_test_writes_is_written_once(moldau_broker: Broker) -> None:
    topic = moldau_broker.create_topic("orders")
    moldau_broker.disconnect("Produce", lose="response", times=2, client_id="moldau-testing")
    assert topic.produce("one", "two") == [0, 1]
    assert topic.produce("three") == [2]
    assert topic.values() == [b"one", b"two", b"three"]


def test_topics_are_made_and_deleted_once_though_answers_are_lost(moldau_broker: Broker) -> None:
    for api in ("CreateTopics", "DeleteTopics"):
        moldau_broker.disconnect(api, lose="response", times=1, client_id="moldau-testing")
    topic = moldau_broker.create_topic("orders", partitions=2)
    assert moldau_broker.topics == {"orders": 2}
    with pytest.raises(TopicExistsError):
        moldau_broker.create_topic("orders")
    topic.delete()
    moldau_broker.wait_until(lambda: moldau_broker.topics == {})
    with pytest.raises(LookupError, match="no topic 'orders'"):
        topic.delete()


def test_what_is_not_there_is_told(moldau_broker: Broker) -> None:
    with pytest.raises(LookupError, match="create it first"):
        moldau_broker.records("orders")
    moldau_broker.create_topic("orders", partitions=2)
    with pytest.raises(LookupError, match="has 2 partitions, and no 2"):
        moldau_broker.produce("orders", "x", partition=2)


def test_asyncio_clients_go_on_while_a_test_waits() -> None:
    async def run() -> None:
        async with AsyncBroker(topics={"orders": 1}) as broker:
            async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
                waiting = asyncio.create_task(broker.values("orders", count=1))
                await producer.send_and_wait("orders", b"hello")
                assert await waiting == [b"hello"]
            consumer = AIOKafkaConsumer(
                "orders",
                bootstrap_servers=broker.bootstrap_servers,
                group_id="readers",
                auto_offset_reset="earliest",
            )
            async with consumer:
                assert (await consumer.getone()).value == b"hello"
                await broker.group("readers").wait_until_stable(1)

    asyncio.run(run())


def test_a_broker_keeps_its_address_and_data_over_a_restart(moldau_broker: Broker) -> None:
    moldau_broker.produce(moldau_broker.create_topic("orders"), "kept")
    before = moldau_broker.bootstrap_servers
    moldau_broker.restart(kill=True)
    assert moldau_broker.bootstrap_servers == before
    assert moldau_broker.values("orders") == [b"kept"]
    moldau_broker.restart()
    assert moldau_broker.values("orders") == [b"kept"]
