"""What statements are answered with: ksqlDB's entities, as JSON values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moldau.sql.engine.results import Listing
from moldau.sql.syntax.statements import (
    AlterSource,
    ControlQuery,
    CreateAsSelect,
    CreateSource,
    CreateType,
    DropSource,
    DropType,
    InsertInto,
    Statement,
)
from moldau.sql.types import quoted

Entity = dict[str, Any]


def command_id(statement: Statement) -> str | None:
    """Type, entity and action of a command; None for statements that are no commands."""
    match statement:
        case CreateSource() | CreateAsSelect():
            return f"{statement.kind.lower()}/{quoted(statement.name)}/create"
        case InsertInto():
            return f"stream/{quoted(statement.target)}/create"
        case DropSource():
            return f"{statement.kind.lower()}/{quoted(statement.name)}/drop"
        case AlterSource():
            return f"{statement.kind.lower()}/{quoted(statement.name)}/alter"
        case CreateType():
            return f"type/{statement.name}/create"
        case DropType():
            return f"type/{statement.name}/drop"
        case ControlQuery():
            action = {"TERMINATE": "terminate", "PAUSE": "pause", "RESUME": "resume"}
            return f"{action[statement.action]}/{statement.query_id or 'ALL'}/execute"
        case _:
            return None


def current_status(
    text: str, command: str, message: str, query_id: str | None, sequence: int
) -> Entity:
    return {
        "@type": "currentStatus",
        "statementText": text,
        "commandId": command,
        "commandStatus": {"status": "SUCCESS", "message": message, "queryId": query_id},
        "commandSequenceNumber": sequence,
        "warnings": [],
    }


def terminated(text: str, query_id: str) -> Entity:
    """A push query has ended."""
    return {
        "@type": "terminate_query",
        "statementText": text,
        "queryId": query_id,
        "wasTerminated": True,
        "warnings": [],
    }


#: Under which name an entity holds its rows.
_ROWS = {
    "streams": "streams",
    "tables": "tables",
    "queries": "queries",
    "kafka_topics": "topics",
    "kafka_topics_extended": "topics",
    "query_descriptions": "queryDescriptions",
    "function_names": "functions",
    "variables": "variables",
    "source_descriptions": "sourceDescriptions",
}


def listing(text: str, found: Listing, overwritten: Mapping[str, Any]) -> Entity:
    """What SHOW, DESCRIBE and EXPLAIN are answered with."""
    kind, rows = found.kind, found.rows
    if kind in ("streams", "tables") and rows and "fields" in rows[0]:
        kind = "source_descriptions"
    entity: Entity = {"@type": kind, "statementText": text, "warnings": []}
    match kind:
        case "type_list":
            entity["types"] = {each["name"]: each["schema"] for each in rows}
        case "properties":
            entity["properties"] = [{**each, "level": "QUERY"} for each in rows]
            entity["overwrittenProperties"] = sorted(overwritten)
            entity["defaultProperties"] = []
        case "sourceDescription" | "queryDescription":
            entity[kind] = rows[0]
        case "describe_function":
            entity.update(rows[0])
        case _:
            entity[_ROWS[kind]] = rows
    return entity


def query_descriptions(entity: Entity) -> list[Entity]:
    """The descriptions of queries that an entity holds."""
    found = entity.get("queryDescriptions", [])
    return [*found, entity["queryDescription"]] if "queryDescription" in entity else list(found)
