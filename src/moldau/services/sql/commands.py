"""The command topic: the statements that made the server what it is, in ksqlDB's records.

A record's key is the command id ("stream/`S`/create"), its value the statement with the properties
it was given. A server executes all of them when it starts. Its offset numbers a command's query.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from moldau.client import Consumer, Producer
from moldau.client.topics import TopicPartition
from moldau.services.sql.cluster import ClusterTopics
from moldau.services.sql.config import SqlConfig

__all__ = ["Command", "CommandLog"]

_VERSION = 14
_READ_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True)
class Command:
    offset: int
    statement: str
    properties: dict[str, Any]


class CommandLog:
    """Appends and reads commands. One server writes at a time."""

    def __init__(self, config: SqlConfig, topics: ClusterTopics) -> None:
        self._topic = config.command_topic
        settings = config.client_settings()
        topics.create(
            self._topic,
            1,
            config["ksql.internal.topic.replicas"],
            {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"},
        )
        self._consumer = Consumer(settings, auto_offset_reset="earliest", enable_auto_commit=False)
        self._producer = Producer(settings, acks="all", linger_ms=0)
        #: The offset that the next command will have.
        self.next_offset = 0

    def read(self) -> Iterator[Command]:
        """All commands that are there now; those that cannot be read are passed over."""
        partition = TopicPartition(self._topic, 0)
        self._consumer.assign([partition])
        end = self._consumer.end_offsets([partition])[partition]
        deadline = time.monotonic() + _READ_TIMEOUT_S
        while self._consumer.position(partition) < end:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{self._topic} could not be read within {_READ_TIMEOUT_S} s")
            for record in self._consumer.poll(1.0):
                command = _command(record.offset, record.value)
                if command is not None:
                    yield command
        self.next_offset = end

    def append(self, command_id: str, statement: str, properties: Mapping[str, Any]) -> int:
        """Write a command; its offset."""
        value = {
            "statement": statement,
            "streamsProperties": dict(properties),
            "originalProperties": {},
            "plan": None,
            "version": _VERSION,
        }
        future = self._producer.send(
            self._topic, json.dumps(value).encode(), key=json.dumps(command_id).encode()
        )
        offset = future.result(timeout=30).offset
        self.next_offset = offset + 1
        return offset

    def close(self) -> None:
        self._consumer.close()
        self._producer.close(timeout=5)


def _command(offset: int, value: bytes | None) -> Command | None:
    try:
        found = json.loads(value or b"")
        return Command(offset, str(found["statement"]), dict(found.get("streamsProperties") or {}))
    except (ValueError, KeyError, TypeError):
        return None
