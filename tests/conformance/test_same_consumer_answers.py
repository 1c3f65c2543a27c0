"""Consumer groups of KIP-848 on Moldau and on Apache Kafka: every answer agrees, every record too.

Topic ids are each broker's own, and which of several partitions a member gets depends on them;
so members have no choice but within one topic.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from moldau.wire.apis import ApiKey
from moldau.wire.errors import ErrorCode
from moldau.wire.message import Message
from moldau.wire.messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
    CreatePartitionsRequest,
    DeleteGroupsRequest,
    IncrementalAlterConfigsRequest,
    ListGroupsRequest,
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetFetchRequest,
)
from support.both import IGNORED, Both, Side, prepare, written_records
from support.processes import BrokerProcess, apache_kafka, kafka_missing, moldau
from support.repeats import mostly_long

pytestmark = pytest.mark.skipif(kafka_missing() is not None, reason=str(kafka_missing()))

RECORDED_BY_EACH = frozenset({"metadata_hash", "assignment_timestamp", "timestamp", "version"})
GROUP_CONFIG = 32
AT_ONCE = {
    "group.consumer.assignment.interval.ms": "0",
    # Longer than any conversation, however slow the machine is.
    "group.consumer.max.session.timeout.ms": "600000",
    "group.consumer.session.timeout.ms": "600000",
}
JOIN: dict[str, Any] = {"owned": {}, "names": ["t"], "timeout": 60_000}


class Stage(Both):
    def __init__(self, *sides: Side, group: str) -> None:
        super().__init__(*sides)
        self.group = group

    def beat(
        self,
        member: str,
        epoch: int,
        *,
        owned: Mapping[str, list[int]] | None = None,
        version: int = 1,
        **fields: Any,
    ) -> Any:
        def make(side: Side) -> Message:
            topics = None
            if owned is not None:
                topics = [
                    ConsumerGroupHeartbeatRequest.TopicPartitions(
                        topic_id=side.topic_ids[name], partitions=partitions
                    )
                    for name, partitions in owned.items()
                ]
            return ConsumerGroupHeartbeatRequest(
                group_id=fields.get("group", self.group),
                member_id=member,
                member_epoch=epoch,
                instance_id=fields.get("instance"),
                rack_id=fields.get("rack"),
                rebalance_timeout_ms=fields.get("timeout", -1),
                subscribed_topic_names=fields.get("names"),
                subscribed_topic_regex=fields.get("regex"),
                server_assignor=fields.get("assignor"),
                topic_partitions=topics,
            )

        key = ApiKey.CONSUMER_GROUP_HEARTBEAT
        return self.ask("x", key, version, make, fields.get("named"))

    def join(self, member: str, **fields: Any) -> Any:
        return self.beat(member, 0, **{**JOIN, **fields})

    def describe(self, group: str | None = None) -> Any:
        request = ConsumerGroupDescribeRequest(
            group_ids=[self.group if group is None else group], include_authorized_operations=True
        )
        answer = self.ask("x", ApiKey.CONSUMER_GROUP_DESCRIBE, 1, lambda side: request)
        return answer.groups[0]

    def commit(self, member: str, epoch: int, partition: int, version: int = 9) -> ErrorCode:
        def make(side: Side) -> Message:
            topic = OffsetCommitRequest.OffsetCommitRequestTopic(
                name="t" if version < 10 else "",
                topic_id=side.topic_ids["t"],
                partitions=[
                    OffsetCommitRequest.OffsetCommitRequestPartition(
                        partition_index=partition, committed_offset=7
                    )
                ],
            )
            return OffsetCommitRequest(
                group_id=self.group,
                generation_id_or_member_epoch=epoch,
                member_id=member,
                topics=[topic],
            )

        answer = self.ask("x", ApiKey.OFFSET_COMMIT, version, make)
        return ErrorCode(answer.topics[0].partitions[0].error_code)

    def fetch(self, member: str | None, epoch: int) -> ErrorCode:
        request = OffsetFetchRequest(
            groups=[
                OffsetFetchRequest.OffsetFetchRequestGroup(
                    group_id=self.group, member_id=member, member_epoch=epoch, topics=None
                )
            ]
        )
        answer = self.ask("x", ApiKey.OFFSET_FETCH, 9, lambda side: request)
        return ErrorCode(answer.groups[0].error_code)

    def written(self) -> tuple[list[Any], list[Any]]:
        return tuple(written_records(side, self.group) for side in self.sides)  # type: ignore[return-value]


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[BrokerProcess, ...]]:
    ours, kafkas = tmp_path_factory.mktemp("moldau"), tmp_path_factory.mktemp("kafka")
    overrides = [f"{key}={value}" for key, value in AT_ONCE.items()]
    with moldau(ours, overrides) as first, apache_kafka(kafkas, AT_ONCE) as second:
        yield first, second


@pytest.fixture
def stage(
    brokers: tuple[BrokerProcess, BrokerProcess], request: pytest.FixtureRequest
) -> Iterator[Stage]:
    sides = tuple(Side(broker.port, IGNORED | RECORDED_BY_EACH) for broker in brokers)
    for side in sides:
        prepare(side, [("t", 2), ("u", 1), ("four", 4), ("grows", 1)])
    yield Stage(*sides, group=request.node.name)
    for side in sides:
        side.close()


def test_bad_requests(stage: Stage) -> None:
    refused = [
        stage.join(""),
        stage.join(" "),
        stage.beat("", 1, version=0),
        stage.beat("", -1, version=0),
        stage.join("m", group=""),
        stage.join("m", group=" "),
        stage.join("m", instance=""),
        stage.join("m", rack=""),
        stage.join("m", timeout=-1),
        stage.join("m", owned=None),
        stage.join("m", owned={"t": [0]}),
        stage.join("m", names=None),
        stage.beat("m", -2),
        stage.beat("m", -3),
        stage.beat("m", 1),
        stage.beat("m", -1),
        stage.beat("m", -2, instance="i"),
        stage.join("m", assignor="none"),
        stage.join("m", names=None, regex="(a"),
        stage.join("m", names=["t"], regex="*"),
    ]
    assert all(answer.error_code for answer in refused)
    assert stage.describe().error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert stage.describe("").error_code == ErrorCode.INVALID_GROUP_ID


def test_old_clients_are_given_an_id(stage: Stage) -> None:
    answer = stage.join("", version=0, named="m")
    assert len(answer.member_id) == 22


def test_two_members_share_a_topic(stage: Stage) -> None:
    first = stage.join("a")
    assert (first.member_epoch, len(first.assignment.topic_partitions)) == (2, 1)
    assert stage.beat("a", 2).assignment is None
    assert stage.join("b").member_epoch == 3
    assert stage.describe().group_state == "Reconciling"
    stage.beat("b", 3)
    stage.beat("a", 2)
    kept = stage.beat("a", 2, owned={"t": [0, 1]})
    stage.describe()
    full = stage.beat("a", 2, owned={"t": [0, 1]}, names=["t"], timeout=60_000)
    assert full.assignment is not None
    (topic,) = full.assignment.topic_partitions
    assert kept.assignment is None
    done = stage.beat("a", 2, owned={"t": topic.partitions})
    assert done.member_epoch == 3
    given = stage.beat("b", 3)
    assert len(given.assignment.topic_partitions) == 1
    assert stage.describe().group_state == "Stable"
    stage.beat("b", 3, owned={"t": [0]})
    stage.beat("a", -1)
    assert stage.describe().group_state == "Assigning"
    stage.beat("b", 3)
    stage.beat("b", -1)
    assert stage.describe().group_state == "Empty"
    stage.beat("b", 4)
    stage.beat("b", -1)


def test_four_members(stage: Stage) -> None:
    for member in "abcd":
        stage.join(member, names=["four"])
    for _ in range(2):
        for member in "abcd":
            described = {each.member_id: each for each in stage.describe().members}[member]
            target = [
                part
                for topic in described.target_assignment.topic_partitions
                for part in topic.partitions
            ]
            had = [
                part for topic in described.assignment.topic_partitions for part in topic.partitions
            ]
            owned = [part for part in had if part in target]
            stage.beat(member, described.member_epoch, owned={"four": owned} if owned else {})
    assert stage.describe().group_state == "Stable"


def test_epochs_fence(stage: Stage) -> None:
    stage.join("a")
    stage.join("a", names=["t", "u"])
    for epoch in (0, 1, 2, 3, 4):
        for owned in (None, {}, {"t": [0]}, {"t": [0, 1], "u": [0]}, {"four": [0]}):
            if epoch or owned == {}:
                fields = {**JOIN, "names": ["t", "u"]} if not epoch else {}
                stage.beat("a", epoch, **{**fields, "owned": owned})
    stage.beat("stranger", 3)
    stage.beat("a", 3, instance="i")


def test_static_members(stage: Stage) -> None:
    stage.join("a1", instance="a")
    stage.join("b1", instance="b")
    stage.beat("a1", 2, owned={"t": [0, 1]}, instance="a")
    assert stage.join("a2", instance="a").error_code == ErrorCode.UNRELEASED_INSTANCE_ID
    assert stage.join("a1", instance="a").error_code == ErrorCode.UNRELEASED_INSTANCE_ID
    assert stage.beat("a2", 2, instance="a").error_code == ErrorCode.FENCED_INSTANCE_ID
    assert stage.beat("a2", -1, instance="a").error_code == ErrorCode.FENCED_INSTANCE_ID
    assert stage.beat("a2", -2, instance="a").error_code == ErrorCode.FENCED_INSTANCE_ID
    stage.beat("a1", -2, instance="a")
    stage.describe()
    stage.beat("a1", 2, instance="a")
    stage.beat("b1", 3, instance="b")
    back = stage.join("a2", instance="a")
    assert back.member_epoch == 3
    assert stage.describe().group_epoch == 3
    assert stage.beat("a1", 2, instance="a").error_code == ErrorCode.FENCED_INSTANCE_ID
    assert stage.beat("a1", 2).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    stage.beat("b1", 3, instance="b")
    stage.beat("a2", -2, instance="a")
    stage.join("a2", instance="a", names=["u"])
    stage.beat("a2", -1, instance="a")
    stage.beat("b1", 3, instance="b", owned={"t": [0]})
    stage.describe()


def test_subscriptions_change(stage: Stage) -> None:
    stage.join("a", names=["t", "u", "missing"])
    stage.beat("a", 2, names=["u"])
    stage.describe()
    stage.beat("a", 2, owned={"u": [0]})
    stage.describe()
    stage.beat("a", 3, names=[], owned={"u": [0]})
    stage.beat("a", 3, owned={})
    stage.beat("a", 4, names=["t"], rack="r", assignor="range", owned={})
    stage.describe()
    stage.beat("a", 5, timeout=1_000)
    stage.beat("a", 5, assignor="uniform")
    stage.describe()
    empty = stage.join("b", names=[])
    stage.beat("b", empty.member_epoch)
    stage.describe()


def test_expressions(stage: Stage) -> None:
    first = stage.join("a", names=None, regex="u|v.*")
    assert first.member_epoch == 1
    _until_epoch(stage, 2)
    second = stage.beat("a", 1)
    assert len(second.assignment.topic_partitions) == 1
    assert stage.join("b", names=None, regex="u|v.*").member_epoch == 3
    # Another one waits for its turn: all are resolved together, at most every ten seconds.
    stage.join("c", names=["t"], regex="t")
    stage.beat("a", 2, regex="", names=["t"], owned={"u": [0]})
    stage.describe()
    stage.beat("b", -1)
    stage.beat("c", -1)
    stage.beat("a", -1)
    stage.describe()


def test_expressions_find_new_topics(stage: Stage) -> None:
    """Ten seconds after the last look, as both do."""
    assert stage.join("a", names=None, regex="fresh-.*").member_epoch == 1
    for side in stage.sides:
        prepare(side, [("fresh-1", 2)])
    found = stage.ask_until(
        "x",
        ApiKey.CONSUMER_GROUP_HEARTBEAT,
        1,
        lambda side: ConsumerGroupHeartbeatRequest(
            group_id=stage.group,
            member_id="a",
            member_epoch=1,
            rebalance_timeout_ms=60_000,
            subscribed_topic_regex="fresh-.*",
            topic_partitions=[],
        ),
        settled=lambda answer: bool(answer.assignment.topic_partitions),
    )
    assert found.member_epoch == 2
    assert stage.describe().group_state == "Stable"


def test_new_partitions(stage: Stage) -> None:
    topic = "grows"
    stage.join("a", names=[topic])
    request = CreatePartitionsRequest(
        topics=[
            CreatePartitionsRequest.CreatePartitionsTopic(name=topic, count=3, assignments=None)
        ],
        timeout_ms=30_000,
    )
    stage.ask("x", ApiKey.CREATE_PARTITIONS, 3, lambda side: request)
    stage.ask_until(
        "x",
        ApiKey.CONSUMER_GROUP_HEARTBEAT,
        1,
        lambda side: ConsumerGroupHeartbeatRequest(
            group_id=stage.group,
            member_id="a",
            member_epoch=2,
            rebalance_timeout_ms=60_000,
            subscribed_topic_names=[topic],
            topic_partitions=[],
        ),
        settled=lambda answer: answer.member_epoch == 3,
    )
    assert stage.describe().group_state == "Stable"


def test_who_gives_up_too_late_is_removed(stage: Stage) -> None:
    stage.join("a", timeout=300)
    stage.join("b")
    stage.beat("a", 2, owned={"t": [0, 1]})
    request = ConsumerGroupDescribeRequest(group_ids=[stage.group])
    answer = stage.ask_until(
        "x",
        ApiKey.CONSUMER_GROUP_DESCRIBE,
        1,
        lambda side: request,
        settled=lambda answer: len(answer.groups[0].members) == 1,
    )
    assert answer.groups[0].group_epoch == 4
    assert stage.beat("a", 2).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_offsets(stage: Stage) -> None:
    assert stage.commit("", -1, 0) is ErrorCode.NONE, "by hand, for a group that nobody joined"
    stage.join("a")
    stage.join("a", names=["t", "u"])
    for version in (8, 9, 10):
        for member, epoch in (
            ("a", 3),
            ("a", 2),
            ("a", 1),
            ("a", 4),
            ("a", -1),
            ("", -1),
            ("b", 3),
        ):
            for partition in (0, 1):
                stage.commit(member, epoch, partition, version)
    stage.join("b")
    stage.beat("a", 3, owned={"t": [0, 1], "u": [0]})
    for epoch in (2, 3):
        for partition in (0, 1):
            stage.commit("a", epoch, partition)
            stage.commit("b", epoch + 1, partition)
    for member, epoch in (("a", 3), ("a", 2), ("a", 4), (None, -1), ("x", 3), ("", -1)):
        stage.fetch(member, epoch)
    deletion = OffsetDeleteRequest(
        group_id=stage.group,
        topics=[
            OffsetDeleteRequest.OffsetDeleteRequestTopic(
                name=name,
                partitions=[OffsetDeleteRequest.OffsetDeleteRequestPartition(partition_index=0)],
            )
            for name in ("t", "four")
        ],
    )
    stage.ask("x", ApiKey.OFFSET_DELETE, 0, lambda side: deletion)
    delete = DeleteGroupsRequest(groups_names=[stage.group])
    refused = stage.ask("x", ApiKey.DELETE_GROUPS, 2, lambda side: delete)
    assert refused.results[0].error_code == ErrorCode.NON_EMPTY_GROUP
    _check_listed(stage, "consumer", "Reconciling")
    stage.beat("a", -1)
    stage.beat("b", -1)
    _check_listed(stage, "consumer", "Empty")
    assert stage.commit("", -1, 0) is ErrorCode.NONE
    done = stage.ask("x", ApiKey.DELETE_GROUPS, 2, lambda side: delete)
    assert done.results[0].error_code == ErrorCode.NONE
    stage.describe()
    stage.fetch(None, -1)


def test_what_is_written(stage: Stage) -> None:
    stage.commit("", -1, 0)
    stage.join("a")
    stage.beat("a", 2, rack="r")
    stage.join("b", assignor="range")
    stage.beat("a", 2)
    stage.beat("a", 2, owned={"t": [0]})
    stage.beat("a", 2, owned={})
    stage.beat("b", 3)
    stage.join("s1", instance="s", names=["u"])
    stage.beat("s1", -2, instance="s")
    stage.join("s2", instance="s", names=["u"])
    stage.join("x", names=None, regex="fou.*")
    _until_epoch(stage, 5)
    stage.beat("x", 4)
    stage.beat("x", -1)
    stage.beat("b", -1)
    stage.beat("a", 3, names=[])
    stage.beat("a", -1)
    stage.beat("s2", -1, instance="s")
    delete = DeleteGroupsRequest(groups_names=[stage.group])
    stage.ask("x", ApiKey.DELETE_GROUPS, 2, lambda side: delete)
    ours, kafkas = stage.written()
    assert len(ours) > 40
    assert [each[0] for each in ours] == [each[0] for each in kafkas]
    # Kafka goes through members in the order of its hash tables.
    assert sorted(ours, key=repr) == sorted(kafkas, key=repr)


def test_configs_of_the_group(stage: Stage) -> None:
    stage.join("a")
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource(
        resource_type=GROUP_CONFIG,
        resource_name=stage.group,
        configs=[
            IncrementalAlterConfigsRequest.AlterableConfig(name=name, value=value)
            for name, value in (
                ("consumer.heartbeat.interval.ms", "7000"),
                ("consumer.session.timeout.ms", "50000"),
                ("consumer.assignment.interval.ms", "15000"),
            )
        ],
    )
    request = IncrementalAlterConfigsRequest(resources=[resource])
    stage.ask("x", ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, lambda side: request)
    stage.ask_until(
        "x",
        ApiKey.CONSUMER_GROUP_HEARTBEAT,
        1,
        lambda side: ConsumerGroupHeartbeatRequest(
            group_id=stage.group, member_id="a", member_epoch=2
        ),
        settled=lambda answer: answer.heartbeat_interval_ms == 7_000,
    )
    # Assignments are made no faster than that now.
    assert stage.join("b").member_epoch == 2
    assert stage.describe().group_state == "Assigning"
    stage.beat("a", 2, names=["u"], owned={"t": [0, 1]})
    stage.beat("a", 2, owned={})
    stage.beat("a", -1)
    stage.beat("b", 2)
    stage.describe()


class Speaker:
    """A member that mostly does what members do, and sometimes what they should not."""

    def __init__(self, member: str, instance: str | None, draw: random.Random) -> None:
        self.member = member
        self.instance = instance
        self._draw = draw
        self.epoch = self._previous = 0
        self.owned: dict[str, list[int]] = {}

    def speak(self, stage: Stage) -> None:
        draw = self._draw
        fields: dict[str, Any] = {}
        epoch = self.epoch
        turn = draw.random()
        if epoch == 0 or turn < 0.08:
            epoch = 0
            fields = {**JOIN, "names": draw.choice(SUBSCRIPTIONS)}
        elif turn < 0.16:
            epoch = draw.choice([-1, -1, -2])
        else:
            if draw.random() < 0.15:
                epoch = draw.choice([self._previous, epoch + 1, 1, 2])
            fields["owned"] = draw.choice([self.owned, self.owned, None, None, {}, ALL])
            if draw.random() < 0.15:
                fields["names"] = draw.choice(SUBSCRIPTIONS)
            if draw.random() < 0.1:
                fields |= {"timeout": 60_000, "names": ["four"]}
        if epoch >= 0 and draw.random() < 0.1:
            fields["assignor"] = draw.choice(["range", "uniform"])
        instance = self.instance if draw.random() < 0.95 else draw.choice([None, "s"])
        self._hear(epoch, stage.beat(self.member, epoch, instance=instance, **fields))

    def _hear(self, epoch: int, answer: Any) -> None:
        if answer.error_code == ErrorCode.UNRELEASED_INSTANCE_ID:
            return
        if answer.error_code or epoch < 0:
            self.epoch, self.owned = 0, {}
            return
        if answer.member_epoch != self.epoch:
            self._previous, self.epoch = self.epoch, answer.member_epoch
        if answer.assignment is not None:
            topics = answer.assignment.topic_partitions
            self.owned = {"four": topics[0].partitions} if topics else {}


SUBSCRIPTIONS = [["four"], ["four"], ["four", "missing"]]
ALL = {"four": [0, 1, 2, 3]}


@pytest.mark.parametrize("seed", mostly_long(range(8), "more seeds", keep=2))
def test_random_conversations(stage: Stage, seed: int) -> None:
    draw = random.Random(seed)
    speakers = [Speaker(member, None, draw) for member in "abc"]
    speakers += [Speaker(member, "s", draw) for member in ("s1", "s2")]
    for _ in range(80):
        draw.choice(speakers).speak(stage)
        stage.describe()


def _until_epoch(stage: Stage, epoch: int) -> None:
    request = ConsumerGroupDescribeRequest(group_ids=[stage.group])
    stage.ask_until(
        "x",
        ApiKey.CONSUMER_GROUP_DESCRIBE,
        1,
        lambda side: request,
        settled=lambda answer: answer.groups[0].group_epoch == epoch,
    )


def _check_listed(stage: Stage, kind: str, state: str) -> None:
    for side in stage.sides:
        request = ListGroupsRequest(states_filter=[state], types_filter=[kind])
        listed = side.connection("x").call(ApiKey.LIST_GROUPS, 5, request).groups
        (found,) = [each for each in listed if each.group_id == stage.group]
        assert (found.group_type, found.group_state) == (kind, state)
        assert found.protocol_type == "consumer"
