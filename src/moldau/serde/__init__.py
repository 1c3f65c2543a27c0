"""Serializers and deserializers with a Schema Registry, for the clients.

Each module is imported when one of its names is used: Avro needs fastavro, JSON Schema
jsonschema-rs, Protobuf protobuf, all in the extra `schemas`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from moldau.serde.errors import RegistryError, RegistryUnavailableError
from moldau.serde.registry_client import SchemaRegistryClient
from moldau.serde.values import RegisteredSchema, Schema, SchemaReference

if TYPE_CHECKING:
    from moldau.serde.avro import AvroDeserializer, AvroSerializer
    from moldau.serde.json_schema import JsonSchemaDeserializer, JsonSchemaSerializer
    from moldau.serde.protobuf import ProtobufDeserializer, ProtobufSerializer

__all__ = [
    "AvroDeserializer",
    "AvroSerializer",
    "JsonSchemaDeserializer",
    "JsonSchemaSerializer",
    "ProtobufDeserializer",
    "ProtobufSerializer",
    "RegisteredSchema",
    "RegistryError",
    "RegistryUnavailableError",
    "Schema",
    "SchemaReference",
    "SchemaRegistryClient",
]

_MODULES = {"Avro": "avro", "JsonSchema": "json_schema", "Protobuf": "protobuf"}


def __getattr__(name: str) -> Any:
    format_name = name.removesuffix("Serializer").removesuffix("Deserializer")
    if name in __all__ and format_name in _MODULES:
        return getattr(import_module(f"moldau.serde.{_MODULES[format_name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
