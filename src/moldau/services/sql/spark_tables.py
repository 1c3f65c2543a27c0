"""SparkTables: CREATE ... AS over a table of Spark copies its rows to a topic, as they are now.

Spark reads the table; the query itself is computed here, so that its words mean what they always
do. What other servers get to know is a plain CREATE statement with the columns.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, Final

from moldau.services.sql.cluster import ClusterTopics
from moldau.services.sql.machine.entities import Entity
from moldau.services.sql.machine.errors import statement_error
from moldau.services.sql.machine.spark_rows import row_reader, sql_columns
from moldau.services.sql.on_spark import SparkSessions
from moldau.services.sql.row_writing import RowWriter
from moldau.sql.engine.engine import KsqlEngine, Session
from moldau.sql.engine.results import PersistentQuery
from moldau.sql.errors import KsqlException
from moldau.sql.sources.properties import SourceProperties, own_properties, spark_keys
from moldau.sql.syntax.formatting import text
from moldau.sql.syntax.parser import ParsedStatement
from moldau.sql.syntax.query_parser import SPARK_ALIAS
from moldau.sql.syntax.statements import CreateAsSelect, Query, Relation, SparkTable
from moldau.sql.types import Column, SqlType, quoted
from moldau.streams import TopologyTestDriver

__all__ = ["SparkTables"]

#: Rows that are sent before the first of them is waited for.
_BATCH: Final = 500
_TOPIC: Final = "spark-table"
_SPARK_TABLE = re.compile(r"\bFROM\s+\w+\s*\.\s*`", re.IGNORECASE)
_Row = tuple[Any, ...]


class SparkTables:
    """Reads only what lies in one of the places of `ksql.spark.tables`."""

    def __init__(
        self, remote: str, places: Sequence[str], rows: RowWriter, topics: ClusterTopics
    ) -> None:
        self._sessions = SparkSessions(remote) if remote else None
        self._places = tuple(each for each in places if each)
        self._rows = rows
        self._topics = topics

    def close(self) -> None:
        if self._sessions is not None:
            self._sessions.close()

    def copied(
        self,
        parsed: Sequence[ParsedStatement],
        engine: KsqlEngine,
        session: Session,
        lock: AbstractContextManager[Any],
        execute: Callable[[str], list[Entity]],
    ) -> Entity | None:
        """What CREATE ... AS over a table of Spark is answered with, None if there is none; the
        `lock` of the engine is not held while rows are copied. Raises KsqlHttpError."""
        for each in parsed:
            if not _SPARK_TABLE.search(each.text):
                continue
            try:
                with lock:
                    statement = engine.prepare(each)
                if not (isinstance(statement, CreateAsSelect) and statement.query.source.spark):
                    continue
                if len(parsed) > 1:
                    raise KsqlException("Send CREATE ... AS over a table of Spark by itself")
                created = self.create(statement, engine, session, execute)
                return {**created, "statementText": each.text}
            except KsqlException as error:
                raise statement_error(error, each.text) from error
        return None

    def create(
        self,
        statement: CreateAsSelect,
        engine: KsqlEngine,
        session: Session,
        execute: Callable[[str], list[Entity]],
    ) -> Entity:
        """`execute` executes statements of SQL for all servers. Raises KsqlException."""
        query, table = statement.query, statement.query.source.spark
        if table is None:
            raise KsqlException("The query reads no table of Spark")
        _check(statement)
        before = engine.metastore.source(statement.name)
        if before is not None and statement.if_not_exists:
            return execute(_create(statement, [("ROW", before.schema.value[0].type)], []))[0]
        self._check_topic(statement)
        frame, schema = self._frame(table)
        found: list[_Row] = []
        copy = _Copy(engine, query, sql_columns(schema), session, found.append)
        columns = [(each.name, each.type) for each in copy.columns]
        keys = spark_keys(statement, [name for name, _ in columns])
        (created,) = execute(_create(statement, columns, keys))
        source = engine.metastore.source(statement.name)
        if source is None:
            raise KsqlException(f"{statement.name} was dropped while its rows were to be copied")
        order = [
            [name for name, _ in columns].index(each.name)
            for each in (*source.schema.key, *source.schema.value)
        ]
        try:
            count = 0
            for batch in copy.batches(_rows(frame, schema), found):
                count += len(batch)
                self._rows.write(source, [tuple(row[index] for index in order) for row in batch])
        except BaseException:
            execute(f"DROP {statement.kind} {quoted(statement.name)} DELETE TOPIC;")
            raise
        status = created["commandStatus"]
        status["message"] = f"{statement.kind.capitalize()} created with {count} rows of {table}"
        return created

    def _check_topic(self, statement: CreateAsSelect) -> None:
        """Rows must not mix with others, nor others be deleted with them if Spark fails."""
        properties = SourceProperties(own_properties(statement), is_query=True)
        topic = properties.get("KAFKA_TOPIC") or statement.name
        if self._topics.partitions(topic) is not None:
            raise KsqlException(
                f"The topic {topic} exists: a table of Spark is copied to a new one. Name another "
                "with KAFKA_TOPIC, or delete it"
            )

    def _frame(self, table: SparkTable) -> tuple[Any, dict[str, Any]]:
        """The table as a DataFrame, and its schema as JSON."""
        self._check_place(table)
        if self._sessions is None:
            raise KsqlException(
                "Tables of Spark need a Spark server: set ksql.spark.remote, for example to "
                "sc://127.0.0.1:15002"
            )
        from moldau.spark import tables

        options = {table.format: table.location, **dict(table.options)}
        try:
            frame = tables.read(self._sessions.get(), table.format, options, False)
            return frame, frame.schema.jsonValue()
        except Exception as error:  # Spark and its client have errors of their own.
            raise KsqlException(f"{table} cannot be read: {_first_line(error)}") from error

    def _check_place(self, table: SparkTable) -> None:
        place = table.location
        if ".." in place.split("/") or not any(_is_in(place, each) for each in self._places):
            allowed = ", ".join(self._places) or "there are none"
            raise KsqlException(
                f"{table} may not be read: the server's setting ksql.spark.tables has the places "
                f"whose tables may be read ({allowed})"
            )


class _Copy:
    """The query over the table's rows, as the engine computes it."""

    def __init__(
        self,
        engine: KsqlEngine,
        query: Query,
        columns: list[tuple[str, SqlType]],
        session: Session,
        on_row: Callable[[_Row], None],
    ) -> None:
        sandbox = engine.sandbox()
        shown = ", ".join(f"{quoted(name)} {kind}" for name, kind in columns)
        sandbox.execute_script(
            f"CREATE OR REPLACE STREAM {SPARK_ALIAS} ({shown}) "
            f"WITH (KAFKA_TOPIC='{_TOPIC}', VALUE_FORMAT='JSON', PARTITIONS=1);"
        )
        relation = Relation(SPARK_ALIAS, query.source.alias, position=query.source.position)
        self._query: PersistentQuery = sandbox.push_query(
            replace(query, source=relation, emit="CHANGES"),
            lambda key, row, timestamp: on_row(row),
            "",
            session,
        )

    @property
    def columns(self) -> tuple[Column, ...]:
        return tuple(self._query.plan.schema.value)

    def batches(self, rows: Iterable[_Row], found: list[_Row]) -> Iterator[list[_Row]]:
        with TopologyTestDriver(self._query.built.topology) as driver:
            topic = driver.input_topic(_TOPIC)
            for row in rows:
                topic.pipe_input(None, row)
                if len(found) >= _BATCH:
                    yield list(found)
                    found.clear()
        yield list(found)


def _check(statement: CreateAsSelect) -> None:
    query = statement.query
    lacking = [
        (bool(query.joins), "JOIN"),
        (query.group_by is not None, "GROUP BY"),
        (query.having is not None, "HAVING"),
        (query.window is not None, "WINDOW"),
        (query.partition_by is not None, "PARTITION BY"),
        (bool(query.unions), "UNION ALL"),
        (statement.or_replace, "OR REPLACE"),
    ]
    for is_used, what in lacking:
        if is_used:
            raise KsqlException(
                f"{what} is not supported over a table of Spark, which is copied row by row: use "
                "it over the stream or table that is made"
            )


def _rows(frame: Any, schema: Any) -> Iterator[_Row]:
    """One partition of the DataFrame at a time is in memory."""
    read = row_reader(schema)
    try:
        for row in frame.toLocalIterator():
            yield read(row)
    except KsqlException:
        raise
    except Exception as error:  # Spark and its client have errors of their own.
        raise KsqlException(f"The table cannot be read: {_first_line(error)}") from error


def _is_in(place: str, allowed: str) -> bool:
    scheme, colon, path = place.rpartition(":")
    plain = scheme + colon + (posixpath.normpath(path) if path else "")
    start = allowed.rstrip("/")
    return plain == start or plain.startswith(f"{start}/")


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def _create(statement: CreateAsSelect, columns: list[tuple[str, SqlType]], keys: list[str]) -> str:
    """The statement that creates the source of the copied rows."""
    marker = " PRIMARY KEY" if statement.kind == "TABLE" else " KEY"
    shown = ", ".join(
        f"{quoted(name)} {kind}{marker if name in keys else ''}" for name, kind in columns
    )
    given = {name.upper(): text(each) for name, each in own_properties(statement).items()}
    given.setdefault("KAFKA_TOPIC", f"'{statement.name}'")
    given.setdefault("PARTITIONS", "1")
    exists = "IF NOT EXISTS " if statement.if_not_exists else ""
    properties = ", ".join(f"{name}={value}" for name, value in given.items())
    return (
        f"CREATE {statement.kind} {exists}{quoted(statement.name)} ({shown}) WITH ({properties});"
    )
