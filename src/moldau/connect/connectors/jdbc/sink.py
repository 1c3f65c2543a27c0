"""The JDBC sink: records as rows.

A batch is one transaction: all its rows are there, or none. With `insert.mode=upsert` a batch that
comes twice changes nothing. A row that the database refuses, while the connection stands, fails the
task or goes to the dead-letter topic; if the database is away the batch is tried again.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import Any, Final

from moldau.connect.api import (
    ConfigValue,
    ConnectError,
    RetriableError,
    SinkRecord,
    SinkTask,
)
from moldau.connect.connectors.jdbc.config import SINK, secret
from moldau.connect.connectors.jdbc.databases import Database, open_database
from moldau.connect.connectors.jdbc.machine import rows as rules
from moldau.connect.connectors.jdbc.machine import statements
from moldau.connect.connectors.jdbc.machine.columns import Reading, zone_of
from moldau.connect.connectors.jdbc.machine.rows import Batch, Binding, RowRules
from moldau.connect.connectors.jdbc.machine.tables import parse_names
from moldau.connect.connectors.support.plain import PlainSink
from moldau.data.errors import DataError

_RECORD_KEY: Final = "record_key"
_DDL_ATTEMPTS: Final = 3


class JdbcSinkConnector(PlainSink):
    DESCRIPTION = "Records to rows of a database's tables"
    SETTINGS = SINK

    def validate(self, props: Mapping[str, str]) -> list[ConfigValue]:
        values = super().validate(props)
        by_name = {each.name: each for each in values}
        mode, pk_mode = by_name["insert.mode"].value, by_name["pk.mode"].value
        if by_name["delete.enabled"].value and pk_mode != _RECORD_KEY:
            by_name["delete.enabled"].errors.append(
                "Deletes are only supported for pk.mode record_key"
            )
        if mode in ("upsert", "update") and pk_mode == "none":
            by_name["pk.mode"].errors.append(
                f"insert.mode={mode} needs a primary key: set pk.mode to kafka, record_key or "
                "record_value"
            )
        if pk_mode == "kafka" and len(by_name["pk.fields"].value or ()) not in (0, 3):
            by_name["pk.fields"].errors.append(
                "pk.mode=kafka takes three names: of topic, partition and offset"
            )
        return values

    def task_class(self) -> type[SinkTask]:
        return JdbcSinkTask


class JdbcSinkTask(SinkTask):
    def __init__(self) -> None:
        super().__init__()
        self._config: dict[str, Any] = {}
        self._database: Database | None = None
        self._rules: RowRules | None = None
        self._binding: Binding | None = None
        self._failures = 0
        #: Columns of tables, as far as they were looked up.
        self._tables: dict[str, set[str]] = {}

    def start(self, props: Mapping[str, str]) -> None:
        config = self._config = SINK.parse(props)
        zone = zone_of(config["db.timezone"])
        self._database = open_database(
            config["connection.url"],
            config["connection.user"],
            secret(config["connection.password"]),
            zone,
        )
        # The original takes a day as midnight UTC in db.timezone, unless date.timezone is UTC.
        day_zone = datetime.UTC if config["date.timezone"] == "UTC" else zone
        arrays = self._database.syntax.arrays
        self._binding = Binding(self._database, zone, day_zone, arrays)
        self._rules = RowRules(
            table_format=config["table.name.format"],
            pk_mode=config["pk.mode"],
            pk_fields=tuple(config["pk.fields"]),
            fields=frozenset(config["fields.whitelist"]),
            insert_mode=config["insert.mode"],
            delete_enabled=config["delete.enabled"],
            replace_nulls=config["replace.null.with.default"],
            timestamps=frozenset(config["timestamp.fields.list"]),
            unit_ns=1 if config["timestamp.precision.mode"] == "nanoseconds" else 1000,
            text_column=config["string.output.value.column.name"],
        )

    def put(self, records: Sequence[SinkRecord]) -> None:
        if not records or self._database is None or self._rules is None:
            return
        try:
            self._write(self._database, self._rules, records)
            self._failures = 0
        except RetriableError as error:
            self._database.close()
            self._tables.clear()
            self._failures += 1
            if self._failures > self._config["max.retries"]:
                raise ConnectError(f"{error} (tried {self._failures} times)") from error
            self.context.timeout(self._config["retry.backoff.ms"])
            raise

    def _write(self, database: Database, rows: RowRules, records: Sequence[SinkRecord]) -> None:
        try:
            self._write_together(database, rows, records)
            return
        except RetriableError:
            raise
        except (ConnectError, DataError):
            reporter = self.context.errant_record_reporter
            if reporter is None:
                raise
        # One of them is refused: find out which.
        for record in records:
            try:
                self._write_together(database, rows, [record])
            except RetriableError:
                raise
            except (ConnectError, DataError) as error:
                reporter.report(record, error)

    def _write_together(
        self, database: Database, rows: RowRules, records: Sequence[SinkRecord]
    ) -> None:
        binding = self._binding or Binding(database)
        try:
            batches = list(rules.batches(rows, records, self._config["batch.size"]))
            self._prepare_tables(database, batches)
            connection = database.connection()
            for batch in batches:
                cursor = connection.cursor()
                try:
                    cursor.executemany(batch.statement(database.syntax), batch.rows(binding))
                finally:
                    cursor.close()
            connection.commit()
        except Exception as error:
            self._roll_back(database)
            if isinstance(error, (ConnectError, DataError)):
                raise
            raise database.failure(error, "writing to a table") from error

    def _roll_back(self, database: Database) -> None:
        self._tables.clear()
        try:
            database.connection().rollback()
        except Exception:
            database.close()

    def _prepare_tables(self, database: Database, batches: Sequence[Batch]) -> None:
        """Before any row is written: MariaDB commits with each change of a table. Another task may
        make the same change at the same time, which fails here: then look again."""
        for attempt in range(_DDL_ATTEMPTS):
            try:
                for batch in batches:
                    self._prepare_table(database, batch)
            except (ConnectError, DataError):
                raise
            except Exception as error:
                away = isinstance(database.failure(error, ""), RetriableError)
                if away or attempt == _DDL_ATTEMPTS - 1:
                    raise
                self._roll_back(database)
            else:
                return

    def _prepare_table(self, database: Database, batch: Batch) -> None:
        """Create the table, or add columns to it, if that is wanted."""
        fields, table = batch.fields, batch.table
        known = self._tables.get(table)
        if known is None:
            found = database.table_columns(parse_names(table)[0], Reading())
            known = {each.column.name for each in found}
        lowered = {each.lower() for each in known}
        names = {field.name for field in fields if field.name.lower() not in lowered}
        if known and not names:
            self._tables[table] = known
            return
        if not known:
            if not self._config["auto.create"]:
                raise ConnectError(
                    f"Table {table} is missing and auto-creation is disabled (auto.create=false)"
                )
            ddl = [statements.create_table(database.syntax, table, fields)]
        else:
            missing = [field for field in fields if field.name in names]
            if not self._config["auto.evolve"]:
                raise ConnectError(
                    f"Table {table} is missing fields "
                    f"({', '.join(field.name for field in missing)}) and auto-evolution is "
                    "disabled (auto.evolve=false)"
                )
            ddl = statements.add_columns(database.syntax, table, missing)
        cursor = database.connection().cursor()
        try:
            for statement in ddl:
                cursor.execute(statement)
        finally:
            cursor.close()
        database.connection().commit()
        self._tables[table] = known | names

    def stop(self) -> None:
        if self._database is not None:
            self._database.close()
