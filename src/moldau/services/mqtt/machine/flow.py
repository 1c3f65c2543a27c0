"""The flow of a session as JSON: where it is in the log, and which messages are on their way.

A message in flight is stored as its place in the log, from where it is read again; a retained one,
which has no place, as a whole. Messages of shared subscriptions are not stored, for the share group
has them, except those with QoS 2: they belong to the session once they are sent.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from moldau.services.mqtt.machine.inbound import Inbound, Pending
from moldau.services.mqtt.machine.outbound import Delivery, Outbound
from moldau.services.mqtt.machine.properties import (
    Properties,
    Property,
    read_properties,
    write_properties,
)
from moldau.services.mqtt.machine.records import Message

__all__ = ["Flow", "InFlight", "read_flow", "write_flow"]

Place = tuple[str, int]
_ALLOWED: Final = frozenset(Property)


@dataclass(slots=True)
class InFlight:
    """`message` is None for one that must be read from `place` at `offset`."""

    packet_id: int
    stage: int
    qos: int
    retain: bool
    subscription_ids: tuple[int, ...]
    place: Place | None = None
    offset: int = -1
    message: Message | None = None


@dataclass(slots=True)
class Flow:
    positions: dict[Place, int] = field(default_factory=dict)
    in_flight: list[InFlight] = field(default_factory=list)
    pending: dict[int, Pending] = field(default_factory=dict)


def write_flow(
    positions: Mapping[Any, int],
    outbound: Outbound,
    inbound: Inbound,
    unrestored: Flow | None = None,
) -> bytes:
    """`unrestored` is what was read and is not in `outbound` yet."""
    by_topic: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in positions.items():
        by_topic.setdefault(topic, {})[str(partition)] = offset
    content = {
        "pos": by_topic,
        "out": [
            *(_again(each) for each in ([] if unrestored is None else unrestored.in_flight)),
            *(
                _in_flight(each)
                for each in outbound.in_flight.values()
                if each.token is None or each.qos == 2
            ),
        ],
        "in": [
            [number, each.message_id, each.since_ms, each.topic]
            for number, each in inbound.pending.items()
        ],
    }
    return json.dumps(content, separators=(",", ":")).encode()


def _in_flight(delivery: Delivery) -> list[Any]:
    message = delivery.message
    head = [delivery.packet_id, delivery.stage, delivery.qos, delivery.retain,
            list(delivery.subscription_ids)]  # fmt: skip
    if message.partition is not None:
        topic, partition = message.partition
        return [*head, topic, partition, message.offset]
    return [*head, _whole(message)]


def _again(each: InFlight) -> list[Any]:
    head = [each.packet_id, each.stage, each.qos, each.retain, list(each.subscription_ids)]
    if each.message is None:
        return [*head, *(each.place or ("", 0)), each.offset]
    return [*head, _whole(each.message)]


def _whole(message: Message) -> dict[str, str]:
    return {
        "topic": message.topic,
        "payload": base64.b64encode(message.payload).decode(),
        "properties": base64.b64encode(write_properties(message.properties)).decode(),
    }


def _properties(stored: Mapping[str, Any]) -> Properties:
    if "properties" in stored:
        return read_properties(base64.b64decode(stored["properties"]), 0, _ALLOWED)[0]
    # As it was stored before.
    users = [(str(name), str(text)) for name, text in stored.get("user", ())]
    return {Property.USER_PROPERTY.value: users} if users else {}


def read_flow(content: Mapping[str, Any]) -> Flow:
    flow = Flow()
    for topic, offsets in content.get("pos", {}).items():
        for partition, offset in offsets.items():
            flow.positions[topic, int(partition)] = int(offset)
    for packet_id, stage, qos, retain, ids, *source in content.get("out", ()):
        each = InFlight(packet_id, stage, qos, retain, tuple(ids))
        if len(source) == 3:
            each.place, each.offset = (source[0], source[1]), source[2]
        else:
            stored = source[0]
            properties = _properties(stored)
            payload = base64.b64decode(stored["payload"])
            each.message = Message(stored["topic"], payload, qos, retain, properties)
        flow.in_flight.append(each)
    for number, message_id, since_ms, topic in content.get("in", ()):
        flow.pending[number] = Pending(message_id, since_ms, topic)
    return flow
