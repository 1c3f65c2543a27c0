"""Encodes messages for one client: within its limits, with topic aliases where it takes them."""

from __future__ import annotations

from moldau.clock import Clock
from moldau.services.mqtt.machine import encoding
from moldau.services.mqtt.machine.outbound import Delivery
from moldau.services.mqtt.machine.packets import V5, Connect
from moldau.services.mqtt.machine.properties import NO_PROPERTIES, Properties, Property

__all__ = ["MessageEncoder"]


class MessageEncoder:
    def __init__(self, packet: Connect, clock: Clock) -> None:
        """`packet` is the client's CONNECT."""
        self._version = packet.version
        self.packet_max = packet.properties.get(Property.MAXIMUM_PACKET_SIZE, 0)
        self._alias_max = packet.properties.get(Property.TOPIC_ALIAS_MAXIMUM, 0)
        self._aliases: dict[str, int] = {}
        self._clock = clock

    def encode(self, delivery: Delivery) -> bytes | None:
        """None for a message that is larger than the client takes."""
        message = delivery.message
        version = self._version
        if not (
            delivery.qos
            or delivery.retain
            or delivery.subscription_ids
            or message.expires_ms
            or self._alias_max
        ):
            data = message.wires.get(version)
            if data is None:
                data = message.wires[version] = encoding.publish(
                    version, message.topic, message.payload, properties=message.properties
                )
            return data if not 0 < self.packet_max < len(data) else None
        data = encoding.publish(
            version,
            message.topic,
            message.payload,
            qos=delivery.qos,
            retain=delivery.retain,
            dup=delivery.dup,
            packet_id=delivery.packet_id,
            properties=self._properties(delivery) if version == V5 else NO_PROPERTIES,
        )
        if 0 < self.packet_max < len(data):
            return None
        return self._with_alias(delivery, data) if self._alias_max else data

    def _properties(self, delivery: Delivery) -> Properties:
        message = delivery.message
        if not (message.expires_ms or delivery.subscription_ids):
            return message.properties
        properties = dict(message.properties)
        if message.expires_ms:
            left_ms = message.expires_ms - self._clock.now_ms()
            properties[Property.MESSAGE_EXPIRY] = max(-(-left_ms // 1000), 1)
        if delivery.subscription_ids:
            properties[Property.SUBSCRIPTION_ID] = delivery.subscription_ids
        return properties

    def _with_alias(self, delivery: Delivery, data: bytes) -> bytes:
        """With a number in place of the topic, from the second message of a topic on."""
        message = delivery.message
        alias = self._aliases.get(message.topic)
        topic = "" if alias else message.topic
        if alias is None:
            if len(self._aliases) >= self._alias_max:
                return data
            alias = self._aliases[message.topic] = len(self._aliases) + 1
        found = encoding.publish(
            self._version,
            topic,
            message.payload,
            qos=delivery.qos,
            retain=delivery.retain,
            dup=delivery.dup,
            packet_id=delivery.packet_id,
            properties={**self._properties(delivery), Property.TOPIC_ALIAS: alias},
        )
        if 0 < self.packet_max < len(found):
            if topic:
                del self._aliases[message.topic]
            return data
        return found
