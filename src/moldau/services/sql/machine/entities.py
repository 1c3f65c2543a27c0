"""What statements are answered with: ksqlDB's entities, as JSON values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from moldau.sql.engine.results import PersistentQuery
from moldau.sql.functions.declarations import AggregateFunction, Function, TableFunction
from moldau.sql.functions.parameter_types import Array, Parameter
from moldau.sql.sources.data_source import DataSource
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
from moldau.sql.types import (
    ArrayType,
    BaseType,
    Column,
    DecimalType,
    MapType,
    Namespace,
    SqlType,
    StructType,
    quoted,
)

Entity = dict[str, Any]

_KINDS = {"scalar": "SCALAR", "aggregate": "AGGREGATE", "table": "TABLE"}


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


def sources(text: str, kind: str, found: Sequence[DataSource]) -> Entity:
    """SHOW STREAMS and SHOW TABLES."""
    name = "streams" if kind == "STREAM" else "tables"
    rows = [
        {
            "type": each.kind,
            "name": each.name,
            "topic": each.topic,
            "keyFormat": each.key_format.format.name,
            "valueFormat": each.value_format.format.name,
            "isWindowed": each.is_windowed,
        }
        for each in sorted(found, key=lambda each: each.name)
    ]
    return {"@type": name, "statementText": text, name: rows, "warnings": []}


def query_summary(query: PersistentQuery, sink_topics: Sequence[str], state: str) -> Entity:
    return {
        "queryString": query.sql,
        "sinks": [] if query.sink is None else [query.sink],
        "sinkKafkaTopics": list(sink_topics),
        "id": query.id,
        "statusCount": {state: 1},
        "queryType": "PERSISTENT",
        "state": state,
    }


def schema_of(sql_type: SqlType) -> Entity:
    """The schema of a field, as DESCRIBE shows it."""
    match sql_type:
        case ArrayType():
            return {"type": "ARRAY", "fields": None, "memberSchema": schema_of(sql_type.item)}
        case MapType():
            return {"type": "MAP", "fields": None, "memberSchema": schema_of(sql_type.value)}
        case StructType():
            fields = [{"name": name, "schema": schema_of(each)} for name, each in sql_type.fields]
            return {"type": "STRUCT", "fields": fields, "memberSchema": None}
        case DecimalType():
            return {
                "type": "DECIMAL",
                "parameters": {"precision": sql_type.precision, "scale": sql_type.scale},
                "fields": None,
                "memberSchema": None,
            }
        case BaseType():
            return {"type": sql_type.value, "fields": None, "memberSchema": None}


def field_of(column: Column) -> Entity:
    found: Entity = {"name": column.name, "schema": schema_of(column.type)}
    if column.namespace is Namespace.KEY:
        found["type"] = "KEY"
    elif column.namespace is Namespace.HEADERS:
        found["type"] = "HEADER"
        found["headerKey"] = column.header_key
    return found


def source_description(
    source: DataSource,
    *,
    reads: Sequence[Entity],
    writes: Sequence[Entity],
    constraints: Sequence[str],
    partitions: int = 0,
    replication: int = 0,
) -> Entity:
    window = source.key_format.window
    return {
        "name": source.name,
        "windowType": None if window is None else window.kind,
        "readQueries": list(reads),
        "writeQueries": list(writes),
        "fields": [
            field_of(each)
            for each in (*source.schema.headers, *source.schema.key, *source.schema.value)
        ],
        "type": source.kind,
        "timestamp": "" if source.timestamp is None else source.timestamp.name,
        "statistics": "",
        "errorStats": "",
        "extended": False,
        "keyFormat": source.key_format.format.name,
        "valueFormat": source.value_format.format.name,
        "topic": source.topic,
        "partitions": partitions,
        "replication": replication,
        "statement": source.sql,
        "queryOffsetSummaries": [],
        "sourceConstraints": list(constraints),
        "clusterStatistics": [],
        "clusterErrorStats": [],
    }


def query_description(query: PersistentQuery, topology: str, state: str) -> Entity:
    schema = query.plan.schema
    return {
        "id": query.id,
        "statementText": query.sql,
        "windowType": None,
        "fields": [field_of(each) for each in (*schema.key, *schema.value)],
        "sources": [each.name for each in query.sources],
        "sinks": [] if query.sink is None else [query.sink],
        "topology": topology,
        "executionPlan": "",
        "overriddenProperties": {},
        "ksqlHostQueryStatus": {},
        "queryType": "PERSISTENT",
        "queryErrors": [],
        "tasksMetadata": [],
        "state": state,
    }


def function_names(text: str, found: Sequence[tuple[str, Any]]) -> Entity:
    rows = [
        {"name": each.name.upper(), "type": _KINDS[kind], "category": each.category}
        for kind, each in found
    ]
    return {"@type": "function_names", "statementText": text, "functions": rows, "warnings": []}


def describe_function(text: str, function: Function) -> Entity:
    declaration = function.declaration
    kind = "SCALAR"
    if isinstance(function, AggregateFunction):
        kind = "AGGREGATE"
    elif isinstance(function, TableFunction):
        kind = "TABLE"
    return {
        "@type": "describe_function",
        "statementText": text,
        "name": declaration.name.upper(),
        "description": declaration.description,
        "author": declaration.author,
        "version": "",
        "path": "internal",
        "functions": [
            {
                "arguments": [
                    _argument(each, declaration.parameters) for each in one.signature.parameters
                ],
                "returnType": str(one.signature.result),
                "description": one.description or declaration.description,
            }
            for one in function.overloads
        ],
        "type": kind,
        "warnings": [],
    }


def _argument(parameter: Parameter, descriptions: Mapping[str, str]) -> Entity:
    shown = Array(parameter.type) if parameter.variadic else parameter.type
    return {
        "name": parameter.name,
        "type": str(shown),
        "description": descriptions.get(parameter.name, ""),
        "isVariadic": parameter.variadic,
    }
