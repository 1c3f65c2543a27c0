"""The same life of a streams group on Moldau and on Apache Kafka: the answers agree, step by step.

Each step is sent to both brokers. What both write about it is compared as well.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from moldau.wire.apis import ApiKey
from moldau.wire.errors import ErrorCode
from moldau.wire.message import Message
from moldau.wire.messages import (
    ConsumerGroupHeartbeatRequest,
    DescribeGroupsRequest,
    JoinGroupRequest,
    OffsetDeleteRequest,
)
from moldau.wire.messages import StreamsGroupHeartbeatRequest as Heartbeat
from support.both import Side, prepare
from support.java import KafkaTools
from support.processes import BrokerProcess, apache_kafka, kafka_missing, moldau
from support.repeats import mostly_long
from support.streams_stage import (
    NOT_COMPARED,
    SETTINGS,
    StreamsStage,
    subtopology,
    task_ids,
    topology,
)

pytestmark = pytest.mark.skipif(kafka_missing() is not None, reason=str(kafka_missing()))


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[BrokerProcess, ...]]:
    ours, kafkas = tmp_path_factory.mktemp("moldau"), tmp_path_factory.mktemp("kafka")
    overrides = [f"{key}={value}" for key, value in SETTINGS.items()]
    with moldau(ours, overrides) as first, apache_kafka(kafkas, SETTINGS) as second:
        yield first, second


@pytest.fixture(scope="module")
def stage(brokers: tuple[BrokerProcess, BrokerProcess]) -> Iterator[StreamsStage]:
    sides = [Side(broker.port, NOT_COMPARED) for broker in brokers]
    for side in sides:
        prepare(side, [("four", 4), ("two", 2), ("three", 3)])
    yield StreamsStage(*sides)
    for side in sides:
        side.close()


def test_members_come_and_go(stage: StreamsStage) -> None:
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


def test_epochs(stage: StreamsStage) -> None:
    stage.join("epochs", "a")
    stage.join("epochs", "b")
    stage.settle("epochs", "a", "b")
    held = task_ids(stage.active("epochs", "a"))
    rest: dict[str, Any] = {"standby_tasks": [], "warmup_tasks": []}
    every = task_ids({"0": [0, 1, 2, 3]})
    for epoch in (1, 2, 3, 4, 9):
        stage.request("epochs", "a", epoch)
        stage.request("epochs", "a", epoch, active_tasks=held, **rest)
        stage.request("epochs", "a", epoch, active_tasks=every, **rest)
    stage.request("epochs", "stranger", 3)
    stage.request("epochs", "stranger", -1)
    stage.request("no such group", "a", 3)
    stage.request("no such group", "a", -1)
    stage.request("epochs", "a", 3, active_tasks=task_ids({"1": [0]}), **rest)
    stage.request("epochs", "a", 3, active_tasks=task_ids({"0": [4]}), **rest)
    stage.compare_records("epochs")


BROKEN: dict[str, dict[str, Any]] = {
    "no rebalance timeout": {"rebalance_timeout_ms": -1},
    "no topology": {"topology": None},
    "tasks at join": {"active_tasks": task_ids({"0": [0]})},
    "null tasks at join": {"active_tasks": None},
    "warm-up tasks": {"warmup_tasks": task_ids({"0": [0]})},
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
def test_joins_that_are_refused(stage: StreamsStage, fields: dict[str, Any]) -> None:
    answer = stage.request("refused", "a", 0, **stage.joining(**fields))
    assert answer.error_code != ErrorCode.NONE
    stage.describe("refused")


@pytest.mark.parametrize("epoch", [-3, -2, -1, 0, 1])
def test_requests_without_substance(stage: StreamsStage, epoch: int) -> None:
    stage.request("refused", "a", epoch)
    stage.request("", "a", epoch)
    stage.request("refused", "", epoch)
    stage.request("refused", "a", epoch, active_tasks=[])
    stage.request("refused", "a", epoch, **stage.joining())


def test_source_topics_that_are_missing(stage: StreamsStage) -> None:
    missing = topology(subtopology(sources=("missing", "four", "absent")))
    stage.join("waiting", "a", topology=missing)
    assert stage.describe("waiting") == "NotReady"
    assert [each.status_code for each in stage.beat("waiting", "a").status] == [1]
    stage.compare_records("waiting")


def test_topics_that_do_not_match(stage: StreamsStage) -> None:
    unlike = topology(subtopology(sources=("four", "three"), copartitioned=True))
    answer = stage.join("unlike", "a", topology=unlike)
    assert [each.status_code for each in answer.status] == [2]
    wrong = topology(subtopology(sources=("four",), changelogs=("two",)))
    answer = stage.join("wrong", "a", topology=wrong)
    assert [each.status_code for each in answer.status] == [2]
    stage.describe("unlike", "wrong")


def test_internal_topics_are_made(stage: StreamsStage) -> None:
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


def test_topics_that_cannot_be_made(stage: StreamsStage) -> None:
    one = subtopology(sources=("two",), changelogs=("impossible",))
    one.state_changelog_topics[0].replication_factor = 7
    answer = stage.join("impossible", "a", topology=topology(one))
    assert [each.status_code for each in answer.status] == [3]
    stage.beat_until("impossible", "a", lambda each: "failed" in each.status[0].status_detail)


def test_older_and_newer_topologies(stage: StreamsStage) -> None:
    one = subtopology(sources=("four",))
    stage.join("versions", "a", topology=topology(one, epoch=3))
    stage.join("versions", "b", topology=topology(one, epoch=2))
    stage.beat("versions", "b")
    stage.join("versions", "c", topology=topology(one, epoch=4))
    stage.join("versions", "c", topology=topology(subtopology(sources=("two",)), epoch=3))
    stage.settle("versions", "a", "b")
    stage.compare_records("versions")


def test_a_shutdown_reaches_everybody(stage: StreamsStage) -> None:
    stage.join("stopping", "a")
    stage.join("stopping", "b")
    stage.beat("stopping", "a", shutdown_application=True)
    assert [each.status_code for each in stage.beat("stopping", "b").status] == [4]
    stage.request("stopping", "a", -1)
    stage.beat("stopping", "b")
    stage.request("stopping", "b", -1, shutdown_application=True)
    assert stage.join("stopping", "c").status == []


def test_endpoints(stage: StreamsStage) -> None:
    stage.join("asked", "a", user_endpoint=Heartbeat.Endpoint(host="h", port=1))
    stage.beat("asked", "a", endpoint_information_epoch=0)
    stage.beat("asked", "a", endpoint_information_epoch=-1)
    stage.join("asked", "b", user_endpoint=Heartbeat.Endpoint(host="i", port=65535))
    stage.join("asked", "c")
    for epoch in (-1, 0, 1, 2, 3, 4):
        for member in ("a", "b", "c"):
            stage.beat("asked", member, endpoint_information_epoch=epoch)
    stage.describe("asked")


def test_the_first_members_wait_for_each_other(stage: StreamsStage) -> None:
    stage.configure("slow", initial_rebalance_delay_ms="5000")
    assert [each.status_code for each in stage.join("slow", "a").status] == [5]
    assert [each.status_code for each in stage.join("slow", "b").status] == [5]
    assert stage.describe("slow") == "Assigning"
    stage.beat_until("slow", "a", lambda each: not each.status)
    stage.settle("slow", "a", "b")
    stage.compare_records("slow")


def test_assignments_keep_their_distance(stage: StreamsStage) -> None:
    stage.configure("distant", assignment_interval_ms="15000")
    stage.join("distant", "a")
    assert [each.status_code for each in stage.join("distant", "b").status] == [5]
    stage.beat("distant", "a")
    stage.describe("distant")
    stage.configure("distant", assignment_interval_ms="0")
    stage.beat_until("distant", "a", lambda each: not each.status)
    stage.settle("distant", "a", "b")


def test_offsets(stage: StreamsStage) -> None:
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


def test_groups_of_other_kinds(stage: StreamsStage) -> None:
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


def test_the_command_line_tool(stage: StreamsStage) -> None:
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


RANDOM_TOPOLOGY = topology(
    subtopology("0", sources=("four",), sinks=("random-again",)),
    subtopology("1", repartition=("random-again",), changelogs=("random-log",)),
    subtopology("2", sources=("three",), changelogs=("random-log-2",)),
)


@pytest.mark.parametrize("seed", mostly_long([3, 4], "more seeds"))
def test_random_lives(stage: StreamsStage, seed: int) -> None:
    """Members of three processes come, go, obey, keep what they should give up, and lag behind."""
    rng = random.Random(seed)
    group = f"random-{seed}"
    stage.configure(group, num_standby_replicas=str(seed % 3))

    def join(member: str) -> None:
        process = f"process-{ord(member) % 3}"
        endpoint = Heartbeat.Endpoint(host=member, port=1) if member in "ab" else None
        fields = {"process_id": process, "user_endpoint": endpoint}
        stage.join(group, member, topology=RANDOM_TOPOLOGY, **fields)

    join("a")
    stage.beat_until(group, "a", lambda answer: not answer.status)
    members = {"a"}
    for step in range(120):
        member, chance = rng.choice("abcdef"), rng.random()
        if member not in members or chance < 0.05:
            join(member)
            members.add(member)
        elif chance < 0.13 and len(members) > 1:
            stage.request(group, member, -1)
            members.remove(member)
            del stage.held[group, member]
        elif chance < 0.62:
            stage.beat(group, member, endpoint_information_epoch=rng.randint(-1, 4))
        elif chance < 0.75:
            stage.beat(group, member, obeying=False)
        else:
            epoch, active, standby = stage.held[group, member]
            if chance < 0.85:
                active = {key: sorted({*tasks, rng.randrange(3)}) for key, tasks in active.items()}
            else:
                active = {key: tasks[:1] for key, tasks in active.items()}
                epoch = max(1, epoch - rng.randrange(3))
            said = {"active_tasks": task_ids(active), "standby_tasks": task_ids(standby)}
            stage.keep(group, member, stage.request(group, member, epoch, warmup_tasks=[], **said))
        if step % 20 == 19:
            stage.describe(group)
    stage.compare_records(group)
