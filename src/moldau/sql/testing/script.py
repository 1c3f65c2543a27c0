"""A script of statements and ASSERTs: sources, queries and rows live in this process.

CREATE STREAM a (id INT KEY, col1 INT) WITH (kafka_topic='a', value_format='JSON');
CREATE STREAM b AS SELECT * FROM a WHERE col1 > 0;
INSERT INTO a (id, col1) VALUES (1, 1);
ASSERT VALUES b (id, col1) VALUES (1, 1);
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from moldau.sql.engine.ddl import schema_of
from moldau.sql.engine.engine import KsqlEngine, Session
from moldau.sql.engine.inserts import resolved_values
from moldau.sql.engine.ports import MemoryTopics
from moldau.sql.engine.results import Inserted, PersistentQuery, Started, Stopped
from moldau.sql.errors import KsqlException
from moldau.sql.ports import FormatFactory, Functions, SchemaRegistry
from moldau.sql.sources.data_source import DataSource
from moldau.sql.sources.properties import SourceProperties
from moldau.sql.sources.schema import ROWTIME
from moldau.sql.syntax.parser import ParsedStatement
from moldau.sql.syntax.statements import AssertSource, AssertValues, RunScript, Statement
from moldau.sql.syntax.variables import substitute
from moldau.streams.hosts.driver import TopologyTestDriver
from moldau.streams.machine.error_handlers import Handlers, skip_on_error
from moldau.streams.records import Produced


class AssertionFailed(KsqlException):
    """An ASSERT did not hold."""


@dataclass(slots=True)
class _Running:
    query: PersistentQuery
    driver: TopologyTestDriver


@dataclass(slots=True)
class _Topic:
    records: list[Produced] = field(default_factory=list)
    #: How many of them ASSERTs have looked at.
    read: int = 0


class ScriptTester:
    """Executes statements; a record that is inserted runs through all queries at once."""

    def __init__(
        self,
        *,
        functions: Functions,
        formats: FormatFactory,
        registry: SchemaRegistry | None = None,
        config: Mapping[str, Any] | None = None,
        read_script: Callable[[str], str] | None = None,
    ) -> None:
        """`read_script` finds the text of RUN SCRIPT."""
        self._read_script = read_script or _no_scripts
        self.engine = KsqlEngine(
            functions=functions,
            formats=formats,
            topics=MemoryTopics(),
            registry=registry,
            config=config,
        )
        self._session = Session()
        self._running: dict[str, _Running] = {}
        self._topics: dict[str, _Topic] = {}

    def run(self, sql: str) -> None:
        """Run a script to its end, or to the first statement that fails."""
        for parsed in self.engine.parse(
            substitute(sql, self._session.variables), test_statements=True
        ):
            self.execute(parsed)

    def execute(self, parsed: ParsedStatement) -> None:
        """Run one statement."""
        statement: Statement = self.engine.prepare(parsed, test_statements=True)
        if isinstance(statement, AssertValues):
            self._assert_values(statement)
            return
        if isinstance(statement, AssertSource):
            self._assert_source(statement)
            return
        if isinstance(statement, RunScript):
            self.run(self._read_script(statement.path))
            return
        result = self.engine.execute(statement, parsed.text, self._session)
        match result:
            case Started(query, replaced):
                self._start(query, replaced)
            case Stopped("TERMINATE", queries):
                for query in queries:
                    self._stop(query.id)
            case Inserted():
                timestamp = 0 if result.timestamp is None else result.timestamp
                self._write(Produced(result.topic, result.key, result.value, timestamp))
        for query_id in set(self._running) - set(self.engine.queries):
            self._stop(query_id)

    def close(self) -> None:
        """Stop all queries."""
        for query_id in list(self._running):
            self._stop(query_id)

    # Queries.

    def _start(self, query: PersistentQuery, replaced: PersistentQuery | None) -> None:
        if replaced is not None:
            self._replace(query, replaced)
            return
        driver = self._driver(query)
        self._running[query.id] = _Running(query, driver)
        for source in query.sources:
            if source.kind == "TABLE":
                for record in list(self._topic(source.topic).records):
                    driver.pipe(record)
        self._collect(driver)

    def _driver(self, query: PersistentQuery) -> TopologyTestDriver:
        return TopologyTestDriver(
            query.built.topology,
            application_id=query.application_id,
            handlers=Handlers(deserialization=skip_on_error),
            config={"statestore.cache.max.bytes": 0},
        )

    def _replace(self, query: PersistentQuery, replaced: PersistentQuery) -> None:
        """The new topology goes on with the old one's stores."""
        before = self._running.pop(replaced.id, None)
        driver = self._driver(query)
        if before is not None:
            before.driver.close()
            self._restore(query, driver)
        self._running[query.id] = _Running(query, driver)

    def _restore(self, query: PersistentQuery, driver: TopologyTestDriver) -> None:
        for store in query.built.topology.assembly.stores:
            records = self._topic(f"{query.application_id}-{store}-changelog").records
            driver.state_store(store).restore(
                (each.key, each.value, each.timestamp, each.headers) for each in records
            )

    def _stop(self, query_id: str) -> None:
        running = self._running.pop(query_id, None)
        if running is not None:
            running.driver.close()

    # Records.

    def _topic(self, name: str) -> _Topic:
        return self._topics.setdefault(name, _Topic())

    def _write(self, record: Produced) -> None:
        self._topic(record.topic).records.append(record)
        for running in list(self._running.values()):
            if any(each.topic == record.topic for each in running.query.sources):
                running.driver.pipe(record)
                self._collect(running.driver)

    def _collect(self, driver: TopologyTestDriver) -> None:
        for topic in driver.output_topics:
            while (record := driver.take(topic)) is not None:
                if topic.endswith("-changelog"):
                    self._topic(topic).records.append(record)
                elif not topic.endswith("-repartition"):
                    self._write(record)

    # Assertions.

    def _source(self, name: str) -> DataSource:
        source = self.engine.metastore.source(name)
        if source is None:
            raise KsqlException(f"{name} does not exist")
        return source

    def _assert_values(self, statement: AssertValues) -> None:
        values = statement.values
        source = self._source(values.target)
        expected = resolved_values(values, source, self.engine.functions)
        topic = self._topic(source.topic)
        if topic.read >= len(topic.records):
            raise AssertionFailed(
                f"Expected another record, but all records have already been read from topic "
                f"{source.topic}: {expected}"
            )
        record = topic.records[topic.read]
        topic.read += 1
        actual = self._columns(source, record)
        if statement.is_tombstone:
            if record.value is not None or any(
                actual.get(name) != value for name, value in expected.items()
            ):
                raise _mismatch(source, expected, actual, record)
            return
        if record.value is None or any(
            actual.get(name) != value for name, value in expected.items()
        ):
            raise _mismatch(source, expected, actual, record)

    def _columns(self, source: DataSource, record: Produced) -> dict[str, Any]:
        serdes, schema = self.engine.serdes, source.schema
        key: Any = serdes.key(source.key_format, schema).deserialize(record.topic, record.key)
        if source.is_windowed and key is not None:
            key = key.key
        info = source.value_format
        row = serdes.value(info.format, schema, info.features).deserialize(
            record.topic, record.value
        )
        found: dict[str, Any] = {ROWTIME: record.timestamp}
        found |= zip((each.name for each in schema.key), key or (), strict=False)
        found |= zip((each.name for each in schema.value), row or (), strict=False)
        return found

    def _assert_source(self, statement: AssertSource) -> None:
        expected = statement.expected
        source = self._source(expected.name)
        properties = SourceProperties(expected.properties, is_query=False)
        checks: list[tuple[str, Any, Any]] = [("type", expected.kind, source.kind)]
        if expected.elements:
            checks.append(("schema", schema_of(expected.elements), source.schema))
        checks.append(("kafka topic", properties.topic, source.topic))
        timestamp = properties.timestamp
        named = [
            ("key format", properties.format_name(is_key=True), source.key_format.format.name),
            ("value format", properties.format_name(is_key=False), source.value_format.format.name),
            (
                "value delimiter",
                properties.get("VALUE_DELIMITER"),
                dict(source.value_format.format.properties).get("delimiter"),
            ),
            (
                "timestamp column",
                None if timestamp is None else timestamp.name,
                None if source.timestamp is None else source.timestamp.name,
            ),
            (
                "timestamp format",
                None if timestamp is None else timestamp.format,
                None if source.timestamp is None else source.timestamp.format,
            ),
        ]
        checks += [each for each in named if each[1] is not None]
        if properties.value_features:
            checks.append(
                ("value features", properties.value_features, source.value_format.features)
            )
        for name, wanted, found in checks:
            if wanted != found:
                raise AssertionFailed(
                    f"Expected {name} does not match actual for source {source.name}. "
                    f"Expected: {wanted}, actual: {found}"
                )


def _no_scripts(path: str) -> str:
    raise KsqlException(f"RUN SCRIPT '{path}': scripts cannot be read here")


def _mismatch(
    source: DataSource, expected: dict[str, Any], actual: dict[str, Any], record: Produced
) -> AssertionFailed:
    shown = "a tombstone" if record.value is None else f"{actual}"
    return AssertionFailed(
        f"Expected record does not match actual for topic {source.topic}. "
        f"Expected: {expected}, actual: {shown}"
    )
