"""Avro with a class that `moldau schemas generate customer.avsc --output customer.py` wrote.

It needs a Schema Registry: moldau registry start.
"""

from common import SECONDS_MAX, begin
from customer import Customer

from moldau.client import Consumer, Producer
from moldau.serde import AvroDeserializer, AvroSerializer

bootstrap, topic, registry = begin(__doc__)
settings = {"bootstrap.servers": bootstrap, "schema.registry.url": registry}
serializer = AvroSerializer(Customer.SCHEMA, to_dict=Customer.to_dict)
with Producer(settings, value_serializer=serializer) as producer:
    producer.send(topic, Customer(id=1, name="Ada", email="ada@example.org")).result(SECONDS_MAX)
    producer.send(topic, Customer(id=2, name="Bob")).result(SECONDS_MAX)
with Consumer(
    settings,
    group_id=topic,
    auto_offset_reset="earliest",
    value_deserializer=AvroDeserializer(from_dict=Customer.from_dict),
) as consumer:
    consumer.subscribe([topic])
    for record in consumer.poll(SECONDS_MAX):
        print(record.value.name, record.value.email)
