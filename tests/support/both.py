"""The same conversation with Moldau and with Apache Kafka, whose answers must agree step by step.

Ids are drawn by each broker, so each broker's own stand in the requests, and in the answers they
are replaced by the names that the script gave them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any
from uuid import UUID

from moldau.broker.coordinator.machine.hashing import partition_for
from moldau.broker.machine.topics import GROUP_OFFSETS_TOPIC
from moldau.wire.apis import ApiKey
from moldau.wire.errors import ErrorCode
from moldau.wire.message import Message
from moldau.wire.messages import (
    CreateTopicsRequest,
    DescribeGroupsRequest,
    FindCoordinatorRequest,
    MetadataRequest,
)
from moldau.wire.record_values import decode_coordinator_record
from moldau.wire.records import decode_batch, decode_batches, iterate_headers, read_header
from support import asking
from support.raw import RawConnection
from support.waiting import Pauses

# Texts are for people and times are each broker's own.
IGNORED = frozenset({
    "commit_timestamp", "current_state_timestamp", "error_message", "throttle_time_ms",
    "unknown_tagged_fields",
})  # fmt: skip
NO_ID = UUID(int=0)
OFFSETS_PARTITION_COUNT = 50
READY_SECONDS_MAX = 120.0

Make = Callable[["Side"], Message]


class Side:
    """One broker: a connection for each speaker, and what it gave out."""

    def __init__(self, port: int, ignored: frozenset[str] = IGNORED) -> None:
        self.port = port
        self.ids: dict[str, Any] = {}
        """What this broker has given out, by the script's names: member ids, producer ids."""
        self.topic_ids: dict[str, UUID] = {}
        self._ignored = ignored
        self._connections: dict[str, RawConnection] = {}

    def connection(self, speaker: str) -> RawConnection:
        if speaker not in self._connections:
            self._connections[speaker] = RawConnection(self.port)
        return self._connections[speaker]

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()

    def comparable(self, value: Any) -> Any:
        if isinstance(value, Message):
            fields = [name for name in value.__slots__ if name not in self._ignored]
            return {name: self._field(name, getattr(value, name)) for name in fields}
        if isinstance(value, list):
            # Kafka lists members in the order of its hash tables.
            return sorted((self.comparable(item) for item in value), key=repr)
        if isinstance(value, str):
            return self._name(value)
        if isinstance(value, UUID):
            names = {topic_id: f"the id of {name}" for name, topic_id in self.topic_ids.items()}
            return names.get(value, value)
        return value

    def _field(self, name: str, value: Any) -> Any:
        if name.endswith("producer_id"):
            return self._name(value)
        if name == "records" and value:
            return [self._batch(value, position) for position, _ in iterate_headers(value)]
        return self.comparable(value)

    def _batch(self, buffer: bytes, position: int) -> Any:
        """A batch without its checksum, which covers the producer id and times."""
        header = read_header(buffer, position)
        kept = {
            "producer_id": self._name(header.producer_id),
            "crc": None,
            "base_timestamp": None if header.is_control else header.base_timestamp,
            "max_timestamp": None if header.is_control else header.max_timestamp,
        }
        records = [
            (record.offset, record.key, None if header.is_control else record.value)
            for record in decode_batch(buffer, position)
        ]
        return {**header._asdict(), **kept, "records": records}

    def _name(self, value: Any) -> Any:
        names = {actual: name for name, actual in self.ids.items()}
        return names.get(value, value)


class Both:
    def __init__(self, ours: Side, kafkas: Side) -> None:
        self.sides = (ours, kafkas)

    def send(self, speaker: str, key: ApiKey, version: int, make: Make) -> None:
        for side in self.sides:
            side.connection(speaker).send(key, version, make(side))

    def receive(
        self, speaker: str, key: ApiKey, version: int, name: str | None = None, of: str = ""
    ) -> Any:
        """Our answer, which is Kafka's too; `name` is given to its field `of`."""
        answers = []
        for side in self.sides:
            answer = side.connection(speaker).receive(key, version)
            if name is not None:
                given = getattr(answer, of or "member_id")
                assert given, answer
                side.ids[name] = given
            answers.append((answer, side.comparable(answer)))
        return _agreed(key, version, answers)

    def ask(
        self,
        speaker: str,
        key: ApiKey,
        version: int,
        make: Make,
        name: str | None = None,
        of: str = "",
    ) -> Any:
        self.send(speaker, key, version, make)
        return self.receive(speaker, key, version, name, of)

    def ask_until(
        self,
        speaker: str,
        key: ApiKey,
        version: int,
        make: Make,
        *,
        settled: Callable[[Any], bool],
        name: str | None = None,
        of: str = "",
    ) -> Any:
        """Ask each broker until it has come so far, then compare."""
        answers = []
        for side in self.sides:
            answer = self._settled(side, speaker, key, version, make, settled)
            if name is not None:
                side.ids[name] = getattr(answer, of or "member_id")
            answers.append((answer, side.comparable(answer)))
        return _agreed(key, version, answers)

    def _settled(
        self,
        side: Side,
        speaker: str,
        key: ApiKey,
        version: int,
        make: Make,
        settled: Callable[[Any], bool],
    ) -> Any:
        deadline, pauses = time.monotonic() + READY_SECONDS_MAX, Pauses(0.002)
        while True:
            answer = side.connection(speaker).call(key, version, make(side))
            if settled(answer):
                return answer
            assert time.monotonic() < deadline, f"port {side.port} still answers {answer}"
            pauses.wait()


def _agreed(key: ApiKey, version: int, answers: list[tuple[Any, Any]]) -> Any:
    (response, ours), (_, kafkas) = answers
    assert ours == kafkas, f"{key.name} v{version}\nMoldau: {ours}\nKafka:  {kafkas}"
    return response


def prepare(side: Side, topics: Iterable[tuple[str, int]]) -> None:
    """Topics with so many partitions, and a group coordinator that serves."""
    connection = side.connection("observer")
    request = CreateTopicsRequest(
        topics=[
            CreateTopicsRequest.CreatableTopic(
                name=name, num_partitions=count, replication_factor=1
            )
            for name, count in topics
        ],
        timeout_ms=30_000,
    )
    connection.call(ApiKey.CREATE_TOPICS, 7, request)
    deadline, pauses = time.monotonic() + READY_SECONDS_MAX, Pauses()
    while not _is_ready(side, [name for name, _ in topics]):
        assert time.monotonic() < deadline, "the broker is not ready"
        pauses.wait()


def _is_ready(side: Side, names: list[str]) -> bool:
    connection = side.connection("observer")
    metadata = MetadataRequest(
        topics=[MetadataRequest.MetadataRequestTopic(name=name) for name in names]
    )
    described = connection.call(ApiKey.METADATA, 12, metadata).topics
    find = FindCoordinatorRequest(key="any", key_type=0)
    found = connection.call(ApiKey.FIND_COORDINATOR, 3, find)
    # Enough names that every partition of the offsets topic has one.
    probes = [f"probe-{number}" for number in range(500)]
    probed = connection.call(ApiKey.DESCRIBE_GROUPS, 5, DescribeGroupsRequest(groups=probes))
    side.topic_ids.update({topic.name: topic.topic_id for topic in described})
    return not (
        found.error_code
        or any(topic.error_code or not topic.partitions for topic in described)
        or any(partition.error_code for topic in described for partition in topic.partitions)
        or any(group.error_code for group in probed.groups)
    )


def coordinator_ready(side: Side, key: str, key_type: int) -> bool:
    """Whether the coordinator of a key has been found; asking creates its topic."""
    find = FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key])
    (found,) = side.connection("observer").call(ApiKey.FIND_COORDINATOR, 6, find).coordinators
    return bool(found.error_code == ErrorCode.NONE)


def written_records(side: Side, group: str) -> list[Any]:
    """The group's records in order: kind of key, value version, key and value."""
    partition = partition_for(group, OFFSETS_PARTITION_COUNT)
    found = []
    read = asking.fetch(side.connection("reader"), GROUP_OFFSETS_TOPIC, partition)
    for _, records in decode_batches(read.records or b""):
        for record in records:
            assert record.key is not None
            key, value = decode_coordinator_record("group", record.key, record.value)
            if group in (getattr(key, "group", None), getattr(key, "group_id", None)):
                version = None if record.value is None else record.value[:2]
                kind = type(key).__name__
                found.append((kind, version, side.comparable(key), side.comparable(value)))
    return found
