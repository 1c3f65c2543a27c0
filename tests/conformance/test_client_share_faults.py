"""Share consumers whose nodes refuse, forget, break connections, or die."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from moldau.client import Admin, AlterConfigOp, ConfigResource
from moldau.client.errors import (
    GroupAuthorizationFailedError,
    InvalidRecordStateError,
    KafkaError,
    NotLeaderOrFollowerError,
)
from moldau.client.share import ShareConsumer
from moldau.testing import Broker, Cluster
from support.waiting import eventually

_numbers = itertools.count(1)
CONFIG = {
    "group.share.min.heartbeat.interval.ms": 100,
    "group.share.heartbeat.interval.ms": 100,
    "group.share.assignment.interval.ms": 0,
}


@pytest.fixture(scope="module")
def node() -> Iterator[Broker]:
    with Broker(config=CONFIG) as running:
        yield running


def prepare(broker: Cluster, *values: str) -> tuple[str, str]:
    """A topic with records, and a group that begins at the beginning."""
    name = f"shared-{next(_numbers)}"
    broker.create_topic(name)
    if values:
        broker.produce(name, *values)
    with Admin(bootstrap_servers=broker.bootstrap_servers) as admin:
        resource = ConfigResource.group(name)
        change = AlterConfigOp("share.auto.offset.reset", "earliest")
        admin.incremental_alter_configs({resource: [change]})
    return name, name


def consumer_of(broker: Cluster, group: str, topic: str, **settings: Any) -> ShareConsumer:
    consumer = ShareConsumer(
        bootstrap_servers=broker.bootstrap_servers,
        group_id=group,
        retry_backoff_ms=20,
        reconnect_backoff_ms=20,
        **settings,
    )
    consumer.subscribe([topic])
    return consumer


def take_until(consumer: ShareConsumer, value: bytes) -> None:
    """Until this comes, whatever else comes again before it."""
    eventually(
        lambda: value in [record.value for record in consumer.poll(0.5)], what=f"{value!r} came"
    )


def take(consumer: ShareConsumer, count: int) -> list[Any]:
    found: list[Any] = []

    def polled() -> bool:
        found.extend(consumer.poll(0.5))
        return len(found) >= count

    eventually(polled, what=f"{count} records came")
    return found


@pytest.mark.parametrize(
    ("api", "error"),
    [
        ("ShareGroupHeartbeat", "COORDINATOR_LOAD_IN_PROGRESS"),
        ("ShareGroupHeartbeat", "NOT_COORDINATOR"),
        ("ShareGroupHeartbeat", "UNKNOWN_MEMBER_ID"),
        ("ShareGroupHeartbeat", "FENCED_MEMBER_EPOCH"),
        ("FindCoordinator", "COORDINATOR_NOT_AVAILABLE"),
        ("ShareFetch", "SHARE_SESSION_LIMIT_REACHED"),
        ("ShareFetch", "SHARE_SESSION_NOT_FOUND"),
        ("ShareFetch", "INVALID_SHARE_SESSION_EPOCH"),
        ("ShareFetch", "UNKNOWN_TOPIC_ID"),
    ],
)
def test_what_fails_on_the_way_is_tried_again(node: Broker, api: str, error: str) -> None:
    topic, group = prepare(node, "a", "b")
    with (
        node.fail(api, error=error, times=2) as fault,
        consumer_of(node, group, topic) as consumer,
    ):
        assert [record.value for record in take(consumer, 2)] == [b"a", b"b"]
        assert fault.hits == 2
        assert list(consumer.commit_sync().values()) == [None]


@pytest.mark.parametrize("api", ["ShareGroupHeartbeat", "ShareFetch"])
def test_connections_that_break_are_made_again(node: Broker, api: str) -> None:
    topic, group = prepare(node, "a")
    with (
        node.disconnect(api, times=2) as fault,
        consumer_of(node, group, topic) as consumer,
    ):
        assert [record.value for record in take(consumer, 1)] == [b"a"]
        assert fault.hits == 2


def test_a_member_that_the_group_forgot_joins_again(node: Broker) -> None:
    topic, group = prepare(node, "a")
    with consumer_of(node, group, topic) as consumer:
        take(consumer, 1)
        with node.fail("ShareGroupHeartbeat", error="UNKNOWN_MEMBER_ID", times=1) as fault:
            eventually(lambda: fault.hits, what="it was forgotten")
        node.produce(topic, "b")
        assert [record.value for record in take(consumer, 1)] == [b"b"]


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        pytest.param("INVALID_RECORD_STATE", InvalidRecordStateError, id="refused"),
        pytest.param("SHARE_SESSION_NOT_FOUND", NotLeaderOrFollowerError, id="session lost"),
    ],
)
def test_acknowledgements_that_are_refused(
    node: Broker, error: str, kind: type[KafkaError]
) -> None:
    topic, group = prepare(node, "a")
    with consumer_of(node, group, topic) as consumer:
        take(consumer, 1)
        with node.fail("ShareAcknowledge", error=error, times=1) as fault:
            (outcome,) = consumer.commit_sync().values()
            assert fault.hits == 1
        assert type(outcome) is kind
        # And the consumer goes on.
        node.produce(topic, "b")
        take_until(consumer, b"b")


def test_what_the_application_has_to_mend_is_raised(node: Broker) -> None:
    topic, group = prepare(node)
    with (
        node.fail("ShareGroupHeartbeat", error="GROUP_AUTHORIZATION_FAILED", times=1),
        consumer_of(node, group, topic) as consumer,
    ):
        # Each time, as it is a member no longer.
        for _ in range(3):
            with pytest.raises(GroupAuthorizationFailedError):
                consumer.poll(20.0)
        consumer.unsubscribe()
        consumer.subscribe([topic])
        node.produce(topic, "a")
        assert [record.value for record in take(consumer, 1)] == [b"a"]


def test_an_application_that_stays_away_is_taken_back(node: Broker) -> None:
    topic, group = prepare(node, "a")
    with consumer_of(node, group, topic, max_poll_interval_ms=300) as consumer:
        take(consumer, 1)
        members = node.group(group)
        eventually(lambda: not members.members, what="the group has lost it")
        node.produce(topic, "b")
        take_until(consumer, b"b")


@pytest.mark.long("kills a node; test_share_group kills brokers")
@pytest.mark.parametrize("acquire_mode", ["batch_optimized", "record_limit"])
def test_a_leader_that_dies_loses_no_record(acquire_mode: str) -> None:
    settings = {
        "share_acknowledgement_mode": "explicit",
        "share_acquire_mode": acquire_mode,
    }
    with Cluster(config=CONFIG) as cluster:
        topic, group = prepare(cluster, *map(str, range(10)))
        with consumer_of(cluster, group, topic, **settings) as consumer:
            first = take(consumer, 10)
            for record in first[:5]:
                consumer.acknowledge(record)
            assert list(consumer.commit_sync().values()) == [None]
            for record in first[5:]:
                consumer.acknowledge(record)
            cluster.leader(topic).kill()
            # Whether the node heard of these is not known: what it did not, comes again.
            outcomes = consumer.commit_sync()
            assert all(isinstance(error, KafkaError) for error in outcomes.values())
            again = take(consumer, 5)
            assert [record.offset for record in again] == [5, 6, 7, 8, 9]
            for record in again:
                consumer.acknowledge(record)
            assert list(consumer.commit_sync().values()) == [None]
