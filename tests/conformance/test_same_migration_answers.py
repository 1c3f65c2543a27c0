"""A group that changes its protocol, on Moldau and on Apache Kafka: the answers agree.

Which of several partitions a member gets may depend on Kafka's hash tables, so the scripts
give them no choice, or what is assigned is left out of the comparison.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from moldau.wire.apis import ApiKey
from moldau.wire.errors import ErrorCode
from moldau.wire.message import Message
from moldau.wire.messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    DescribeGroupsRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    ListGroupsRequest,
    SyncGroupRequest,
)
from moldau.wire.record_values import encode_versioned
from support.both import IGNORED, Both, Side, prepare, written_records
from support.processes import BrokerProcess, apache_kafka, kafka_missing, moldau

pytestmark = pytest.mark.skipif(kafka_missing() is not None, reason=str(kafka_missing()))


# Topic ids are each broker's own, and so is what is computed of them.
RECORDED_BY_EACH = frozenset({"metadata_hash", "assignment_timestamp"})


def subscription(*owned: int, topic: str = "t") -> bytes:
    message = ConsumerProtocolSubscription(topics=[topic])
    if owned:
        message.owned_partitions = [
            ConsumerProtocolSubscription.TopicPartition(topic=topic, partitions=list(owned))
        ]
    return encode_versioned(message, 1)


def assignment(*partitions: int) -> bytes:
    message = ConsumerProtocolAssignment(
        assigned_partitions=[
            ConsumerProtocolAssignment.TopicPartition(topic="t", partitions=list(partitions))
        ]
    )
    return encode_versioned(message, 1)


class Stage(Both):
    """One group, `g`; classic members go by the script's names, others by their own ids."""

    def __init__(self, *sides: Side, group: str) -> None:
        super().__init__(*sides)
        self.group = group

    def join(self, member: str, metadata: bytes, *, named: str | None = None, **fields: Any) -> Any:
        def make(side: Side) -> Message:
            return JoinGroupRequest(
                group_id=self.group,
                session_timeout_ms=600_000,
                rebalance_timeout_ms=60_000,
                member_id=side.ids.get(member, member),
                group_instance_id=fields.get("instance"),
                protocol_type=fields.get("protocol_type", "consumer"),
                protocols=[
                    JoinGroupRequest.JoinGroupRequestProtocol(name=name, metadata=metadata)
                    for name in fields.get("protocols", ("range", "sticky"))
                ],
            )

        version = fields.get("version", 9)
        return self.ask(fields.get("speaker", "x"), ApiKey.JOIN_GROUP, version, make, named)

    def enter(self, name: str, metadata: bytes) -> Any:
        first = self.join("", metadata, named=name)
        assert first.error_code == ErrorCode.MEMBER_ID_REQUIRED
        return self.join(name, metadata)

    def sync(self, member: str, generation: int, given: bytes = b"", **fields: Any) -> Any:
        def make(side: Side) -> Message:
            member_id = side.ids.get(member, member)
            return SyncGroupRequest(
                group_id=self.group,
                generation_id=generation,
                member_id=member_id,
                group_instance_id=fields.get("instance"),
                protocol_type=fields.get("protocol_type", "consumer"),
                protocol_name=fields.get("protocol", "range"),
                assignments=[
                    SyncGroupRequest.SyncGroupRequestAssignment(
                        member_id=member_id, assignment=given
                    )
                ]
                if given
                else [],
            )

        return self.ask("x", ApiKey.SYNC_GROUP, 5, make)

    def beat(self, member: str, generation: int, instance: str | None = None) -> ErrorCode:
        answer = self.ask(
            "x",
            ApiKey.HEARTBEAT,
            4,
            lambda side: HeartbeatRequest(
                group_id=self.group,
                generation_id=generation,
                member_id=side.ids.get(member, member),
                group_instance_id=instance,
            ),
        )
        return ErrorCode(answer.error_code)

    def leave(self, *members: tuple[str, str | None]) -> list[ErrorCode]:
        answer = self.ask(
            "x",
            ApiKey.LEAVE_GROUP,
            5,
            lambda side: LeaveGroupRequest(
                group_id=self.group,
                members=[
                    LeaveGroupRequest.MemberIdentity(
                        member_id=side.ids.get(member, member), group_instance_id=instance
                    )
                    for member, instance in members
                ],
            ),
        )
        return [ErrorCode(each.error_code) for each in answer.members]

    def consume(self, member: str, epoch: int, *owned: int, **fields: Any) -> Any:
        """A heartbeat of the consumer protocol that says everything."""

        def make(side: Side) -> Message:
            topics = ConsumerGroupHeartbeatRequest.TopicPartitions(
                topic_id=side.topic_ids["t"], partitions=list(owned)
            )
            return ConsumerGroupHeartbeatRequest(
                group_id=self.group,
                member_id=member,
                member_epoch=epoch,
                instance_id=fields.get("instance"),
                rebalance_timeout_ms=60_000 if epoch >= 0 else -1,
                subscribed_topic_names=["t"] if epoch >= 0 else None,
                topic_partitions=([topics] if owned else []) if epoch >= 0 else None,
            )

        return self.ask("x", ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, make)

    def describe(self) -> tuple[str, str]:
        """The states by the classic and by the newer request; all else agrees as well."""
        classic = self.ask(
            "x", ApiKey.DESCRIBE_GROUPS, 6, lambda side: DescribeGroupsRequest(groups=[self.group])
        )
        newer = self.ask(
            "x",
            ApiKey.CONSUMER_GROUP_DESCRIBE,
            1,
            lambda side: ConsumerGroupDescribeRequest(group_ids=[self.group]),
        )
        return classic.groups[0].group_state, newer.groups[0].group_state

    def kind(self) -> str:
        def make(side: Side) -> Message:
            return ListGroupsRequest()

        kinds = []
        for side in self.sides:
            listed = side.connection("x").call(ApiKey.LIST_GROUPS, 5, make(side)).groups
            kinds.append({each.group_id: each.group_type for each in listed}.get(self.group, ""))
        assert kinds[0] == kinds[1]
        return kinds[0]


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[BrokerProcess, ...]]:
    ours, kafkas = tmp_path_factory.mktemp("moldau"), tmp_path_factory.mktemp("kafka")
    overrides = ["group.initial.rebalance.delay.ms=0"]
    with moldau(ours, overrides) as first, apache_kafka(kafkas) as second:
        yield first, second


@pytest.fixture
def stage(
    brokers: tuple[BrokerProcess, BrokerProcess], request: pytest.FixtureRequest
) -> Iterator[Stage]:
    sides = tuple(Side(broker.port, IGNORED | RECORDED_BY_EACH) for broker in brokers)
    for side in sides:
        prepare(side, [("t", 2), ("u", 1)])
    yield Stage(*sides, group=request.node.name)
    for side in sides:
        side.close()


def upgraded(stage: Stage) -> None:
    """`a` of the classic protocol has partition 0, `c` of the consumer protocol has 1."""
    stage.enter("a", subscription())
    stage.sync("a", 1, assignment(0, 1))
    assert stage.consume("c", 0).member_epoch == 2
    assert stage.join("a", subscription(0, 1)).generation_id == 1
    stage.sync("a", 1)
    assert stage.join("a", subscription(0)).generation_id == 2
    stage.sync("a", 2)
    stage.consume("c", 2)


def test_a_classic_group_is_upgraded_and_goes_back(stage: Stage) -> None:
    stage.enter("a", subscription())
    assert stage.sync("a", 1, assignment(0, 1)).assignment == assignment(0, 1)
    assert stage.kind() == "classic"
    # A member of the other protocol comes: it waits for what the first has to give up.
    stage.consume("c", 0)
    assert stage.kind() == "consumer"
    assert stage.describe() == ("Dead", "Reconciling")
    assert stage.beat("a", 1) is ErrorCode.REBALANCE_IN_PROGRESS
    assert stage.sync("a", 1).error_code == ErrorCode.REBALANCE_IN_PROGRESS
    stage.join("a", subscription(0, 1))
    stage.sync("a", 1)
    assert stage.beat("a", 1) is ErrorCode.REBALANCE_IN_PROGRESS
    stage.consume("c", 2)
    # It has given it up, and says so by joining.
    stage.join("a", subscription(0))
    stage.sync("a", 2)
    assert stage.beat("a", 2) is ErrorCode.NONE
    stage.consume("c", 2)
    assert stage.describe() == ("Dead", "Stable")
    # The newcomer goes, and the group is what it was.
    stage.consume("c", -1)
    assert stage.kind() == "classic"
    assert stage.describe() == ("PreparingRebalance", "")
    assert stage.beat("a", 2) is ErrorCode.REBALANCE_IN_PROGRESS
    assert stage.join("a", subscription(0)).generation_id == 3
    stage.sync("a", 3, assignment(0, 1))
    assert stage.describe() == ("Stable", "")
    stage.consume("c", 2)


def test_every_wrong_turn_of_a_classic_member(stage: Stage) -> None:
    upgraded(stage)
    for metadata, fields in (
        (subscription(), {"protocol_type": "connect"}),
        (subscription(), {"protocols": ("unheard-of",)}),
        (subscription(), {"protocols": ()}),
        (b"\0", {}),
        (b"", {"version": 3}),
    ):
        stage.join("a", metadata, **fields)
        if "version" in fields or "protocols" in fields or "protocol_type" in fields:
            stage.join("", metadata, **fields)
        else:
            # It is asked to come back with an id before anybody reads what it brings.
            stage.join("", metadata, named="never mind", **fields)
    stage.join("stranger", subscription(), instance="i")
    stage.join("a", subscription(), instance="i")
    for member, generation, fields in (
        ("stranger", 2, {}),
        ("c", 2, {}),
        ("a", 1, {}),
        ("a", 3, {}),
        ("a", 2, {"protocol": "sticky"}),
        ("a", 2, {"protocol_type": "connect"}),
        ("a", 2, {"instance": "i"}),
        ("a", 2, {}),
    ):
        stage.sync(member, generation, **fields)
    for member, generation in (("stranger", 2), ("c", 2), ("a", 1), ("a", 3), ("a", 2)):
        stage.beat(member, generation)
    stage.beat("a", 2, "i")
    stage.leave(("stranger", None), ("", None), ("", "i"), ("stranger", "i"))
    assert stage.describe() == ("Dead", "Stable")
    assert stage.leave(("a", None), ("a", None)) == [ErrorCode.NONE, ErrorCode.NONE]
    assert stage.kind() == "consumer"


def test_an_administrator_removes_the_last_consumer(stage: Stage) -> None:
    upgraded(stage)
    assert stage.leave(("c", None)) == [ErrorCode.NONE]
    assert stage.kind() == "classic"
    assert stage.describe() == ("PreparingRebalance", "")


def test_a_static_member_changes_its_protocol(stage: Stage) -> None:
    stage.join("", subscription(), instance="i", named="a")
    stage.sync("a", 1, assignment(0, 1), instance="i")
    stage.consume("c", 0, instance="i")
    assert stage.kind() == "consumer"
    assert stage.beat("a", 1, "i") is ErrorCode.FENCED_INSTANCE_ID
    assert stage.beat("a", 1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert stage.join("a", subscription(), instance="i").error_code == (
        ErrorCode.FENCED_INSTANCE_ID
    )
    stage.describe()
    generation = stage.join("", subscription(), instance="i", named="b").generation_id
    assert stage.kind() == "classic"
    assert stage.sync("b", generation, instance="i").assignment == assignment(0, 1)
    assert stage.describe() == ("Stable", "")
    stage.consume("c", generation, 0, 1, instance="i")
    assert stage.beat("b", generation, "i") is ErrorCode.NONE


def test_a_static_member_changes_its_protocol_and_its_topics(stage: Stage) -> None:
    stage.join("", subscription(), instance="i", named="a")
    stage.sync("a", 1, assignment(0, 1), instance="i")
    stage.consume("c", 0, instance="i")
    stage.join("", subscription(topic="u"), instance="i", named="b")
    assert stage.kind() == "classic"
    assert stage.describe() == ("PreparingRebalance", "")
    assert stage.join("b", subscription(topic="u"), instance="i").generation_id == 2


def test_a_group_of_another_protocol_type_stays_classic(stage: Stage) -> None:
    first = stage.join("", b"any", named="a", protocol_type="connect")
    assert first.error_code == ErrorCode.MEMBER_ID_REQUIRED
    stage.join("a", b"any", protocol_type="connect")
    assert stage.consume("c", 0).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert stage.kind() == "classic"


@pytest.mark.parametrize(
    "given",
    [b"\0", encode_versioned(ConsumerProtocolAssignment(user_data=b"mine"), 1)],
    ids=["malformed", "user-data"],
)
def test_assignments_that_cannot_be_taken_along(stage: Stage, given: bytes) -> None:
    stage.enter("a", subscription())
    stage.sync("a", 1, given)
    assert stage.consume("c", 0).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert stage.beat("a", 1) is ErrorCode.NONE


def _join_later(stage: Stage, name: str) -> None:
    """Join with an id that was handed out, and leave the answer for later."""

    def make(side: Side) -> Message:
        return JoinGroupRequest(
            group_id=stage.group,
            session_timeout_ms=600_000,
            rebalance_timeout_ms=60_000,
            member_id=side.ids[name],
            protocol_type="consumer",
            protocols=[
                JoinGroupRequest.JoinGroupRequestProtocol(name=each, metadata=subscription())
                for each in ("range", "sticky")
            ],
        )

    stage.send(name, ApiKey.JOIN_GROUP, 9, make)
    stage.ask_until(
        "x",
        ApiKey.HEARTBEAT,
        4,
        lambda side: HeartbeatRequest(
            group_id=stage.group, generation_id=1, member_id=side.ids["a"]
        ),
        settled=lambda answer: answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS,
    )


def test_whoever_waits_is_told_to_join_again(stage: Stage) -> None:
    stage.enter("a", subscription())
    stage.sync("a", 1, assignment(0, 1))
    first = stage.join("", subscription(), named="b")
    assert first.error_code == ErrorCode.MEMBER_ID_REQUIRED
    _join_later(stage, "b")
    stage.consume("c", 0)
    answer = stage.receive("b", ApiKey.JOIN_GROUP, 9)
    assert answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert stage.kind() == "consumer"


def test_partitions_with_several_owners_keep_it_classic(stage: Stage) -> None:
    stage.enter("a", subscription())
    stage.sync("a", 1, assignment(0, 1))
    stage.join("", subscription(), named="b")
    _join_later(stage, "b")
    stage.join("a", subscription())
    stage.receive("b", ApiKey.JOIN_GROUP, 9)

    def make(side: Side) -> Message:
        return SyncGroupRequest(
            group_id=stage.group,
            generation_id=2,
            member_id=side.ids["a"],
            protocol_type="consumer",
            protocol_name="range",
            assignments=[
                SyncGroupRequest.SyncGroupRequestAssignment(
                    member_id=side.ids[each], assignment=assignment(0, 1)
                )
                for each in ("a", "b")
            ],
        )

    assert stage.ask("x", ApiKey.SYNC_GROUP, 5, make).error_code == ErrorCode.NONE
    assert stage.consume("c", 0).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert stage.kind() == "classic"
    assert stage.beat("b", 2) is ErrorCode.NONE


def test_an_empty_consumer_group_becomes_a_classic_one(stage: Stage) -> None:
    stage.consume("c", 0)
    stage.consume("c", -1)
    assert stage.describe() == ("Dead", "Empty")
    stage.join("stranger", subscription())
    stage.enter("a", subscription())
    assert stage.kind() == "classic"
    stage.sync("a", 1, assignment(0, 1))


def test_what_is_written(stage: Stage) -> None:
    """Record for record, but for the leader of a group that goes back.

    Kafka writes one; if the coordinator then fails, nobody shares out what the last consumer
    had. Moldau writes none, and a coordinator that reads this lets everybody join.
    """
    upgraded(stage)
    stage.consume("c", -1)
    ours, kafkas = (written_records(side, stage.group) for side in stage.sides)
    assert len(ours) >= 15
    assert [found[-1][3].pop("leader") for found in (ours, kafkas)] == [None, "a"]
    # Kafka goes through members in the order of its hash tables.
    assert sorted(ours, key=repr) == sorted(kafkas, key=repr)
