"""The same life of a share group on Moldau and on Apache Kafka: the answers agree, step by step.

Each step is sent to both brokers. What both write about it is compared as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from moldau.broker.coordinator.machine.hashing import partition_for
from moldau.broker.coordinator.share.machine.values import SharePartitionKey
from moldau.wire.apis import ApiKey
from moldau.wire.errors import ErrorCode
from moldau.wire.message import Message
from moldau.wire.messages import (
    AlterShareGroupOffsetsRequest,
    DeleteGroupsRequest,
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupStateRequest,
    DescribeGroupsRequest,
    DescribeShareGroupOffsetsRequest,
    InitializeShareGroupStateRequest,
    ListGroupsRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    ReadShareGroupStateRequest,
    ReadShareGroupStateSummaryRequest,
    ShareGroupDescribeRequest,
    ShareGroupHeartbeatRequest,
    WriteShareGroupStateRequest,
)
from moldau.wire.record_values import Family, decode_coordinator_record
from moldau.wire.records import decode_batches, encode_batch
from support import asking
from support.both import IGNORED, Both, Side, coordinator_ready, prepare
from support.processes import BrokerProcess, apache_kafka, kafka_missing, moldau
from support.waiting import eventually

pytestmark = pytest.mark.skipif(kafka_missing() is not None, reason=str(kafka_missing()))

STATE_PARTITION_COUNT = 5
SETTINGS = {
    "group.share.min.heartbeat.interval.ms": "5000",
    "group.share.assignment.interval.ms": "0",
    # Longer than any conversation, however slow the machine is.
    "group.share.max.session.timeout.ms": "600000",
    "group.share.session.timeout.ms": "600000",
    "share.coordinator.state.topic.num.partitions": str(STATE_PARTITION_COUNT),
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    # Records here are old enough to expire whenever a broker looks.
    "log.retention.ms": "-1",
}
SHARE_KEY_TYPE = 2
NOT_YET = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)
TWENTY = encode_batch([(None, b"x", 0, ())] * 20)
SHARE_STATE_TOPIC = "__share_group_state"
GROUP_OFFSETS_TOPIC = "__consumer_offsets"
OFFSETS_PARTITION_COUNT = 50


class Stage(Both):
    def beat(self, group: str, member: str, epoch: int, **fields: Any) -> Any:
        return self.ask(
            member, ApiKey.SHARE_GROUP_HEARTBEAT, 1, _heartbeat(group, member, epoch, **fields)
        )

    def beat_until(
        self, group: str, member: str, epoch: int, settled: Callable[[Any], bool]
    ) -> Any:
        """Share state is initialised meanwhile, and how fast is each broker's own affair."""
        made = _heartbeat(group, member, epoch)
        return self.ask_until(member, ApiKey.SHARE_GROUP_HEARTBEAT, 1, made, settled=settled)

    def beat_until_assigned(self, group: str, member: str, epoch: int) -> Any:
        return self.beat_until(
            group,
            member,
            epoch,
            lambda answer: bool(answer.assignment and answer.assignment.topic_partitions),
        )

    def describe(self, *groups: str) -> Any:
        request = ShareGroupDescribeRequest(
            group_ids=list(groups), include_authorized_operations=True
        )
        return self.ask("observer", ApiKey.SHARE_GROUP_DESCRIBE, 1, lambda side: request)

    def offsets(self, group: str, topics: dict[str, list[int]] | None, version: int = 1) -> Any:
        request = DescribeShareGroupOffsetsRequest
        wanted = request.DescribeShareGroupOffsetsRequestGroup(group_id=group, topics=None)
        if topics is not None:
            wanted.topics = [
                request.DescribeShareGroupOffsetsRequestTopic(topic_name=name, partitions=each)
                for name, each in topics.items()
            ]
        made = request(groups=[wanted])
        key = ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS
        return self.ask("observer", key, version, lambda side: made)

    def alter(self, group: str, topics: dict[str, dict[int, int]]) -> Any:
        request = AlterShareGroupOffsetsRequest
        made = request(
            group_id=group,
            topics=[
                request.AlterShareGroupOffsetsRequestTopic(
                    topic_name=name,
                    partitions=[
                        request.AlterShareGroupOffsetsRequestPartition(
                            partition_index=index, start_offset=offset
                        )
                        for index, offset in offsets.items()
                    ],
                )
                for name, offsets in topics.items()
            ],
        )
        return self.ask("observer", ApiKey.ALTER_SHARE_GROUP_OFFSETS, 0, lambda side: made)

    def delete_offsets(self, group: str, *topics: str) -> Any:
        request = DeleteShareGroupOffsetsRequest
        made = request(
            group_id=group,
            topics=[
                request.DeleteShareGroupOffsetsRequestTopic(topic_name=each) for each in topics
            ],
        )
        return self.ask("observer", ApiKey.DELETE_SHARE_GROUP_OFFSETS, 0, lambda side: made)

    def delete_groups(self, *groups: str) -> list[int]:
        made = DeleteGroupsRequest(groups_names=list(groups))
        answer = self.ask("observer", ApiKey.DELETE_GROUPS, 2, lambda side: made)
        return [each.error_code for each in answer.results]

    # The five APIs between brokers: one partition of topic `t` each.

    def state(self, name: str, group: str, partition: int, version: int = 0, **fields: Any) -> Any:
        key, request, data = _STATE_APIS[name]

        def make(side: Side) -> Message:
            topic = getattr(request, data)(
                topic_id=side.topic_ids["t"],
                partitions=[request.PartitionData(partition=partition, **fields)],
            )
            return request(group_id=group, topics=[topic])  # type: ignore[no-any-return]

        answer = self.ask("broker", key, version, make)
        return answer.results[0].partitions[0]


_STATE_APIS: dict[str, tuple[ApiKey, Any, str]] = {
    "initialize": (
        ApiKey.INITIALIZE_SHARE_GROUP_STATE,
        InitializeShareGroupStateRequest,
        "InitializeStateData",
    ),
    "read": (ApiKey.READ_SHARE_GROUP_STATE, ReadShareGroupStateRequest, "ReadStateData"),
    "write": (ApiKey.WRITE_SHARE_GROUP_STATE, WriteShareGroupStateRequest, "WriteStateData"),
    "delete": (ApiKey.DELETE_SHARE_GROUP_STATE, DeleteShareGroupStateRequest, "DeleteStateData"),
    "summary": (
        ApiKey.READ_SHARE_GROUP_STATE_SUMMARY,
        ReadShareGroupStateSummaryRequest,
        "ReadStateSummaryData",
    ),
}


def _heartbeat(
    group: str, member: str, epoch: int, topics: list[str] | None = None, rack: str | None = None
) -> Callable[[Side], Message]:
    return lambda side: ShareGroupHeartbeatRequest(
        group_id=group,
        member_id=member,
        member_epoch=epoch,
        rack_id=rack,
        subscribed_topic_names=topics,
    )


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[BrokerProcess, ...]]:
    ours, kafkas = tmp_path_factory.mktemp("moldau"), tmp_path_factory.mktemp("kafka")
    overrides = [f"{key}={value}" for key, value in SETTINGS.items()]
    with moldau(ours, overrides) as first, apache_kafka(kafkas, SETTINGS) as second:
        yield first, second


@pytest.fixture
def stage(brokers: tuple[BrokerProcess, BrokerProcess]) -> Iterator[Stage]:
    # Topic ids go into the hash.
    own = {"assignment_timestamp", "create_timestamp", "metadata_hash", "write_timestamp"}
    ignored = IGNORED | own
    sides = tuple(Side(broker.port, ignored) for broker in brokers)
    for side in sides:
        prepare(side, [("t", 2), ("u", 1)])
        key = str(SharePartitionKey("any", side.topic_ids["t"], 0))
        ready = partial(coordinator_ready, side, key, SHARE_KEY_TYPE)
        eventually(ready, what="there is a share coordinator")
        eventually(partial(_coordinators_serve, side), what="all share coordinators serve")
    yield Stage(*sides)
    for side in sides:
        side.close()


def _coordinators_serve(side: Side) -> bool:
    """Whether each partition of the state topic has been loaded."""
    request = ReadShareGroupStateSummaryRequest
    topic_id = side.topic_ids["t"]
    probed: set[int] = set()
    for number in range(1_000):
        group = f"probe-{number}"
        place = partition_for(str(SharePartitionKey(group, topic_id, 0)), STATE_PARTITION_COUNT)
        if place in probed:
            continue
        probed.add(place)
        part = request.PartitionData(partition=0, leader_epoch=0)
        data = request.ReadStateSummaryData(topic_id=topic_id, partitions=[part])
        made = request(group_id=group, topics=[data])
        answer = side.connection("broker").call(ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, 1, made)
        if answer.results[0].partitions[0].error_code in NOT_YET:
            return False
    return len(probed) == STATE_PARTITION_COUNT


@pytest.fixture
def group(request: pytest.FixtureRequest) -> str:
    """Groups of a test are its own."""
    return str(request.node.name)


def test_a_member_comes_and_goes(stage: Stage, group: str) -> None:
    joined = stage.beat(group, "m", 0, topics=["t"])
    assert joined.assignment.topic_partitions == []
    assigned = stage.beat_until_assigned(group, "m", joined.member_epoch)
    assert assigned.member_epoch == joined.member_epoch + 1
    assert stage.beat(group, "m", assigned.member_epoch).assignment is None
    assert stage.beat(group, "m", joined.member_epoch).error_code == ErrorCode.NONE
    (described,) = stage.describe(group).groups
    assert described.group_state == "Stable"
    # A full request is given a full answer.
    full = stage.beat(group, "m", assigned.member_epoch, topics=["t"])
    assert full.assignment.topic_partitions
    assert stage.beat(group, "m", 0, topics=["t"]).member_epoch == assigned.member_epoch
    stage.beat(group, "m", -1)
    (described,) = stage.describe(group).groups
    assert (described.group_state, described.members) == ("Empty", [])


def test_several_members_and_subscriptions(stage: Stage, group: str) -> None:
    # All of them share the one partition of `u`; who gets which of several is up to the broker.
    epoch = stage.beat(group, "a", 0, topics=["u"], rack="r1").member_epoch
    epoch = stage.beat_until_assigned(group, "a", epoch).member_epoch
    stage.beat(group, "b", 0, topics=["u"])
    # Until `t` is initialised as well.
    joined = stage.beat(group, "c", 0, topics=["t", "u", "missing"]).member_epoch
    stage.beat_until(group, "c", joined, lambda answer: answer.member_epoch > joined)
    stage.beat(group, "a", epoch)
    (described,) = stage.describe(group).groups
    assert len(described.members) == 3
    stage.beat(group, "a", -1)
    stage.describe(group)
    (listed,) = [
        each
        for each in stage.ask(
            "observer",
            ApiKey.LIST_GROUPS,
            5,
            lambda side: ListGroupsRequest(types_filter=["share"], states_filter=["stable"]),
        ).groups
        if each.group_id == group
    ]
    assert (listed.group_type, listed.protocol_type) == ("share", "share")


def test_refused_heartbeats(stage: Stage, group: str) -> None:
    for member, epoch, fields in (
        ("", 0, {"topics": ["t"]}),
        ("x" * 37, 0, {"topics": ["t"]}),
        ("m", 0, {}),
        ("m", 0, {"topics": []}),
        ("m", 0, {"topics": ["t"], "rack": ""}),
        ("m", -2, {}),
    ):
        answer = stage.beat(group, member, epoch, **fields)
        assert answer.error_code == ErrorCode.INVALID_REQUEST
    assert stage.beat("", "m", 0, topics=["t"]).error_code == ErrorCode.INVALID_REQUEST
    for epoch in (1, -1):
        assert stage.beat(group, "m", epoch).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    epoch = stage.beat(group, "m", 0, topics=["t"]).member_epoch
    for wrong in (epoch + 1, epoch - 1):
        assert stage.beat(group, "m", wrong).error_code == ErrorCode.FENCED_MEMBER_EPOCH
    for epoch in (1, -1):
        assert stage.beat(group, "other", epoch).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_groups_of_other_kinds(stage: Stage, group: str) -> None:
    commit = OffsetCommitRequest(
        group_id=group,
        topics=[
            OffsetCommitRequest.OffsetCommitRequestTopic(
                name="t",
                partitions=[
                    OffsetCommitRequest.OffsetCommitRequestPartition(
                        partition_index=0, committed_offset=1
                    )
                ],
            )
        ],
    )
    stage.ask("observer", ApiKey.OFFSET_COMMIT, 9, lambda side: commit)
    answer = stage.beat(group, "m", 0, topics=["t"])
    assert answer.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert stage.describe(group).groups[0].error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert stage.alter(group, {"t": {0: 1}}).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert stage.delete_offsets(group, "t").error_code == ErrorCode.GROUP_ID_NOT_FOUND

    shared = f"{group}-shared"
    stage.beat(shared, "m", 0, topics=["t"])
    commit.group_id = shared
    stage.ask("observer", ApiKey.OFFSET_COMMIT, 9, lambda side: commit)
    fetch = OffsetFetchRequest(
        groups=[OffsetFetchRequest.OffsetFetchRequestGroup(group_id=shared, topics=None)]
    )
    stage.ask("observer", ApiKey.OFFSET_FETCH, 9, lambda side: fetch)
    classic = DescribeGroupsRequest(groups=[shared])
    for version in (5, 6):
        stage.ask("observer", ApiKey.DESCRIBE_GROUPS, version, lambda side: classic)
    assert stage.describe("unknown", "").groups[0].error_code != ErrorCode.NONE


def test_offsets(stage: Stage, group: str) -> None:
    for side in stage.sides:
        asking.produce(side.connection("observer"), "t", 0, TWENTY)
    everything = {"t": [0, 1], "u": [0], "missing": [0]}
    stage.offsets(group, everything)
    stage.offsets(group, None)
    assert stage.delete_offsets(group, "t").error_code == ErrorCode.GROUP_ID_NOT_FOUND

    stage.alter(group, {"t": {0: 7, 9: 1}, "missing": {0: 1}})
    for version in (0, 1):
        stage.offsets(group, everything, version)
        stage.offsets(group, None, version)
    epoch = stage.beat(group, "m", 0, topics=["t"]).member_epoch
    epoch = stage.beat_until_assigned(group, "m", epoch).member_epoch
    assert stage.alter(group, {"t": {0: 3}}).error_code == ErrorCode.NON_EMPTY_GROUP
    assert stage.delete_offsets(group, "t").error_code == ErrorCode.NON_EMPTY_GROUP
    assert stage.delete_groups(group) == [ErrorCode.NON_EMPTY_GROUP]
    stage.beat(group, "m", -1)
    stage.alter(group, {"t": {0: 3}})
    stage.offsets(group, everything)
    stage.delete_offsets(group, "t", "u", "missing")
    stage.delete_offsets(group, "t")
    stage.offsets(group, everything)
    assert stage.delete_groups(group, "unknown") is not None
    stage.describe(group)
    stage.offsets(group, None)


def test_share_state(stage: Stage, group: str) -> None:
    def write(partition: int = 0, **fields: Any) -> Any:
        batch = WriteShareGroupStateRequest.StateBatch
        batches = [
            batch(first_offset=one, last_offset=last, delivery_state=state, delivery_count=count)
            for one, last, state, count in fields.pop("batches", ())
        ]
        return stage.state("write", group, partition, 1, state_batches=batches, **fields)

    assert stage.state("read", group, 0).error_code == ErrorCode.INVALID_REQUEST
    assert write().error_code == ErrorCode.INVALID_REQUEST
    stage.state("summary", group, 0, 1)
    stage.state("delete", group, 0)
    for partition in (-1, 7):
        for name in ("initialize", "read", "delete", "summary"):
            stage.state(name, group, partition)
    stage.state("initialize", group, 0, state_epoch=3, start_offset=-1)
    stage.state("summary", group, 0, 1)
    stage.state("initialize", group, 0, state_epoch=2, start_offset=0)
    stage.state("initialize", group, 0, state_epoch=3, start_offset=10)
    stage.state("read", group, 0, leader_epoch=4)
    stage.state("read", group, 0, leader_epoch=3)
    stage.state("read", group, 0, leader_epoch=-1)
    write(state_epoch=3, leader_epoch=4, start_offset=10, batches=[(10, 19, 0, 1)])
    write(
        state_epoch=3,
        leader_epoch=4,
        start_offset=-1,
        delivery_complete_count=2,
        batches=[(12, 13, 2, 1), (18, 25, 4, 2)],
    )
    write(state_epoch=2, leader_epoch=4, start_offset=10)
    write(state_epoch=3, leader_epoch=3, start_offset=10)
    found = stage.state("read", group, 0, leader_epoch=4)
    assert len(found.state_batches) == 4
    stage.state("summary", group, 0, 0)
    stage.state("summary", group, 0, 1)
    stage.state("delete", group, 0)
    stage.state("read", group, 0, leader_epoch=4)


def test_what_is_written(stage: Stage, group: str) -> None:
    epoch = stage.beat(group, "m", 0, topics=["t", "u"]).member_epoch
    epoch = stage.beat_until_assigned(group, "m", epoch).member_epoch
    stage.beat(group, "n", 0, topics=["u"])
    stage.beat(group, "n", -1)
    stage.beat(group, "m", -1)
    stage.alter(group, {"t": {1: 3}})
    stage.delete_groups(group)
    place = partition_for(group, OFFSETS_PARTITION_COUNT)
    ours, kafkas = (
        _written(side, "group", GROUP_OFFSETS_TOPIC, place, group) for side in stage.sides
    )
    assert len(ours) >= 20
    assert ours == kafkas
    # Where the state of a share partition lies depends on the topic's id.
    ours, kafkas = (
        [
            record
            for index in range(STATE_PARTITION_COUNT)
            for record in _written(side, "share", SHARE_STATE_TOPIC, index, group)
        ]
        for side in stage.sides
    )
    assert len(ours) >= 7
    assert sorted(map(repr, ours)) == sorted(map(repr, kafkas))


def _written(side: Side, family: Family, topic: str, partition: int, group: str) -> list[Any]:
    """The records of an internal topic that tell of the group."""
    found = asking.fetch(side.connection("reader"), topic, partition)
    assert found.error_code == ErrorCode.NONE
    records = [
        decode_coordinator_record(family, record.key or b"", record.value)
        for _, batch in decode_batches(found.records or b"")
        for record in batch
    ]
    return [
        (type(key).__name__, side.comparable(key), side.comparable(value))
        for key, value in records
        if getattr(key, "group_id", None) == group
    ]
