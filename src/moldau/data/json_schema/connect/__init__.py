"""Between Connect's schemas and values and JSON Schema, as Confluent's JsonSchemaData does it."""

from moldau.data.json_schema.connect.from_connect import schema_from_connect
from moldau.data.json_schema.connect.settings import JsonSchemaDataConfig
from moldau.data.json_schema.connect.to_connect import schema_to_connect
from moldau.data.json_schema.connect.values import value_from_connect, value_to_connect

__all__ = [
    "JsonSchemaDataConfig",
    "schema_from_connect",
    "schema_to_connect",
    "value_from_connect",
    "value_to_connect",
]
