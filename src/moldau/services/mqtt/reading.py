"""A record that a consumer has read, as an MQTT message."""

from __future__ import annotations

from typing import Any

from moldau.client import TopicPartition
from moldau.services.mqtt.machine.mapping import Mapper
from moldau.services.mqtt.machine.records import Message, read_message

__all__ = ["message_of"]


def message_of(mapper: Mapper, record: Any) -> Message | None:
    """None for a record that has no MQTT topic."""
    topic = mapper.to_mqtt(record.topic, record.key, record.headers)
    if topic is None:
        return None
    return read_message(
        topic,
        record.value,
        record.headers,
        timestamp_ms=record.timestamp,
        partition=TopicPartition(record.topic, record.partition),
        offset=record.offset,
    )
