"""Mirrors in a test: flows of properties, on a loop in a thread of the test."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from moldau.client import Admin, Consumer, NewTopic, TopicPartition
from moldau.mirror.runner import Mirror, read_flows
from support.http_service import Running, running
from support.processes import BrokerProcess
from support.waiting import eventually

#: Quick enough for a test.
QUICK = {
    "refresh.topics.interval.seconds": "1",
    "refresh.groups.interval.seconds": "1",
    "sync.topic.configs.interval.seconds": "1",
    "sync.topic.acls.interval.seconds": "1",
    "emit.checkpoints.interval.seconds": "1",
    "sync.group.offsets.interval.seconds": "1",
    "replication.factor": "1",
    "offset-syncs.topic.replication.factor": "1",
    "checkpoints.topic.replication.factor": "1",
    "heartbeats.topic.replication.factor": "1",
    "offset.storage.replication.factor": "1",
    "status.storage.replication.factor": "1",
    "config.storage.replication.factor": "1",
}


def properties(
    clusters: Mapping[str, BrokerProcess | str], *flows: str, **more: str
) -> dict[str, str]:
    """Of a file for connect-mirror-maker.sh; `flows` are such as "A->B"."""
    made = {"clusters": ",".join(clusters), **QUICK}
    for name, broker in clusters.items():
        address = broker if isinstance(broker, str) else broker.bootstrap
        made[f"{name}.bootstrap.servers"] = address
    for flow in flows:
        made[f"{flow}.enabled"] = "true"
    return made | {key.replace("__", "->").replace("_", "."): value for key, value in more.items()}


def exactly_once(made: Mapping[str, str]) -> dict[str, str]:
    names = made["clusters"].split(",")
    return {**made, **{f"{each}.exactly.once.source.support": "enabled" for each in names}}


def write(path: Path, made: Mapping[str, str]) -> Path:
    path.write_text("".join(f"{key}={value}\n" for key, value in made.items()))
    return path


@contextmanager
def mirroring(made: Mapping[str, str]) -> Iterator[Running]:
    flows = read_flows(made)
    with running(lambda: Mirror(flows, metrics_port=0)) as found:
        yield found


def create(broker: BrokerProcess | str, *topics: NewTopic) -> None:
    with Admin({"bootstrap.servers": address(broker)}) as admin:
        admin.create_topics(topics)


def address(broker: BrokerProcess | str) -> str:
    return broker if isinstance(broker, str) else broker.bootstrap


def read(
    broker: BrokerProcess | str, topic: str, count: int, *, seconds_max: float = 60.0
) -> list[Any]:
    """At least `count` committed records of a topic, in the order of partition and offset."""
    settings = {
        "bootstrap.servers": address(broker),
        "auto.offset.reset": "earliest",
        "isolation.level": "read_committed",
        "allow.auto.create.topics": "false",
    }
    found: list[Any] = []
    with Consumer(settings) as consumer:
        partitions = eventually(
            lambda: consumer.partitions_for(topic), what=topic, seconds_max=seconds_max
        )
        consumer.assign([TopicPartition(topic, each.partition) for each in partitions])
        eventually(
            lambda: found.extend(consumer.poll(0.2)) or len(found) >= count,
            what=f"{count} records in {topic}",
            seconds_max=seconds_max,
        )
    return sorted(found, key=lambda each: (each.partition, each.offset))


def content(records: list[Any]) -> list[tuple[Any, ...]]:
    """Everything of records but where they are."""
    return [(r.partition, r.key, r.value, r.headers, r.timestamp) for r in records]


def read_at(broker: BrokerProcess | str, place: TopicPartition, offset: int) -> Any:
    """The first committed record at or after an offset; None if there is none."""
    settings = {"bootstrap.servers": address(broker), "isolation.level": "read_committed"}
    with Consumer(settings) as consumer:
        consumer.assign([place])
        consumer.seek(place, offset)
        end = consumer.end_offsets([place])[place]
        while consumer.position(place) < end:
            for record in consumer.poll(0.2):
                return record
    return None
