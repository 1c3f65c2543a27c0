"""The admin client and groups of every kind, their offsets, and transactions, on one broker.

Runs against Moldau, and with --against-kafka against Apache Kafka.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from confluent_kafka import Consumer

from moldau.client import errors
from moldau.client.admin import (
    AbortTransactionSpec,
    Admin,
    ClassicGroupState,
    GroupState,
    GroupType,
    ListConsumerGroupOffsetsSpec,
    ListShareGroupOffsetsSpec,
    MemberToRemove,
    NewTopic,
    TransactionState,
)
from moldau.client.topics import OffsetAndMetadata, TopicPartition
from moldau.wire.apis import ApiKey
from moldau.wire.messages import (
    ConsumerGroupHeartbeatRequest,
    ShareGroupHeartbeatRequest,
    StreamsGroupHeartbeatRequest,
)
from support.processes import BrokerProcess
from support.raw import RawConnection
from support.streams_stage import subtopology, topology
from support.transactional import ConfluentProducer
from support.waiting import eventually

FIRST, SECOND = TopicPartition("topic", 0), TopicPartition("topic", 1)


@pytest.fixture(scope="module")
def admin(broker: BrokerProcess) -> Iterator[Admin]:
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        admin.create_topics([NewTopic("topic", 2, 1), NewTopic("other", 1, 1)])
        yield admin


@contextmanager
def classic_member(
    broker: BrokerProcess, group: str, instance: str | None = None
) -> Iterator[None]:
    """A consumer of the classic protocol that has partitions, until the end of the block."""
    settings: dict[str, Any] = {
        "bootstrap.servers": broker.bootstrap,
        "group.id": group,
        "client.id": "classic-client",
    }
    if instance is not None:
        settings["group.instance.id"] = instance
    consumer = Consumer(settings)
    assigned, stopped = threading.Event(), threading.Event()
    consumer.subscribe(["topic"], on_assign=lambda *_: assigned.set())

    def poll() -> None:
        while not stopped.is_set():
            consumer.poll(0.05)
        consumer.close()

    thread = threading.Thread(target=poll)
    thread.start()
    try:
        assert assigned.wait(30), "the member has no partitions"
        yield
    finally:
        stopped.set()
        thread.join()


class Beating:
    """A member of a new kind of group, by its heartbeats."""

    def __init__(self, broker: BrokerProcess, key: ApiKey, version: int) -> None:
        self._to = RawConnection(broker.port)
        self._key = key
        self._version = version

    def beat(self, request: Any) -> Any:
        return self._to.call(self._key, self._version, request)

    def until(self, make: Callable[[int], Any], settled: Callable[[Any], bool]) -> Any:
        """Beat with the epoch that the last answer gave, until an answer settles it."""
        epoch = 0

        def attempt() -> Any:
            nonlocal epoch
            answer = self.beat(make(epoch))
            if answer.error_code == 0:
                epoch = answer.member_epoch
            return answer if answer.error_code == 0 and settled(answer) else None

        return eventually(attempt, what="the member is assigned")

    def __enter__(self) -> Beating:
        return self

    def __exit__(self, *_: object) -> None:
        self._to.close()


def test_classic_groups(broker: BrokerProcess, admin: Admin) -> None:
    with classic_member(broker, "classic", "static-1"):
        listed = {each.group_id: each for each in admin.list_groups()}
        assert listed["classic"].type is GroupType.CLASSIC
        assert listed["classic"].protocol == "consumer"
        assert not listed["classic"].is_simple_consumer_group
        described = admin.describe_consumer_groups(["classic"], include_authorized_operations=True)
        group = described["classic"]
        assert (group.type, group.group_state) == (GroupType.CLASSIC, GroupState.STABLE)
        assert group.partition_assignor == "range"
        assert group.coordinator.port == broker.port
        assert group.authorized_operations
        (member,) = group.members
        assert (member.client_id, member.group_instance_id) == ("classic-client", "static-1")
        assert member.assignment.topic_partitions == {FIRST, SECOND}
        assert (member.member_epoch, member.upgraded) == (None, None)
        old = admin.describe_classic_groups(["classic"])["classic"]
        assert (old.state, old.protocol_data) == (ClassicGroupState.STABLE, "range")
        assert old.members == group.members
        with pytest.raises(errors.GroupNotEmptyError):
            admin.delete_consumer_groups(["classic"])
        with pytest.raises(errors.UnknownMemberIdError):
            admin.remove_members_from_consumer_group("classic", [MemberToRemove("nobody")])
        removed = admin.remove_members_from_consumer_group(
            "classic", [MemberToRemove("static-1")], reason="a test"
        )
        assert list(removed) == ["static-1"]


def test_all_members_are_removed(broker: BrokerProcess, admin: Admin) -> None:
    with classic_member(broker, "removed"):
        removed = admin.remove_members_from_consumer_group("removed")
        assert len(removed) == 1


def test_new_consumer_groups(broker: BrokerProcess, admin: Admin) -> None:
    def joining(epoch: int) -> ConsumerGroupHeartbeatRequest:
        first = epoch == 0
        return ConsumerGroupHeartbeatRequest(
            group_id="new",
            member_id="one",
            member_epoch=epoch,
            rebalance_timeout_ms=10_000 if first else -1,
            subscribed_topic_names=["topic"] if first else None,
            topic_partitions=[] if first else None,
        )

    with Beating(broker, ApiKey.CONSUMER_GROUP_HEARTBEAT, 1) as member:
        member.until(joining, lambda answer: answer.assignment is not None)
        group = admin.describe_consumer_groups(["new"])["new"]
        assert (group.type, group.partition_assignor) == (GroupType.CONSUMER, "uniform")
        assert group.group_epoch is not None
        assert group.group_epoch >= 1
        (shown,) = group.members
        assert shown.target_assignment is not None
        assert shown.target_assignment.topic_partitions == {FIRST, SECOND}
        assert (shown.consumer_id, shown.upgraded) == ("one", True)
        states = [each.group_id for each in admin.list_groups(types=[GroupType.CONSUMER])]
        assert states == ["new"]
        member.beat(ConsumerGroupHeartbeatRequest(group_id="new", member_id="one", member_epoch=-1))
    listed = admin.list_consumer_groups(group_states=[GroupState.EMPTY], types=[GroupType.CONSUMER])
    assert [each.group_id for each in listed] == ["new"]
    assert admin.delete_consumer_groups(["new"])


def test_group_that_is_not_there(admin: Admin) -> None:
    with pytest.raises(errors.GroupIdNotFoundError, match="nobody"):
        admin.describe_consumer_groups(["nobody"])
    with pytest.raises(errors.GroupIdNotFoundError):
        admin.describe_share_groups(["nobody"])
    with pytest.raises(errors.GroupIdNotFoundError):
        admin.describe_streams_groups(["nobody"])
    results = admin.delete_consumer_groups(["nobody", "nobody-else"], check=False)
    assert {type(each) for each in results.errors.values()} == {errors.GroupIdNotFoundError}
    assert admin.list_consumer_group_offsets("nobody")["nobody"] == {}


def test_committed_offsets(admin: Admin) -> None:
    wanted = {FIRST: OffsetAndMetadata(5, "note", 0), SECOND: OffsetAndMetadata(6)}
    admin.alter_consumer_group_offsets("simple", wanted)
    assert admin.list_consumer_group_offsets("simple")["simple"] == wanted
    simple = admin.describe_consumer_groups(["simple"])["simple"]
    assert (simple.is_simple_consumer_group, simple.group_state) == (True, GroupState.EMPTY)
    other = TopicPartition("other", 0)
    spec = ListConsumerGroupOffsetsSpec([FIRST, other])
    some = admin.list_consumer_group_offsets({"simple": spec, "nobody": None}, require_stable=True)
    assert some["simple"] == {FIRST: wanted[FIRST], other: None}
    assert some["nobody"] == {}
    failed = admin.alter_consumer_group_offsets(
        "simple", {TopicPartition("nowhere", 0): OffsetAndMetadata(1)}, check=False
    )
    assert [type(each) for each in failed.errors.values()] == [errors.UnknownTopicOrPartitionError]
    assert list(admin.delete_consumer_group_offsets("simple", [FIRST])) == [FIRST]
    assert list(admin.list_consumer_group_offsets("simple")["simple"]) == [SECOND]
    with pytest.raises(errors.GroupIdNotFoundError):
        admin.delete_consumer_group_offsets("nobody", [FIRST])
    assert admin.delete_consumer_groups(["simple"])
    assert admin.list_consumer_group_offsets("simple")["simple"] == {}


def test_share_groups(broker: BrokerProcess, admin: Admin) -> None:
    def joining(epoch: int) -> ShareGroupHeartbeatRequest:
        return ShareGroupHeartbeatRequest(
            group_id="share",
            member_id="one",
            member_epoch=epoch,
            subscribed_topic_names=["topic"] if epoch == 0 else None,
        )

    with Beating(broker, ApiKey.SHARE_GROUP_HEARTBEAT, 1) as member:
        member.until(
            joining,
            lambda answer: answer.assignment is not None and answer.assignment.topic_partitions,
        )
        group = admin.describe_share_groups(["share"])["share"]
        assert group.group_state is GroupState.STABLE
        assert group.members[0].consumer_id == "one"
        assert group.members[0].assignment.topic_partitions == {FIRST, SECOND}
        assert [each.group_id for each in admin.list_share_groups()] == ["share"]
        with pytest.raises(errors.GroupNotEmptyError):
            admin.alter_share_group_offsets("share", {FIRST: 0})
        member.beat(ShareGroupHeartbeatRequest(group_id="share", member_id="one", member_epoch=-1))
    admin.alter_share_group_offsets("share", {FIRST: 0})
    offsets = admin.list_share_group_offsets({"share": ListShareGroupOffsetsSpec([FIRST])})
    found = offsets["share"][FIRST]
    assert found is not None
    assert (found.start_offset, found.lag) == (0, 0)
    assert FIRST in admin.list_share_group_offsets("share")["share"]
    assert list(admin.delete_share_group_offsets("share", ["topic"])) == ["topic"]
    with pytest.raises(errors.UnknownTopicOrPartitionError):
        admin.delete_share_group_offsets("share", ["nowhere"])
    assert admin.delete_share_groups(["share"])
    with pytest.raises(errors.GroupIdNotFoundError):
        admin.describe_share_groups(["share"])


def test_streams_groups(broker: BrokerProcess, admin: Admin) -> None:
    request = StreamsGroupHeartbeatRequest

    def joining(epoch: int) -> StreamsGroupHeartbeatRequest:
        if epoch:
            return request(group_id="streams", member_id="one", member_epoch=epoch)
        return request(
            group_id="streams",
            member_id="one",
            member_epoch=0,
            process_id="process",
            user_endpoint=request.Endpoint(host="here", port=7),
            client_tags=[request.KeyValue(key="zone", value="a")],
            topology=topology(subtopology("0", sources=("topic",))),
            rebalance_timeout_ms=10_000,
            active_tasks=[],
            standby_tasks=[],
            warmup_tasks=[],
        )

    with Beating(broker, ApiKey.STREAMS_GROUP_HEARTBEAT, 0) as member:
        member.until(joining, lambda answer: bool(answer.active_tasks))
        group = admin.describe_streams_groups(["streams"])["streams"]
        assert group.subtopologies[0].source_topics == ("topic",)
        (shown,) = group.members
        assert shown.user_endpoint == ("here", 7)
        assert shown.client_tags == {"zone": "a"}
        assert shown.target_assignment.active_tasks == (("0", (0, 1)),)
        assert [each.group_id for each in admin.list_streams_groups()] == ["streams"]
        member.beat(request(group_id="streams", member_id="one", member_epoch=-1))
    admin.alter_streams_group_offsets("streams", {FIRST: OffsetAndMetadata(3)})
    offsets = admin.list_streams_group_offsets("streams")["streams"]
    assert offsets == {FIRST: OffsetAndMetadata(3)}
    assert list(admin.delete_streams_group_offsets("streams", [FIRST])) == [FIRST]
    assert admin.delete_streams_groups(["streams"])


def test_transactions_are_seen_and_ended(broker: BrokerProcess, admin: Admin) -> None:
    producer = ConfluentProducer(broker.bootstrap, "my-tx")
    producer.init()
    producer.begin()
    producer.send("topic", b"open")
    (listed,) = admin.list_transactions(filtered_transactional_id_pattern="my-.*")
    assert (listed.transactional_id, listed.state) == ("my-tx", TransactionState.ONGOING)
    assert admin.list_transactions(filtered_states=[TransactionState.EMPTY]) == []
    assert admin.list_transactions(filtered_producer_ids=[listed.producer_id]) == [listed]
    assert admin.list_transactions(filtered_duration=3_600_000) == []
    described = admin.describe_transactions(["my-tx"])["my-tx"]
    assert described.topic_partitions
    assert described.producer_id == listed.producer_id
    assert described.transaction_start_time_ms is not None
    (key,) = described.topic_partitions
    producers = admin.describe_producers([key])[key].active_producers
    (state,) = [each for each in producers if each.producer_id == listed.producer_id]
    assert state.current_transaction_start_offset is not None
    by_broker = admin.describe_producers([key], broker_id=described.coordinator_id)
    assert by_broker[key].active_producers == producers
    fenced = admin.fence_producers(["my-tx"])["my-tx"]
    assert fenced.producer_epoch > described.producer_epoch
    eventually(
        lambda: (
            admin.describe_transactions(["my-tx"])["my-tx"].state
            in (TransactionState.COMPLETE_ABORT, TransactionState.EMPTY)
        ),
        what="the open transaction is aborted",
    )
    admin.force_terminate_transaction("my-tx")
    with pytest.raises(errors.TransactionalIdNotFoundError):
        admin.describe_transactions(["nobody"])
    with pytest.raises(errors.InvalidRequestError):
        admin.fence_producers([""])


def test_hanging_transaction_is_aborted(broker: BrokerProcess, admin: Admin) -> None:
    producer = ConfluentProducer(broker.bootstrap, "hanging")
    producer.init()
    producer.begin()
    producer.send("other", b"open")
    key = TopicPartition("other", 0)
    (state,) = admin.describe_producers([key])[key].active_producers
    spec = AbortTransactionSpec(
        key, state.producer_id, state.producer_epoch, state.coordinator_epoch or 0
    )
    stale = spec._replace(producer_epoch=spec.producer_epoch - 1)
    if spec.producer_epoch > 0:
        with pytest.raises(errors.InvalidProducerEpochError):
            admin.abort_transaction(stale)
    admin.abort_transaction(spec)
    (after,) = admin.describe_producers([key])[key].active_producers
    assert after.current_transaction_start_offset is None
