"""A broker in a test: what the plugin and `moldau.testing` give to users of any client."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import Consumer, Producer

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
    assert moldau_session_broker.topics == {"mine": 1}


def test_a_session_broker_is_shared_but_not_its_topics(moldau_session_broker: Broker) -> None:
    pids.add(moldau_session_broker.nodes[1].pid)
    assert len(pids) == 1
    moldau_session_broker.wait_until(lambda: moldau_session_broker.topics == {})


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


def test_records_are_waited_for_and_missed(moldau_broker: Broker) -> None:
    moldau_broker.create_topic("orders")
    moldau_broker.produce("orders", "one")
    with pytest.raises(WaitTimeout, match="1 records"):
        moldau_broker.records("orders", count=2, timeout=0.1)


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
