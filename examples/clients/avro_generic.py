"""Avro without generated code: a record is a dict, and the reader has a newer schema.

It needs a Schema Registry: moldau registry start.
"""

from common import SECONDS_MAX, begin

from moldau.client import Consumer, Producer
from moldau.serde import AvroDeserializer, AvroSerializer

CUSTOMER = """
{"type": "record", "name": "Customer", "fields": [
  {"name": "id", "type": "int"},
  {"name": "name", "type": "string"}]}
"""
NEWER = """
{"type": "record", "name": "Customer", "fields": [
  {"name": "id", "type": "int"},
  {"name": "name", "type": "string"},
  {"name": "email", "type": ["null", "string"], "default": null}]}
"""

bootstrap, topic, registry = begin(__doc__)
settings = {"bootstrap.servers": bootstrap, "schema.registry.url": registry}
with Producer(settings, value_serializer=AvroSerializer(CUSTOMER)) as producer:
    producer.send(topic, {"id": 1, "name": "Ada"}).result(SECONDS_MAX)
with Consumer(
    settings,
    group_id=topic,
    auto_offset_reset="earliest",
    value_deserializer=AvroDeserializer(NEWER),
) as consumer:
    consumer.subscribe([topic])
    for record in consumer.poll(SECONDS_MAX):
        print(record.value)
