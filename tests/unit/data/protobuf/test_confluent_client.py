"""Confluent's Python client and this package read each other's schemas and records."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pool, message_factory

from moldau.data.protobuf import ProtobufLanguage, decode_path, encode_path
from moldau.data.schema_language import ResolvedReference
from support import protoc

LANGUAGE = ProtobufLanguage()
CONTEXT = SerializationContext("orders", MessageField.VALUE)
TEXTS = {
    "money.proto": 'syntax = "proto3"; package shop; message Money { int64 units = 1; }',
    "order.proto": """
        syntax = "proto3"; package shop;
        import "money.proto"; import "google/protobuf/timestamp.proto";
        message First { map<string, int32> counts = 1; message Inner { string name = 1; }
          optional int32 maybe = 2; }
        message Order {
          map<string, Money> prices = 1; google.protobuf.Timestamp at = 2;
          message Line { string sku = 1; } repeated Line lines = 3;
          oneof payment { string card = 4; Money cash = 5; }
        }
    """,
}


@pytest.fixture
def classes(tmp_path: Path) -> Any:
    """Message classes as protoc makes them, by name."""
    for name, text in TEXTS.items():
        (tmp_path / name).write_text(text)
    pool = descriptor_pool.DescriptorPool()
    for file in protoc.compile_file("order.proto", tmp_path, tmp_path).values():
        pool.AddSerializedFile(file.SerializeToString())
    return lambda name: message_factory.GetMessageClass(pool.FindMessageTypeByName(name))


def client() -> Any:
    return SchemaRegistryClient.new_client({"url": "mock://"})


RECORDS: list[tuple[str, dict[str, Any]]] = [
    ("shop.First", {"counts": {"a": 1}, "maybe": 0}),
    ("shop.First.Inner", {"name": "n"}),
    ("shop.Order", {"prices": {"p": {"units": 2}}, "cash": {"units": 3}, "at": {"seconds": 4}}),
    ("shop.Order.Line", {"sku": "s"}),
]


@pytest.mark.parametrize(("name", "fields"), RECORDS)
def test_a_record_of_confluents_serializer_is_read(
    name: str, fields: dict[str, Any], classes: Any
) -> None:
    registry = client()
    serializer = ProtobufSerializer(classes(name), registry, {"use.deprecated.format": False})
    message = classes(name)(**fields)
    record = serializer(message, CONTEXT)
    assert record is not None

    registered = registry.get_latest_version("orders-value").schema
    references = []
    for each in registered.references:
        text = registry.get_version(each.subject, each.version).schema.schema_str
        references.append(ResolvedReference(each.name, text))
    schema = LANGUAGE.parse(registered.schema_str, references)
    path, at = decode_path(record, 5)
    assert schema.message_name(path) == name
    read = schema.message_class(name).FromString(record[at:])
    assert str(read) == str(message)
    # What the registry stores is the text, and that says the same.
    stored = LANGUAGE.parse(schema.canonical_text, references)
    assert stored.message_name(path) == name
    assert str(stored.message_class(name).FromString(record[at:])) == str(message)


@pytest.mark.parametrize(("name", "fields"), RECORDS)
def test_confluents_deserializer_reads_a_record(
    name: str, fields: dict[str, Any], classes: Any
) -> None:
    registry = client()
    references = [ResolvedReference("money.proto", TEXTS["money.proto"])]
    schema = LANGUAGE.parse(TEXTS["order.proto"], references)
    money = LANGUAGE.parse(TEXTS["money.proto"]).formatted("serialized")
    registry.register_schema("money.proto", Schema(money, "PROTOBUF"))
    written = Schema(
        schema.formatted("serialized"),
        "PROTOBUF",
        [SchemaReference("money.proto", "money.proto", 1)],
    )
    schema_id = registry.register_schema("orders-value", written)
    message = schema.message_class(name)(**fields)
    record = struct.pack(">bI", 0, schema_id) + encode_path(schema.message_indexes(name))
    record += message.SerializeToString()

    deserializer = ProtobufDeserializer(
        classes(name), {"use.deprecated.format": False}, schema_registry_client=registry
    )
    assert str(deserializer(record, CONTEXT)) == str(message)
