"""What a test can do to a broker and a cluster, as applications with ordinary clients feel it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Producer

from moldau.testing import Broker, BrokerError, BrokerNotRunning, Cluster, wait_until
from moldau.wire.apis import ApiKey
from moldau.wire.errors import ErrorCode
from moldau.wire.message import Message
from moldau.wire.messages import (
    JoinGroupRequest,
    ListGroupsRequest,
    OffsetCommitRequest,
    ShareGroupHeartbeatRequest,
    StreamsGroupHeartbeatRequest,
)
from support.raw import RawConnection

DAY_S = 24 * 3600


def deliver(
    cluster: Cluster, topic: str, *values: str, partition: int = 0, **settings: object
) -> list[object]:
    """The errors of writing these records, None for each that is written."""
    outcomes: list[object] = []
    producer = Producer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "linger.ms": 0,
            "retry.backoff.ms": 10,
            "retry.backoff.max.ms": 50,
            "reconnect.backoff.ms": 10,
            "reconnect.backoff.max.ms": 50,
            "log_level": 0,
            **settings,
        }
    )
    for value in values:
        producer.produce(
            topic, value, partition=partition, on_delivery=lambda error, _: outcomes.append(error)
        )
    assert producer.flush(60) == 0
    return outcomes


@contextmanager
def undelivered(cluster: Cluster, topic: str, value: str) -> Iterator[None]:
    """A record on its way for as long as the block lasts; given up then, it was not delivered."""
    outcomes: list[KafkaError | None] = []
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
    producer.produce(topic, value, partition=0, on_delivery=lambda error, _: outcomes.append(error))
    yield
    producer.purge()
    producer.flush(30)
    (error,) = outcomes
    assert isinstance(error, KafkaError)


@contextmanager
def polled(
    cluster: Cluster, group: str, topic: str, *names: str, protocol: str = "classic"
) -> Iterator[dict[str, list[str]]]:
    """Consumers of a group, each polled by a thread of its own; what happened to each."""
    stopping = threading.Event()
    happened: dict[str, list[str]] = {name: [] for name in names}

    def run(name: str) -> None:
        log = happened[name]
        consumer = Consumer(
            {
                "bootstrap.servers": cluster.bootstrap_servers,
                "group.id": group,
                "client.id": name,
                "auto.offset.reset": "earliest",
                "log_level": 0,
                "group.protocol": protocol,
                **({"heartbeat.interval.ms": 100} if protocol == "classic" else {}),
            }
        )
        consumer.subscribe(
            [topic],
            on_assign=lambda _, parts: log.append(f"assigned {len(parts)}"),
            on_revoke=lambda _, parts: log.append(f"revoked {len(parts)}"),
            on_lost=lambda _, parts: log.append(f"lost {len(parts)}"),
        )
        while not stopping.is_set():
            consumer.poll(0.05)
        consumer.close()

    threads = [threading.Thread(target=run, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    try:
        yield happened
    finally:
        stopping.set()
        for thread in threads:
            thread.join()


def asked(connection: RawConnection, key: ApiKey, version: int, request: Message) -> Any:
    """A coordinator's answer; one that has just been made may have to read its log first."""
    passing = (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    return wait_until(
        lambda: (
            answer
            if (answer := connection.call(key, version, request)).error_code not in passing
            else None
        )
    )


# Requests.


def test_an_error_is_answered_as_often_as_asked_for(moldau_broker: Broker) -> None:
    topic = moldau_broker.create_topic("orders")
    fault = moldau_broker.fail("Produce", error="NOT_LEADER_OR_FOLLOWER", times=2)
    assert deliver(moldau_broker, topic, "a") == [None]
    assert fault.hits == 2
    assert topic.values() == [b"a"]


def test_an_error_that_is_final_reaches_the_application(moldau_broker: Broker) -> None:
    topic = moldau_broker.create_topic("orders")
    with moldau_broker.fail("Produce", error="MESSAGE_TOO_LARGE"):
        (error,) = deliver(moldau_broker, topic, "a")
    assert isinstance(error, KafkaError)
    assert error.code() == KafkaError.MSG_SIZE_TOO_LARGE
    assert deliver(moldau_broker, topic, "b") == [None]
    assert topic.values() == [b"b"]


def test_a_slow_api_runs_into_the_clients_timeout(moldau_broker: Broker) -> None:
    topic = moldau_broker.create_topic("orders")
    with moldau_broker.slow("Produce", ms=600_000):
        (error,) = deliver(moldau_broker, topic, "a", **{"message.timeout.ms": 300})
        assert isinstance(error, KafkaError)
        assert error.code() == KafkaError._MSG_TIMED_OUT
    assert topic.values() == []
    with moldau_broker.slow("Produce", ms=20) as fault:
        assert deliver(moldau_broker, topic, "b") == [None]
        assert fault.hits == 1


def test_a_lost_answer_makes_an_idempotent_producer_write_once(moldau_broker: Broker) -> None:
    topic = moldau_broker.create_topic("orders")
    fault = moldau_broker.disconnect("Produce", times=1, lose="response")
    assert deliver(moldau_broker, topic, "a", **{"enable.idempotence": True}) == [None]
    assert fault.hits == 1
    assert topic.values() == [b"a"]


def test_a_lost_answer_makes_another_producer_write_twice(moldau_broker: Broker) -> None:
    topic = moldau_broker.create_topic("orders")
    moldau_broker.disconnect("Produce", times=1, lose="response")
    assert deliver(moldau_broker, topic, "a", acks="all") == [None]
    assert topic.values() == [b"a", b"a"]


def test_a_dropped_request_is_not_carried_out(moldau_broker: Broker) -> None:
    topic = moldau_broker.create_topic("orders")
    with moldau_broker.drop("Produce") as fault:
        with undelivered(moldau_broker, topic, "a"):
            wait_until(lambda: fault.hits == 1)
        assert topic.values() == []
    assert topic.values() == []


def test_the_end_of_a_fault_lets_the_client_go_on(moldau_broker: Broker) -> None:
    """Not only when its own timeout, a minute by default, says so."""
    topic = moldau_broker.create_topic("orders")
    fault = moldau_broker.drop("Produce")
    healer = threading.Thread(target=lambda: (wait_until(lambda: fault.hits), fault.remove()))
    healer.start()
    assert deliver(moldau_broker, topic, "a") == [None]
    healer.join()
    assert topic.values() == [b"a"]


def test_a_fault_can_be_for_one_client(moldau_broker: Broker) -> None:
    topic = moldau_broker.create_topic("orders")
    moldau_broker.fail("Produce", error="TOPIC_AUTHORIZATION_FAILED", client_id="billing-*")
    (error,) = deliver(moldau_broker, topic, "a", **{"client.id": "billing-1"})
    assert isinstance(error, KafkaError)
    assert deliver(moldau_broker, topic, "b", **{"client.id": "shipping-1"}) == [None]


def outcomes(seed: int) -> list[int]:
    with Broker(seed=seed) as broker:
        broker.fail("ListGroups", error="COORDINATOR_LOAD_IN_PROGRESS", probability=0.4)
        with RawConnection(broker.port) as connection:
            return [
                connection.call(ApiKey.LIST_GROUPS, 5, ListGroupsRequest()).error_code
                for _ in range(40)
            ]


def test_random_faults_are_repeated_by_their_seed() -> None:
    first = outcomes(seed=1)
    assert set(first) == {0, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}
    assert outcomes(seed=1) == first
    assert outcomes(seed=2) != first


def test_what_is_misspelt_is_told(moldau_broker: Broker) -> None:
    with pytest.raises(ValueError, match="Did you mean Produce"):
        moldau_broker.slow("Prodcue", ms=1)
    with pytest.raises(ValueError, match="Did you mean NOT_LEADER_OR_FOLLOWER"):
        moldau_broker.fail("Produce", error="NOT_LEADER_OR_FOLOWER")
    with pytest.raises(ValueError, match="between 0 and 1"):
        moldau_broker.drop("Produce", probability=30)


# Processes.


def test_a_killed_leader_is_replaced_and_comes_back(moldau_cluster: Cluster) -> None:
    topic = moldau_cluster.create_topic("orders")
    leader = topic.leader()
    assert deliver(moldau_cluster, topic, "a") == [None]
    leader.kill()
    assert not leader.running
    with pytest.raises(BrokerNotRunning):
        leader.slow("Produce", ms=1)
    assert deliver(moldau_cluster, topic, "b") == [None]
    wait_until(lambda: topic.leader() is not leader)
    leader.start()
    moldau_cluster.wait_until_whole()
    assert topic.values() == [b"a", b"b"]


def test_a_paused_broker_answers_when_it_goes_on(moldau_broker: Broker) -> None:
    topic = moldau_broker.create_topic("orders")
    moldau_broker.pause()
    assert moldau_broker.nodes[1].running
    with pytest.raises(BrokerError, match="paused"):
        moldau_broker.drop("Produce")
    (error,) = deliver(moldau_broker, topic, "a", **{"message.timeout.ms": 300})
    assert isinstance(error, KafkaError)
    moldau_broker.resume()
    assert deliver(moldau_broker, topic, "b") == [None]


def test_a_cluster_restarts_in_order_with_its_data(moldau_cluster: Cluster) -> None:
    topic = moldau_cluster.create_topic("orders", partitions=3)
    for partition, value in enumerate("abc"):
        assert deliver(moldau_cluster, topic, value, partition=partition) == [None]
    moldau_cluster.restart()
    assert topic.values() == [b"a", b"b", b"c"]


def test_the_active_controller_can_be_found_and_killed(moldau_cluster: Cluster) -> None:
    active = moldau_cluster.controller()
    active.kill()
    wait_until(lambda: moldau_cluster.controller() is not active)
    moldau_cluster.create_topic("orders", replication_factor=2)
    moldau_cluster.heal()
    assert not moldau_cluster.disturbed


# The network.


def test_a_leader_that_is_cut_off_from_the_others_is_replaced(moldau_cluster: Cluster) -> None:
    topic = moldau_cluster.create_topic("orders")
    assert deliver(moldau_cluster, topic, "a") == [None]
    cut_off = topic.leader()
    other = next(node for node in moldau_cluster.nodes.values() if node is not cut_off)
    moldau_cluster.partition(cut_off)
    wait_until(lambda: cut_off.id not in other.known_brokers(), what="the others to notice")
    moldau_cluster.heal_network()
    moldau_cluster.wait_until_whole()
    assert deliver(moldau_cluster, topic, "b") == [None]
    assert topic.values() == [b"a", b"b"]


def test_clients_can_be_cut_off(moldau_broker: Broker) -> None:
    topic = moldau_broker.create_topic("orders")
    moldau_broker.partition_clients(client_id="far")
    settings = {"client.id": "far", "message.timeout.ms": 400}
    (error,) = deliver(moldau_broker, topic, "a", **settings)
    assert isinstance(error, KafkaError)
    assert deliver(moldau_broker, topic, "b", **{"client.id": "near"}) == [None]
    moldau_broker.heal_network()
    assert deliver(moldau_broker, topic, "c", **{"client.id": "far"}) == [None]
    assert topic.values() == [b"b", b"c"]


# Groups.


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_rebalance_can_be_forced(moldau_broker: Broker, protocol: str) -> None:
    topic = moldau_broker.create_topic("orders", partitions=4)
    group = moldau_broker.group("readers")
    with polled(moldau_broker, "readers", topic, "one", "two", protocol=protocol) as happened:
        group.wait_until_stable(2)
        assert group.describe().type == protocol
        wait_until(lambda: all(len(log) >= 1 for log in happened.values()))
        before = {name: len(log) for name, log in happened.items()}
        apis = ("JoinGroup", "ConsumerGroupHeartbeat")
        moldau_broker.disconnect(*apis, times=1, client_id="moldau-testing")
        group.rebalance().wait()
        group.wait_until_stable(2)
        # The newer protocol takes away only what the third member gets.
        wanted = all if protocol == "classic" else any
        wait_until(
            lambda: wanted("revoked" in str(log[before[name] :]) for name, log in happened.items())
        )
        assert group.assignment.keys() == {"one", "two"}
        owned = sorted(p for each in group.assignment.values() for p in each["orders"])
        assert owned == [0, 1, 2, 3]


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_session_can_expire(moldau_broker: Broker, protocol: str) -> None:
    topic = moldau_broker.create_topic("orders", partitions=2)
    group = moldau_broker.group("readers")
    with polled(moldau_broker, "readers", topic, "one", "two", protocol=protocol) as happened:
        group.wait_until_stable(2)
        wait_until(lambda: happened["one"])
        expired = group.expire("one")
        wait_until(lambda: any("lost" in each for each in happened["one"]))
        group.wait_until_stable(2)
        assert expired.client_id == "one"
        if protocol == "classic":
            # In the newer protocol a client comes back with the id that it chose.
            assert expired.member_id not in [member.member_id for member in group.members]
        with pytest.raises(ValueError, match="no such member"):
            group.expire("three")


def test_share_groups_rebalance_and_expire(moldau_broker: Broker) -> None:
    moldau_broker.create_topic("orders", partitions=2)
    moldau_broker.coordinator("sharers")
    group = moldau_broker.group("sharers")
    with RawConnection(moldau_broker.port) as connection:

        def beat(epoch: int, topics: list[str] | None) -> Any:
            request = ShareGroupHeartbeatRequest(
                group_id="sharers",
                member_id="KZ9JTQ1vTnOvFoVuYQqLZw",
                member_epoch=epoch,
                subscribed_topic_names=topics,
            )
            return asked(connection, ApiKey.SHARE_GROUP_HEARTBEAT, 1, request)

        before = beat(0, ["orders"]).member_epoch
        (member,) = group.members
        assert member.topics == ("orders",)
        gone = "GROUP_ID_NOT_FOUND"
        with moldau_broker.fail("ShareGroupDescribe", error=gone, client_id="moldau-testing"):
            assert group.state == "Dead"
        group.rebalance().wait()
        after = beat(before, None).member_epoch
        # One epoch for the member that came, one for its going.
        assert after >= before + 2
        group.expire(member)
        assert beat(after, None).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    with pytest.raises(BrokerError, match="no members"):
        group.rebalance()


def test_members_of_streams_groups_expire(moldau_broker: Broker) -> None:
    moldau_broker.create_topic("orders", partitions=2)
    moldau_broker.coordinator("streams")
    group = moldau_broker.group("streams")
    heartbeat = StreamsGroupHeartbeatRequest
    parts = heartbeat.Subtopology(subtopology_id="0", source_topics=["orders"])
    request = heartbeat(
        group_id="streams",
        member_id="app-1",
        rebalance_timeout_ms=10_000,
        topology=heartbeat.Topology(epoch=0, subtopologies=[parts]),
        active_tasks=[],
        standby_tasks=[],
        warmup_tasks=[],
        process_id="process",
    )
    with RawConnection(moldau_broker.port) as connection:
        assert asked(connection, ApiKey.STREAMS_GROUP_HEARTBEAT, 0, request).error_code == 0
        assert group.describe().type == "streams"
        assert [member.member_id for member in group.members] == ["app-1"]
        with pytest.raises(BrokerError, match="topology"):
            group.rebalance()
        group.expire("app-1")
        assert group.members == ()


def test_offsets_of_a_group_can_be_looked_at(moldau_broker: Broker) -> None:
    topic = moldau_broker.create_topic("orders")
    topic.produce("a", "b", "c")
    group = moldau_broker.group("readers")
    assert group.state == "Dead"
    with RawConnection(moldau_broker.port) as connection:
        moldau_broker.coordinator("readers")
        partition = OffsetCommitRequest.OffsetCommitRequestPartition(
            partition_index=0, committed_offset=2
        )
        request = OffsetCommitRequest(
            group_id="readers",
            topics=[
                OffsetCommitRequest.OffsetCommitRequestTopic(name="orders", partitions=[partition])
            ],
        )

        def committed() -> bool:
            (answer,) = connection.call(ApiKey.OFFSET_COMMIT, 9, request).topics
            return bool(answer.partitions[0].error_code == 0)

        wait_until(committed)
    assert group.committed() == {("orders", 0): 2}


# Time.


def join(broker: Broker, group: str, session_timeout_ms: int) -> None:
    """A member that never sends a heartbeat."""
    broker.coordinator(group)
    request = JoinGroupRequest(
        group_id=group,
        session_timeout_ms=session_timeout_ms,
        rebalance_timeout_ms=session_timeout_ms,
        protocol_type="consumer",
        protocols=[JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=b"")],
    )
    with RawConnection(broker.port) as connection:
        answer = asked(connection, ApiKey.JOIN_GROUP, 3, request)
        assert answer.error_code == 0


def test_time_that_passes_expires_sessions(moldau_broker: Broker) -> None:
    join(moldau_broker, "sleepers", 60_000)
    group = moldau_broker.group("sleepers")
    assert len(group.members) == 1
    moldau_broker.advance_clock(40)
    assert len(group.members) == 1
    moldau_broker.advance_clock(40)
    wait_until(lambda: not group.members)


def test_time_that_passes_aborts_transactions(moldau_broker: Broker) -> None:
    topic = moldau_broker.create_topic("orders")
    producer = Producer(
        {
            "bootstrap.servers": moldau_broker.bootstrap_servers,
            "transactional.id": "t",
            "transaction.timeout.ms": 60_000,
            "log_level": 0,
        }
    )
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, "a")
    assert producer.flush(30) == 0
    assert topic.values(isolation_level="read_committed") == []
    moldau_broker.advance_clock(90)
    # What comes after the transaction can be read once that is aborted.
    topic.produce("b")
    assert topic.values(isolation_level="read_committed", count=1) == [b"b"]
    assert topic.values() == [b"a", b"b"]


def test_a_clock_can_jump(moldau_broker: Broker) -> None:
    topic = moldau_broker.create_topic("orders", config={"message.timestamp.type": "LogAppendTime"})
    now_ms = time.time() * 1000
    topic.produce("now")
    moldau_broker.jump_clock(DAY_S)
    topic.produce("tomorrow")
    moldau_broker.jump_clock(-2 * DAY_S)
    topic.produce("yesterday")
    days = [round((record.timestamp - now_ms) / 1000 / DAY_S) for record in topic.records()]
    assert days == [0, 1, -1]


def test_records_age_with_the_clock(moldau_broker: Broker) -> None:
    topic = moldau_broker.create_topic("orders", config={"retention.ms": DAY_S * 1000})
    topic.produce("a")
    moldau_broker.jump_clock(2 * DAY_S)
    wait_until(lambda: topic.values() == [])


def test_time_passes_in_a_cluster_without_losing_a_node(moldau_cluster: Cluster) -> None:
    topic = moldau_cluster.create_topic("orders")
    assert deliver(moldau_cluster, topic, "a") == [None]
    leader = topic.leader()
    moldau_cluster.advance_clock(20)
    assert topic.leader() is leader
    assert deliver(moldau_cluster, topic, "b") == [None]


# Disks.


def test_a_full_disk_ends_a_broker_and_room_brings_it_back(moldau_broker: Broker) -> None:
    topic = moldau_broker.create_topic("orders")
    topic.produce("a")
    moldau_broker.fill_disk(free_bytes=10)
    node = moldau_broker.nodes[1]
    with undelivered(moldau_broker, topic, "x" * 1000):
        wait_until(lambda: not node.running)
    assert "No space left on device" in node.logs
    moldau_broker.free_disk()
    node.start()
    assert deliver(moldau_broker, topic, "b") == [None]
    assert topic.values() == [b"a", b"b"]


@pytest.mark.moldau(log_dirs=2)
def test_one_full_disk_of_two_takes_only_its_partitions_offline(moldau_broker: Broker) -> None:
    node = moldau_broker.nodes[1]
    topic = moldau_broker.create_topic("orders", partitions=2)
    folders = [moldau_broker.data_of("orders", index)[0].parent for index in (0, 1)]
    assert sorted(folders) == sorted(node.log_dirs)
    node.fill_disk(log_dir=node.log_dirs.index(folders[0]))
    with undelivered(moldau_broker, topic, "a"):
        wait_until(lambda: "No space left on device" in node.logs)
    assert deliver(moldau_broker, topic, "b", partition=1) == [None]
    assert node.running
    moldau_broker.free_disk()
    node.restart()
    assert deliver(moldau_broker, topic, "c") == [None]
    assert topic.values() == [b"c", b"b"]


def test_a_full_disk_in_a_cluster_moves_the_leader(moldau_cluster: Cluster) -> None:
    topic = moldau_cluster.create_topic("orders")
    assert deliver(moldau_cluster, topic, "a") == [None]
    full = topic.leader()
    full.fill_disk()
    assert deliver(moldau_cluster, topic, "b") == [None]
    wait_until(lambda: topic.leader() is not full)
    moldau_cluster.heal()
    assert full.running
    assert topic.values() == [b"a", b"b"]
