"""Reads and writes the notes of what transactions have consumed (`machine/notes.py`)."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from moldau.client import (
    Admin,
    Consumer,
    KafkaError,
    NewTopic,
    Producer,
    TopicExistsError,
    TopicPartition,
)
from moldau.messaging.machine.errors import MessagingError
from moldau.messaging.machine.notes import TOPIC, Notes

__all__ = ["ConsumedNotes"]

READ_S: Final = 20.0
_PLACE: Final = TopicPartition(TOPIC, 0)
#: A note is deleted when its message is acknowledged; one that was left behind lasts so long.
_CONFIGS: Final = {"cleanup.policy": "compact,delete", "retention.ms": str(7 * 24 * 3600 * 1000)}


class ConsumedNotes:
    """Of one connection; nothing is read until a message comes a second time."""

    def __init__(self, client_settings: dict[str, str], admin: Admin) -> None:
        self._client_settings = client_settings
        self._admin = admin
        self._notes = Notes()
        self._consumer: Consumer[bytes | None, bytes | None] | None = None
        self._lock = threading.Lock()
        self._created = False

    def ensure_topic(self) -> None:
        """Raises KafkaError."""
        if not self._created:
            if self._admin.describe_topics([TOPIC], check=False).errors:
                with suppress(TopicExistsError):
                    self._admin.create_topics([NewTopic(TOPIC, 1, configs=_CONFIGS)])
            self._created = True

    def write(
        self, producer: Producer, *, consumed: Iterable[bytes], forgotten: Iterable[bytes]
    ) -> None:
        """Into the open transaction of `producer`. Raises KafkaError."""
        self.ensure_topic()
        for key in consumed:
            producer.send(TOPIC, b"1", key)
        for key in forgotten:
            producer.send(TOPIC, None, key)

    def contains(self, key: bytes) -> bool:
        """Whether a committed transaction has consumed it. Raises MessagingError."""
        with self._lock:
            try:
                self._read_to_the_end()
            except KafkaError as error:
                raise MessagingError(
                    f"{TOPIC} cannot be read, so it is not known whether a message that comes "
                    f"again was consumed: {error}"
                ) from error
            return key in self._notes

    def _read_to_the_end(self) -> None:
        consumer = self._consumer
        if consumer is None:
            if self._admin.describe_topics([TOPIC], check=False).errors:
                return
            consumer = self._consumer = Consumer(
                {
                    **self._client_settings,
                    "isolation.level": "read_committed",
                    "enable.auto.commit": "false",
                    "auto.offset.reset": "earliest",
                }
            )
            consumer.assign([_PLACE])
            consumer.seek_to_beginning([_PLACE])
        end = consumer.end_offsets([_PLACE], timeout=READ_S)[_PLACE]
        deadline = time.monotonic() + READ_S
        while consumer.position(_PLACE, timeout=READ_S) < end:
            for record in consumer.poll(0.2):
                self._notes.replay(record.key, record.value)
            if time.monotonic() > deadline:
                raise MessagingError(f"{TOPIC} cannot be read to its end in {READ_S:g} s")

    def close(self) -> None:
        with self._lock:
            if self._consumer is not None:
                with suppress(KafkaError):
                    self._consumer.close(5)
                self._consumer = None
