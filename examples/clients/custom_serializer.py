"""A serializer and a deserializer for a class of the program: 4 bytes of id, then the name.

A format of one's own ties all readers to this code. A schema (avro_generic.py) is mostly better.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from common import SECONDS_MAX, begin

from moldau.client import Consumer, Producer, SerializationError


@dataclass(frozen=True)
class Customer:
    id: int
    name: str


class CustomerSerializer:
    def serialize(self, topic: str, data: Customer | None, headers: object = None) -> bytes | None:
        return None if data is None else struct.pack(">i", data.id) + data.name.encode()


class CustomerDeserializer:
    def deserialize(
        self, topic: str, data: bytes | None, headers: Sequence[object] = ()
    ) -> Customer | None:
        if data is None:
            return None
        if len(data) < 4:
            raise SerializationError(f"a customer has at least 4 bytes, not {len(data)}")
        return Customer(struct.unpack(">i", data[:4])[0], data[4:].decode())


bootstrap, topic, _ = begin(__doc__)
with Producer(bootstrap_servers=bootstrap, value_serializer=CustomerSerializer()) as producer:
    producer.send(topic, Customer(7, "Ada")).result(SECONDS_MAX)
    producer.send(topic, None, key="8").result(SECONDS_MAX)
with Consumer(
    bootstrap_servers=bootstrap,
    group_id=topic,
    auto_offset_reset="earliest",
    value_deserializer=CustomerDeserializer(),
) as consumer:
    consumer.subscribe([topic])
    for record in consumer.poll(SECONDS_MAX):
        print(record.value)
