"""The command topic: the statements that made the servers what they are, in ksqlDB's records.

A record's key is the command id ("stream/`S`/create"), its value the statement with the properties
it was given. Every server of a service id executes all of them in the order of the topic. The
offset of a command numbers its query.

Servers write in turns: each opens a transaction under the service id, which ends those of others,
and reads what is there before it decides. A writer that was overtaken gets `CommandConflict`: what
it decided may be wrong.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from moldau.client import Consumer, Producer
from moldau.client.errors import KafkaError
from moldau.client.topics import TopicPartition
from moldau.services.sql.cluster import ClusterTopics
from moldau.services.sql.config import SqlConfig

__all__ = ["Command", "CommandConflict", "CommandLog", "CommandWriter"]

_VERSION: Final = 14
_READ_TIMEOUT_S: Final = 60.0
_WRITE_TIMEOUT_S: Final = 30.0


class CommandConflict(Exception):
    """Another server has written in the meantime, or the topic cannot be written."""


@dataclass(frozen=True, slots=True)
class Command:
    offset: int
    statement: str
    properties: dict[str, Any]


class CommandLog:
    """Reads and appends commands. Used under the lock of the server."""

    def __init__(self, config: SqlConfig, topics: ClusterTopics) -> None:
        self._config = config
        self._topic = config.command_topic
        self._partition = TopicPartition(self._topic, 0)
        topics.create(
            self._topic,
            1,
            config["ksql.internal.topic.replicas"],
            {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"},
        )
        self._consumer = Consumer(
            config.client_settings(),
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            isolation_level="read_committed",
        )
        self._consumer.assign([self._partition])

    def read(self) -> list[Command]:
        """The commands since the last call; those that cannot be read are passed over."""
        found: list[Command] = []
        end = self._consumer.end_offsets([self._partition])[self._partition]
        deadline = time.monotonic() + _READ_TIMEOUT_S
        while self._consumer.position(self._partition) < end:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{self._topic} could not be read within {_READ_TIMEOUT_S} s")
            for record in self._consumer.poll(1.0):
                command = _command(record.offset, record.value)
                if command is not None:
                    found.append(command)
        return found

    def writer(self) -> CommandWriter:
        """Take the turn to write; what others have begun is refused from now on."""
        return CommandWriter(self._config, self._topic)

    def position(self) -> int:
        return self._consumer.position(self._partition)

    def skip_to(self, offset: int) -> None:
        """What this server has written itself is executed already."""
        self._consumer.seek(self._partition, offset)

    def close(self) -> None:
        self._consumer.close()


class CommandWriter:
    """One turn to write."""

    def __init__(self, config: SqlConfig, topic: str) -> None:
        self._topic = topic
        self._producer = Producer(
            config.client_settings(),
            acks="all",
            linger_ms=0,
            transactional_id=config.service_id,
        )
        try:
            self._producer.init_transactions(_WRITE_TIMEOUT_S)
        except BaseException:
            self._producer.close(timeout=0)
            raise

    def append(self, command_id: str, statement: str, properties: Mapping[str, Any]) -> int:
        """Write a command; its offset. Raises CommandConflict."""
        value = {
            "statement": statement,
            "streamsProperties": dict(properties),
            "originalProperties": {},
            "plan": None,
            "version": _VERSION,
        }
        try:
            self._producer.begin_transaction()
            future = self._producer.send(
                self._topic, json.dumps(value).encode(), key=json.dumps(command_id).encode()
            )
            offset = future.result(timeout=_WRITE_TIMEOUT_S).offset
            self._producer.commit_transaction(_WRITE_TIMEOUT_S)
        except (KafkaError, TimeoutError) as error:
            raise CommandConflict(
                "Could not write the statement into the command topic: another server has "
                f"written, or the topic cannot be written. Try again. Caused by: {error}"
            ) from error
        return offset

    def close(self) -> None:
        self._producer.close(timeout=5)


def _command(offset: int, value: bytes | None) -> Command | None:
    try:
        found = json.loads(value or b"")
        return Command(offset, str(found["statement"]), dict(found.get("streamsProperties") or {}))
    except (ValueError, KeyError, TypeError):
        return None
