"""SHOW, DESCRIBE and EXPLAIN: what there is."""

from __future__ import annotations

from moldau.services.sql.cluster import ClusterTopics
from moldau.services.sql.hosting import QueryHost
from moldau.services.sql.machine import entities
from moldau.services.sql.machine.entities import Entity
from moldau.sql.engine.engine import KsqlEngine, Session
from moldau.sql.engine.results import PersistentQuery
from moldau.sql.errors import KsqlException
from moldau.sql.functions.registry import FunctionRegistry
from moldau.sql.sources.data_source import DataSource
from moldau.sql.syntax.statements import (
    CreateAsSelect,
    Describe,
    Explain,
    InsertInto,
    Query,
    Show,
)

__all__ = ["Listings"]


class Listings:
    def __init__(
        self,
        engine: KsqlEngine,
        host: QueryHost,
        topics: ClusterTopics,
        functions: FunctionRegistry,
    ) -> None:
        self._engine = engine
        self._host = host
        self._topics = topics
        self._functions = functions

    def answer(self, statement: Show | Describe | Explain, text: str, session: Session) -> Entity:
        match statement:
            case Show():
                return self._show(statement, text, session)
            case Describe():
                return self._describe(statement, text)
            case Explain():
                return self._explain(statement, text)

    def _show(self, statement: Show, text: str, session: Session) -> Entity:
        base: Entity = {"statementText": text, "warnings": []}
        match statement.what:
            case "STREAMS" | "TABLES":
                kind = statement.what.removesuffix("S")
                found = [each for each in self._sources() if each.kind == kind]
                if statement.extended:
                    return {
                        "@type": "source_descriptions",
                        **base,
                        "sourceDescriptions": [self._source(each) for each in found],
                    }
                return entities.sources(text, kind, found)
            case "QUERIES":
                rows = [self._query(each) for each in self._engine.queries.values()]
                return {"@type": "queries", **base, "queries": rows}
            case "TOPICS":
                return {"@type": "kafka_topics", **base, "topics": self._topics.listed()}
            case "FUNCTIONS":
                return entities.function_names(text, self._functions.declarations())
            case "PROPERTIES":
                return {"@type": "properties", **base, **self._properties(session)}
            case "TYPES":
                types = {
                    name: entities.schema_of(each)
                    for name, each in self._engine.metastore.types.items()
                }
                return {"@type": "type_list", **base, "types": types}
            case "VARIABLES":
                rows = [{"name": n, "value": v} for n, v in sorted(session.variables.items())]
                return {"@type": "variables", **base, "variables": rows}
            case _:
                raise KsqlException(f"SHOW {statement.what} needs a Connect cluster")

    def _sources(self) -> list[DataSource]:
        return sorted(self._engine.metastore.sources.values(), key=lambda each: each.name)

    def _properties(self, session: Session) -> Entity:
        values = {**self._engine.settings.values, **session.properties}
        rows = [
            {
                "name": name,
                "scope": "KSQL" if name.startswith("ksql.") else "EXTERNAL",
                "value": None if value is None else str(value),
                "editable": True,
                "level": "QUERY",
            }
            for name, value in sorted(values.items())
        ]
        return {
            "properties": rows,
            "overwrittenProperties": sorted(session.properties),
            "defaultProperties": [],
        }

    def _describe(self, statement: Describe, text: str) -> Entity:
        base: Entity = {"statementText": text, "warnings": []}
        match statement.what:
            case "FUNCTION":
                return entities.describe_function(text, self._functions.function(statement.name))
            case "STREAMS" | "TABLES":
                kind = statement.what.removesuffix("S")
                found = [self._source(each) for each in self._sources() if each.kind == kind]
                return {"@type": "source_descriptions", **base, "sourceDescriptions": found}
            case "SOURCE":
                source = self._engine.metastore.source(statement.name)
                if source is None:
                    raise KsqlException(
                        f"Could not find STREAM/TABLE '{statement.name}' in the Metastore"
                    )
                return {
                    "@type": "sourceDescription",
                    **base,
                    "sourceDescription": self._source(source),
                }
            case _:
                raise KsqlException(f"DESCRIBE {statement.what} needs a Connect cluster")

    def _source(self, source: DataSource) -> Entity:
        queries = self._engine.queries.values()
        reads = [self._query(q) for q in queries if source.name in (s.name for s in q.sources)]
        writes = [self._query(q) for q in queries if q.sink == source.name]
        return entities.source_description(
            source,
            reads=reads,
            writes=writes,
            constraints=self._engine.metastore.readers(source.name),
            partitions=self._topics.partitions(source.topic) or 0,
        )

    def _query(self, query: PersistentQuery) -> Entity:
        sink = None if query.sink is None else self._engine.metastore.source(query.sink)
        topics = [] if sink is None else [sink.topic]
        return entities.query_summary(query, topics, self._host.state(query.id))

    def _planned(self, statement: Explain, text: str) -> PersistentQuery:
        """The query of a statement, which is not started."""
        inner = statement.statement
        query = inner.query if isinstance(inner, CreateAsSelect | InsertInto) else inner
        if not isinstance(query, Query):
            raise KsqlException("The provided statement does not run a ksql query")
        return self._engine.push_query(query, lambda key, row, timestamp: None, text)

    def _explain(self, statement: Explain, text: str) -> Entity:
        if statement.query_id is not None:
            known = self._engine.queries.get(statement.query_id.upper())
            if known is None:
                raise KsqlException(
                    f"Query with id:{statement.query_id} does not exist, use SHOW QUERIES to view "
                    "the full set of queries."
                )
            query = known
        else:
            query = self._planned(statement, text)
        description = entities.query_description(
            query, query.built.topology.describe(), self._host.state(query.id)
        )
        return {
            "@type": "queryDescription",
            "statementText": text,
            "queryDescription": description,
            "overriddenProperties": {},
            "warnings": [],
        }
