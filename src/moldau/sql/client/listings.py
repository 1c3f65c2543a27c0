"""Answers to SHOW, DESCRIBE and ASSERT as columns and rows."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

__all__ = ["LISTED", "cell", "listing_rows", "type_text"]

#: Where the rows of an entity are, and its columns: title and field.
LISTED: Final[Mapping[str, tuple[str, Sequence[tuple[str, str]]]]] = {
    "streams": (
        "streams",
        (
            ("Stream Name", "name"),
            ("Kafka Topic", "topic"),
            ("Key Format", "keyFormat"),
            ("Value Format", "valueFormat"),
            ("Windowed", "isWindowed"),
        ),
    ),
    "tables": (
        "tables",
        (
            ("Table Name", "name"),
            ("Kafka Topic", "topic"),
            ("Key Format", "keyFormat"),
            ("Value Format", "valueFormat"),
            ("Windowed", "isWindowed"),
        ),
    ),
    "queries": (
        "queries",
        (
            ("Query ID", "id"),
            ("Query Type", "queryType"),
            ("Status", "state"),
            ("Sink Name", "sinks"),
            ("Sink Kafka Topic", "sinkKafkaTopics"),
            ("Query String", "queryString"),
        ),
    ),
    "kafka_topics": ("topics", (("Kafka Topic", "name"), ("Partitions", "replicaInfo"))),
    "kafka_topics_extended": (
        "topics",
        (
            ("Kafka Topic", "name"),
            ("Partitions", "replicaInfo"),
            ("Consumers", "consumerCount"),
            ("ConsumerGroups", "consumerGroupCount"),
        ),
    ),
    "function_names": (
        "functions",
        (("Function Name", "name"), ("Type", "type"), ("Category", "category")),
    ),
    "properties": (
        "properties",
        (("Property", "name"), ("Scope", "scope"), ("Effective Value", "value")),
    ),
    "variables": ("variables", (("Variable Name", "name"), ("Value", "value"))),
    "connector_list": (
        "connectors",
        (("Connector Name", "name"), ("Type", "type"), ("Class", "className"), ("Status", "state")),
    ),
    "connector_plugins_list": (
        "connectorPlugins",
        (("Class", "className"), ("Type", "type"), ("Version", "version")),
    ),
}


def listing_rows(
    entities: Sequence[Mapping[str, Any]],
) -> tuple[list[str], list[tuple[Any, ...]]] | None:
    """Columns and rows of the last entity; None if it only says that something was done."""
    if not entities:
        return None
    entity = entities[-1]
    kind = entity.get("@type", "")
    if kind in LISTED:
        place, columns = LISTED[kind]
        rows = [
            tuple(_shown(field, each.get(field)) for _, field in columns)
            for each in entity.get(place, ())
        ]
        return [title for title, _ in columns], rows
    if kind == "type_list":
        found = [(name, type_text(each)) for name, each in entity["types"].items()]
        return ["Type Name", "Schema"], list(found)
    if kind == "sourceDescription":
        fields = entity["sourceDescription"]["fields"]
        return ["Field", "Type"], [(each["name"], field_type(each)) for each in fields]
    return None


def field_type(field: Mapping[str, Any]) -> str:
    """A column's type, with what it is besides a value."""
    marker = {"KEY": " (key)", "HEADER": " (header)"}.get(field.get("type") or "", "")
    return type_text(field["schema"]) + marker


def _shown(field: str, value: Any) -> Any:
    if field == "replicaInfo":
        return len(value or ())
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return value


def type_text(schema: Mapping[str, Any]) -> str:
    """A type of the REST interface as SQL writes it."""
    kind = schema["type"]
    match kind:
        case "STRING":
            return "VARCHAR(STRING)"
        case "ARRAY":
            return f"ARRAY<{type_text(schema['memberSchema'])}>"
        case "MAP":
            return f"MAP<STRING, {type_text(schema['memberSchema'])}>"
        case "STRUCT":
            fields = (f"{each['name']} {type_text(each['schema'])}" for each in schema["fields"])
            return f"STRUCT<{', '.join(fields)}>"
        case "DECIMAL" if schema.get("parameters"):
            found = schema["parameters"]
            return f"DECIMAL({found['precision']}, {found['scale']})"
    return str(kind)


def cell(value: Any) -> str:
    """A value as tables show it."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, default=str)
