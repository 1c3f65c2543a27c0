"""The JDBC source: rows of tables or of a query as records.

The tables of a connector are shared out among its tasks; the connector looks for new tables every
`table.poll.interval.ms` and has its tasks configured again. A task reads its tables in turn, each
when `poll.interval.ms` have passed, `batch.max.rows` at a time. Partitions and offsets of the
source are Confluent's, so that a connector can be moved both ways.
"""

from __future__ import annotations

import contextlib
import datetime
import itertools
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from moldau.connect.api import (
    ConfigDef,
    ConfigError,
    ConfigValue,
    ConnectError,
    ExactlyOnceSupport,
    RetriableError,
    SourceConnector,
    SourcePartition,
    SourceRecord,
    SourceTask,
)
from moldau.connect.connectors.jdbc.config import SOURCE, secret
from moldau.connect.connectors.jdbc.databases import Database, TableColumn, open_database
from moldau.connect.connectors.jdbc.machine import progress as modes
from moldau.connect.connectors.jdbc.machine import tables
from moldau.connect.connectors.jdbc.machine.columns import Reading, Row, zone_of
from moldau.connect.connectors.jdbc.machine.progress import Progress, Tracking
from moldau.data.struct import Struct

TABLES_KEY: Final = "tables"
_WAIT_S: Final = 0.5
_FETCH_ROWS: Final = 1000


def _open(config: Mapping[str, Any]) -> Database:
    return open_database(
        config["connection.url"],
        config["connection.user"],
        secret(config["connection.password"]),
        zone_of(config["db.timezone"]),
    )


def _conflicts(given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Settings that do not go together, with what is wrong."""
    mode, query = given["mode"], given["query"]
    if not mode:
        yield "mode", "Invalid value  for configuration mode: must be set"
    one, each = given["timestamp.column.name"], given["timestamp.columns.mapping"]
    if mode in (modes.TIMESTAMP, modes.BOTH) and not one and not each:
        yield "timestamp.column.name", f"timestamp.column.name must be set with mode={mode}"
    for name, mapping in (
        ("timestamp.column.name", "timestamp.columns.mapping"),
        ("incrementing.column.name", "incrementing.column.mapping"),
    ):
        if given[name] and given[mapping]:
            yield mapping, f"{name} and {mapping} are exclusive."
    lists = [
        name for name in ("table.whitelist", "table.blacklist", "table.include.list") if given[name]
    ]
    if query and lists:
        yield "query", "query may not be combined with whole-table copying settings."
    if query and mode in (modes.INCREMENTING, modes.BOTH) and not given["incrementing.column.name"]:
        yield "incrementing.column.name", "incrementing.column.name must be set with a query"
    if len(lists) > 1:
        yield lists[-1], f"{' and '.join(lists)} are exclusive."
    if given["table.exclude.list"] and not given["table.include.list"]:
        yield "table.exclude.list", "table.exclude.list requires table.include.list"


class JdbcSourceConnector(SourceConnector):
    DESCRIPTION = "Rows of a database's tables, or of a query, to topics"

    def __init__(self) -> None:
        super().__init__()
        self._props: dict[str, str] = {}
        self._config: dict[str, Any] = {}
        self._tables: list[tables.Name] = []
        self._stopped = threading.Event()
        self._watcher: threading.Thread | None = None

    @classmethod
    def config(cls) -> ConfigDef:
        return SOURCE

    def validate(self, props: Mapping[str, str]) -> list[ConfigValue]:
        values = super().validate(props)
        by_name = {each.name: each for each in values}
        for name, message in _conflicts({each.name: each.value for each in values}):
            by_name[name].errors.append(message)
        return values

    def start(self, props: Mapping[str, str]) -> None:
        self._props = dict(props)
        self._config = SOURCE.parse(props)
        if self._config["query"]:
            return
        self._tables = self._find_tables()
        self._watcher = threading.Thread(target=self._watch, name="jdbc-tables", daemon=True)
        self._watcher.start()

    def _find_tables(self) -> list[tables.Name]:
        config, database = self._config, _open(self._config)
        try:
            names = database.tables(config["schema.pattern"], config["table.types"])
        except Exception as error:
            raise database.failure(error, "listing tables") from error
        finally:
            database.close()
        found = tables.selected(
            names,
            whitelist=config["table.whitelist"],
            blacklist=config["table.blacklist"],
            include=config["table.include.list"],
            exclude=config["table.exclude.list"],
            quote=database.syntax.quote,
        )
        tables.check_distinct(found)
        return found

    def _watch(self) -> None:
        """Look for new tables. A database that is away is left to the tasks."""
        while not self._stopped.wait(self._config["table.poll.interval.ms"] / 1000):
            try:
                found = self._find_tables()
            except RetriableError:
                continue
            except ConnectError as error:
                self.context.raise_error(error)
                return
            if found != self._tables:
                self._tables = found
                self.context.request_task_reconfiguration()

    def task_class(self) -> type[SourceTask]:
        return JdbcSourceTask

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        if self._config["query"]:
            return [dict(self._props)]
        groups: list[list[tables.Name]] = [[] for _ in range(min(max_tasks, len(self._tables)))]
        for number, table in enumerate(self._tables):
            groups[number % len(groups)].append(table)
        return [{**self._props, TABLES_KEY: tables.listed(group)} for group in groups]

    def stop(self) -> None:
        self._stopped.set()
        if self._watcher is not None:
            self._watcher.join(5.0)

    def exactly_once_support(self, props: Mapping[str, str]) -> ExactlyOnceSupport:
        # A bulk copy begins from its start after a failure; rows may commit late with a timestamp.
        once = SOURCE.parse(props)["mode"] == modes.INCREMENTING
        return ExactlyOnceSupport.SUPPORTED if once else ExactlyOnceSupport.UNSUPPORTED

    def alter_offsets(
        self,
        props: Mapping[str, str],
        offsets: Mapping[SourcePartition, Mapping[str, Any] | None],
    ) -> bool:
        for partition, offset in offsets.items():
            if "table" not in partition and "query" not in partition:
                raise ConnectError(
                    f"Partition {dict(partition)} must have the key 'table' or 'query'"
                )
            for name, value in (offset or {}).items():
                if name not in ("incrementing", "timestamp", "timestamp_nanos"):
                    raise ConnectError(
                        f"Offset key {name!r} is not one of incrementing, timestamp, "
                        "timestamp_nanos"
                    )
                if not isinstance(value, int) or isinstance(value, bool):
                    raise ConnectError(f"The offset {name!r} must be an integer, not {value!r}")
        return True


class _Query:
    """One table or query: what has been read, and the rows of the query that runs."""

    def __init__(
        self, config: Mapping[str, Any], database: Database, name: tables.Name | None
    ) -> None:
        self._config = config
        self._database = database
        self._name = name
        table = self._table = ".".join(name or ())
        self.due = 0.0
        #: The partition first, then those that older versions wrote.
        self.partitions: list[dict[str, Any]] = [{"query": "query"}]
        if name:
            self.partitions = [{"protocol": "1", "table": table}, {"table": name[-1]}]
        bulk = config["mode"] == modes.BULK
        self.partition = self.partitions[-1 if bulk else 0]
        self._topic = config["topic.prefix"] + (name[-1] if name else "")
        self._schema_name = name[-1] if name else None
        self._tracking = Tracking(config["mode"])
        self._columns: list[TableColumn] = []
        self._progress = Progress()
        self._rows: Iterator[tuple[SourceRecord, Progress]] | None = None
        self._zone = zone_of(config["db.timezone"])
        self._reading = Reading(
            config["numeric.mapping"], self._zone, config["timestamp.granularity"]
        )

    def start(self, offset: Mapping[str, Any] | None) -> None:
        self._progress = Progress.of(offset)
        initial = self._config["timestamp.initial"]
        if not offset and initial is not None:
            moment = (
                self._database.now()
                if initial == -1
                else datetime.datetime.fromtimestamp(initial / 1000, datetime.UTC)
            )
            self._progress = Progress(None, moment)

    def next_rows(self, count: int) -> list[SourceRecord]:
        """Up to `count` records; fewer if the query has ended."""
        if self._rows is None:
            self._rows = self._run()
        # A failure within loses nothing: the query continues behind what was returned.
        found = list(itertools.islice(self._rows, count))
        if len(found) < count:
            self._rows = None
        if found:
            self._progress = found[-1][1]
        return [record for record, _ in found]

    @property
    def is_running(self) -> bool:
        return self._rows is not None

    def abandon(self) -> None:
        """Ask again the next time, from the last row that was returned."""
        self._rows = None

    def _run(self) -> Iterator[tuple[SourceRecord, Progress]]:
        config, database, mode = self._config, self._database, self._config["mode"]
        tracking = self._track()
        delay = datetime.timedelta(milliseconds=config["timestamp.delay.interval.ms"])
        until = database.now() - delay
        condition, values = tracking.condition(
            database.syntax, self._progress, until, database.moment
        )
        text = config["query"] or f"SELECT * FROM {database.syntax.table(self._name or ())}"
        statement = " ".join(filter(None, (text + condition, config["query.suffix"])))
        connection = database.connection()
        cursor = database.reading_cursor()
        try:
            if values:
                cursor.execute(database.syntax.bound(statement), values)
            else:
                cursor.execute(statement)
            for struct, progress in modes.storable(
                mode, self._progress, self._structs(cursor, tracking)
            ):
                record = SourceRecord(
                    self.partition,
                    progress.offset(mode),
                    self._topic,
                    value=struct,
                    value_schema=struct.schema,
                )
                yield record, progress
        finally:
            # Stopped from another thread, the connection is closed by now.
            with contextlib.suppress(Exception):
                cursor.close()
                connection.rollback()

    def _structs(self, cursor: Any, tracking: Tracking) -> Iterator[tuple[Struct, Progress]]:
        row: Row | None = None
        progress = self._progress
        while rows := cursor.fetchmany(_FETCH_ROWS):
            if row is None:
                row = self._row(cursor)
                names = [each[0] for each in cursor.description]
            for values in rows:
                if tracking.mode != modes.BULK:
                    fields = dict(zip(names, values, strict=True))
                    progress = tracking.advance(progress, fields, self._zone)
                yield row.struct(values), progress

    def _row(self, cursor: Any) -> Row:
        if not self._table:
            return Row(None, self._database.result_columns(cursor, self._reading))
        return Row(self._schema_name, [each.column for each in self._columns])

    def _track(self) -> Tracking:
        config, mode = self._config, self._config["mode"]
        if self._name:
            self._columns = self._database.table_columns(self._name, self._reading)
            if not self._columns:
                raise ConnectError(f"table {self._table} is not in {self._database.shown}")
        incrementing = None
        if mode in (modes.INCREMENTING, modes.BOTH):
            incrementing = config["incrementing.column.name"] or self._numbered_column()
        stamps = tuple(config["timestamp.column.name"])
        if self._table and config["timestamp.columns.mapping"]:
            key = "timestamp.columns.mapping"
            stamps = tables.columns_of(config[key], self._table, key)
        tracking = Tracking(
            mode, incrementing, stamps if mode in (modes.TIMESTAMP, modes.BOTH) else ()
        )
        self._check_columns(tracking)
        return tracking

    def _numbered_column(self) -> str:
        key = "incrementing.column.mapping"
        if self._table and self._config[key]:
            return tables.columns_of(self._config[key], self._table, key)[0]
        numbered = [each.column.name for each in self._columns if each.numbers_itself]
        if numbered:
            return numbered[0]
        found = [each.column.name for each in self._columns if each.is_key]
        if len(found) != 1:
            raise ConnectError(
                f"table {self._table} has no primary key of one column: set "
                "incrementing.column.name"
            )
        return found[0]

    def _check_columns(self, tracking: Tracking) -> None:
        if not self._table:
            return
        known = {each.column.name: each.column for each in self._columns}
        wanted = [*([tracking.incrementing] if tracking.incrementing else ()), *tracking.timestamps]
        for name in wanted:
            if name not in known:
                raise ConnectError(
                    f"table {self._table} has no column {name}; it has {', '.join(known)}"
                )
        if not self._config["validate.non.null"]:
            return
        groups = [
            [tracking.incrementing] if tracking.incrementing else [],
            list(tracking.timestamps),
        ]
        for names in filter(None, groups):
            if all(known[name].schema.optional for name in names):
                raise ConnectError(
                    f"column {', '.join(names)} of table {self._table} may be null, so rows could "
                    "be missed: declare it NOT NULL, or set validate.non.null=false"
                )


class JdbcSourceTask(SourceTask):
    def __init__(self) -> None:
        super().__init__()
        self._stopped = threading.Event()
        self._config: dict[str, Any] = {}
        self._database: Database | None = None
        self._queries: list[_Query] = []
        self._started = False

    def start(self, props: Mapping[str, str]) -> None:
        self._config = SOURCE.parse(props)
        database = self._database = _open(self._config)
        names: Sequence[tables.Name | None] = [None]
        if not self._config["query"]:
            names = tables.parse_names(props.get(TABLES_KEY, ""))
            if not names:
                raise ConfigError(f"the task has no tables: {TABLES_KEY} is empty")
        self._queries = [_Query(self._config, database, table) for table in names]

    def poll(self) -> Sequence[SourceRecord] | None:
        database = self._database
        if database is None:
            return None
        try:
            self._begin()
            now = time.monotonic()
            query = min(self._queries, key=lambda each: each.due)
            if query.due > now and not query.is_running:
                self._stopped.wait(min(query.due - now, _WAIT_S))
                return None
            records = query.next_rows(self._config["batch.max.rows"])
        except ConnectError:
            self._reset()
            raise
        except Exception as error:
            self._reset()
            if self._stopped.is_set():
                return None
            raise database.failure(error, "a query") from error
        if not query.is_running:
            query.due = time.monotonic() + self._config["poll.interval.ms"] / 1000
        return records or None

    def _begin(self) -> None:
        if self._started:
            return
        reader = self.context.offset_storage_reader
        for query in self._queries:
            found = [each for each in reader.offsets(query.partitions) if each]
            query.start(found[0] if found else None)
        self._started = True

    def _reset(self) -> None:
        """Begin again with a new connection, after the last row that was returned."""
        for query in self._queries:
            query.abandon()
        if self._database is not None:
            self._database.close()

    def stop(self) -> None:
        self._stopped.set()
        if self._database is not None:
            self._database.close()
