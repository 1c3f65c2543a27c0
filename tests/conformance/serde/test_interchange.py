"""moldau.serde and confluent-kafka's serializers read one another, through one registry."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from confluent_kafka.schema_registry import (
    SchemaRegistryClient as TheirClient,
)
from confluent_kafka.schema_registry import (
    dual_schema_id_deserializer,
    header_schema_id_serializer,
)
from confluent_kafka.schema_registry.avro import AvroDeserializer as TheirAvroReader
from confluent_kafka.schema_registry.avro import AvroSerializer as TheirAvroWriter
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer as TheirProtobufReader
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer as TheirProtobufWriter
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import timestamp_pb2

from moldau.client import Consumer, Producer
from moldau.client.errors import ConfigError, SerializationError
from moldau.data.protobuf import ProtobufLanguage
from moldau.data.schema_language import ResolvedReference
from moldau.serde import (
    AvroDeserializer,
    AvroSerializer,
    JsonSchemaDeserializer,
    JsonSchemaSerializer,
    ProtobufDeserializer,
    ProtobufSerializer,
    RegistryError,
    RegistryUnavailableError,
    Schema,
    SchemaReference,
    SchemaRegistryClient,
)
from moldau.testing import Broker
from support.registry.stage import RegistryStage, registry_on

ORDER = {
    "type": "record",
    "name": "Order",
    "namespace": "com.example",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "customer", "type": ["null", "string"], "default": None},
        {"name": "amount", "type": "double"},
        {"name": "tags", "type": {"type": "array", "items": "string"}, "default": []},
    ],
}
ORDER_TEXT = json.dumps(ORDER)
#: The same with one more field, which has a default.
ORDER_2 = json.dumps(
    {**ORDER, "fields": [*ORDER["fields"], {"name": "note", "type": "string", "default": "-"}]}  # type: ignore[misc]
)
VALUES = [
    {"id": 1, "customer": "ada", "amount": 1.5, "tags": ["a", "b"]},
    {"id": -(2**40), "customer": None, "amount": -0.0, "tags": []},
]
JSON_TEXT = json.dumps(
    {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Order",
        "type": "object",
        "properties": {"id": {"type": "integer"}, "customer": {"type": ["string", "null"]}},
        "required": ["id"],
    }
)
PROTO_TEXT = """\
syntax = "proto3";
package com.example;

message First {
  string unused = 1;
}

message Outer {
  message Order {
    int64 id = 1;
    string customer = 2;
    repeated string tags = 3;
  }
}
"""
NESTED = "com.example.Outer.Order"


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as found:
        yield found


@pytest.fixture(scope="module")
def stage(broker: Broker) -> Iterator[RegistryStage]:
    with registry_on(broker.bootstrap_servers) as found:
        yield found


@pytest.fixture
def registry(stage: RegistryStage) -> Iterator[SchemaRegistryClient]:
    stage.reset()
    with SchemaRegistryClient(stage.running.url) as found:
        yield found


@pytest.fixture
def theirs(registry: SchemaRegistryClient, stage: RegistryStage) -> TheirClient:
    return TheirClient({"url": stage.running.url})


def value_of(topic: str, headers: list[tuple[str, bytes]] | None = None) -> SerializationContext:
    return SerializationContext(topic, MessageField.VALUE, headers)


@pytest.mark.parametrize("value", VALUES)
def test_avro_both_ways(registry: SchemaRegistryClient, theirs: TheirClient, value: Any) -> None:
    ours = AvroSerializer(ORDER_TEXT, registry=registry).serialize("t", value)
    written = TheirAvroWriter(theirs, ORDER_TEXT)(value, value_of("t"))
    assert ours == written
    assert ours is not None
    assert TheirAvroReader(theirs)(ours, value_of("t")) == value
    assert AvroDeserializer(registry=registry).deserialize("t", written) == value


def test_avro_by_a_header(registry: SchemaRegistryClient, theirs: TheirClient) -> None:
    config = {"value.schema.id.serializer": "HeaderSchemaIdSerializer"}
    our_headers: list[tuple[str, bytes]] = []
    ours = AvroSerializer(ORDER_TEXT, registry=registry, config=config).serialize(
        "t", VALUES[0], our_headers
    )
    their_headers: list[tuple[str, bytes]] = []
    writer = TheirAvroWriter(
        theirs, ORDER_TEXT, conf={"schema.id.serializer": header_schema_id_serializer}
    )
    written = writer(VALUES[0], value_of("t", their_headers))
    assert (ours, our_headers) == (written, their_headers)
    reader = TheirAvroReader(theirs, conf={"schema.id.deserializer": dual_schema_id_deserializer})
    assert reader(ours, value_of("t", our_headers)) == VALUES[0]
    again = AvroDeserializer(registry=registry).deserialize("t", written, their_headers)
    assert again == VALUES[0]


def test_json_and_protobuf_by_a_header(registry: SchemaRegistryClient, theirs: TheirClient) -> None:
    """confluent-kafka reads and writes the same; the last header counts, as in Java."""
    config = {"value.schema.id.serializer": "HeaderSchemaIdSerializer"}
    conf: dict[str, Any] = {"schema.id.serializer": header_schema_id_serializer}
    reads: dict[str, Any] = {"schema.id.deserializer": dual_schema_id_deserializer}
    value = {"id": 5, "customer": "zoë"}
    ours: list[tuple[str, bytes]] = [("__value_schema_id", b"\x01" + bytes(16))]
    data = JsonSchemaSerializer(JSON_TEXT, registry=registry, config=config).serialize(
        "jh", value, ours
    )
    other: list[tuple[str, bytes]] = []
    written = JSONSerializer(JSON_TEXT, theirs, conf=conf)(value, value_of("jh", other))
    assert ours[1:] == other
    reader = JSONDeserializer(None, conf=reads, schema_registry_client=theirs)
    assert reader(data, value_of("jh", ours[1:])) == value
    own = JsonSchemaDeserializer(registry=registry)
    assert own.deserialize("jh", data, ours) == own.deserialize("jh", written, other) == value

    order_class = ProtobufLanguage().parse(PROTO_TEXT).message_class(NESTED)
    order = order_class(id=3, customer="ada", tags=["a", "b"])
    ours, other = [], []
    data = ProtobufSerializer(order_class, registry=registry, config=config).serialize(
        "ph", order, ours
    )
    plain = {"use.deprecated.format": False}
    writer = TheirProtobufWriter(order_class, theirs, {**plain, **conf})
    assert (data, ours) == (writer(order, value_of("ph", other)), other)
    their = TheirProtobufReader(order_class, {**plain, **reads}, theirs)
    assert their(data, value_of("ph", ours)) == order
    again = ProtobufDeserializer(order_class, registry=registry)
    assert again.deserialize("ph", data, other) == order


@pytest.mark.parametrize(
    ("strategy", "subject"),
    [
        (None, "com/acme/Event.proto"),
        ("QualifiedReferenceSubjectNameStrategy", "com.acme.Event"),
        (lambda name: f"own-{name}", "own-com/acme/Event.proto"),
    ],
)
def test_what_a_class_imports_is_registered_by_a_strategy(
    registry: SchemaRegistryClient, strategy: Any, subject: str
) -> None:
    imported = ResolvedReference(
        "com/acme/Event.proto",
        'syntax = "proto3"; package com.acme; message Event { int64 at = 1; }',
    )
    text = (
        'syntax = "proto3"; import "com/acme/Event.proto"; '
        "message Load { com.acme.Event event = 1; }"
    )
    made = ProtobufLanguage().parse(text, [imported]).message_class("Load")
    config = {"reference.subject.name.strategy": strategy}
    topic = f"loads-{subject}".replace("/", "-")
    data = ProtobufSerializer(made, registry=registry, config=config).serialize(topic, made())
    found = registry.latest(f"{topic}-value").schema.references
    assert found == (SchemaReference("com/acme/Event.proto", subject, 1),)
    assert ProtobufDeserializer(registry=registry).deserialize(topic, data) == {}


def test_a_strategy_that_is_not_known_is_refused(registry: SchemaRegistryClient) -> None:
    config = {"reference.subject.name.strategy": "Other"}
    with pytest.raises(ConfigError, match="must be DefaultReferenceSubjectNameStrategy"):
        AvroSerializer(ORDER_TEXT, registry=registry, config=config).serialize("t", VALUES[0])


def test_bytes_stand_alone(registry: SchemaRegistryClient, theirs: TheirClient) -> None:
    ours = AvroSerializer('"bytes"', registry=registry).serialize("t", b"\x01\x02")
    assert ours is not None
    assert ours[5:] == b"\x01\x02"
    assert TheirAvroReader(theirs)(ours, value_of("t")) == b"\x01\x02"
    assert AvroDeserializer(registry=registry).deserialize("t", ours) == b"\x01\x02"


def test_avro_evolves_on_read(registry: SchemaRegistryClient) -> None:
    old = AvroSerializer(ORDER_TEXT, registry=registry).serialize("t", VALUES[0])
    new_value = VALUES[0] | {"note": "fast"}
    new = AvroSerializer(ORDER_2, registry=registry).serialize("t", new_value)
    as_new = AvroDeserializer(ORDER_2, registry=registry)
    assert as_new.deserialize("t", old) == VALUES[0] | {"note": "-"}
    assert as_new.deserialize("t", new) == new_value
    as_old = AvroDeserializer(ORDER_TEXT, registry=registry)
    assert as_old.deserialize("t", new) == VALUES[0]
    latest = AvroDeserializer(registry=registry, config={"use.latest.version": True})
    assert latest.deserialize("t", old) == VALUES[0] | {"note": "-"}


def test_the_latest_version_is_written_where_that_is_asked_for(
    registry: SchemaRegistryClient,
) -> None:
    registry.register("t-value", Schema(ORDER_TEXT))
    latest = registry.register("t-value", Schema(ORDER_2))
    config = {"use.latest.version": True, "auto.register.schemas": False}
    written = AvroSerializer(registry=registry, config=config).serialize("t", VALUES[0])
    assert written is not None
    assert int.from_bytes(written[1:5]) == latest
    other = '{"type":"record","name":"Order","namespace":"com.example","fields":[]}'
    with pytest.raises(SerializationError, match="cannot read what the serializer's own schema"):
        AvroSerializer(other, registry=registry, config=config).serialize("t", {})


@pytest.mark.parametrize(
    ("strategy", "subject"),
    [
        ("io.confluent.kafka.serializers.subject.RecordNameStrategy", "com.example.Order"),
        ("TopicRecordNameStrategy", "t-com.example.Order"),
        (lambda topic, is_key, name: f"mine.{topic}", "mine.t"),
    ],
)
def test_subjects(registry: SchemaRegistryClient, strategy: Any, subject: str) -> None:
    config = {"value.subject.name.strategy": strategy}
    AvroSerializer(ORDER_TEXT, registry=registry, config=config).serialize("t", VALUES[0])
    assert registry.subjects() == [subject]


def test_a_dataclass(registry: SchemaRegistryClient) -> None:
    @dataclass
    class Order:
        id: int
        customer: str | None
        amount: float
        tags: list[str]

    order = Order(7, "bob", 2.5, ["x"])
    written = AvroSerializer(ORDER_TEXT, registry=registry).serialize("t", order)
    reader = AvroDeserializer(registry=registry, from_dict=lambda found: Order(**found))
    assert reader.deserialize("t", written) == order


def test_references(registry: SchemaRegistryClient, theirs: TheirClient) -> None:
    registry.register("order", Schema(ORDER_TEXT))
    text = (
        '{"type":"record","name":"Line","fields":[{"name":"of","type":"com.example.Order"},'
        '{"name":"n","type":"int"}]}'
    )
    schema = Schema(text, references=(SchemaReference("com.example.Order", "order", 1),))
    value = {"of": VALUES[0], "n": 3}
    written = AvroSerializer(schema, registry=registry).serialize("t", value)
    assert TheirAvroReader(theirs)(written, value_of("t")) == value
    assert AvroDeserializer(registry=registry).deserialize("t", written) == value


def test_json_both_ways(registry: SchemaRegistryClient, theirs: TheirClient) -> None:
    value = {"id": 5, "customer": "zoë"}
    ours = JsonSchemaSerializer(JSON_TEXT, registry=registry).serialize("j", value)
    written = JSONSerializer(JSON_TEXT, theirs)(value, value_of("j"))
    assert ours is not None
    assert written is not None
    assert ours[:5] == written[:5]
    assert JSONDeserializer(None, schema_registry_client=theirs)(ours, value_of("j")) == value
    assert JsonSchemaDeserializer(registry=registry).deserialize("j", written) == value


def test_json_that_does_not_fit_is_refused_with_its_place(registry: SchemaRegistryClient) -> None:
    writer = JsonSchemaSerializer(JSON_TEXT, registry=registry)
    with pytest.raises(SerializationError, match=r"\$\.id: .*integer"):
        writer.serialize("j", {"id": "seven"})
    lax = JsonSchemaSerializer(
        JSON_TEXT, registry=registry, config={"json.fail.invalid.schema": False}
    )
    wrong = lax.serialize("j", {"id": "seven"})
    with pytest.raises(SerializationError, match="does not fit"):
        JsonSchemaDeserializer(registry=registry).deserialize("j", wrong)


def test_protobuf_classes_both_ways(registry: SchemaRegistryClient, theirs: TheirClient) -> None:
    order_class = ProtobufLanguage().parse(PROTO_TEXT).message_class(NESTED)
    order = order_class(id=3, customer="ada", tags=["a", "b"])
    ours = ProtobufSerializer(order_class, registry=registry).serialize("p", order)
    writer = TheirProtobufWriter(order_class, theirs, {"use.deprecated.format": False})
    assert ours == writer(order, value_of("p"))
    reader = TheirProtobufReader(order_class, {"use.deprecated.format": False}, theirs)
    assert reader(ours, value_of("p")) == order
    ours_again = ProtobufDeserializer(order_class, registry=registry)
    assert ours_again.deserialize("p", ours) == order
    as_dict = ProtobufDeserializer(registry=registry).deserialize("p", ours)
    assert as_dict == {"id": "3", "customer": "ada", "tags": ["a", "b"]}


def test_protobuf_dicts_of_a_nested_message(registry: SchemaRegistryClient) -> None:
    value = {"id": "12", "customer": "ada", "tags": ["a"]}
    writer = ProtobufSerializer(PROTO_TEXT, message=NESTED, registry=registry)
    written = writer.serialize("p", value)
    assert written is not None
    # The first message inside the second one: a path of two numbers, 1 and 0.
    assert written[5:8] == bytes([4, 2, 0])
    assert ProtobufDeserializer(registry=registry).deserialize("p", written) == value
    message = ProtobufDeserializer(registry=registry, as_dict=False).deserialize("p", written)
    assert message.id == 12
    with pytest.raises(SerializationError, match=r"no message com\.example\.Outer\.Order"):
        writer.serialize("p", {"id": "not a number"})
    with pytest.raises(SerializationError, match=r"google\.protobuf\.Timestamp where"):
        writer.serialize("p", timestamp_pb2.Timestamp())


def test_clients_use_them_by_their_settings(broker: Broker, stage: RegistryStage) -> None:
    stage.reset()
    broker.create_topic("orders")
    with Producer(
        {"schema.registry.url": stage.running.url},
        bootstrap_servers=broker.bootstrap_servers,
        key_serializer="string",
        value_serializer=AvroSerializer(ORDER_TEXT),
    ) as producer:
        for value in VALUES:
            producer.send("orders", value, key="k").result(30)
        producer.send("orders", None, key="gone").result(30)
        with pytest.raises(SerializationError, match="does not fit the Avro schema"):
            producer.send("orders", {"id": "no number"})
    found = []
    with Consumer(
        {"schema.registry.url": stage.running.url, "auto.offset.reset": "earliest"},
        bootstrap_servers=broker.bootstrap_servers,
        group_id="readers",
        value_deserializer="moldau.serde.AvroDeserializer",
    ) as consumer:
        consumer.subscribe(["orders"])
        while len(found) < 3:
            found += [record.value for record in consumer.poll(30.0)]
    assert found == [*VALUES, None]


REFUSED: list[tuple[Callable[[SchemaRegistryClient], object], str]] = [
    (lambda registry: registry.schema_by_id(404_404), "40403"),
    (lambda registry: registry.latest("nobody"), "40401"),
    (lambda registry: registry.register("s", Schema('{"type": "nonsense"}')), "42201"),
]


@pytest.mark.parametrize(("ask", "code"), REFUSED)
def test_what_the_registry_refuses(
    registry: SchemaRegistryClient, ask: Callable[[SchemaRegistryClient], object], code: str
) -> None:
    with pytest.raises(RegistryError, match=rf"error code {code}, from http://127\.0\.0\.1"):
        ask(registry)


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "too few for the id"),
        (b"\x00\x00\x00", "too few for the id"),
        (b'{"a": 1}', "the first byte is 123, not 0"),
    ],
)
def test_bytes_without_a_schema(registry: SchemaRegistryClient, data: bytes, problem: str) -> None:
    with pytest.raises(SerializationError, match=problem):
        AvroDeserializer(registry=registry).deserialize("t", data)


def test_a_schema_of_another_format(registry: SchemaRegistryClient) -> None:
    written = JsonSchemaSerializer(JSON_TEXT, registry=registry).serialize("j", {"id": 1})
    with pytest.raises(SerializationError, match="of type JSON, this deserializer reads AVRO"):
        AvroDeserializer(registry=registry).deserialize("j", written)


def test_of_several_addresses_one_is_enough(stage: RegistryStage) -> None:
    stage.reset()
    urls = f"http://127.0.0.1:9,{stage.running.url}"
    with SchemaRegistryClient(urls) as registry:
        assert registry.subjects() == []
    with (
        SchemaRegistryClient("http://127.0.0.1:9", {"max.retries": 1}) as registry,
        pytest.raises(RegistryUnavailableError, match=r"127\.0\.0\.1:9 does not answer"),
    ):
        registry.subjects()
