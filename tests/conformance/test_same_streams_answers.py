"""The same life of a streams group on Moldau and on Apache Kafka: the answers agree, step by step.

Each step is sent to both brokers. What both write about it is compared as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from moldau.broker.coordinator.hashing import partition_for
from moldau.wire.apis import ApiKey
from moldau.wire.errors import ErrorCode
from moldau.wire.message import Message
from moldau.wire.messages import (
    ConsumerGroupHeartbeatRequest,
    DeleteGroupsRequest,
    DescribeConfigsRequest,
    DescribeGroupsRequest,
    FetchRequest,
    IncrementalAlterConfigsRequest,
    JoinGroupRequest,
    ListGroupsRequest,
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetFetchRequest,
    StreamsGroupDescribeRequest,
)
from moldau.wire.messages import StreamsGroupHeartbeatRequest as Heartbeat
from moldau.wire.record_values import decode_coordinator_record
from moldau.wire.records import decode_batches
from support.both import IGNORED, Both, Side, prepare
from support.java import KafkaTools
from support.processes import BrokerProcess, apache_kafka, kafka_missing, moldau

pytestmark = pytest.mark.skipif(kafka_missing() is not None, reason=str(kafka_missing()))

OFFSETS_PARTITION_COUNT = 50
GROUP_CONFIG = 32
SETTINGS = {
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.streams.assignment.interval.ms": "0",
}
# Hashes of metadata cover topic ids, which each broker draws.
NOT_COMPARED = IGNORED | {"assignment_timestamp", "metadata_hash", "status_detail"}

Tasks = Mapping[str, list[int]]


def subtopology(
    key: str = "0",
    *,
    sources: tuple[str, ...] = (),
    repartition: tuple[str, ...] = (),
    sinks: tuple[str, ...] = (),
    changelogs: tuple[str, ...] = (),
    copartitioned: bool = False,
) -> Heartbeat.Subtopology:
    groups = []
    if copartitioned:
        groups.append(
            Heartbeat.CopartitionGroup(
                source_topics=list(range(len(sources))),
                repartition_source_topics=list(range(len(repartition))),
            )
        )
    return Heartbeat.Subtopology(
        subtopology_id=key,
        source_topics=list(sources),
        repartition_sink_topics=list(sinks),
        repartition_source_topics=[Heartbeat.TopicInfo(name=name) for name in repartition],
        state_changelog_topics=[
            Heartbeat.TopicInfo(
                name=name,
                topic_configs=[Heartbeat.KeyValue(key="cleanup.policy", value="compact")],
            )
            for name in changelogs
        ],
        copartition_groups=groups,
    )


def topology(*subtopologies: Heartbeat.Subtopology, epoch: int = 0) -> Heartbeat.Topology:
    return Heartbeat.Topology(epoch=epoch, subtopologies=list(subtopologies))


PLAIN = topology(subtopology(sources=("four",)))


def _task_ids(tasks: Tasks) -> list[Heartbeat.TaskIds]:
    return [
        Heartbeat.TaskIds(subtopology_id=key, partitions=list(partitions))
        for key, partitions in tasks.items()
    ]


class Stage(Both):
    def __init__(self, ours: Side, kafkas: Side) -> None:
        super().__init__(ours, kafkas)
        self._held: dict[tuple[str, str], tuple[int, Tasks, Tasks]] = {}
        self._barriers = 0

    def request(self, group: str, member: str, epoch: int, **fields: Any) -> Any:
        return self.ask(
            member or "nobody",
            ApiKey.STREAMS_GROUP_HEARTBEAT,
            0,
            lambda side: Heartbeat(group_id=group, member_id=member, member_epoch=epoch, **fields),
        )

    def joining(self, **fields: Any) -> dict[str, Any]:
        return {
            "topology": PLAIN,
            "rebalance_timeout_ms": 60_000,
            "active_tasks": [],
            "standby_tasks": [],
            "warmup_tasks": [],
        } | fields

    def join(self, group: str, member: str, **fields: Any) -> Any:
        fields = {"process_id": f"process-{member}"} | fields
        return self._keep(group, member, self.request(group, member, 0, **self.joining(**fields)))

    def beat(self, group: str, member: str, *, obeying: bool = True, **fields: Any) -> Any:
        """A heartbeat of a member that has what it was given last, or says nothing of it."""
        epoch, active, standby = self._held[group, member]
        if obeying:
            fields["active_tasks"] = _task_ids(active)
            fields["standby_tasks"] = _task_ids(standby)
            fields["warmup_tasks"] = []
        return self._keep(group, member, self.request(group, member, epoch, **fields))

    def _keep(self, group: str, member: str, answer: Any) -> Any:
        if answer.error_code == ErrorCode.NONE:
            _, active, standby = self._held.get((group, member), (0, {}, {}))
            if answer.active_tasks is not None:
                active = {each.subtopology_id: each.partitions for each in answer.active_tasks}
                standby = {each.subtopology_id: each.partitions for each in answer.standby_tasks}
            self._held[group, member] = (answer.member_epoch, active, standby)
        return answer

    def active(self, group: str, member: str) -> Tasks:
        return self._held[group, member][1]

    def settle(self, group: str, *members: str) -> None:
        for _ in range(4):
            for member in members:
                self.beat(group, member)
        assert self.describe(group) == "Stable"

    def beat_until(self, group: str, member: str, settled: Callable[[Any], bool]) -> Any:
        epoch, _, _ = self._held[group, member]
        answer = self.ask_until(
            member,
            ApiKey.STREAMS_GROUP_HEARTBEAT,
            0,
            lambda side: Heartbeat(group_id=group, member_id=member, member_epoch=epoch),
            settled=settled,
        )
        return self._keep(group, member, answer)

    def describe(self, *groups: str) -> str:
        request = StreamsGroupDescribeRequest(
            group_ids=list(groups), include_authorized_operations=True
        )
        answer = self.ask("observer", ApiKey.STREAMS_GROUP_DESCRIBE, 0, lambda side: request)
        return str(answer.groups[0].group_state)

    def listed(self, group: str, **fields: Any) -> list[Any]:
        """What the listing says of one group; others come and go."""
        found = []
        for side in self.sides:
            answer = side.connection("observer").call(
                ApiKey.LIST_GROUPS, 5, ListGroupsRequest(**fields)
            )
            found.append([side.comparable(e) for e in answer.groups if e.group_id == group])
        assert found[0] == found[1]
        return found[0]

    def configure(self, group: str, **configs: str) -> None:
        self._alter(group, {f"streams.{key.replace('_', '.')}": configs[key] for key in configs})
        # Changes are taken in one after the other: once a later one shows, this one is in force.
        self._barriers += 1
        interval = str(5_000 + self._barriers)
        self._alter("barrier", {"streams.heartbeat.interval.ms": interval})
        resource = DescribeConfigsRequest.DescribeConfigsResource(
            resource_type=GROUP_CONFIG,
            resource_name="barrier",
            configuration_keys=["streams.heartbeat.interval.ms"],
        )
        self.ask_until(
            "observer",
            ApiKey.DESCRIBE_CONFIGS,
            4,
            lambda side: DescribeConfigsRequest(resources=[resource]),
            settled=lambda answer: answer.results[0].configs[0].value == interval,
        )

    def _alter(self, group: str, configs: Mapping[str, str]) -> None:
        resource = IncrementalAlterConfigsRequest.AlterConfigsResource(
            resource_type=GROUP_CONFIG,
            resource_name=group,
            configs=[
                IncrementalAlterConfigsRequest.AlterableConfig(name=name, value=value)
                for name, value in configs.items()
            ],
        )
        request = IncrementalAlterConfigsRequest(resources=[resource])
        self.ask("observer", ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, lambda side: request)

    def commit(self, group: str, member: str, epoch: int, partition: int, **fields: Any) -> Any:
        def make(side: Side) -> Message:
            return OffsetCommitRequest(
                group_id=group,
                member_id=member,
                generation_id_or_member_epoch=epoch,
                topics=[
                    OffsetCommitRequest.OffsetCommitRequestTopic(
                        name=fields.get("topic", "four"),
                        partitions=[
                            OffsetCommitRequest.OffsetCommitRequestPartition(
                                partition_index=partition, committed_offset=7
                            )
                        ],
                    )
                ],
            )

        answer = self.ask("observer", ApiKey.OFFSET_COMMIT, fields.get("version", 9), make)
        return ErrorCode(answer.topics[0].partitions[0].error_code)

    def fetch(self, group: str, member: str | None, epoch: int) -> Any:
        asked = OffsetFetchRequest.OffsetFetchRequestGroup(
            group_id=group, member_id=member, member_epoch=epoch, topics=None
        )
        request = OffsetFetchRequest(groups=[asked])
        return self.ask("observer", ApiKey.OFFSET_FETCH, 9, lambda side: request).groups[0]

    def delete(self, group: str) -> ErrorCode:
        request = DeleteGroupsRequest(groups_names=[group])
        answer = self.ask("observer", ApiKey.DELETE_GROUPS, 2, lambda side: request)
        return ErrorCode(answer.results[0].error_code)

    def compare_records(self, group: str) -> list[str]:
        """What both brokers wrote about a group; the kinds of records."""
        ours, kafkas = (_records(side, group) for side in self.sides)
        assert ours == kafkas
        return [kind for kind, *_ in ours]


def _records(side: Side, group: str) -> list[tuple[Any, ...]]:
    fetch = FetchRequest(
        max_wait_ms=0,
        max_bytes=10_000_000,
        topics=[
            FetchRequest.FetchTopic(
                topic="__consumer_offsets",
                partitions=[
                    FetchRequest.FetchPartition(
                        partition=partition_for(group, OFFSETS_PARTITION_COUNT),
                        partition_max_bytes=10_000_000,
                    )
                ],
            )
        ],
    )
    answer = side.connection("observer").call(ApiKey.FETCH, 12, fetch)
    found = []
    for _, records in decode_batches(answer.responses[0].partitions[0].records):
        for record in records:
            assert record.key is not None
            key, value = decode_coordinator_record("group", record.key, record.value)
            if getattr(key, "group_id", None) == group:
                kind = ("" if record.value is not None else "-") + type(key).__name__
                found.append((kind, side.comparable(key), side.comparable(value)))
    return found


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[BrokerProcess, ...]]:
    ours, kafkas = tmp_path_factory.mktemp("moldau"), tmp_path_factory.mktemp("kafka")
    overrides = [f"{key}={value}" for key, value in SETTINGS.items()]
    with moldau(ours, overrides) as first, apache_kafka(kafkas, SETTINGS) as second:
        yield first, second


@pytest.fixture(scope="module")
def stage(brokers: tuple[BrokerProcess, BrokerProcess]) -> Iterator[Stage]:
    sides = [Side(broker.port, NOT_COMPARED) for broker in brokers]
    for side in sides:
        prepare(side, [("four", 4), ("two", 2), ("three", 3)])
    yield Stage(*sides)
    for side in sides:
        side.close()


def test_members_come_and_go(stage: Stage) -> None:
    assert stage.join("life", "a").member_epoch == 2
    assert stage.describe("life") == "Stable"
    stage.beat("life", "a", obeying=False)
    stage.join("life", "b")
    assert stage.describe("life") == "Reconciling"
    stage.beat("life", "a", obeying=False)
    stage.beat("life", "b")
    stage.beat("life", "a")
    stage.beat("life", "b")
    assert stage.describe("life") == "Stable"
    stage.join("life", "c", rack_id="r", client_tags=[Heartbeat.KeyValue(key="k", value="v")])
    stage.settle("life", "a", "b", "c")
    stage.join("life", "c")
    stage.request("life", "b", -1)
    stage.settle("life", "a", "c")
    stage.beat("life", "a", rack_id="other")
    stage.settle("life", "a", "c")
    for member in ("a", "c"):
        stage.request("life", member, -1)
    assert stage.describe("life") == "Empty"
    assert stage.join("life", "d").error_code == ErrorCode.NONE
    kinds = stage.compare_records("life")
    assert "StreamsGroupTopologyKey" in kinds
    assert "-StreamsGroupMemberMetadataKey" in kinds


def test_epochs(stage: Stage) -> None:
    stage.join("epochs", "a")
    stage.join("epochs", "b")
    stage.settle("epochs", "a", "b")
    held = _task_ids(stage.active("epochs", "a"))
    rest: dict[str, Any] = {"standby_tasks": [], "warmup_tasks": []}
    every = _task_ids({"0": [0, 1, 2, 3]})
    for epoch in (1, 2, 3, 4, 9):
        stage.request("epochs", "a", epoch)
        stage.request("epochs", "a", epoch, active_tasks=held, **rest)
        stage.request("epochs", "a", epoch, active_tasks=every, **rest)
    stage.request("epochs", "stranger", 3)
    stage.request("epochs", "stranger", -1)
    stage.request("no such group", "a", 3)
    stage.request("no such group", "a", -1)
    stage.request("epochs", "a", 3, active_tasks=_task_ids({"1": [0]}), **rest)
    stage.request("epochs", "a", 3, active_tasks=_task_ids({"0": [4]}), **rest)
    stage.compare_records("epochs")


BROKEN: dict[str, dict[str, Any]] = {
    "no rebalance timeout": {"rebalance_timeout_ms": -1},
    "no topology": {"topology": None},
    "tasks at join": {"active_tasks": _task_ids({"0": [0]})},
    "null tasks at join": {"active_tasks": None},
    "warm-up tasks": {"warmup_tasks": _task_ids({"0": [0]})},
    "task offsets": {"task_offsets": []},
    "task end offsets": {"task_end_offsets": []},
    "instance id": {"instance_id": "i"},
    "empty instance id": {"instance_id": ""},
    "empty rack": {"rack_id": ""},
    "loop": {"topology": topology(subtopology(repartition=("r",), sinks=("r",)))},
    "no sink": {"topology": topology(subtopology(sources=("four",), repartition=("r",)))},
    "no source": {"topology": topology(subtopology(changelogs=("c",)))},
    "internal topic": {"topology": topology(subtopology(sources=("__consumer_offsets",)))},
    "name": {"topology": topology(subtopology(sources=("four",), changelogs=("a b", "c d")))},
}


@pytest.mark.parametrize("fields", BROKEN.values(), ids=BROKEN)
def test_joins_that_are_refused(stage: Stage, fields: dict[str, Any]) -> None:
    answer = stage.request("refused", "a", 0, **stage.joining(**fields))
    assert answer.error_code != ErrorCode.NONE
    stage.describe("refused")


@pytest.mark.parametrize("epoch", [-3, -2, -1, 0, 1])
def test_requests_without_substance(stage: Stage, epoch: int) -> None:
    stage.request("refused", "a", epoch)
    stage.request("", "a", epoch)
    stage.request("refused", "", epoch)
    stage.request("refused", "a", epoch, active_tasks=[])
    stage.request("refused", "a", epoch, **stage.joining())


def test_source_topics_that_are_missing(stage: Stage) -> None:
    missing = topology(subtopology(sources=("missing", "four", "absent")))
    stage.join("waiting", "a", topology=missing)
    assert stage.describe("waiting") == "NotReady"
    assert [each.status_code for each in stage.beat("waiting", "a").status] == [1]
    stage.compare_records("waiting")


def test_topics_that_do_not_match(stage: Stage) -> None:
    unlike = topology(subtopology(sources=("four", "three"), copartitioned=True))
    answer = stage.join("unlike", "a", topology=unlike)
    assert [each.status_code for each in answer.status] == [2]
    wrong = topology(subtopology(sources=("four",), changelogs=("two",)))
    answer = stage.join("wrong", "a", topology=wrong)
    assert [each.status_code for each in answer.status] == [2]
    stage.describe("unlike", "wrong")


def test_internal_topics_are_made(stage: Stage) -> None:
    needing = topology(
        subtopology("0", sources=("two",), sinks=("made-again",)),
        subtopology(
            "1",
            sources=("three",),
            repartition=("made-again",),
            changelogs=("made-log",),
            copartitioned=True,
        ),
    )
    answer = stage.join("making", "a", topology=needing)
    assert [each.status_code for each in answer.status] == [3]
    answer = stage.beat_until("making", "a", lambda each: not each.status)
    assert {each.subtopology_id: each.partitions for each in answer.active_tasks} == {
        "0": [0, 1],
        "1": [0, 1, 2],
    }
    stage.configure("making", num_standby_replicas="1")
    stage.join("making", "b", topology=needing)
    stage.settle("making", "a", "b")
    stage.configure("making", num_standby_replicas="2")
    stage.join("making", "c", topology=needing)
    stage.settle("making", "a", "b", "c")
    stage.request("making", "a", -1)
    stage.settle("making", "b", "c")


def test_topics_that_cannot_be_made(stage: Stage) -> None:
    one = subtopology(sources=("two",), changelogs=("impossible",))
    one.state_changelog_topics[0].replication_factor = 7
    answer = stage.join("impossible", "a", topology=topology(one))
    assert [each.status_code for each in answer.status] == [3]
    stage.beat_until("impossible", "a", lambda each: "failed" in each.status[0].status_detail)


def test_older_and_newer_topologies(stage: Stage) -> None:
    one = subtopology(sources=("four",))
    stage.join("versions", "a", topology=topology(one, epoch=3))
    stage.join("versions", "b", topology=topology(one, epoch=2))
    stage.beat("versions", "b")
    stage.join("versions", "c", topology=topology(one, epoch=4))
    stage.join("versions", "c", topology=topology(subtopology(sources=("two",)), epoch=3))
    stage.settle("versions", "a", "b")
    stage.compare_records("versions")


def test_a_shutdown_reaches_everybody(stage: Stage) -> None:
    stage.join("stopping", "a")
    stage.join("stopping", "b")
    stage.beat("stopping", "a", shutdown_application=True)
    assert [each.status_code for each in stage.beat("stopping", "b").status] == [4]
    stage.request("stopping", "a", -1)
    stage.beat("stopping", "b")
    stage.request("stopping", "b", -1, shutdown_application=True)
    assert stage.join("stopping", "c").status == []


def test_endpoints(stage: Stage) -> None:
    stage.join("asked", "a", user_endpoint=Heartbeat.Endpoint(host="h", port=1))
    stage.beat("asked", "a", endpoint_information_epoch=0)
    stage.beat("asked", "a", endpoint_information_epoch=-1)
    stage.join("asked", "b", user_endpoint=Heartbeat.Endpoint(host="i", port=65535))
    stage.join("asked", "c")
    for epoch in (-1, 0, 1, 2, 3, 4):
        for member in ("a", "b", "c"):
            stage.beat("asked", member, endpoint_information_epoch=epoch)
    stage.describe("asked")


def test_the_first_members_wait_for_each_other(stage: Stage) -> None:
    stage.configure("slow", initial_rebalance_delay_ms="3000")
    assert [each.status_code for each in stage.join("slow", "a").status] == [5]
    assert [each.status_code for each in stage.join("slow", "b").status] == [5]
    assert stage.describe("slow") == "Assigning"
    stage.beat_until("slow", "a", lambda each: not each.status)
    stage.settle("slow", "a", "b")
    stage.compare_records("slow")


def test_assignments_keep_their_distance(stage: Stage) -> None:
    stage.configure("distant", assignment_interval_ms="15000")
    stage.join("distant", "a")
    assert [each.status_code for each in stage.join("distant", "b").status] == [5]
    stage.beat("distant", "a")
    stage.describe("distant")
    stage.configure("distant", assignment_interval_ms="0")
    stage.beat_until("distant", "a", lambda each: not each.status)
    stage.settle("distant", "a", "b")


def test_offsets(stage: Stage) -> None:
    stage.join("offsets", "a")
    stage.join("offsets", "b")
    stage.settle("offsets", "a", "b")
    kept = stage.active("offsets", "a")["0"][0]
    moved = stage.active("offsets", "b")["0"][0]
    for epoch in (-1, 0, 1, 2, 3, 4):
        for partition in (kept, moved):
            stage.commit("offsets", "a", epoch, partition)
            stage.commit("offsets", "b", epoch, partition)
        stage.commit("offsets", "", epoch, kept)
        stage.commit("offsets", "stranger", epoch, kept)
        stage.commit("offsets", "a", epoch, 0, topic="two")
        stage.fetch("offsets", "a", epoch)
        stage.fetch("offsets", "stranger", epoch)
    stage.fetch("offsets", None, -1)
    stage.commit("offsets", "a", 3, kept, version=8)
    delete = OffsetDeleteRequest(
        group_id="offsets",
        topics=[
            OffsetDeleteRequest.OffsetDeleteRequestTopic(
                name=name,
                partitions=[OffsetDeleteRequest.OffsetDeleteRequestPartition(partition_index=0)],
            )
            for name in ("four", "two")
        ],
    )
    stage.ask("observer", ApiKey.OFFSET_DELETE, 0, lambda side: delete)
    assert stage.delete("offsets") is ErrorCode.NON_EMPTY_GROUP
    stage.request("offsets", "a", -1)
    stage.request("offsets", "b", -1)
    stage.commit("offsets", "", -1, 3)
    stage.commit("offsets", "a", 3, 3)
    assert stage.delete("offsets") is ErrorCode.NONE
    stage.describe("offsets")
    stage.compare_records("offsets")


def test_groups_of_other_kinds(stage: Stage) -> None:
    def classic(group: str) -> Message:
        return JoinGroupRequest(
            group_id=group,
            session_timeout_ms=10_000,
            rebalance_timeout_ms=60_000,
            protocol_type="consumer",
            protocols=[JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=b"")],
        )

    def consumer(group: str) -> Message:
        return ConsumerGroupHeartbeatRequest(
            group_id=group,
            member_id="m",
            rebalance_timeout_ms=60_000,
            subscribed_topic_names=["four"],
            topic_partitions=[],
        )

    # Offsets committed by hand make a classic group that is empty.
    stage.commit("taken", "", -1, 0)
    assert stage.listed("taken")[0]["group_type"] == "classic"
    stage.join("taken", "a")
    assert stage.listed("taken", types_filter=["streams"])[0]["group_state"] == "Stable"
    stage.fetch("taken", "a", 2)
    stage.ask("x", ApiKey.JOIN_GROUP, 5, lambda side: classic("taken"))
    stage.ask("x", ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, lambda side: consumer("taken"))
    request = DescribeGroupsRequest(groups=["taken"])
    stage.ask("observer", ApiKey.DESCRIBE_GROUPS, 6, lambda side: request)
    stage.request("taken", "a", -1)
    assert stage.listed("taken", states_filter=["Empty"])[0]["group_type"] == "streams"
    stage.ask("x", ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, lambda side: consumer("taken"))
    # A consumer group keeps streams members out.
    stage.ask("x", ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, lambda side: consumer("consumers"))
    stage.join("consumers", "a")
    stage.request("consumers", "a", 2)
    stage.request("consumers", "a", -1)
    stage.describe("consumers", "taken", "", "nothing")


TOOL = "org.apache.kafka.tools.streams.StreamsGroupCommand"
COMMANDS = (
    ("--list",),
    ("--list", "--state"),
    ("--list", "--state", "NotReady"),
    ("--describe", "--group", "shown", "--state", "--verbose"),
    ("--describe", "--group", "shown", "--members", "--verbose"),
    ("--describe", "--group", "shown", "--offsets", "--verbose"),
    ("--describe", "--group", "shown"),
    ("--describe", "--group", "nothing"),
    ("--reset-offsets", "--group", "shown", "--to-earliest", "--all-input-topics", "--dry-run"),
    ("--delete", "--group", "shown"),
    ("--delete-offsets", "--group", "shown", "--input-topic", "four"),
)


def test_the_command_line_tool(stage: Stage) -> None:
    stage.join("shown", "a")
    stage.join("shown", "b")
    stage.settle("shown", "a", "b")
    stage.commit("shown", "a", 3, stage.active("shown", "a")["0"][0])
    printed = []
    for side in stage.sides:
        with KafkaTools(f"127.0.0.1:{side.port}") as tools:
            printed.append([tools.run(TOOL, *arguments) for arguments in COMMANDS])
    for arguments, ours, kafkas in zip(COMMANDS, *printed, strict=True):
        assert _lines(arguments, ours.output) == _lines(arguments, kafkas.output), arguments
        assert ours.status == kafkas.status, arguments
    stage.request("shown", "a", -1)
    stage.request("shown", "b", -1)


def _lines(arguments: tuple[str, ...], output: str) -> list[str]:
    """Rows in any order, without stack frames and without groups of other tests."""
    return sorted(
        " ".join(line.split())
        for line in output.splitlines()
        if not line.startswith("\t") and ("--list" not in arguments or "shown" in line)
    )
