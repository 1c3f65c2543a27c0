"""Looks at the reader's cluster and services, for the checks of an exercise."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from moldau.client import Admin, ConfigResource, Consumer, OffsetSpec, TopicPartition
from moldau.client.errors import UnknownTopicOrPartitionError
from moldau.learning.machine.checks import (
    Check,
    Compacted,
    ConnectorRuns,
    FileHolds,
    GroupHasRead,
    HoldsRecords,
    LeaderMoved,
    PartitionSeen,
    SqlHas,
    SubjectHas,
    TopicHas,
    TopicSeen,
)

__all__ = ["Observer"]

_READ_SECONDS_MAX = 20.0
_HTTP_SECONDS_MAX = 20.0
Record = tuple[str | None, str | None]


class Observer:
    def __init__(self, places: Mapping[str, str], work: Path) -> None:
        self._places = places
        self._work = work

    def verdict(self, check: Check) -> str | None:
        """None if the check is satisfied, else what is missing."""
        match check:
            case TopicHas():
                return check.verdict(self._topic(check.topic, on_cluster=check.on_cluster))
            case LeaderMoved():
                return check.verdict(self._topic(check.topic, on_cluster=True))
            case HoldsRecords(only_counts=True):
                return check.verdict(self._record_count(check))
            case HoldsRecords():
                return check.verdict(self._records(check.topic, check.value_deserializer))
            case Compacted():
                records = self._records(check.topic, "string")
                ends = self._ends(check.topic)
                return check.verdict(None if records is None else (sum(ends.values()), records))
            case GroupHasRead():
                return check.verdict(self._lags(check))
            case SubjectHas():
                return check.verdict(self._subject(check.subject))
            case ConnectorRuns():
                return check.verdict(self._connector(check.name))
            case FileHolds():
                file = self._work / check.name
                return check.verdict(file.read_text().splitlines() if file.exists() else None)
            case SqlHas():
                return check.verdict(self._sql_names())

    def _servers(self, *, on_cluster: bool) -> str:
        return self._places["cluster" if on_cluster else "bootstrap"]

    def _topic(self, name: str, *, on_cluster: bool) -> TopicSeen | None:
        with Admin(bootstrap_servers=self._servers(on_cluster=on_cluster)) as admin:
            try:
                described = admin.describe_topics([name])[name]
            except UnknownTopicOrPartitionError:
                return None
            resource = ConfigResource.topic(name)
            configs = admin.describe_configs([resource])[resource]
            partitions = {
                each.partition: TopicPartition(name, each.partition)
                for each in described.partitions
            }
            ends = admin.list_offsets({each: OffsetSpec.latest() for each in partitions.values()})
        seen = tuple(
            PartitionSeen(
                tuple(node.id for node in each.replicas),
                tuple(node.id for node in each.isr),
                ends[partitions[each.partition]].leader_epoch or 0,
            )
            for each in described.partitions
        )
        return TopicSeen(seen, {key: entry.value or "" for key, entry in configs.items()})

    def _ends(self, topic: str, *, on_cluster: bool = False) -> dict[TopicPartition, int]:
        """The end offsets of all partitions; none if there is no such topic."""
        with Consumer(bootstrap_servers=self._servers(on_cluster=on_cluster)) as consumer:
            known = consumer.list_topics().get(topic, [])
            return consumer.end_offsets([TopicPartition(topic, each.partition) for each in known])

    def _record_count(self, check: HoldsRecords) -> int | None:
        ends = self._ends(check.topic, on_cluster=check.on_cluster)
        return sum(ends.values()) if ends else None

    def _records(self, topic: str, value_deserializer: str) -> list[Record] | None:
        """All records up to the present end, as text."""
        ends = self._ends(topic)
        if not ends:
            return None
        found: list[Record] = []
        deadline = time.monotonic() + _READ_SECONDS_MAX
        with Consumer(
            bootstrap_servers=self._places["bootstrap"],
            auto_offset_reset="earliest",
            isolation_level="read_committed",
            key_deserializer="string",
            value_deserializer=value_deserializer,
        ) as consumer:
            consumer.assign(list(ends))
            while any(consumer.position(each) < end for each, end in ends.items()):
                found += [
                    (record.key, None if record.value is None else str(record.value))
                    for record in consumer.poll(0.5)
                ]
                if time.monotonic() > deadline:
                    break
        return found

    def _lags(self, check: GroupHasRead) -> list[int] | None:
        with Admin(bootstrap_servers=self._places["bootstrap"]) as admin:
            committed = admin.list_consumer_group_offsets(check.group)[check.group]
        marks = {
            partition: mark.offset
            for partition, mark in committed.items()
            if partition.topic == check.topic and mark is not None
        }
        if not marks:
            return None
        ends = self._ends(check.topic)
        return [end - marks.get(partition, 0) for partition, end in ends.items()]

    def _subject(self, subject: str) -> tuple[int, str] | None:
        base = f"{self._places['registry']}/subjects/{subject}/versions"
        versions = _json(base)
        return None if versions is None else (len(versions), _json(f"{base}/latest")["schema"])

    def _connector(self, name: str) -> list[str] | None:
        status = _json(f"{self._places['connect']}/connectors/{name}/status")
        if status is None:
            return None
        return [status["connector"]["state"], *(task["state"] for task in status["tasks"])]

    def _sql_names(self) -> list[str]:
        answers = _json(f"{self._places['sql']}/ksql", {"ksql": "SHOW STREAMS; SHOW TABLES;"})
        return [
            each["name"]
            for answer in answers or []
            for each in (*answer.get("streams", ()), *answer.get("tables", ()))
        ]


def _json(url: str, body: Any = None) -> Any:
    """What a service answers; None for 404."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=_HTTP_SECONDS_MAX) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        if error.code == 404:
            return None
        raise
