"""Formats: rows of columns to bytes and back, and their schemas in a registry.

`format_for(name, properties)` gives a `moldau.sql.ports.Format`.
"""

from __future__ import annotations

from collections.abc import Mapping

from moldau.sql.errors import KsqlException
from moldau.sql.formats.delimited import DelimitedFormat
from moldau.sql.formats.errors import SerdeError
from moldau.sql.formats.json_format import JsonFormat
from moldau.sql.formats.simple_formats import KafkaFormat, NoneFormat
from moldau.sql.ports import Format

__all__ = ["NAMES", "SerdeError", "format_for"]

NAMES = ("AVRO", "JSON", "JSON_SR", "PROTOBUF", "PROTOBUF_NOSR", "KAFKA", "DELIMITED", "NONE")


def format_for(name: str, properties: Mapping[str, str]) -> Format:
    """The format with its properties, or ksqlDB's error."""
    match name.upper():
        case "JSON":
            return JsonFormat(properties)
        case "KAFKA":
            return KafkaFormat(properties)
        case "DELIMITED":
            return DelimitedFormat(properties)
        case "NONE":
            return NoneFormat(properties)
        case "AVRO" | "JSON_SR" | "PROTOBUF" | "PROTOBUF_NOSR":
            return _with_schemas(name.upper(), properties)
        case _:
            raise KsqlException(f"Unknown format: {name}")


def _with_schemas(name: str, properties: Mapping[str, str]) -> Format:
    # Their libraries are an extra, and take a while to import.
    if name == "AVRO":
        from moldau.sql.formats.avro import AvroFormat

        return AvroFormat(properties)
    if name == "JSON_SR":
        from moldau.sql.formats.json_schema import JsonSchemaFormat

        return JsonSchemaFormat(properties)
    from moldau.sql.formats.protobuf import ProtobufFormat, ProtobufNoRegistryFormat

    if name == "PROTOBUF":
        return ProtobufFormat(properties)
    return ProtobufNoRegistryFormat(properties)
