"""The consumer when single requests are refused, lost or cut off: what passes, passes unseen."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from moldau.client.consumer import Consumer
from moldau.client.errors import (
    CommitFailedError,
    GroupAuthorizationFailedError,
    IllegalStateError,
    KafkaError,
    KafkaTimeoutError,
    RetriableCommitFailedError,
    TopicAuthorizationFailedError,
    UnsupportedVersionError,
)
from moldau.client.topics import OffsetAndMetadata, TopicPartition
from moldau.testing import Broker
from support.consuming import new_group, numbers, poll_until, read, values

A = TopicPartition("faulty", 0)


@pytest.fixture(scope="module")
def shared() -> Iterator[Broker]:
    with Broker() as broker:
        broker.create_topic(A.topic)
        for value in numbers(30):
            broker.produce(A.topic, value)
        yield broker


@pytest.fixture
def broker(shared: Broker) -> Iterator[Broker]:
    yield shared
    shared.heal()


def make(broker: Broker, **settings: Any) -> Consumer:
    return Consumer(
        {"bootstrap.servers": broker.bootstrap_servers, "auto.offset.reset": "earliest"},
        **{"retry_backoff_ms": 10, "fetch_max_wait_ms": 50} | settings,
    )


@pytest.mark.parametrize(
    "error",
    [
        "NOT_LEADER_OR_FOLLOWER",
        "FENCED_LEADER_EPOCH",
        "UNKNOWN_LEADER_EPOCH",
        "KAFKA_STORAGE_ERROR",
        "OFFSET_NOT_AVAILABLE",
        "UNKNOWN_TOPIC_OR_PARTITION",
        "UNKNOWN_TOPIC_ID",
        "UNKNOWN_SERVER_ERROR",
        "FETCH_SESSION_ID_NOT_FOUND",
        "INVALID_FETCH_SESSION_EPOCH",
    ],
)
def test_fetches_that_are_refused(broker: Broker, error: str) -> None:
    with make(broker, max_partition_fetch_bytes=200) as consumer:
        consumer.assign([A])
        faults = broker.fail("Fetch", error=error, times=3, after=1)
        assert values(read(consumer, 30)) == numbers(30)
        assert faults.hits == 3


def test_fetches_that_get_lost(broker: Broker) -> None:
    with make(broker, max_partition_fetch_bytes=200) as consumer:
        consumer.assign([A])
        broker.disconnect("Fetch", times=2, after=1)
        assert values(read(consumer, 30)) == numbers(30)
        consumer.seek(A, 0)
        broker.disconnect("Fetch", times=2, after=1, lose="response")
        assert values(read(consumer, 30)) == numbers(30)


def test_answers_that_do_not_come(broker: Broker) -> None:
    with make(broker, max_partition_fetch_bytes=200, request_timeout_ms=1100) as consumer:
        consumer.assign([A])
        broker.drop("Fetch", times=1, after=1)
        assert values(read(consumer, 30)) == numbers(30)


def test_what_the_application_must_hear_of(broker: Broker) -> None:
    with make(broker) as consumer:
        consumer.assign([A])
        broker.fail("Fetch", error="TOPIC_AUTHORIZATION_FAILED", times=1)
        with pytest.raises(TopicAuthorizationFailedError, match="faulty-0"):
            poll_until(consumer, lambda: False, "an error")
        # Whoever polls on gets what there is once it is allowed.
        assert values(read(consumer, 30)) == numbers(30)


@pytest.mark.parametrize(
    "error", ["NOT_LEADER_OR_FOLLOWER", "OFFSET_NOT_AVAILABLE", "UNKNOWN_LEADER_EPOCH"]
)
def test_offsets_that_are_not_to_be_had_at_once(broker: Broker, error: str) -> None:
    with make(broker) as consumer:
        broker.fail("ListOffsets", error=error, times=2)
        assert consumer.end_offsets([A]) == {A: 30}
        broker.fail("ListOffsets", error=error, times=2)
        consumer.assign([A])
        assert consumer.position(A) == 0
        broker.fail("ListOffsets", error=error)
        with pytest.raises(KafkaTimeoutError, match="faulty-0"):
            consumer.beginning_offsets([A], timeout=0.2)


@pytest.mark.parametrize(
    "error", ["COORDINATOR_LOAD_IN_PROGRESS", "NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE"]
)
def test_a_coordinator_that_is_not_ready(broker: Broker, error: str) -> None:
    with make(broker, group_id=new_group(), enable_auto_commit=False) as consumer:
        consumer.assign([A])
        read(consumer, 30)
        broker.fail("OffsetCommit", error=error, times=2)
        consumer.commit_sync()
        broker.fail("OffsetFetch", error=error, times=2)
        assert consumer.committed([A]) == {A: OffsetAndMetadata(30, "", 0)}
        # What is not waited for is not tried again either, and says so.
        broker.fail("OffsetCommit", error=error, times=1)
        ended: list[Any] = []
        consumer.commit_async(callback=lambda offsets, error: ended.append(error))
        poll_until(consumer, lambda: ended, "the callback was called")
        assert isinstance(ended[0], RetriableCommitFailedError)
        assert ended[0].retriable
        broker.fail("OffsetCommit", error=error)
        with pytest.raises(KafkaTimeoutError, match="commit"):
            consumer.commit_sync(timeout=0.2)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ("ILLEGAL_GENERATION", CommitFailedError),
        ("UNKNOWN_MEMBER_ID", CommitFailedError),
        ("GROUP_AUTHORIZATION_FAILED", GroupAuthorizationFailedError),
        ("TOPIC_AUTHORIZATION_FAILED", TopicAuthorizationFailedError),
        ("UNKNOWN_SERVER_ERROR", KafkaError),
    ],
)
def test_commits_that_are_refused_for_good(
    broker: Broker, error: str, kind: type[KafkaError]
) -> None:
    with make(broker, group_id=new_group(), enable_auto_commit=False) as consumer:
        consumer.subscribe([A.topic])
        read(consumer, 30)
        faults = broker.fail("OffsetCommit", error=error, times=1)
        with pytest.raises(kind):
            consumer.commit_sync()
        assert faults.hits == 1
        ended: list[Any] = []
        consumer.commit_async({A: 3}, lambda offsets, error: ended.append((offsets, error)))
        poll_until(consumer, lambda: ended, "the callback was called")


def test_committed_offsets_that_a_transaction_holds_back(broker: Broker) -> None:
    group = new_group()
    with make(broker, group_id=group, enable_auto_commit=False) as consumer:
        consumer.assign([A])
        consumer.commit_sync({A: 12})
        faults = broker.fail("OffsetFetch", error="UNSTABLE_OFFSET_COMMIT", times=3)
        assert consumer.position(A) == 12
        assert faults.hits == 3


def test_an_epoch_that_changes_during_the_last_commit(broker: Broker) -> None:
    """What is given up is committed with the member's present epoch, so nobody reads it twice."""
    group = new_group()
    # Automatic commits in between would take the faults that are meant for others.
    settings = {"group_protocol": "consumer", "auto_commit_interval_ms": 600_000}
    with make(broker, group_id=group, **settings) as consumer:
        consumer.subscribe([A.topic])
        read(consumer, 30)
        faults = broker.fail("OffsetCommit", error="STALE_MEMBER_EPOCH", times=2)
        consumer.unsubscribe()
        assert faults.hits == 2
        assert consumer.committed([A]) == {A: OffsetAndMetadata(30, "", 0)}
        # One that the application asked for is the application's to repeat.
        consumer.subscribe([A.topic])
        poll_until(consumer, consumer.assignment, "it is a member again")
        broker.fail("OffsetCommit", error="STALE_MEMBER_EPOCH", times=1)
        with pytest.raises(CommitFailedError, match="STALE_MEMBER_EPOCH"):
            consumer.commit_sync({A: 5})


def test_an_automatic_commit_that_fails_is_made_again(broker: Broker) -> None:
    group = new_group()
    with make(broker, group_id=group, auto_commit_interval_ms=20) as consumer:
        consumer.assign([A])
        faults = broker.fail("OffsetCommit", error="NOT_COORDINATOR", times=3)
        read(consumer, 30)
        poll_until(consumer, lambda: broker.group(group).committed().get(A), "it is committed")
        assert faults.hits == 3


def test_there_is_no_instance_id_where_nobody_wants_metrics(broker: Broker) -> None:
    with make(broker) as consumer, pytest.raises(UnsupportedVersionError):
        consumer.client_instance_id()
    with (
        make(broker, enable_metrics_push=False) as silent,
        pytest.raises(IllegalStateError, match=r"enable\.metrics\.push"),
    ):
        silent.client_instance_id()


def test_a_broker_that_is_not_there() -> None:
    with Consumer(bootstrap_servers="127.0.0.1:1", default_api_timeout_ms=300) as consumer:
        consumer.assign([A])
        assert not consumer.poll(0.1)
        with pytest.raises(KafkaTimeoutError):
            consumer.position(A)
        with pytest.raises(KafkaTimeoutError, match=r"no broker can be reached at .*: connection"):
            consumer.list_topics()
