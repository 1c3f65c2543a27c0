"""The Neo4j sink: a query in Cypher or a pattern for each topic.

A batch of one topic is one transaction. Queries with MERGE, and patterns, give the same graph when
a batch comes again.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from moldau.connect.api import (
    ConfigDef,
    ConfigValue,
    ConnectError,
    DataError,
    Importance,
    Kind,
    OneOf,
    Range,
    RetriableError,
    SinkRecord,
    SinkTask,
)
from moldau.connect.connectors.neo4j.machine.queries import (
    NEW_HEAD,
    OLD_HEAD,
    Pattern,
    flat,
    pattern_of,
)
from moldau.connect.connectors.support.libraries import library
from moldau.connect.connectors.support.plain import PlainSink
from moldau.connect.connectors.support.web import plain
from moldau.data.struct import Struct

CONFIG: Final = (
    ConfigDef()
    .define("neo4j.uri", Kind.STRING, "", importance=Importance.HIGH, group="Neo4j",
            doc="neo4j://HOST:7687, bolt://..., or with +s for TLS")
    .define("neo4j.server.uri", Kind.STRING, "", group="Neo4j", doc="The same, by its older name")
    .define("neo4j.database", Kind.STRING, "", group="Neo4j", doc="Database; empty: the default")
    .define("neo4j.authentication.type", Kind.STRING, "BASIC", group="Neo4j",
            validator=OneOf(("NONE", "BASIC", "BEARER"), ignore_case=True),
            doc="NONE, BASIC or BEARER")
    .define("neo4j.authentication.basic.username", Kind.STRING, "", group="Neo4j", doc="User")
    .define("neo4j.authentication.basic.password", Kind.PASSWORD, None, group="Neo4j",
            doc="Its password")
    .define("neo4j.authentication.bearer.token", Kind.PASSWORD, None, group="Neo4j",
            doc="Token of BEARER")
    .define("neo4j.batch-size", Kind.INT, 1000, validator=Range(1), group="Writing",
            doc="How many records one transaction has")
    .define("neo4j.cypher.topic.TOPIC", Kind.STRING, "", group="Writing",
            doc="The query for a topic; a record is `event`, with __key, __header, __timestamp. "
            "neo4j.topic.cypher.TOPIC is the older name")
    .define("neo4j.pattern.topic.TOPIC", Kind.STRING, "", group="Writing",
            doc="A pattern for a topic instead: (:User{!id, name}) or "
            "(:User{!id})-[:BOUGHT{price}]->(:Product{!sku}). neo4j.topic.pattern.node.TOPIC and "
            "neo4j.topic.pattern.relationship.TOPIC are the older names")
)  # fmt: skip
_RETRY_S: Final = 1.0
_CYPHER: Final = (("neo4j.cypher.topic.", NEW_HEAD), ("neo4j.topic.cypher.", OLD_HEAD))
_PATTERNS: Final = (
    "neo4j.pattern.topic.", "neo4j.pattern.node.topic.", "neo4j.pattern.relationship.topic.",
    "neo4j.topic.pattern.node.", "neo4j.topic.pattern.relationship.",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Rule:
    """What the records of a topic become."""

    query: str
    pattern: Pattern | None = None


def rules_of(props: Mapping[str, str]) -> dict[str, Rule]:
    """By topic; ValueError for a bad one."""
    found = {}
    for key, text in props.items():
        if key in CONFIG:
            continue
        for prefix, head in _CYPHER:
            if key.startswith(prefix):
                found[key.removeprefix(prefix)] = Rule(head + text)
        for prefix in _PATTERNS:
            if key.startswith(prefix):
                pattern = pattern_of(text)
                found[key.removeprefix(prefix)] = Rule(pattern.query, pattern)
    return found


class Neo4jSinkConnector(PlainSink):
    DESCRIPTION = "Records to nodes and relationships of Neo4j"
    SETTINGS = CONFIG

    def validate(self, props: Mapping[str, str]) -> list[ConfigValue]:
        values = super().validate(props)
        by_name = {each.name: each for each in values}
        if not (by_name["neo4j.uri"].value or by_name["neo4j.server.uri"].value):
            by_name["neo4j.uri"].errors.append("neo4j.uri must be set")
        at = by_name["neo4j.cypher.topic.TOPIC"]
        try:
            rules = rules_of(props)
        except ValueError as error:
            by_name["neo4j.pattern.topic.TOPIC"].errors.append(str(error))
            return values
        topics = [each.strip() for each in props.get("topics", "").split(",") if each.strip()]
        for topic in topics:
            if topic not in rules:
                at.errors.append(
                    f"there is neither a query nor a pattern for {topic}: set "
                    f"neo4j.cypher.topic.{topic} or neo4j.pattern.topic.{topic}"
                )
        return values

    def task_class(self) -> type[SinkTask]:
        return Neo4jSinkTask


class Neo4jSinkTask(SinkTask):
    def start(self, props: Mapping[str, str]) -> None:
        config = self._config = CONFIG.parse(props)
        self._rules = rules_of(props)
        self._neo4j: Any = library("neo4j", extra="neo4j")
        self._errors: Any = library("neo4j.exceptions", extra="neo4j")
        self._driver = self._neo4j.GraphDatabase.driver(
            config["neo4j.uri"] or config["neo4j.server.uri"],
            auth=self._auth(config),
            # The worker repeats a batch for as long as it takes.
            max_transaction_retry_time=_RETRY_S,
        )

    def _auth(self, config: Mapping[str, Any]) -> Any:
        match config["neo4j.authentication.type"].upper():
            case "BASIC" if config["neo4j.authentication.basic.username"]:
                password = plain(config["neo4j.authentication.basic.password"]) or ""
                return (config["neo4j.authentication.basic.username"], password)
            case "BEARER":
                return self._neo4j.bearer_auth(plain(config["neo4j.authentication.bearer.token"]))
        return None

    def put(self, records: Sequence[SinkRecord]) -> None:
        if not records:
            return
        with self._driver.session(database=self._config["neo4j.database"] or None) as session:
            for batch in self._batches(records):
                try:
                    self._write(session, batch)
                except (ConnectError, DataError) as error:
                    if isinstance(error, RetriableError):
                        raise
                    self._one_by_one(session, batch, error)

    def _batches(self, records: Sequence[SinkRecord]) -> Iterator[list[SinkRecord]]:
        """Consecutive records of a topic, with or without values."""
        current: list[SinkRecord] = []
        kind: tuple[Any, ...] = ()
        for record in records:
            its_kind = (record.topic, record.value is None)
            if current and (its_kind != kind or len(current) >= self._config["neo4j.batch-size"]):
                yield current
                current = []
            kind = its_kind
            current.append(record)
        if current:
            yield current

    def _one_by_one(self, session: Any, batch: Sequence[SinkRecord], error: Exception) -> None:
        """One of them is refused: find out which."""
        reporter = self.context.errant_record_reporter
        if reporter is None:
            raise error
        for record in batch:
            try:
                self._write(session, [record])
            except RetriableError:
                raise
            except (ConnectError, DataError) as found:
                reporter.report(record, found)

    def _write(self, session: Any, batch: Sequence[SinkRecord]) -> None:
        rule = self._rules.get(batch[0].topic)
        if rule is None:
            raise DataError(f"topic {batch[0].topic} has neither a query nor a pattern")
        query = rule.query
        if rule.pattern is None:
            events = [_message(record) for record in batch]
        elif batch[0].value is None:
            query = rule.pattern.deletion
            events = [rule.pattern.event(_fields(record, record.key)) for record in batch]
        else:
            events = [
                rule.pattern.event({**_key_fields(record), **_fields(record, record.value)})
                for record in batch
            ]
        try:
            session.execute_write(
                lambda transaction: transaction.run(query, events=events).consume()
            )
        except self._errors.DriverError as error:
            passes = isinstance(
                error, (self._errors.ServiceUnavailable, self._errors.SessionExpired)
            )
            raise (RetriableError if passes else ConnectError)(f"Neo4j: {error}") from error
        except self._errors.Neo4jError as error:
            passes = error.is_retryable()
            raise (RetriableError if passes else ConnectError)(f"Neo4j: {error}") from error

    def stop(self) -> None:
        self._driver.close()


def _message(record: SinkRecord) -> dict[str, Any]:
    return {
        "key": graph_value(record.key),
        "value": graph_value(record.value),
        "timestamp": record.timestamp,
        "header": {each.key: graph_value(each.value) for each in record.headers},
    }


def _key_fields(record: SinkRecord) -> dict[str, Any]:
    return flat(graph_value(record.key)) if isinstance(record.key, (Struct, dict)) else {}


def _fields(record: SinkRecord, value: Any) -> dict[str, Any]:
    found = graph_value(value)
    if not isinstance(found, dict):
        raise DataError(f"record {record.topic}-{record.partition}@{record.offset} has no fields")
    return flat(found)


def graph_value(value: Any) -> Any:
    """A value as Neo4j's driver takes it."""
    match value:
        case Struct():
            return {each.name: graph_value(value.get(each.name)) for each in value.schema.fields}
        case dict():
            return {str(key): graph_value(each) for key, each in value.items()}
        case list() | tuple():
            return [graph_value(each) for each in value]
        case Decimal():
            return str(value)
        case datetime.datetime() | datetime.date() | datetime.time():
            return value
    return value
