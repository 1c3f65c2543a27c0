"""The databases: how each is reached, what its tables and columns are, which failures pass.

A `Database` holds one connection, made on demand and again after it broke. PostgreSQL needs
psycopg, MariaDB and MySQL PyMySQL, both of the extra `connect`; SQLite is part of Python.
"""

from __future__ import annotations

import datetime
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final, Protocol
from urllib.parse import parse_qsl, unquote, urlsplit

from moldau.connect.api import ConfigError, ConnectError, RetriableError
from moldau.connect.connectors.jdbc.machine import columns, statements
from moldau.connect.connectors.jdbc.machine.columns import Column
from moldau.connect.connectors.jdbc.machine.statements import Syntax
from moldau.connect.connectors.support.libraries import library
from moldau.data import builders, logical

URL_KEY: Final = "connection.url"


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column of a table as the database's catalogue describes it."""

    column: Column
    is_key: bool = False
    has_default: bool = False


class Database(Protocol):
    syntax: Syntax
    shown: str
    """The address without passwords."""

    def connection(self) -> Any:
        """The connection, in a transaction that the caller ends."""

    def close(self) -> None: ...

    def tables(self, schema: str | None, types: Sequence[str]) -> list[tuple[str, ...]]:
        """Names of tables: catalogue and schema as far as there are any, then the table."""

    def table_columns(self, name: tuple[str, ...], mapping: str) -> list[TableColumn]:
        """Empty if there is no such table."""

    def result_columns(self, cursor: Any, mapping: str) -> list[Column]:
        """The columns of a query's result; all may be null."""

    def now(self) -> datetime.datetime: ...

    def moment(self, value: datetime.datetime) -> Any:
        """A timestamp in UTC as a value for a timestamp column."""

    def failure(self, error: Exception, what: str) -> ConnectError:
        """What to raise for an error of the driver: retriable if the database is away."""


def open_database(url: str, user: str | None, password: str | None) -> Database:
    scheme = url.removeprefix("jdbc:").partition(":")[0]
    if not url.startswith("jdbc:"):
        raise ConfigError.invalid(URL_KEY, url, "must begin with jdbc:")
    match scheme:
        case "postgresql":
            return Postgres(url, user or "", password or "")
        case "mysql" | "mariadb":
            return MySql(url, user, password)
        case "sqlite":
            return Sqlite(url)
        case _:
            raise ConfigError.invalid(
                URL_KEY, url, "must be of postgresql, mysql, mariadb or sqlite"
            )


def _by_name(name: str, mapping: str, precision: int | None, scale: int | None) -> Column | None:
    """Types whose names the databases share."""
    match name:
        case "boolean" | "bool":
            return Column("", builders.BOOLEAN, bool)
        case "smallint":
            return Column("", builders.INT16)
        case "integer" | "int" | "mediumint":
            return Column("", builders.INT32)
        case "bigint":
            return Column("", builders.INT64)
        case "real" | "float":
            return Column("", builders.FLOAT32, float)
        case "double precision" | "double":
            return Column("", builders.FLOAT64, float)
        case "numeric" | "decimal":
            return columns.numeric("", precision, scale, mapping)
        case "date":
            return Column("", logical.DATE, columns.date)
        case "time" | "time without time zone" | "time with time zone":
            return Column("", logical.TIME, columns.time_of_day)
        case "timestamp" | "datetime" | "timestamp without time zone" | "timestamp with time zone":
            return Column("", logical.TIMESTAMP, columns.timestamp)
    return None


def _named(column: Column, name: str, optional: bool) -> Column:
    return Column(name, column.schema, column.convert).optional(optional)


_TEXT: Final = Column("", builders.STRING, columns.text)
_BINARY: Final = Column("", builders.BYTES, bytes)


class Postgres:
    syntax = statements.POSTGRESQL

    def __init__(self, url: str, user: str, password: str) -> None:
        from moldau.spark.tables.errors import OptionError
        from moldau.spark.tables.jdbc.machine.address import parse_address

        self._driver = library("psycopg")
        try:
            self._parameters = dict(parse_address(url, user, password).parameters)
        except OptionError as error:
            raise ConfigError.invalid(URL_KEY, url.partition("?")[0], str(error)) from None
        self.shown = url.partition("?")[0]
        self._connection: Any = None

    def connection(self) -> Any:
        if self._connection is None or self._connection.closed:
            self._connection = self._driver.connect(**self._parameters)
        return self._connection

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def tables(self, schema: str | None, types: Sequence[str]) -> list[tuple[str, ...]]:
        kinds = ["BASE TABLE" if each == "TABLE" else each for each in types]
        found = self.connection().execute(
            "SELECT table_catalog, table_schema, table_name FROM information_schema.tables "
            "WHERE table_type = ANY(%s) AND table_schema LIKE coalesce(%s, '%%') "
            "AND table_schema NOT IN ('pg_catalog', 'information_schema') ORDER BY 2, 3",
            (kinds, schema),
        )
        return [tuple(row) for row in found]

    def table_columns(self, name: tuple[str, ...], mapping: str) -> list[TableColumn]:
        schema, table = (None, name[-1]) if len(name) == 1 else name[-2:]
        rows = self.connection().execute(
            "SELECT c.column_name, c.data_type, c.numeric_precision, c.numeric_scale, "
            "c.is_nullable = 'YES', c.column_default IS NOT NULL OR c.is_identity = 'YES', "
            "EXISTS (SELECT 1 FROM information_schema.table_constraints t "
            "JOIN information_schema.key_column_usage k USING (constraint_schema, constraint_name) "
            "WHERE t.constraint_type = 'PRIMARY KEY' AND k.table_schema = c.table_schema "
            "AND k.table_name = c.table_name AND k.column_name = c.column_name) "
            "FROM information_schema.columns c WHERE c.table_name = %s "
            "AND c.table_schema = coalesce(%s, current_schema()) ORDER BY c.ordinal_position",
            (table, schema),
        )
        return [
            TableColumn(
                _named(self._typed(kind, precision, scale, mapping), column, optional),
                is_key,
                has_default,
            )
            for column, kind, precision, scale, optional, has_default, is_key in rows
        ]

    def _typed(self, kind: str, precision: int | None, scale: int | None, mapping: str) -> Column:
        if kind == "bytea":
            return _BINARY
        return _by_name(kind, mapping, precision, scale) or _TEXT

    def result_columns(self, cursor: Any, mapping: str) -> list[Column]:
        types = self._driver.adapters.types
        found = []
        for each in cursor.description:
            info = types.get(each.type_code)
            kind = info.regtype if info is not None else "text"
            typed = self._typed(kind, each.precision, each.scale, mapping)
            found.append(_named(typed, each.name, True))
        return found

    def now(self) -> datetime.datetime:
        (moment,) = self.connection().execute("SELECT clock_timestamp()").fetchone()
        utc: datetime.datetime = moment.astimezone(datetime.UTC)
        return utc

    def moment(self, value: datetime.datetime) -> Any:
        # Of a column with a time zone and of one without, which is taken as UTC.
        return value.replace(tzinfo=None).isoformat(sep=" ")

    def failure(self, error: Exception, what: str) -> ConnectError:
        away = isinstance(error, (self._driver.OperationalError, self._driver.InterfaceError))
        return _failure(error, what, away, self.shown)


def _failure(error: Exception, what: str, away: bool, shown: str) -> ConnectError:
    kind = RetriableError if away else ConnectError
    return kind(f"{what} of {shown} failed: {error}")


class MySql:
    """MariaDB and MySQL."""

    syntax = statements.MYSQL

    def __init__(self, url: str, user: str | None, password: str | None) -> None:
        self._driver = library("pymysql", "PyMySQL")
        parts = urlsplit(url.removeprefix("jdbc:"))
        query = dict(parse_qsl(parts.query))
        self.shown = url.partition("?")[0]
        self._parameters: dict[str, Any] = {
            "host": parts.hostname or "127.0.0.1",
            "port": parts.port or 3306,
            "user": user or query.get("user") or parts.username or "",
            "password": password or query.get("password") or unquote(parts.password or ""),
            "database": unquote(parts.path.removeprefix("/")) or None,
            "charset": "utf8mb4",
            "init_command": "SET time_zone = '+00:00'",
        }
        if query.get("useSSL", "").lower() == "true" or query.get("sslMode", "").upper() in (
            "REQUIRED", "TRUST", "VERIFY_CA", "VERIFY_IDENTITY",
        ):  # fmt: skip
            self._parameters["ssl"] = {"ca": query.get("serverSslCert")}
        self._connection: Any = None

    def connection(self) -> Any:
        if self._connection is None or not self._connection.open:
            self._connection = self._driver.connect(**self._parameters)
        return self._connection

    def close(self) -> None:
        if self._connection is not None:
            if self._connection.open:
                self._connection.close()
            self._connection = None

    def _rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        with self.connection().cursor() as cursor:
            cursor.execute(sql, values)
            return list(cursor.fetchall())

    def tables(self, schema: str | None, types: Sequence[str]) -> list[tuple[str, ...]]:
        kinds = ["BASE TABLE" if each == "TABLE" else each for each in types]
        marks = ", ".join(["%s"] * len(kinds))
        return [
            (str(database), str(table))
            for database, table in self._rows(
                "SELECT table_schema, table_name FROM information_schema.tables "
                f"WHERE table_type IN ({marks}) AND table_schema LIKE coalesce(%s, database()) "
                "ORDER BY 1, 2",
                *kinds,
                schema,
            )
        ]

    def table_columns(self, name: tuple[str, ...], mapping: str) -> list[TableColumn]:
        schema, table = (None, name[-1]) if len(name) == 1 else name[-2:]
        rows = self._rows(
            "SELECT column_name, data_type, column_type, numeric_precision, numeric_scale, "
            "is_nullable, column_default, extra, column_key FROM information_schema.columns "
            "WHERE table_name = %s AND table_schema = coalesce(%s, database()) "
            "ORDER BY ordinal_position",
            table,
            schema,
        )
        found = []
        for column, kind, full, precision, scale, nullable, default, extra, key in rows:
            typed = self._typed(kind, full, precision, scale, mapping)
            has_default = default is not None or "auto_increment" in (extra or "")
            found.append(
                TableColumn(_named(typed, column, nullable == "YES"), key == "PRI", has_default)
            )
        return found

    @staticmethod
    def _typed(
        kind: str, full: str, precision: int | None, scale: int | None, mapping: str
    ) -> Column:
        unsigned = "unsigned" in full
        match kind:
            case "tinyint":
                return Column("", builders.INT16 if unsigned else builders.INT8)
            case "smallint" if unsigned:
                return Column("", builders.INT32)
            case "int" | "integer" if unsigned:
                return Column("", builders.INT64)
            case "bigint" if unsigned:
                return columns.numeric("", 20, 0, "none")
            case "year":
                return Column("", builders.INT32)
            case "bit" if full == "bit(1)":
                return Column("", builders.BOOLEAN, lambda value: value != b"\0")
            case "binary" | "varbinary" | "blob" | "tinyblob" | "mediumblob" | "longblob" | "bit":
                return _BINARY
        return _by_name(kind, mapping, precision, scale) or _TEXT

    def result_columns(self, cursor: Any, mapping: str) -> list[Column]:
        types = import_module("pymysql.constants.FIELD_TYPE")
        names = {
            types.TINY: "tinyint", types.SHORT: "smallint", types.LONG: "int",
            types.INT24: "mediumint", types.LONGLONG: "bigint", types.FLOAT: "float",
            types.DOUBLE: "double", types.DECIMAL: "decimal", types.NEWDECIMAL: "decimal",
            types.DATE: "date", types.NEWDATE: "date", types.TIME: "time",
            types.DATETIME: "datetime", types.TIMESTAMP: "timestamp", types.YEAR: "year",
            types.BIT: "bit",
        }  # fmt: skip
        found = []
        for name, code, _, _, precision, scale, _ in cursor.description:
            typed = self._typed(names.get(code, "text"), "", precision, scale, mapping)
            if typed is _TEXT:
                typed = Column("", builders.STRING, _decoded)
            found.append(_named(typed, name, True))
        return found

    def now(self) -> datetime.datetime:
        ((moment,),) = self._rows("SELECT UTC_TIMESTAMP(6)")
        return columns.timestamp(moment)

    def moment(self, value: datetime.datetime) -> Any:
        return value.replace(tzinfo=None)

    def failure(self, error: Exception, what: str) -> ConnectError:
        away = isinstance(
            error, (self._driver.err.OperationalError, self._driver.err.InterfaceError)
        )
        return _failure(error, what, away, self.shown)


def _decoded(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else columns.text(value)


class Sqlite:
    syntax = statements.SQLITE

    def __init__(self, url: str) -> None:
        self._path = url.removeprefix("jdbc:sqlite:").removeprefix("file:").partition("?")[0]
        if not self._path:
            raise ConfigError.invalid(URL_KEY, url, "must name a file: jdbc:sqlite:/folder/file.db")
        self.shown = url
        self._connection: sqlite3.Connection | None = None

    def connection(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = sqlite3.connect(self._path, timeout=30.0, check_same_thread=False)
        return self._connection

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def tables(self, schema: str | None, types: Sequence[str]) -> list[tuple[str, ...]]:
        kinds = {each.lower() for each in types}
        return [
            (name,)
            for name, kind in self.connection().execute(
                "SELECT name, type FROM sqlite_master WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\' "
                "ORDER BY name"
            )
            if kind in kinds
        ]

    def table_columns(self, name: tuple[str, ...], mapping: str) -> list[TableColumn]:
        rows = self.connection().execute("SELECT * FROM pragma_table_info(?)", (name[-1],))
        found = []
        for _, column, declared, not_null, default, key in rows:
            typed = self._typed(declared, mapping)
            # A primary key of one INTEGER column numbers itself.
            has_default = default is not None or (bool(key) and declared.upper() == "INTEGER")
            optional = not not_null and not key
            found.append(TableColumn(_named(typed, column, optional), bool(key), has_default))
        return found

    @staticmethod
    def _typed(declared: str, mapping: str) -> Column:
        kind, _, rest = declared.lower().partition("(")
        sizes = [int(each) for each in rest.rstrip(") ").split(",") if each.strip().isdigit()]
        kind = kind.strip()
        if "int" in kind:
            return Column("", builders.INT64)
        if kind in ("real", "float", "double", "double precision"):
            return Column("", builders.FLOAT64, float)
        if "blob" in kind or "binary" in kind:
            return _BINARY
        precision, scale = (sizes + [0])[:2] if sizes else (None, None)
        return _by_name(kind, mapping, precision, scale) or _TEXT

    def result_columns(self, cursor: Any, mapping: str) -> list[Column]:
        # Results have no declared types here, only values.
        return [
            Column(each[0], builders.OPTIONAL_STRING, columns.text) for each in cursor.description
        ]

    def now(self) -> datetime.datetime:
        return datetime.datetime.now(datetime.UTC)

    def moment(self, value: datetime.datetime) -> Any:
        return value.replace(tzinfo=None).isoformat(sep=" ", timespec="milliseconds")

    def failure(self, error: Exception, what: str) -> ConnectError:
        return _failure(error, what, isinstance(error, sqlite3.OperationalError), self.shown)
