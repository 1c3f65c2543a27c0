"""The same life of a group on Moldau and on Apache Kafka: the answers agree, step by step.

Each step is sent to both brokers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

import pytest

from moldau.wire.apis import API_BY_KEY, ApiKey
from moldau.wire.errors import ErrorCode
from moldau.wire.message import Message
from moldau.wire.messages import (
    ConsumerProtocolSubscription,
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    ListGroupsRequest,
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetFetchRequest,
    SyncGroupRequest,
)
from moldau.wire.record_values import encode_versioned
from support.both import NO_ID, Both, Side, prepare, written_records
from support.processes import BrokerProcess, apache_kafka, kafka_missing, moldau

pytestmark = pytest.mark.skipif(kafka_missing() is not None, reason=str(kafka_missing()))

# Longer than any conversation, however slow the machine is.
SESSION_MS = 600_000
SUBSCRIPTION = encode_versioned(ConsumerProtocolSubscription(topics=["t"]), 1)


class Stage(Both):
    # The requests, by the names of the script.

    def join(self, group: str, member: str = "", *, version: int = 9, **fields: Any) -> Any:
        def make(side: Side) -> Message:
            protocols = fields.get("protocols", (("range", SUBSCRIPTION),))
            return JoinGroupRequest(
                group_id=group,
                session_timeout_ms=fields.get("session_ms", SESSION_MS),
                rebalance_timeout_ms=-1 if version == 0 else 60_000,
                member_id=side.ids.get(member, member),
                group_instance_id=fields.get("instance"),
                protocol_type=fields.get("protocol_type", "consumer"),
                protocols=[
                    JoinGroupRequest.JoinGroupRequestProtocol(name=name, metadata=metadata)
                    for name, metadata in protocols
                ],
            )

        return make

    def enter(self, group: str, name: str, *, version: int = 9) -> Any:
        """A dynamic member joins a group in which nobody else has to rejoin."""
        made = self.join(group, version=version)
        answer = self.ask(name, ApiKey.JOIN_GROUP, version, made, name)
        if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            made = self.join(group, name, version=version)
            answer = self.ask(name, ApiKey.JOIN_GROUP, version, made, name)
        assert answer.error_code == ErrorCode.NONE
        return answer

    def sync(
        self,
        group: str,
        member: str,
        generation: int,
        assignments: tuple[str, ...] = (),
        **fields: Any,
    ) -> Callable[[Side], Message]:
        return lambda side: SyncGroupRequest(
            group_id=group,
            generation_id=generation,
            member_id=side.ids.get(member, member),
            group_instance_id=fields.get("instance"),
            protocol_type=fields.get("protocol_type", "consumer"),
            protocol_name=fields.get("protocol", "range"),
            assignments=[
                SyncGroupRequest.SyncGroupRequestAssignment(
                    member_id=side.ids.get(each, each), assignment=each.encode()
                )
                for each in assignments
            ],
        )

    def beat(
        self, group: str, member: str, generation: int, instance: str | None = None
    ) -> ErrorCode:
        answer = self.ask(
            "observer",
            ApiKey.HEARTBEAT,
            4,
            lambda side: HeartbeatRequest(
                group_id=group,
                generation_id=generation,
                member_id=side.ids.get(member, member),
                group_instance_id=instance,
            ),
        )
        return ErrorCode(answer.error_code)

    def commit(self, group: str, version: int = 9, **fields: Any) -> ErrorCode:
        name, partition = fields.get("topic", "t"), fields.get("partition", 0)

        def make(side: Side) -> Message:
            known = side.topic_ids["t"] if name == "t" else UUID(int=99)
            return OffsetCommitRequest(
                group_id=group,
                generation_id_or_member_epoch=fields.get("generation", -1),
                member_id=side.ids.get(fields.get("member", ""), fields.get("member", "")),
                group_instance_id=fields.get("instance"),
                topics=[
                    OffsetCommitRequest.OffsetCommitRequestTopic(
                        name=name if version < 10 else "",
                        topic_id=known if version >= 10 else NO_ID,
                        partitions=[
                            OffsetCommitRequest.OffsetCommitRequestPartition(
                                partition_index=partition,
                                committed_offset=fields.get("offset", 7),
                                committed_metadata=fields.get("metadata", "note"),
                            )
                        ],
                    )
                ],
            )

        answer = self.ask("observer", ApiKey.OFFSET_COMMIT, version, make)
        return ErrorCode(answer.topics[0].partitions[0].error_code)

    def fetch(self, version: int, group: str, topic: str | None) -> Any:
        def make(side: Side) -> Message:
            if version < 8:
                return OffsetFetchRequest(
                    group_id=group,
                    topics=None
                    if topic is None
                    else [
                        OffsetFetchRequest.OffsetFetchRequestTopic(
                            name=topic, partition_indexes=[0, 1]
                        )
                    ],
                )
            topic_id = side.topic_ids["t"] if topic == "t" else UUID(int=99)
            wanted = OffsetFetchRequest.OffsetFetchRequestTopics(
                name=topic if topic and version < 10 else "",
                topic_id=topic_id if version >= 10 else NO_ID,
                partition_indexes=[0, 1],
            )
            return OffsetFetchRequest(
                groups=[
                    OffsetFetchRequest.OffsetFetchRequestGroup(
                        group_id=group, topics=None if topic is None else [wanted]
                    )
                ]
            )

        return self.ask("observer", ApiKey.OFFSET_FETCH, version, make)

    def leave(self, group: str, *members: tuple[str, str | None], version: int = 5) -> Any:
        def make(side: Side) -> Message:
            if version < 3:
                return LeaveGroupRequest(
                    group_id=group, member_id=side.ids.get(members[0][0], members[0][0])
                )
            return LeaveGroupRequest(
                group_id=group,
                members=[
                    LeaveGroupRequest.MemberIdentity(
                        member_id=side.ids.get(member, member), group_instance_id=instance
                    )
                    for member, instance in members
                ],
            )

        return self.ask("observer", ApiKey.LEAVE_GROUP, version, make)

    def describe(self, group: str, version: int = 6) -> str:
        answer = self.ask(
            "observer",
            ApiKey.DESCRIBE_GROUPS,
            version,
            lambda side: DescribeGroupsRequest(
                groups=[group], include_authorized_operations=version >= 3
            ),
        )
        return str(answer.groups[0].group_state)


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[BrokerProcess, ...]]:
    ours, kafkas = tmp_path_factory.mktemp("moldau"), tmp_path_factory.mktemp("kafka")
    overrides = ["group.initial.rebalance.delay.ms=0"]
    with moldau(ours, overrides) as first, apache_kafka(kafkas) as second:
        yield first, second


@pytest.fixture
def stage(brokers: tuple[BrokerProcess, BrokerProcess]) -> Iterator[Stage]:
    sides = tuple(Side(broker.port) for broker in brokers)
    for side in sides:
        prepare(side, [("t", 2)])
    yield Stage(*sides)
    for side in sides:
        side.close()


@pytest.mark.parametrize("version", range(10))
def test_one_member(stage: Stage, version: int) -> None:
    group = f"one-{version}"
    stage.enter(group, "a", version=version)
    assert stage.describe(group) == "CompletingRebalance"
    assert stage.beat(group, "a", 1) is ErrorCode.NONE
    assert stage.commit(group, member="a", generation=1) is ErrorCode.REBALANCE_IN_PROGRESS
    for sync_version in range(6):
        stage.ask("a", ApiKey.SYNC_GROUP, sync_version, stage.sync(group, "a", 1, ("a",)))
    for describe_version in range(7):
        assert stage.describe(group, describe_version) == "Stable"
    assert stage.commit(group, member="a", generation=1) is ErrorCode.NONE
    assert stage.commit(group) is ErrorCode.UNKNOWN_MEMBER_ID
    stage.leave(group, ("a", None), version=min(version, 5))
    assert stage.describe(group) == "Empty"


def test_two_members_and_every_wrong_turn(stage: Stage) -> None:
    stage.enter("two", "a")
    stage.ask("a", ApiKey.SYNC_GROUP, 5, stage.sync("two", "a", 1, ("a",)))
    # b is given an id, and then waits for a.
    stage.ask("b", ApiKey.JOIN_GROUP, 9, stage.join("two"), "b")
    stage.send("b", ApiKey.JOIN_GROUP, 9, stage.join("two", "b"))
    _until(lambda: stage.describe("two") == "PreparingRebalance")
    assert stage.beat("two", "a", 1) is ErrorCode.REBALANCE_IN_PROGRESS
    stage.ask("x", ApiKey.SYNC_GROUP, 5, stage.sync("two", "a", 1))
    assert stage.commit("two", member="a", generation=1) is ErrorCode.NONE
    stage.ask("a", ApiKey.JOIN_GROUP, 9, stage.join("two", "a"))
    stage.receive("b", ApiKey.JOIN_GROUP, 9)
    # A repeated join in the sync phase; then the wrong ways to sync.
    stage.ask("x", ApiKey.JOIN_GROUP, 9, stage.join("two", "b"))
    for wrong in (
        stage.sync("two", "nobody", 2),
        stage.sync("two", "a", 1),
        stage.sync("two", "a", 2, protocol="sticky"),
        stage.sync("two", "a", 2, protocol_type="connect"),
        stage.sync("nowhere", "a", 2),
        stage.sync("", "a", 2),
        stage.sync("two", "a", 2, protocol=None),
    ):
        stage.ask("x", ApiKey.SYNC_GROUP, 5, wrong)
    stage.send("b", ApiKey.SYNC_GROUP, 5, stage.sync("two", "b", 2))
    stage.ask("a", ApiKey.SYNC_GROUP, 5, stage.sync("two", "a", 2, ("a", "b")))
    stage.receive("b", ApiKey.SYNC_GROUP, 5)
    # The wrong ways to join a stable group.
    for wrong in (
        stage.join("two", "nobody"),
        stage.join("two", protocol_type="connect"),
        stage.join("two", protocols=(("sticky", b""),)),
        stage.join("two", "b", protocols=(("sticky", b""),)),
        stage.join("two", session_ms=5_999),
        stage.join("two", session_ms=1_800_001),
        stage.join("", "b"),
        stage.join("fresh", "nobody"),
        stage.join("fresh", protocols=()),
        stage.join("fresh", protocol_type=""),
        stage.join("two", "nobody", instance="i"),
    ):
        stage.ask("x", ApiKey.JOIN_GROUP, 9, wrong)
    stage.ask("x", ApiKey.JOIN_GROUP, 9, stage.join("two", "b"))
    for member, generation in (("nobody", 2), ("a", 1), ("a", 3)):
        stage.beat("two", member, generation)
    stage.beat("nowhere", "a", 1)
    stage.beat("", "a", 1)
    assert stage.describe("two") == "Stable"
    # A follower with new metadata starts a rebalance; then the leader leaves.
    stage.send("b", ApiKey.JOIN_GROUP, 9, stage.join("two", "b", protocols=(("range", b"\0\0"),)))
    _until(lambda: stage.describe("two") == "PreparingRebalance")
    stage.leave("two", ("a", None))
    answer = stage.receive("b", ApiKey.JOIN_GROUP, 9)
    assert answer.generation_id == 3


def test_static_members(stage: Stage) -> None:
    def member(speaker: str, instance: str, version: int = 9, known: str = "") -> Any:
        return stage.join("static", known, instance=instance, version=version)

    stage.ask("a", ApiKey.JOIN_GROUP, 9, member("a", "i0"), "a")
    stage.ask("a", ApiKey.SYNC_GROUP, 5, stage.sync("static", "a", 1, ("a",), instance="i0"))
    stage.send("b", ApiKey.JOIN_GROUP, 9, member("b", "i1"))
    _until(lambda: stage.beat("static", "a", 1, "i0") is ErrorCode.REBALANCE_IN_PROGRESS)
    stage.send("a", ApiKey.JOIN_GROUP, 9, member("a", "i0", known="a"))
    stage.receive("b", ApiKey.JOIN_GROUP, 9, "b")
    stage.receive("a", ApiKey.JOIN_GROUP, 9)
    stage.send("b", ApiKey.SYNC_GROUP, 5, stage.sync("static", "b", 2, instance="i1"))
    both = stage.sync("static", "a", 2, ("a", "b"), instance="i0")
    stage.ask("a", ApiKey.SYNC_GROUP, 5, both)
    stage.receive("b", ApiKey.SYNC_GROUP, 5)
    # A follower restarts, then the leader, as an old and as a new client.
    stage.ask("b2", ApiKey.JOIN_GROUP, 9, member("b", "i1"), "b2")
    stage.ask("b2", ApiKey.SYNC_GROUP, 5, stage.sync("static", "b2", 2, instance="i1"))
    stage.ask("a2", ApiKey.JOIN_GROUP, 8, member("a", "i0", version=8), "a2")
    stage.ask("a3", ApiKey.JOIN_GROUP, 9, member("a", "i0"), "a3")
    assert stage.describe("static") == "Stable"
    for former in ("a", "a2"):
        assert stage.beat("static", former, 2, "i0") is ErrorCode.FENCED_INSTANCE_ID
        assert stage.beat("static", former, 2) is ErrorCode.UNKNOWN_MEMBER_ID
    stage.ask("x", ApiKey.JOIN_GROUP, 9, member("a", "i0", known="a"))
    stage.ask("x", ApiKey.SYNC_GROUP, 5, stage.sync("static", "a", 2, instance="i0"))
    stage.commit("static", member="a", generation=2, instance="i0")
    stage.commit("static", member="a3", generation=2, instance="i0")
    stage.commit("static", generation=-1, instance="i0")
    stage.leave(
        "static",
        ("a", "i0"),
        ("", "i1"),
        ("", "nobody"),
        ("", None),
        ("stranger", None),
        ("stranger", "nobody"),
    )
    assert stage.describe("static") == "PreparingRebalance"
    stage.leave("static", ("", "i0"))
    assert stage.describe("static") == "Empty"


@pytest.mark.parametrize("version", range(2, 11))
def test_offsets(stage: Stage, version: int) -> None:
    group = f"offsets-{version}"
    assert stage.commit(group, version) is ErrorCode.NONE
    stage.commit(group, version, partition=1, metadata=None, offset=0)
    stage.commit(group, version, partition=9)
    stage.commit(group, version, topic="nowhere")
    stage.commit(group, version, metadata="x" * 4_096, partition=1)
    stage.commit(group, version, metadata="x" * 4_097)
    stage.commit(group, version, metadata="😀" * 2_049)
    stage.commit(group, version, generation=3, member="nobody")
    stage.commit(f"{group}-none", version, generation=3, member="nobody")
    stage.commit(group, version, member="nobody")
    for fetch_version in range(1, 11):
        for name in (group, "nowhere", ""):
            stage.fetch(fetch_version, name, "t")
            stage.fetch(fetch_version, name, "nowhere")
            if fetch_version >= 2:
                stage.fetch(fetch_version, name, None)


def test_listing_and_deleting(stage: Stage) -> None:
    stage.commit("simple")
    stage.enter("live", "a")
    stage.ask("a", ApiKey.SYNC_GROUP, 5, stage.sync("live", "a", 1, ("a",)))
    stage.commit("live", member="a", generation=1)
    for version in range(7):
        for group in ("simple", "live", "nowhere", ""):
            stage.describe(group, version)
    interesting = {"simple", "live"}
    for version in range(6):
        for states, types in (([], []), (["Stable"], []), (["empty"], []), ([], ["classic"])):
            if (states and version < 4) or (types and version < 5):
                continue
            request = ListGroupsRequest(states_filter=states, types_filter=types)
            listed = []
            for side in stage.sides:
                answer = side.connection("observer").call(ApiKey.LIST_GROUPS, version, request)
                listed.append(
                    [
                        side.comparable(each)
                        for each in sorted(answer.groups, key=lambda each: each.group_id)
                        if each.group_id in interesting
                    ]
                )
            assert listed[0] == listed[1]

    def deletion(group: str, *partitions: tuple[str, int]) -> Callable[[Side], Message]:
        return lambda side: OffsetDeleteRequest(
            group_id=group,
            topics=[
                OffsetDeleteRequest.OffsetDeleteRequestTopic(
                    name=name,
                    partitions=[
                        OffsetDeleteRequest.OffsetDeleteRequestPartition(partition_index=index)
                    ],
                )
                for name, index in partitions
            ],
        )

    for make in (
        deletion("live", ("t", 0)),
        deletion("simple", ("t", 0), ("nowhere", 0)),
        deletion("simple", ("t", 9)),
        deletion("simple"),
        deletion("nowhere", ("t", 0)),
        deletion("", ("t", 0)),
    ):
        stage.ask("observer", ApiKey.OFFSET_DELETE, 0, make)
    for version in range(API_BY_KEY[ApiKey.DELETE_GROUPS].max_version + 1):
        stage.ask(
            "observer",
            ApiKey.DELETE_GROUPS,
            version,
            lambda side: DeleteGroupsRequest(groups_names=["live", "simple", "nowhere", ""]),
        )


def test_what_is_written(stage: Stage) -> None:
    """Key for key and version for version, the records of the offsets topic are Kafka's."""
    group = "written"
    stage.commit(group)
    stage.commit(group, 10, offset=8)
    stage.enter(group, "a")
    stage.ask("a", ApiKey.SYNC_GROUP, 5, stage.sync(group, "a", 1, ("a",)))
    stage.commit(group, member="a", generation=1, offset=9, metadata=None)
    stage.leave(group, ("a", None))
    stage.enter("written-by-join", "b")
    stage.ask("b", ApiKey.SYNC_GROUP, 5, stage.sync("written-by-join", "b", 1, ("b",)))
    stage.leave("written-by-join", ("b", None))
    for each in (group, "written-by-join"):
        stage.ask(
            "observer",
            ApiKey.DELETE_GROUPS,
            2,
            lambda side, each=each: DeleteGroupsRequest(groups_names=[each]),
        )
        ours, kafkas = (written_records(side, each) for side in stage.sides)
        assert len(ours) >= 4
        assert ours == kafkas


def test_sessions_end(stage: Stage) -> None:
    """In real time, so with the shortest session Kafka allows."""
    made = stage.join("session", session_ms=6_000, version=3)
    stage.ask("a", ApiKey.JOIN_GROUP, 3, made, "a")
    stage.ask("a", ApiKey.SYNC_GROUP, 5, stage.sync("session", "a", 1, ("a",)))
    for side in stage.sides:

        def state(side: Side = side) -> str:
            request = DescribeGroupsRequest(groups=["session"])
            answer = side.connection("observer").call(ApiKey.DESCRIBE_GROUPS, 5, request)
            return str(answer.groups[0].group_state)

        _until(lambda: state() == "Empty")
    stage.beat("session", "a", 1)
    assert stage.describe("session") == "Empty"


def _until(condition: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while True:
        try:
            if condition():
                return
        except AssertionError:
            # One broker is there already, the other not yet.
            pass
        assert time.monotonic() < deadline, "did not happen in time"
        time.sleep(0.02)
