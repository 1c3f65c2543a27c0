"""What is asked of the database: its catalogue, a snapshot, and the binary log."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from moldau.connect.api import ConnectError, RetriableError
from moldau.connect.connectors.capture.machine.envelope import TableColumn
from moldau.connect.connectors.capture.machine.filters import Filters
from moldau.connect.connectors.capture.records import statements
from moldau.connect.connectors.mariadb_cdc.machine.origin import Progress
from moldau.connect.connectors.mariadb_cdc.machine.types import Options, SqlColumn, column_type
from moldau.connect.connectors.support.libraries import library
from moldau.connect.connectors.support.web import plain

_OWN: Final = ("mysql", "information_schema", "performance_schema", "sys")


class RowChange(NamedTuple):
    op: str
    database: str
    table: str
    old: Sequence[Any] | None
    new: Sequence[Any] | None
    ts_s: int


class Committed(NamedTuple):
    file: str
    pos: int
    ts_s: int


class Server:
    def __init__(self, config: Mapping[str, Any]) -> None:
        self._driver = library("pymysql", "mysql-replication")
        self._replication = library("pymysqlreplication", "mysql-replication")
        self._rows = library("pymysqlreplication.row_event", "mysql-replication")
        self._events = library("pymysqlreplication.event", "mysql-replication")
        self._config = config
        self.server_id = int(config["database.server.id"])
        self._settings = {
            "host": config["database.hostname"],
            "port": config["database.port"],
            "user": config["database.user"],
            "password": plain(config["database.password"]) or "",
            "charset": "utf8mb4",
        }
        self._connection: Any = None
        self._stream: Any = None

    def failure(self, error: Exception) -> ConnectError:
        errors = self._driver.err
        # 1236: the log does not reach back so far; 1045: a wrong password.
        lost = bool(error.args) and error.args[0] in (1236, 1045, 1227)
        away = isinstance(error, (errors.OperationalError, errors.InterfaceError)) and not lost
        kind = RetriableError if away else ConnectError
        place = f"{self._config['database.hostname']}:{self._config['database.port']}"
        return kind(f"MariaDB at {place}: {error}")

    def is_own(self, error: Exception) -> bool:
        return isinstance(error, self._driver.err.Error)

    def _connect(self, **options: Any) -> Any:
        connection = self._driver.connect(
            **self._settings, init_command="SET time_zone = '+00:00'", **options
        )
        for statement in statements(self._config["database.initial.statements"]):
            with connection.cursor() as cursor:
                cursor.execute(statement)
        connection.commit()
        return connection

    def rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        if self._connection is None or not self._connection.open:
            self._connection = self._connect(autocommit=True)
        with self._connection.cursor() as cursor:
            cursor.execute(sql, values or None)
            return list(cursor.fetchall())

    def check(self) -> None:
        names = "'log_bin', 'binlog_format'"
        found = dict(self.rows(f"SHOW VARIABLES WHERE Variable_name IN ({names})"))
        if found.get("log_bin") != "ON" or found.get("binlog_format") != "ROW":
            raise ConnectError(
                "the server must have log_bin=ON and binlog_format=ROW, and has "
                f"{found}: set them in its configuration"
            )

    def tables(self, filters: Filters) -> list[tuple[str, str]]:
        found = self.rows(
            "SELECT table_schema, table_name FROM information_schema.tables "
            "WHERE table_type = 'BASE TABLE' ORDER BY 1, 2"
        )
        return [
            (database, table)
            for database, table in found
            if database not in _OWN and filters.takes(database, table)
        ]

    def columns(self, database: str, table: str) -> list[TableColumn]:
        rows = self.rows(
            "SELECT column_name, data_type, column_type, numeric_precision, numeric_scale, "
            "datetime_precision, is_nullable, column_key FROM information_schema.columns "
            "WHERE table_schema = %s AND table_name = %s ORDER BY ordinal_position",
            database,
            table,
        )
        times = "connect" if self._config["time.precision.mode"] == "connect" else "adaptive"
        return [
            TableColumn(
                name,
                column_type(
                    SqlColumn(name, kind, full, precision, scale, digits),
                    Options(
                        self._config["decimal.handling.mode"],
                        times,
                        self._config["binary.handling.mode"],
                        self._config["bigint.unsigned.handling.mode"],
                    ),
                ),
                nullable == "YES",
                key == "PRI",
            )
            for name, kind, full, precision, scale, digits, nullable, key in rows
        ]

    def has_log(self, file: str) -> bool:
        """Whether a file of the binary log is still there."""
        return any(_text(name) == file for name, *_ in self.rows("SHOW BINARY LOGS"))

    def position(self) -> Progress:
        """The end of the binary log."""
        ((file, pos, *_),) = self.rows("SHOW MASTER STATUS")
        return Progress(str(file), int(pos))

    def snapshot(
        self, tables: Sequence[tuple[str, str]], selects: Mapping[str, str]
    ) -> tuple[Progress, Iterator[tuple[str, str, Sequence[Any]]]]:
        """Where the binary log goes on, and all rows before that. `selects` are statements for the
        rows of some tables, by DATABASE.TABLE."""
        queries = {each: self._query(*each, selects) for each in tables}
        connection = self._connect(cursorclass=self._driver.cursors.SSCursor)
        with connection.cursor() as cursor:
            # Nobody writes until the snapshot has begun: its place in the log is exact.
            cursor.execute("FLUSH TABLES WITH READ LOCK")
            cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")
            cursor.execute("SHOW MASTER STATUS")
            file, pos, *_ = cursor.fetchall()[0]
            cursor.execute("UNLOCK TABLES")
        return Progress(str(file), int(pos)), self._read(connection, queries)

    def _query(self, database: str, table: str, selects: Mapping[str, str]) -> str:
        select = selects.get(f"{database}.{table}")
        if not select:
            return f"SELECT * FROM {_quoted(database)}.{_quoted(table)}"
        names = ", ".join(_quoted(each.name) for each in self.columns(database, table))
        return f"SELECT {names} FROM ({select}) AS found"

    @staticmethod
    def _read(
        connection: Any, queries: Mapping[tuple[str, str], str]
    ) -> Iterator[tuple[str, str, Sequence[Any]]]:
        try:
            for (database, table), query in queries.items():
                with connection.cursor() as cursor:
                    cursor.execute(query)
                    for row in cursor:
                        yield database, table, row
        finally:
            connection.close()

    def start_stream(self, progress: Progress) -> None:
        rows, events = self._rows, self._events
        self._stream = self._replication.BinLogStreamReader(
            connection_settings=self._settings,
            server_id=self.server_id,
            resume_stream=True,
            blocking=False,
            log_file=progress.file,
            log_pos=progress.pos,
            only_events=[
                rows.WriteRowsEvent, rows.UpdateRowsEvent, rows.DeleteRowsEvent, events.XidEvent,
                events.QueryEvent,
            ],
            # With MariaDB's own protocol the driver would go by GTIDs, and ignore the place.
            is_mariadb=False,
            enable_logging=False,
        )  # fmt: skip

    @property
    def is_streaming(self) -> bool:
        return self._stream is not None

    def next_event(self) -> list[RowChange] | Committed | None:
        """The next event of the log; None at its end, for now."""
        while (event := self._stream.fetchone()) is not None:
            if isinstance(event, self._events.XidEvent) or (
                isinstance(event, self._events.QueryEvent) and _text(event.query) != "BEGIN"
            ):
                file, pos = self._stream.log_file, int(self._stream.log_pos)
                return Committed(_text(file), pos, int(event.timestamp))
            if isinstance(event, self._rows.RowsEvent):
                return self._changes(event)
        return None

    def _changes(self, event: Any) -> list[RowChange]:
        where = (_text(event.schema), _text(event.table))
        moment = int(event.timestamp)
        found = []
        for row in event.rows:
            if isinstance(event, self._rows.UpdateRowsEvent):
                old, new = _values(row["before_values"]), _values(row["after_values"])
                found.append(RowChange("u", *where, old, new, moment))
            elif isinstance(event, self._rows.WriteRowsEvent):
                found.append(RowChange("c", *where, None, _values(row["values"]), moment))
            else:
                found.append(RowChange("d", *where, _values(row["values"]), None, moment))
        return found

    def close(self) -> None:
        if self._connection is not None and self._connection.open:
            self._connection.close()
        if self._stream is not None:
            self._stream.close()
        self._connection = self._stream = None


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _values(row: Mapping[str, Any]) -> list[Any]:
    # In the order of the columns; names are in the log only with binlog_row_metadata=FULL.
    return list(row.values())
