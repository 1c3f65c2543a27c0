"""SHOW, DESCRIBE and EXPLAIN, as data under the names of ksqlDB's REST interface."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from moldau.sql.engine.ports import Topics
from moldau.sql.engine.results import Listing, PersistentQuery
from moldau.sql.engine.settings import Settings
from moldau.sql.errors import KsqlException
from moldau.sql.functions.registry import FunctionRegistry
from moldau.sql.planning.steps import Step
from moldau.sql.planning.upgrades import step_name
from moldau.sql.ports import Functions
from moldau.sql.sources.data_source import DataSource
from moldau.sql.sources.metastore import MetaStore
from moldau.sql.syntax.statements import Describe, Show, SourceKind
from moldau.sql.types import (
    ArrayType,
    Column,
    DecimalType,
    MapType,
    Namespace,
    SqlType,
    StructType,
)
from moldau.sql.values.arithmetic import base_name

_OPERATIONS = {
    "Aggregate": "AGGREGATE",
    "Filter": "FILTER",
    "FlatMap": "FLAT_MAP",
    "GroupBy": "GROUP_BY",
    "GroupByKey": "GROUP_BY",
    "Select": "PROJECT",
    "SelectKey": "REKEY",
    "Sink": "SINK",
    "Source": "SOURCE",
    "Join": "JOIN",
    "Union": "UNION",
}

#: Names of settings whose values nobody else may see.
_SECRET = re.compile(r"password|secret|jaas|token|user\.info|credential|keystore\.key$")


class Lister:
    """Looks at an engine's sources, queries, functions and settings."""

    def __init__(
        self,
        *,
        metastore: MetaStore,
        queries: Mapping[str, PersistentQuery],
        functions: Functions,
        topics: Topics,
    ) -> None:
        self._metastore = metastore
        self._queries = queries
        self._functions = functions
        self._topics = topics

    def show(self, statement: Show, settings: Settings, variables: Mapping[str, str]) -> Listing:
        """LIST and SHOW of what the engine knows; connectors are known elsewhere."""
        match statement.what:
            case "STREAMS":
                return Listing("streams", self._sources("STREAM", extended=statement.extended))
            case "TABLES":
                return Listing("tables", self._sources("TABLE", extended=statement.extended))
            case "QUERIES" if statement.extended:
                rows = [self.explain(each).rows[0] for each in self._queries.values()]
                return Listing("query_descriptions", rows)
            case "QUERIES":
                return Listing("queries", [_query(each) for each in self._queries.values()])
            case "TOPICS":
                kind = "kafka_topics_extended" if statement.extended else "kafka_topics"
                return Listing(kind, self._topic_rows(statement, settings))
            case "FUNCTIONS":
                return Listing("function_names", self._function_rows())
            case "TYPES":
                types = sorted(self._metastore.types.items())
                return Listing(
                    "type_list",
                    [{"name": name, "schema": schema_info(kind)} for name, kind in types],
                )
            case "VARIABLES":
                return Listing(
                    "variables",
                    [{"name": name, "value": variables[name]} for name in sorted(variables)],
                )
            case "PROPERTIES":
                return Listing(
                    "properties",
                    [
                        {
                            "name": name,
                            "scope": "KSQL",
                            "value": "[hidden]" if _SECRET.search(name) else str(value),
                            "editable": True,
                        }
                        for name, value in sorted(settings.values.items())
                    ],
                )
        raise KsqlException(f"{statement.what} cannot be listed here")

    def _sources(self, kind: SourceKind, *, extended: bool) -> list[dict[str, Any]]:
        found = [each for each in self._metastore.sources.values() if each.kind == kind]
        found.sort(key=lambda each: each.name)
        if extended:
            return [self.source(each, extended=True) for each in found]
        return [
            {
                "type": each.kind,
                "name": each.name,
                "topic": each.topic,
                "keyFormat": each.key_format.format.name,
                "valueFormat": each.value_format.format.name,
                "isWindowed": each.is_windowed,
            }
            for each in found
        ]

    def _topic_rows(self, statement: Show, settings: Settings) -> list[dict[str, Any]]:
        return [
            {"name": name, "replicaInfo": [1] * count}
            for name, count in sorted(self._topics.counts().items())
            if statement.scope == "ALL" or not settings.is_hidden(name)
        ]

    def _function_rows(self) -> list[dict[str, Any]]:
        if not isinstance(self._functions, FunctionRegistry):
            return []
        return [
            {"name": each.name.upper(), "type": kind.upper(), "category": each.category}
            for kind, each in self._functions.declarations()
        ]

    def describe(self, statement: Describe) -> Listing:
        """A source, all sources of a kind, or a function."""
        match statement.what:
            case "SOURCE":
                source = self._metastore.source(statement.name)
                if source is None:
                    hint = self._metastore.hint(statement.name)
                    raise KsqlException(
                        f"Could not find STREAM/TABLE '{statement.name}' in the Metastore{hint}"
                    )
                row = self.source(source, extended=statement.extended)
                return Listing("sourceDescription", [row])
            case "STREAMS" | "TABLES":
                kind: SourceKind = "STREAM" if statement.what == "STREAMS" else "TABLE"
                names = [each for each in self._metastore.sources.values() if each.kind == kind]
                rows = [self.source(each, extended=statement.extended) for each in names]
                return Listing("source_descriptions", rows)
            case "FUNCTION":
                return Listing("describe_function", [self._function(statement.name)])
        raise KsqlException(f"{statement.what} cannot be described here")

    def source(self, source: DataSource, *, extended: bool) -> dict[str, Any]:
        """What DESCRIBE shows of a source."""
        queries = self._queries.values()
        window = source.key_format.window
        return {
            "name": source.name,
            "windowType": None if window is None else window.kind,
            "readQueries": [
                _query(each)
                for each in queries
                if source.name in (read.name for read in each.sources)
            ],
            "writeQueries": [_query(each) for each in queries if each.sink == source.name],
            "fields": [field_info(each) for each in source.schema.columns],
            "type": source.kind,
            "timestamp": "" if source.timestamp is None else source.timestamp.name,
            "statistics": "",
            "errorStats": "",
            "extended": extended,
            "keyFormat": source.key_format.format.name,
            "valueFormat": source.value_format.format.name,
            "topic": source.topic,
            "partitions": self._topics.partitions(source.topic) or 0,
            "replication": 0,
            "statement": source.sql,
            "queryOffsetSummaries": [],
            "sourceConstraints": self._metastore.readers(source.name),
            "clusterStatistics": [],
            "clusterErrorStats": [],
        }

    def _function(self, name: str) -> dict[str, Any]:
        if not isinstance(self._functions, FunctionRegistry):
            raise KsqlException(f"Can't find any functions with the name '{name}'")
        found = self._functions.function(name)
        declared = found.declaration
        overloads = [
            {
                "arguments": [
                    {
                        "name": each.name,
                        "type": str(each.type),
                        "description": "",
                        "isVariadic": each.variadic,
                    }
                    for each in overload.signature.parameters
                ],
                "returnType": str(overload.signature.result),
                "description": overload.description,
            }
            for overload in found.overloads
        ]
        return {
            "name": declared.name.upper(),
            "description": declared.description,
            "author": declared.author,
            "version": "",
            "path": declared.path,
            "type": (self._functions.kind(name) or "scalar").upper(),
            "functions": overloads,
        }

    def explain(self, query: PersistentQuery) -> Listing:
        """The plan and the topology of a query."""
        sink = None if query.sink is None else self._metastore.source(query.sink)
        window = None if sink is None else sink.key_format.window
        row = {
            "id": query.id,
            "statementText": query.sql,
            "windowType": None if window is None else window.kind,
            "fields": [field_info(each) for each in query.plan.schema.columns],
            "sources": [each.name for each in query.sources],
            "sinks": [] if query.sink is None else [query.sink],
            "sinkKafkaTopics": [] if sink is None else [sink.topic],
            "topology": str(query.built.topology.describe()),
            "executionPlan": plan_summary(query.plan.step, query.id)
            if query.spark is None
            else str(query.spark),
            "overriddenProperties": query.overrides,
            "ksqlHostQueryStatus": {},
            "queryType": "PERSISTENT" if query.id in self._queries else "PUSH",
            "queryErrors": [],
            "tasksMetadata": [],
            "state": query.state if query.id in self._queries else None,
            "consumerGroupId": query.application_id,
        }
        return Listing("queryDescription", [row])


def plan_summary(step: Step, query_id: str, indent: str = "") -> str:
    """The steps of a plan, from its end to its sources."""
    kind = step_name(step).removeprefix("Windowed")
    for prefix in ("ForeignKey", "Stream", "Table", "Stream", "Table", "Windowed"):
        kind = kind.removeprefix(prefix)
    logger = ".".join((query_id, *step.context))
    line = (
        f"{indent} > [ {_OPERATIONS.get(kind, kind)} ] | Schema: {step.schema} | Logger: {logger}\n"
    )
    below = (plan_summary(each, query_id, indent + "\t") for each in step.inputs)
    return line + "".join(f"\t{indent}{each}" for each in below)


def _query(query: PersistentQuery) -> dict[str, Any]:
    return {
        "queryString": query.sql,
        "sinks": [] if query.sink is None else [query.sink],
        "sinkKafkaTopics": [] if query.plan.sink is None else [query.plan.sink.topic],
        "id": query.id,
        "statusCount": {query.state: 1},
        "queryType": "PERSISTENT",
        "state": query.state,
    }


def field_info(column: Column) -> dict[str, Any]:
    """A column as ksqlDB's REST interface shows it."""
    found: dict[str, Any] = {"name": column.name, "schema": schema_info(column.type)}
    if column.namespace is Namespace.KEY:
        found["type"] = "KEY"
    elif column.namespace is Namespace.HEADERS:
        found["type"] = "HEADER"
        found["headerKey"] = column.header_key
    return found


def schema_info(kind: SqlType) -> dict[str, Any]:
    """A type as ksqlDB's REST interface shows it."""
    found: dict[str, Any] = {"type": base_name(kind), "fields": None, "memberSchema": None}
    match kind:
        case ArrayType(item):
            found["memberSchema"] = schema_info(item)
        case MapType(_, value):
            found["memberSchema"] = schema_info(value)
        case StructType(fields):
            found["fields"] = [{"name": name, "schema": schema_info(each)} for name, each in fields]
        case DecimalType(precision, scale):
            found["parameters"] = {"precision": precision, "scale": scale}
    return found
