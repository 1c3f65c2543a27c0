"""Plans to reassign partitions: their JSON, moves, throttles and state.

A plan names the brokers of each partition's replicas, and optionally a log directory for each
replica.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from moldau.balance.machine.moves import (
    Move,
    follower_throttles,
    leader_throttles,
    moves,
    reassigning_brokers,
)
from moldau.cli.support.machine.errors import Refused
from moldau.client.admin.partition_values import (
    PartitionReassignment,
    ReplicaLogDirInfo,
    TopicPartitionReplica,
)
from moldau.client.topics import TopicPartition

__all__ = [
    "Move",
    "PartitionState",
    "Plan",
    "follower_throttles",
    "leader_throttles",
    "move_text",
    "moves",
    "parse_brokers",
    "parse_executable",
    "parse_plan",
    "parse_topics",
    "plan_json",
    "reassigning_brokers",
    "reassignment_text",
    "state_text",
]

ANY_LOG_DIR = "any"
_VERSION = 1

T = TypeVar("T", bound=Hashable)


class Plan(NamedTuple):
    """In the order of the file, in which a partition may be repeated by mistake."""

    partitions: tuple[tuple[TopicPartition, tuple[int, ...]], ...]
    log_dirs: Mapping[TopicPartitionReplica, str]

    @property
    def replicas(self) -> dict[TopicPartition, tuple[int, ...]]:
        return dict(self.partitions)


class PartitionState(NamedTuple):
    current: tuple[int, ...]
    target: tuple[int, ...]
    done: bool


# JSON.


def parse_plan(text: str) -> Plan:
    """A plan from Kafka's JSON; Refused if it is not valid."""
    document = _document(text)
    partitions = []
    log_dirs: dict[TopicPartitionReplica, str] = {}
    for entry in _list(document, "partitions"):
        key = TopicPartition(_field(entry, "topic", str), _field(entry, "partition", int))
        replicas = tuple(_listed(entry, "replicas", int))
        folders = [ANY_LOG_DIR] * len(replicas)
        if entry.get("log_dirs") is not None:
            folders = _listed(entry, "log_dirs", str)
        if len(replicas) != len(folders):
            raise Refused(
                f"Size of replicas list {_java_list(replicas)} is different from size of log dirs "
                f"list {_java_list(folders)} for partition {key}"
            )
        partitions.append((key, replicas))
        for replica, folder in zip(replicas, folders, strict=True):
            if folder != ANY_LOG_DIR:
                log_dirs[TopicPartitionReplica(*key, replica)] = folder
    return Plan(tuple(partitions), log_dirs)


def parse_executable(text: str) -> Plan:
    """A plan that can be executed: no partition twice, none without replicas, no replica twice."""
    plan = parse_plan(text)
    if not plan.partitions:
        raise Refused("Partition reassignment list cannot be empty")
    if not all(replicas for _, replicas in plan.partitions):
        raise Refused("Partition replica list cannot be empty")
    twice = _twice(key for key, _ in plan.partitions)
    if twice:
        shown = ",".join(map(str, twice))
        raise Refused(f"Partition reassignment contains duplicate topic partitions: {shown}")
    problems = [
        f"{key} contains multiple entries for {','.join(map(str, _twice(replicas)))}"
        for key, replicas in plan.partitions
        if _twice(replicas)
    ]
    if problems:
        shown = ". ".join(problems)
        raise Refused(f"Partition replica lists may not contain duplicate entries: {shown}")
    return plan


def parse_topics(text: str) -> list[str]:
    """The topics to move, from Kafka's JSON."""
    document = _document(text)
    topics = [_field(entry, "topic", str) for entry in _list(document, "topics")]
    twice = _twice(topics)
    if twice:
        raise Refused(f"List of topics to reassign contains duplicate entries: {_java_list(twice)}")
    return topics


def parse_brokers(text: str) -> list[int]:
    """The broker ids of --broker-list."""
    try:
        brokers = [int(each) for each in text.split(",")]
    except ValueError:
        raise Refused(f"--broker-list has ids separated by commas, not {text}") from None
    twice = _twice(brokers)
    if twice:
        raise Refused(f"Broker list contains duplicate entries: {_java_list(twice)}")
    return brokers


def plan_json(
    replicas: Mapping[TopicPartition, Sequence[int]], log_dirs: Mapping[TopicPartitionReplica, str]
) -> str:
    """A plan as Kafka's tool writes it, on one line."""
    partitions = [
        {
            "topic": key.topic,
            "partition": key.partition,
            "replicas": list(replicas[key]),
            "log_dirs": [
                log_dirs.get(TopicPartitionReplica(*key, each), ANY_LOG_DIR)
                for each in replicas[key]
            ],
        }
        for key in sorted(replicas)
    ]
    document = {"version": _VERSION, "partitions": partitions}
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False)


def _document(text: str) -> dict[str, object]:
    try:
        document = json.loads(text)
    except ValueError as error:
        raise Refused(f"The input string is not a valid JSON: {error}") from None
    if not isinstance(document, dict):
        raise Refused("The input string is not a JSON object")
    version = document.get("version", _VERSION)
    if version != _VERSION:
        raise Refused(f"Not supported version field value {version}")
    return document


def _list(document: Mapping[str, Any], field: str) -> list[dict[str, object]]:
    entries = document.get(field, [])
    if not isinstance(entries, list) or not all(isinstance(each, dict) for each in entries):
        raise Refused(f"The field {field} is not a list of objects")
    return entries


def _field(entry: Mapping[str, Any], field: str, kind: type[T]) -> T:
    if field not in entry:
        raise Refused(f"No such field exists: `{field}` in {json.dumps(entry)}")
    return _checked(entry, field, entry[field], kind)


def _listed(entry: Mapping[str, Any], field: str, kind: type[T]) -> list[T]:
    if field not in entry:
        raise Refused(f"No such field exists: `{field}` in {json.dumps(entry)}")
    if not isinstance(entry[field], list):
        raise Refused(f"The field {field} is not a list in {json.dumps(entry)}")
    return [_checked(entry, field, each, kind) for each in entry[field]]


def _checked(entry: Mapping[str, Any], field: str, value: Any, kind: type[T]) -> T:
    if not isinstance(value, kind) or isinstance(value, bool):
        what = "string" if kind is str else "number"
        raise Refused(f"The field {field} is not a {what} in {json.dumps(entry)}")
    return value


def _twice(values: Iterable[T]) -> list[T]:
    return [value for value, count in Counter(values).items() if count > 1]


def _java_list(values: Iterable[object]) -> str:
    return f"[{', '.join(map(str, values))}]"


# Texts.


def state_text(key: TopicPartition, state: PartitionState) -> str:
    if not state.done:
        return f"Reassignment of partition {key} is still in progress."
    if state.current == state.target:
        return f"Reassignment of partition {key} is completed."
    current, target = (",".join(map(str, each)) for each in (state.current, state.target))
    return (
        f"There is no active reassignment of partition {key}, but replica set is {current} rather "
        f"than {target}."
    )


def move_text(
    replica: TopicPartitionReplica, target: str, where: ReplicaLogDirInfo | None
) -> tuple[str, bool]:
    """The state of a move to another log directory, and whether it is complete."""
    key = TopicPartition(replica.topic, replica.partition)
    broker = replica.broker_id
    if where is None:
        return (
            f"Partition {key} cannot be found in any live log directory on broker {broker}.",
            False,
        )
    if where.current_replica_log_dir is None:
        return (
            f"Partition {key} is not found in any live log dir on broker {broker}. There is likely "
            "an offline log directory on the broker.",
            False,
        )
    future = where.future_replica_log_dir
    if future is None:
        if where.current_replica_log_dir == target:
            return f"Reassignment of replica {replica} completed successfully.", True
        return (
            f"Partition {key} on broker {broker} is not being moved from log dir "
            f"{where.current_replica_log_dir} to {target}.",
            True,
        )
    if future == target:
        return f"Reassignment of replica {replica} is still in progress.", False
    return (
        f"Partition {key} on broker {broker} is being moved to log dir {future} instead of "
        f"{target}.",
        False,
    )


def reassignment_text(key: TopicPartition, ongoing: PartitionReassignment) -> str:
    text = f"{key}: replicas: {','.join(map(str, ongoing.replicas))}."
    if ongoing.adding_replicas:
        text += f" adding: {','.join(map(str, ongoing.adding_replicas))}."
    if ongoing.removing_replicas:
        text += f" removing: {','.join(map(str, ongoing.removing_replicas))}."
    return text
