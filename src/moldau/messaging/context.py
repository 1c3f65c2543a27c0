"""Context: what all objects of one connection use: the cluster's clients, and whether it runs."""

from __future__ import annotations

import logging
import pickle
import threading
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from moldau.client import (
    Admin,
    AlterConfigOp,
    ConfigResource,
    KafkaError,
    NewTopic,
    OffsetSpec,
    Producer,
    TopicExistsError,
    TopicPartition,
)
from moldau.messaging.consumed import ConsumedNotes
from moldau.messaging.machine.errors import InvalidDestinationError, MessagingError
from moldau.messaging.machine.records import Pickling
from moldau.messaging.machine.settings import MessagingSettings

__all__ = ["Context", "now_ms"]

logger = logging.getLogger(__name__)

READY_S: Final = 10.0


def now_ms() -> int:
    return time.time_ns() // 1_000_000


class Context:
    def __init__(self, settings: MessagingSettings, client_settings: dict[str, str]) -> None:
        self.settings = settings
        self.client_settings = client_settings
        self.id = uuid.uuid4().hex
        self.client_id: str | None = None
        self.started = threading.Event()
        self.closed = False
        self.on_error: Callable[[Exception], None] | None = None
        self.pickling = (
            Pickling(pickle.dumps, pickle.loads) if settings.allow_pickle else Pickling()
        )
        self.admin = Admin(client_settings)
        self.consumed = ConsumedNotes(client_settings, self.admin)
        self._producer: Producer | None = None
        self._lock = threading.Lock()
        self._known: set[str] = set()

    @property
    def producer(self) -> Producer:
        """Of all sessions that are not transacted."""
        with self._lock:
            if self._producer is None:
                self._producer = Producer({**self.client_settings, "linger.ms": "0"})
            return self._producer

    def report(self, error: Exception) -> None:
        """An error that no caller waits for."""
        logger.warning("messaging: %s", error)
        if self.on_error is not None:
            self.on_error(error)

    # Topics and groups.

    def ensure_topic(self, name: str) -> None:
        """Create the Kafka topic of a destination if it is missing. Raises MessagingError."""
        if name in self._known:
            return
        try:
            found = self.admin.describe_topics([name], check=False)
            if found.errors:
                with suppress(TopicExistsError):
                    self.admin.create_topics([NewTopic(name)])
                deadline = time.monotonic() + READY_S
                while self.admin.describe_topics([name], check=False).errors:
                    # Brokers learn of a new topic one after the other.
                    if time.monotonic() > deadline:
                        raise InvalidDestinationError(f"the topic {name} cannot be created")
                    time.sleep(0.05)
        except KafkaError as error:
            raise InvalidDestinationError(f"the destination {name} cannot be used: {error}") from (
                error
            )
        self._known.add(name)

    def partitions(self, topic: str) -> list[TopicPartition]:
        found = self.admin.describe_topics([topic])[topic]
        return [TopicPartition(topic, each.partition) for each in found.partitions]

    def prepare_group(self, group: str, topic: str, *, from_start: bool) -> None:
        """Configure a share group; a new one begins at the start or at the end of its topic."""
        values = {
            "share.auto.offset.reset": "earliest",
            "share.isolation.level": "read_committed",
            "share.delivery.count.limit": "10",
        }
        try:
            self.admin.incremental_alter_configs(
                {
                    ConfigResource.group(group): [
                        AlterConfigOp(name, value) for name, value in values.items()
                    ]
                }
            )
            known = self.admin.list_share_group_offsets(group, check=False)
            offsets = known.values_by_key.get(group) or {}
            if not from_start and not any(key.topic == topic for key in offsets):
                # Else messages would be missed until the consumer has joined.
                latest = OffsetSpec.latest()
                ends = self.admin.list_offsets(dict.fromkeys(self.partitions(topic), latest))
                self.admin.alter_share_group_offsets(
                    group, {key: each.offset for key, each in ends.items()}
                )
        except KafkaError as error:
            raise MessagingError(f"the share group {group} cannot be prepared: {error}") from error

    def close(self) -> None:
        self.consumed.close()
        for each in (self._producer, self.admin):
            if each is not None:
                try:
                    each.close(5)
                except KafkaError as error:
                    logger.warning("messaging: closing failed: %s", error)

    def dead_letter(self, record: Any, why: str) -> None:
        """Copy a record to the dead-letter topic of its destination. Raises MessagingError."""
        headers = [
            *(record.headers or ()),
            ("__connect.errors.topic", record.topic.encode()),
            ("__connect.errors.partition", str(record.partition).encode()),
            ("__connect.errors.offset", str(record.offset).encode()),
            ("__connect.errors.exception.message", why.encode()),
        ]
        name = record.topic + self.settings.dead_letter_suffix
        self.ensure_topic(name)
        self.copy(record, name, headers)

    def copy(self, record: Any, topic: str, headers: list[Any]) -> None:
        try:
            self.producer.send(
                topic, record.value, record.key, timestamp=record.timestamp, headers=headers
            ).result(30)
        except (KafkaError, TimeoutError) as error:
            raise MessagingError(f"{topic} cannot be written: {error}") from error
