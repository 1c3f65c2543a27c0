"""The consumer while brokers die, return and change places: nothing is lost, doubled or reordered,
and the application sees no error that the client can mend."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from moldau.client.consumer import Consumer
from moldau.client.errors import LogTruncationError
from moldau.client.topics import OffsetAndMetadata, TopicPartition
from support.cluster import ClusterUnderTest, always_whole, cluster_for
from support.consuming import new_group, new_topic, numbers, poll_until, put, read, values
from support.either import either_broker
from support.processes import free_port, moldau
from support.waiting import eventually

FOLLOWER_FETCHING = {
    "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector"
}


class Writer:
    """Numbers the records of one partition, without end, whatever happens to the brokers."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        settings: dict[str, Any] = {
            "bootstrap.servers": bootstrap,
            "enable.idempotence": True,
            "linger.ms": 2,
            "message.timeout.ms": 120_000,
            "reconnect.backoff.max.ms": 100,
            "log_level": 0,
            "error_cb": lambda _: None,
        }
        self._producer = Producer(settings)
        self._topic = topic
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._write)

    def _write(self) -> None:
        number = 0
        while not self._stop.wait(0.002):
            self._producer.produce(self._topic, b"%d" % number, partition=0)
            self._producer.poll(0)
            number += 1
        self.count = number

    def __enter__(self) -> Writer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        assert self._producer.flush(60) == 0


def read_more(consumer: Consumer, seen: list[Any], count: int) -> None:
    """So many further records, each the successor of the one before it."""
    target = len(seen) + count
    eventually(
        lambda: _take(consumer, seen) >= target,
        what=f"{count} more records come",
        seconds_max=60,
    )


def _take(consumer: Consumer, seen: list[Any]) -> int:
    for record in consumer.poll(0.05):
        assert record.value == b"%d" % len(seen), (record.offset, record.value, len(seen))
        seen.append(record.offset)
    return len(seen)


def finish(consumer: Consumer, seen: list[Any], writer: Writer) -> None:
    read_more(consumer, seen, writer.count - len(seen))
    assert seen == list(range(writer.count))


def test_a_broker_dies_and_returns(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    group = new_group()
    with either_broker(request, tmp_path, {"group.initial.rebalance.delay.ms": "0"}) as broker:
        topic = new_topic(broker)
        consumer = Consumer(
            bootstrap_servers=broker.bootstrap,
            group_id=group,
            group_protocol="consumer",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        )
        seen: list[Any] = []
        with consumer:
            consumer.subscribe([topic])
            with Writer(broker.bootstrap, topic) as writer:
                read_more(consumer, seen, 50)
                consumer.commit_sync()
                generation = consumer.group_metadata().member_id
                broker.kill()
                _take(consumer, seen)
                broker.start()
                read_more(consumer, seen, 100)
                consumer.commit_sync()
            finish(consumer, seen, writer)
            # The broker has kept the group; its member goes on as it is.
            assert consumer.group_metadata().member_id == generation
            committed = consumer.committed([(topic, 0)])[TopicPartition(topic, 0)]
            assert committed is not None
            assert 50 <= committed.offset <= len(seen)


def test_a_consumer_that_was_there_first(tmp_path: Path) -> None:
    port = free_port()
    settings = {"bootstrap.servers": f"127.0.0.1:{port}", "auto.offset.reset": "earliest"}
    with (
        Consumer(settings) as alone,
        Consumer(settings, group_id=new_group(), group_protocol="classic") as member,
    ):
        alone.assign([("early", 0)])
        member.subscribe(["early"])
        for consumer in (alone, member):
            assert not consumer.poll(0.1)
        with moldau(tmp_path, ["group.initial.rebalance.delay.ms=0"], port) as broker:
            put(broker.bootstrap, "early", numbers(3))
            for consumer in (alone, member):
                assert values(read(consumer, 3)) == numbers(3)
            member.close()


@pytest.fixture(scope="module")
def shared(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ClusterUnderTest]:
    folder = tmp_path_factory.mktemp("cluster")
    with cluster_for(request, folder, FOLLOWER_FETCHING) as cluster:
        yield cluster


@pytest.fixture
def cluster(shared: ClusterUnderTest) -> Iterator[ClusterUnderTest]:
    with always_whole(shared) as cluster:
        yield cluster


@pytest.mark.long("kills nodes; one broker that dies is shown above")
def test_leader_and_coordinator_die(cluster: ClusterUnderTest) -> None:
    """Reading, committing and membership go on with those that take over."""
    group = new_group()
    victim = cluster.coordinator(group)
    cluster.create_topic("led", assignment=[(victim, *cluster.others(victim))])
    seen: list[Any] = []
    settings = {"bootstrap.servers": cluster.bootstrap, "group.id": group}
    with Consumer(settings, auto_offset_reset="earliest", auto_commit_interval_ms=100) as consumer:
        consumer.subscribe(["led"])
        with Writer(cluster.bootstrap, "led") as writer:
            read_more(consumer, seen, 50)
            consumer.commit_sync()
            member = consumer.group_metadata()
            assert cluster.leader("led") == victim
            cluster.kill(victim)
            consumer.commit_sync(timeout=60)
            read_more(consumer, seen, 100)
            cluster.wait_for_leader("led", not_in=[victim])
            assert cluster.coordinator(group) != victim
            assert consumer.group_metadata() == member
        finish(consumer, seen, writer)
    with Consumer(settings) as reader:
        found = reader.committed([("led", 0)])[TopicPartition("led", 0)]
        assert found is not None
        assert found.offset == writer.count


def preferred_replica(consumer: Consumer) -> Any:
    (found,) = [
        metric.value
        for name, metric in consumer.metrics().items()
        if name.name == "preferred-read-replica"
    ]
    return found


def test_reading_from_a_replica_nearby(cluster: ClusterUnderTest) -> None:
    cluster.create_topic("near", config={"min.insync.replicas": "1"}, assignment=[(1, 2)])
    put(cluster.bootstrap, "near", numbers(5))
    with Consumer(
        bootstrap_servers=cluster.bootstrap, auto_offset_reset="earliest", client_rack="rack-2"
    ) as consumer:
        consumer.assign([("near", 0)])
        assert values(read(consumer, 5)) == numbers(5)
        assert preferred_replica(consumer) == 2
        put(cluster.bootstrap, "near", [b"later"])
        assert values(read(consumer, 1)) == [b"later"]
        # Without it, the leader serves.
        cluster.kill(2)
        cluster.eventually(
            lambda: cluster.partitions("near")["near", 0].isr == (1,), what="the leader is alone"
        )
        put(cluster.bootstrap, "near", [b"alone"], acks=1)
        assert values(read(consumer, 1)) == [b"alone"]
        assert preferred_replica(consumer) == -1


def test_a_log_that_was_cut(cluster: ClusterUnderTest) -> None:
    """A replica that had missed records becomes leader: positions beyond it are noticed (KIP-320)
    before records of another history are taken for the next ones."""
    config = {"unclean.leader.election.enable": "true", "min.insync.replicas": "1"}
    cluster.create_topic("cut", config=config, assignment=[(1, 2)])
    partition = TopicPartition("cut", 0)
    put(cluster.bootstrap, "cut", numbers(10))
    settings = {"bootstrap.servers": cluster.bootstrap, "auto.offset.reset": "earliest"}
    with Consumer(settings) as lenient, Consumer(settings, auto_offset_reset="none") as strict:
        strict.assign([partition])
        strict.seek(partition, 0)
        lenient.assign([partition])
        cluster.kill(2)
        cluster.eventually(
            lambda: cluster.partitions("cut")["cut", 0].isr == (1,), what="the leader is alone"
        )
        put(cluster.bootstrap, "cut", numbers(10, 10), acks=1)
        for consumer in (lenient, strict):
            assert values(read(consumer, 20)) == numbers(20)
        cluster.kill(1)
        cluster.start_node(2)
        assert cluster.wait_for_leader("cut", not_in=[1]) == 2
        put(cluster.bootstrap, "cut", [b"another %d" % each for each in range(15)], acks=1)
        # The common part ends at 10: from there the history is another.
        assert values(read(lenient, 15)) == [b"another %d" % each for each in range(15)]
        with pytest.raises(LogTruncationError, match="cut-0") as caught:
            poll_until(strict, lambda: False, "an error")
        common = caught.value.divergent_offsets[partition]
        assert isinstance(common, OffsetAndMetadata)
        assert common.offset == 10
