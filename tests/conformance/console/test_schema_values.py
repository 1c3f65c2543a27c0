"""Records with schemas: written by Confluent's own serializers, shown, filtered and sent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from moldau.client import Admin, Consumer, NewTopic, Producer, TopicPartition
from support.console import Console, console_of
from support.processes import BrokerProcess
from support.registry.stage import RegistryStage, registry_on

USER = """{"type": "record", "name": "User", "fields": [
  {"name": "name", "type": "string"}, {"name": "age", "type": "int"}]}"""
JSON_USER = '{"title": "User", "type": "object", "properties": {"n": {"type": "integer"}}}'


@pytest.fixture(scope="module")
def registry(broker: BrokerProcess) -> Iterator[RegistryStage]:
    with registry_on(broker.bootstrap) as found:
        yield found


@pytest.fixture(scope="module")
def console(broker: BrokerProcess, registry: RegistryStage) -> Iterator[Console]:
    with console_of(broker.bootstrap, schema_registry_url=registry.running.url) as found:
        yield found


def search(console: Console, topic: str, expression: str = "") -> list[Any]:
    asked = {"start": "beginning", "expression": expression}
    lines = list(console.lines(f"/topics/{topic}/messages", asked))
    return [each["record"]["value"] for each in lines if "record" in each]


def test_values_with_schemas(
    console: Console, broker: BrokerProcess, registry: RegistryStage, admin: Admin
) -> None:
    admin.create_topics([NewTopic("users", 1, 1)])
    client = SchemaRegistryClient({"url": registry.running.url})
    context = SerializationContext("users", MessageField.VALUE)
    written = AvroSerializer(client, USER)({"name": "ada", "age": 36}, context)
    other = JSONSerializer(JSON_USER, client)(
        {"n": 5}, SerializationContext("others", MessageField.VALUE)
    )
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        producer.send("users", written)
        producer.send("users", other)
        producer.send("users", b"\x00\x00\x01\x86\x9fno such schema")
    avro, json_value, unknown = search(console, "users")
    assert (avro["kind"], avro["value"]) == ("avro", {"name": "ada", "age": 36})
    assert (json_value["kind"], json_value["value"]) == ("json-schema", {"n": 5})
    assert unknown["kind"] == "bytes"
    assert "schema 99999" in unknown["note"]
    assert len(search(console, "users", 'value.age > 30 and value.name = "ada"')) == 1

    sent = {"records": [{"value": {"name": "bob", "age": 7}}], "value_format": "avro"}
    console.ask("POST", "/topics/users/records", sent)
    refused = {"records": [{"value": {"name": 7}}], "value_format": "avro"}
    console.ask("POST", "/topics/users/records", refused, status=400)
    place = TopicPartition("users", 0)
    with Consumer(bootstrap_servers=broker.bootstrap) as consumer:
        consumer.assign([place])
        consumer.seek(place, 3)
        record = None
        while record is None:
            record = next(iter(consumer.poll(5.0)), None)
    assert AvroDeserializer(client)(record.value, context) == {"name": "bob", "age": 7}


def message_class() -> Any:
    """`message User { string name = 1; int32 age = 2; }`"""
    field = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="console_user.proto", syntax="proto3")
    message = file.message_type.add(name="User")
    for number, (name, kind) in enumerate(
        (("name", field.TYPE_STRING), ("age", field.TYPE_INT32)), start=1
    ):
        message.field.add(name=name, number=number, type=kind, label=field.LABEL_OPTIONAL)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("User"))


def test_values_in_protobuf(
    console: Console, broker: BrokerProcess, registry: RegistryStage, admin: Admin
) -> None:
    admin.create_topics([NewTopic("people", 1, 1)])
    user, how = message_class(), {"use.deprecated.format": False}
    client = SchemaRegistryClient({"url": registry.running.url})
    context = SerializationContext("people", MessageField.VALUE)
    written = ProtobufSerializer(user, client, how)(user(name="ada", age=36), context)
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        producer.send("people", written)
    (found,) = search(console, "people", "value.age > 30")
    assert (found["kind"], found["value"]) == ("protobuf", {"name": "ada", "age": 36})
    sent = {"records": [{"value": {"name": "bob", "age": 7}}], "value_format": "protobuf"}
    console.ask("POST", "/topics/people/records", sent)
    place = TopicPartition("people", 0)
    with Consumer(bootstrap_servers=broker.bootstrap) as consumer:
        consumer.assign([place])
        consumer.seek(place, 1)
        record = None
        while record is None:
            record = next(iter(consumer.poll(5.0)), None)
    read = ProtobufDeserializer(user, how, client)(record.value, context)
    assert (read.name, read.age) == ("bob", 7)
