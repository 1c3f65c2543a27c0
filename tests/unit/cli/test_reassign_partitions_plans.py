"""Plans to reassign partitions: their JSON, moves, throttles and words."""

from __future__ import annotations

import json
from typing import Any

import pytest

from moldau.cli.groups.transactions import OpenTransaction, hanging
from moldau.cli.replicas.machine.reassign_partitions_plans import (
    Move,
    PartitionState,
    follower_throttles,
    leader_throttles,
    move_text,
    moves,
    parse_brokers,
    parse_executable,
    parse_plan,
    parse_topics,
    plan_json,
    reassigning_brokers,
    reassignment_text,
    state_text,
)
from moldau.cli.support.machine.errors import Refused
from moldau.client.admin import (
    PartitionReassignment,
    ProducerState,
    ReplicaLogDirInfo,
    TopicPartitionReplica,
    TransactionDescription,
    TransactionState,
)
from moldau.client.topics import TopicPartition

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
ON_1 = TopicPartitionReplica("a", 0, 1)


def plan(*partitions: dict[str, Any]) -> str:
    return json.dumps({"version": 1, "partitions": list(partitions)})


def entry(number: int, *replicas: Any, **more: Any) -> dict[str, Any]:
    return {"topic": "a", "partition": number, "replicas": list(replicas), **more}


def test_plan_with_and_without_log_dirs() -> None:
    parsed = parse_plan(plan(entry(0, 1, 2, log_dirs=["any", "/d"]), entry(1, 3)))
    assert parsed.replicas == {A0: (1, 2), A1: (3,)}
    assert parsed.log_dirs == {TopicPartitionReplica("a", 0, 2): "/d"}
    assert parse_plan("{}").partitions == ()


def test_plan_is_written_as_it_is_read() -> None:
    text = plan_json({A1: (3,), A0: (1, 2)}, {ON_1: "/d"})
    assert text == (
        '{"version":1,"partitions":[{"topic":"a","partition":0,"replicas":[1,2],'
        '"log_dirs":["/d","any"]},{"topic":"a","partition":1,"replicas":[3],"log_dirs":["any"]}]}'
    )
    assert parse_plan(text).log_dirs == {ON_1: "/d"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "not a valid JSON"),
        ("[]", "not a JSON object"),
        ('{"version": 2}', "Not supported version field value 2"),
        ('{"partitions": 1}', "not a list of objects"),
        (plan({"topic": "a", "replicas": [1]}), "`partition`"),
        (plan({"topic": 1, "partition": 0, "replicas": [1]}), "topic is not"),
        (plan(entry(0, "1")), "replicas is not"),
        (plan({"topic": "a", "partition": 0, "replicas": 1}), "replicas is not a list"),
        (plan(entry(0, 1, log_dirs=[])), "Size of replicas list [1] is different"),
        (plan(), "list cannot be empty"),
        (plan(entry(0)), "replica list cannot be empty"),
        (plan(entry(0, 1), entry(0, 2)), "duplicate topic partitions: a-0"),
        (plan(entry(0, 1, 1, 2)), "a-0 contains multiple entries for 1"),
    ],
)
def test_plans_that_cannot_be_executed(text: str, words: str) -> None:
    with pytest.raises(Refused) as caught:
        parse_executable(text)
    assert words in str(caught.value)


def test_topics_and_brokers_to_generate_for() -> None:
    assert parse_topics('{"topics": [{"topic": "a"}, {"topic": "b"}]}') == ["a", "b"]
    assert parse_brokers("1,2") == [1, 2]
    for parse, text in (
        (parse_topics, '{"topics": [{"topic": "a"}, {"topic": "a"}]}'),
        (parse_brokers, "1,1"),
        (parse_brokers, "1,x"),
    ):
        with pytest.raises(Refused):
            parse(text)


def test_moves_and_their_throttles() -> None:
    ongoing = {B0: PartitionReassignment((1, 2, 3), (3,), (1,)),
               A1: PartitionReassignment((1, 4), (4,), ())}  # fmt: skip
    moving = moves(ongoing, {A0: (2, 3), A1: (5,)}, {A0: (1, 2), A1: (1, 4)})
    assert moving == {
        B0: Move(frozenset({1, 2}), frozenset({3})),
        # It is still copied from where it was before the first reassignment.
        A1: Move(frozenset({1}), frozenset({5})),
        A0: Move(frozenset({1, 2}), frozenset({3})),
    }
    assert leader_throttles(moving) == {"a": "0:1,0:2,1:1", "b": "0:1,0:2"}
    assert follower_throttles(moving) == {"a": "0:3,1:5", "b": "0:3"}
    assert reassigning_brokers(moving) == [1, 2, 3, 5]


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (PartitionState((1,), (2,), False), "is still in progress."),
        (PartitionState((2,), (2,), True), "is completed."),
        (PartitionState((1, 2), (2, 1), True), "replica set is 1,2 rather than 2,1."),
    ],
)
def test_state_of_a_partition(state: PartitionState, words: str) -> None:
    assert state_text(A0, state).endswith(words)


@pytest.mark.parametrize(
    ("where", "words", "done"),
    [
        (None, "cannot be found", False),
        (ReplicaLogDirInfo(), "offline log directory", False),
        (ReplicaLogDirInfo("/d", 0), "completed successfully", True),
        (ReplicaLogDirInfo("/old", 0), "is not being moved from log dir /old to /d.", True),
        (ReplicaLogDirInfo("/old", 0, "/d", 5), "is still in progress.", False),
        (ReplicaLogDirInfo("/old", 0, "/x", 5), "to log dir /x instead of /d.", False),
    ],
)
def test_state_of_a_move(where: ReplicaLogDirInfo | None, words: str, done: bool) -> None:
    text, is_done = move_text(ON_1, "/d", where)
    assert words in text
    assert is_done is done


def test_ongoing_reassignment_in_words() -> None:
    whole = PartitionReassignment((1, 2, 3), (3,), (1,))
    assert reassignment_text(A0, whole) == "a-0: replicas: 1,2,3. adding: 3. removing: 1."
    assert reassignment_text(A0, PartitionReassignment((1,), (), ())) == "a-0: replicas: 1."


def test_transactions_that_nobody_will_end_hang() -> None:
    def opened(key: TopicPartition, producer_id: int) -> OpenTransaction:
        return OpenTransaction(key, ProducerState(producer_id, 0, 0, 0, None, 5))

    described = TransactionDescription(
        1, TransactionState.ONGOING, 7, 0, 60_000, 1, frozenset({A0})
    )
    found = hanging(
        [opened(A0, 7), opened(A1, 7), opened(A0, 8), opened(A0, 9)],
        {7: "known", 9: "forgotten"},
        {"known": described},
    )
    assert found == [opened(A1, 7), opened(A0, 8), opened(A0, 9)]
