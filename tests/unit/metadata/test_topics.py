"""Creating, growing and deleting topics: what is made and what is refused, in Kafka's words."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from moldau.broker.machine.topics import check_topic_name
from moldau.broker.metadata.machine.topics import create_partitions, create_topics, delete_topics
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import (
    ConfigRecord,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)

World = Any
ZERO = UUID(int=0)


@pytest.mark.parametrize("name", ["a", "a.b_c-D9", "x" * 249, "...", "-"])
def test_legal_names(name: str) -> None:
    check_topic_name(name)


@pytest.mark.parametrize("name", ["", ".", "..", "x" * 250, "a b", "ä", "a/b", "a\n"])
def test_illegal_names(name: str) -> None:
    with pytest.raises(ApiError) as caught:
        check_topic_name(name)
    assert caught.value.code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert caught.value.message.startswith("Topic name is invalid: ")


def test_a_new_topic_is_one_batch_and_answers_what_it_became(world: World) -> None:
    result = world.create("t", 3, 1, retention__ms="5")
    assert [type(record) for record in world.records] == [
        TopicRecord,
        ConfigRecord,
        PartitionRecord,
        PartitionRecord,
        PartitionRecord,
    ]
    assert (result.error_code, result.error_message) == (0, None)
    assert (result.num_partitions, result.replication_factor) == (3, 1)
    assert [(entry.name, entry.value) for entry in result.configs] == [("retention.ms", "5")]
    topic = world.image.topics_by_name["t"]
    assert topic.id == result.topic_id
    assert topic.id.version == 4
    partition = topic.partitions[2]
    assert (partition.replicas, partition.isr, partition.leader) == ((1,), (1,), 1)
    assert partition.directories == (UUID(int=1000),)
    assert (partition.leader_epoch, partition.partition_epoch) == (0, 0)


def test_the_controllers_defaults_fill_in(new_world: Any) -> None:
    world = new_world(num_partitions=4, default_replication_factor=2)
    world.add_broker(1)
    world.add_broker(2)
    result = world.create("t", -1, -1)
    assert (result.num_partitions, result.replication_factor) == (4, 2)


@pytest.mark.parametrize(
    ("topic", "code", "message"),
    [
        pytest.param({"name": "."}, "INVALID_TOPIC_EXCEPTION", "'.' is not allowed", id="name"),
        pytest.param(
            {"name": "here.now"}, "TOPIC_ALREADY_EXISTS", "'here.now' already exists", id="exists"
        ),
        pytest.param(
            {"name": "here_now"},
            "INVALID_TOPIC_EXCEPTION",
            "Topic 'here_now' collides with existing topic: here.now",
            id="collides",
        ),
        pytest.param(
            {"name": "__cluster_metadata"}, "INVALID_REQUEST", "is prohibited", id="metadata topic"
        ),
        pytest.param({"partitions": 0}, "INVALID_PARTITIONS", "non-positive", id="no partitions"),
        pytest.param({"partitions": -2}, "INVALID_PARTITIONS", "non-positive", id="negative"),
        pytest.param(
            {"factor": 0}, "INVALID_REPLICATION_FACTOR", "must be larger than 0", id="no replicas"
        ),
        pytest.param(
            {"factor": 2},
            "INVALID_REPLICATION_FACTOR",
            "Unable to replicate the partition 2 time(s): The target replication factor of 2 cannot"
            " be reached because only 1 broker(s) are registered",
            id="too few brokers",
        ),
        pytest.param(
            {"partitions": 10_001}, "POLICY_VIOLATION", "Excessively large", id="too many"
        ),
        pytest.param(
            {"configs": {"retention.ms": None}}, "INVALID_CONFIG", "Null value", id="null config"
        ),
        pytest.param(
            {"configs": {"retention.ms": "x"}}, "INVALID_CONFIG", "Invalid value x", id="bad config"
        ),
        pytest.param(
            {"configs": {"retention.ms": "1" * 32768}},
            "INVALID_CONFIG",
            "maximum value size of 32767",
            id="long config",
        ),
        pytest.param(
            {"assignments": {0: [1]}}, "INVALID_REQUEST", "factor was not set to -1", id="both ways"
        ),
        pytest.param(
            {"assignments": {0: [1]}, "factor": -1},
            "INVALID_REQUEST",
            "numPartitions was not set to -1",
            id="both ways, count",
        ),
        pytest.param(
            {"assignments": {0: []}, "factor": -1, "partitions": -1},
            "INVALID_REPLICA_ASSIGNMENT",
            "an empty replica list",
            id="empty assignment",
        ),
        pytest.param(
            {"assignments": {0: [9]}, "factor": -1, "partitions": -1},
            "INVALID_REPLICA_ASSIGNMENT",
            "includes broker 9, but no such broker is registered",
            id="unknown broker",
        ),
        pytest.param(
            {"assignments": {0: [1, 1]}, "factor": -1, "partitions": -1},
            "INVALID_REPLICA_ASSIGNMENT",
            "the broker 1 more than once",
            id="broker twice",
        ),
        pytest.param(
            {"assignments": {1: [1]}, "factor": -1, "partitions": -1},
            "INVALID_REPLICA_ASSIGNMENT",
            "consecutive 0-based",
            id="gap",
        ),
    ],
)
def test_refused_topics(world: World, topic: dict[str, Any], code: str, message: str) -> None:
    world.create("here.now")
    request = CreateTopicsRequest(
        topics=[world.topic(**({"name": "new"} | topic)), world.topic("fine")]
    )
    if code == "POLICY_VIOLATION":
        request.topics.pop()
    response = world.apply(create_topics(world.controller, request))
    refused = response.topics[0]
    assert ErrorCode(refused.error_code).name == code
    assert message in refused.error_message
    assert refused.topic_id == ZERO
    # One topic's error is no other's.
    assert [result.error_code for result in response.topics[1:]] in ([0], [])
    created = {record.name for record in world.records if isinstance(record, TopicRecord)}
    assert created == {result.name for result in response.topics[1:]}


def test_names_given_twice_in_a_request_are_all_refused_once(world: World) -> None:
    request = CreateTopicsRequest(topics=[world.topic("a"), world.topic("a"), world.topic("b")])
    response = world.apply(create_topics(world.controller, request))
    assert [(r.name, r.error_code) for r in response.topics] == [("a", 42), ("b", 0)]
    assert list(world.image.topics_by_name) == ["b"]


def test_a_name_is_free_again_after_deletion(world: World) -> None:
    world.create("a.b")
    delete = DeleteTopicsRequest(topics=[DeleteTopicsRequest.DeleteTopicState(name="a.b")])
    world.apply(delete_topics(world.controller, delete))
    assert world.create("a_b").error_code == 0


def test_validate_only_answers_without_creating(world: World) -> None:
    request = CreateTopicsRequest(topics=[world.topic("t", 2)], validate_only=True)
    response = world.apply(create_topics(world.controller, request))
    assert response.topics[0].num_partitions == 2
    assert world.records == []
    assert world.image.topics_by_name == {}


def test_configs_are_shown_only_to_those_who_may_see_them(world: World) -> None:
    request = CreateTopicsRequest(topics=[world.topic("t")])
    decision = create_topics(world.controller, request, describable=lambda name: False)
    result = world.apply(decision).topics[0]
    assert result.topic_config_error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert result.num_partitions == -1


def test_nothing_is_placed_on_fenced_brokers_alone(new_world: Any) -> None:
    world = new_world()
    world.add_broker(1, fenced=True)
    result = world.create("t")
    assert result.error_code == ErrorCode.INVALID_REPLICATION_FACTOR
    assert "All brokers are currently fenced" in result.error_message


def test_manual_assignment_is_kept_and_led_by_its_first_live_broker(world: World) -> None:
    world.add_broker(2, fenced=True)
    topic = world.topic("t", -1, -1, assignments={1: [1, 2], 0: [2, 1]})
    world.apply(create_topics(world.controller, CreateTopicsRequest(topics=[topic])))
    partitions = world.image.topics_by_name["t"].partitions
    assert list(partitions) == [0, 1]
    assert partitions[0].replicas == (2, 1)
    assert (partitions[0].leader, partitions[0].isr) == (1, (1,))


def grow(world: World, name: str, count: int, assignments: Any = None) -> Any:
    if assignments is not None:
        assignments = [
            CreatePartitionsRequest.CreatePartitionsAssignment(broker_ids=item)
            for item in assignments
        ]
    topic = CreatePartitionsRequest.CreatePartitionsTopic(
        name=name, count=count, assignments=assignments
    )
    request = CreatePartitionsRequest(topics=[topic])
    return world.apply(create_partitions(world.controller, request)).results[0]


def test_a_topic_grows(world: World) -> None:
    world.create("t", 2)
    assert grow(world, "t", 4).error_code == 0
    assert grow(world, "t", 5, [[1]]).error_code == 0
    assert sorted(world.image.topics_by_name["t"].partitions) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("name", "count", "assignments", "code", "message"),
    [
        ("none", 3, None, "UNKNOWN_TOPIC_OR_PARTITION", None),
        ("t", 2, None, "INVALID_PARTITIONS", "Topic already has 2 partition(s)."),
        ("t", 1, None, "INVALID_PARTITIONS", "1 would not be an increase."),
        ("t", 4, [[1]], "INVALID_REPLICA_ASSIGNMENT", "but only 1 assignment(s) were specified."),
        ("t", 3, [[9]], "INVALID_REPLICA_ASSIGNMENT", "no such broker is registered."),
        ("t", 10_001, None, "POLICY_VIOLATION", "Excessively large"),
    ],
)
def test_refused_growth(
    world: World, name: str, count: int, assignments: Any, code: str, message: str | None
) -> None:
    world.create("t", 2)
    result = grow(world, name, count, assignments)
    assert ErrorCode(result.error_code).name == code
    assert message is None or message in result.error_message
    assert world.records == []


def delete(world: World, *topics: tuple[str | None, UUID], **options: Any) -> list[Any]:
    request = DeleteTopicsRequest(
        topics=[DeleteTopicsRequest.DeleteTopicState(name=n, topic_id=i) for n, i in topics]
    )
    response = world.apply(delete_topics(world.controller, request, **options))
    return [(r.name, ErrorCode(r.error_code).name) for r in response.responses]


def test_topics_are_deleted_by_name_and_by_id(world: World) -> None:
    first = world.create("a").topic_id
    second = world.create("b").topic_id
    assert delete(world, ("a", ZERO), (None, second)) == [("a", "NONE"), ("b", "NONE")]
    assert world.records == [RemoveTopicRecord(topic_id=first), RemoveTopicRecord(topic_id=second)]
    assert world.image.topics_by_id == {}


def test_old_requests_name_topics_in_a_list(world: World) -> None:
    world.create("a")
    request = DeleteTopicsRequest(topic_names=["a"])
    world.apply(delete_topics(world.controller, request, api_version=5))
    assert world.image.topics_by_name == {}


def test_refused_deletions(world: World) -> None:
    topic_id = world.create("t").topic_id
    unknown = UUID(int=2**70)
    assert delete(world, ("x", ZERO)) == [("x", "UNKNOWN_TOPIC_OR_PARTITION")]
    assert delete(world, (None, unknown)) == [(None, "UNKNOWN_TOPIC_ID")]
    assert delete(world, (None, ZERO)) == [(None, "INVALID_REQUEST")]
    assert delete(world, ("t", topic_id)) == [("t", "INVALID_REQUEST")]
    assert delete(world, ("t", ZERO), ("t", ZERO)) == [("t", "INVALID_REQUEST")]
    both = delete(world, ("t", ZERO), (None, topic_id))
    assert {code for _, code in both} == {"INVALID_REQUEST"}
    assert "t" in world.image.topics_by_name


@pytest.mark.parametrize(
    ("version", "code"), [(6, "TOPIC_DELETION_DISABLED"), (2, "INVALID_REQUEST")]
)
def test_deletion_can_be_switched_off(new_world: Any, version: int, code: str) -> None:
    world = new_world(delete_topic_enable=False)
    world.add_broker(1)
    world.create("t")
    assert delete(world, ("t", ZERO), api_version=version) == [("t", code)]
    assert "t" in world.image.topics_by_name
