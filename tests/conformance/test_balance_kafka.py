"""`moldau balance` on a cluster of Apache Kafka: the same requests, and the same result."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from moldau.client import Consumer, Producer
from moldau.client.admin import Admin, NewTopic
from moldau.client.topics import TopicPartition
from support.cli import Ended, moldau_cli
from support.cluster import ClusterUnderTest
from support.processes import kafka_missing
from support.waiting import eventually

pytestmark = [
    pytest.mark.skipif(kafka_missing() is not None, reason=kafka_missing() or ""),
    pytest.mark.long("three JVMs; on Moldau the same is in test_balance.py"),
]

COUNT = 400


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterUnderTest]:
    with ClusterUnderTest("kafka", tmp_path_factory.mktemp("kafka")) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def admin(cluster: ClusterUnderTest) -> Iterator[Admin]:
    with Admin(bootstrap_servers=cluster.bootstrap) as admin:
        yield admin


def balance(cluster: ClusterUnderTest, *words: str) -> Ended:
    return moldau_cli("balance", *words, "--bootstrap-server", cluster.bootstrap)


def counts(admin: Admin, name: str) -> list[int]:
    """Replicas of a topic on each broker."""
    described = admin.describe_topics([name])[name].partitions
    return [sum(broker in [n.id for n in p.replicas] for p in described) for broker in (1, 2, 3)]


def whole(admin: Admin, name: str) -> bool:
    described = admin.describe_topics([name])[name].partitions
    return all(len(each.isr) == len(each.replicas) for each in described)


def test_kafka_is_balanced_drained_and_filled(cluster: ClusterUnderTest, admin: Admin) -> None:
    name = "orders"
    admin.create_topics([NewTopic(name, replicas_assignments=dict.fromkeys(range(6), (1, 2)))])
    with Producer(bootstrap_servers=cluster.bootstrap) as producer:
        for number in range(COUNT):
            producer.send(name, b"%d" % number + b" " * 1000, partition=number % 6)
    words = ("--interval", "0.5", "--rounds", "10", "--max-moves", "2", "--cool-down", "0")
    ran = balance(cluster, "run", *words, "--throttle", "100000000")
    assert ran.status == 0, ran
    assert "partitions move" in ran.out
    assert counts(admin, name) == [4, 4, 4]
    drained = balance(cluster, "drain-broker", "3", "--execute", "--throttle", "100000000")
    assert drained.status == 0, drained
    assert counts(admin, name) == [6, 6, 0]
    added = balance(cluster, "add-broker", "3", "--execute")
    assert added.status == 0, added
    assert counts(admin, name) == [4, 4, 4]
    assert admin.list_partition_reassignments() == {}
    eventually(lambda: whole(admin, name), what="all replicas are in sync")
    assert sorted(read(cluster, name)) == sorted(range(COUNT))


def read(cluster: ClusterUnderTest, name: str) -> list[int]:
    found: list[int] = []
    settings = {"bootstrap.servers": cluster.bootstrap, "auto.offset.reset": "earliest"}
    with Consumer(settings) as consumer:
        consumer.assign([TopicPartition(name, each) for each in range(6)])
        eventually(
            lambda: found.extend(int(r.value) for r in consumer.poll(0.2)) or len(found) >= COUNT,
            what="all records",
        )
    return found
