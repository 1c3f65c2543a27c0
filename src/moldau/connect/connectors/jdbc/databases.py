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
from zoneinfo import ZoneInfo

from moldau.connect.api import ConfigError, ConnectError, RetriableError
from moldau.connect.connectors.jdbc.machine import columns, statements
from moldau.connect.connectors.jdbc.machine.columns import Column, Reading
from moldau.connect.connectors.jdbc.machine.statements import Syntax
from moldau.connect.connectors.support.libraries import library
from moldau.data import builders, logical

URL_KEY: Final = "connection.url"


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column of a table as the database's catalogue describes it."""

    column: Column
    is_key: bool = False
    numbers_itself: bool = False


class Database(Protocol):
    syntax: Syntax
    shown: str
    """The address without passwords."""

    def connection(self) -> Any:
        """The connection, in a transaction that the caller ends."""

    def reading_cursor(self) -> Any:
        """A cursor that fetches a result piece by piece. Only one may be open."""

    def close(self) -> None: ...

    def tables(self, schema: str | None, types: Sequence[str]) -> list[tuple[str, ...]]:
        """Names of tables: catalogue and schema as far as there are any, then the table."""

    def table_columns(self, name: tuple[str, ...], reading: Reading) -> list[TableColumn]:
        """Empty if there is no such table."""

    def result_columns(self, cursor: Any, reading: Reading) -> list[Column]:
        """The columns of a query's result; all may be null."""

    def now(self) -> datetime.datetime: ...

    def moment(self, value: datetime.datetime) -> Any:
        """A timestamp in UTC as a value for a timestamp column."""

    def failure(self, error: Exception, what: str) -> ConnectError:
        """What to raise for an error of the driver: retriable if the database is away."""


def open_database(
    url: str, user: str | None, password: str | None, zone: datetime.tzinfo = datetime.UTC
) -> Database:
    """`zone` is that of timestamps that have none of their own."""
    scheme = url.removeprefix("jdbc:").partition(":")[0]
    if not url.startswith("jdbc:"):
        raise ConfigError.invalid(URL_KEY, url, "must begin with jdbc:")
    match scheme:
        case "postgresql":
            return Postgres(url, user or "", password or "", zone)
        case "mysql" | "mariadb":
            return MySql(url, user, password, zone)
        case "sqlite":
            return Sqlite(url, zone)
        case _:
            raise ConfigError.invalid(
                URL_KEY, url, "must be of postgresql, mysql, mariadb or sqlite"
            )


def _by_name(
    name: str, reading: Reading, precision: int | None, scale: int | None
) -> Column | None:
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
            return reading.numeric(precision, scale)
        case "date":
            return Column("", logical.DATE, columns.date)
        case "time" | "time without time zone" | "time with time zone":
            return reading.time()
        case "timestamp" | "datetime" | "timestamp without time zone" | "timestamp with time zone":
            return reading.timestamp()
    return None


def _named(column: Column, name: str, optional: bool) -> Column:
    return Column(name, column.schema, column.convert).optional(optional)


_TEXT: Final = Column("", builders.STRING, columns.text)
_BINARY: Final = Column("", builders.BYTES, bytes)


class Postgres:
    syntax = statements.POSTGRESQL

    def __init__(self, url: str, user: str, password: str, zone: datetime.tzinfo) -> None:
        from moldau.spark.tables.errors import OptionError
        from moldau.spark.tables.jdbc.machine.address import parse_address

        self._driver = library("psycopg")
        try:
            self._parameters = dict(parse_address(url, user, password).parameters)
        except OptionError as error:
            raise ConfigError.invalid(URL_KEY, url.partition("?")[0], str(error)) from None
        self.shown = url.partition("?")[0]
        self._zone = zone
        self._connection: Any = None

    def connection(self) -> Any:
        if self._connection is None or self._connection.closed:
            connection = self._driver.connect(**self._parameters)
            # A text that is compared with, or stored as, a timestamp with a time zone is in this.
            connection.execute(self._set_zone())
            connection.commit()
            self._connection = connection
        return self._connection

    def _set_zone(self) -> str:
        if isinstance(self._zone, ZoneInfo):
            return f"SET TIME ZONE '{self._zone.key}'"
        offset = self._zone.utcoffset(None) or datetime.timedelta()
        return f"SET TIME ZONE INTERVAL '{int(offset.total_seconds())} seconds'"

    def reading_cursor(self) -> Any:
        return self.connection().cursor(name="moldau_rows")

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def tables(self, schema: str | None, types: Sequence[str]) -> list[tuple[str, ...]]:
        found = self.connection().execute(
            "SELECT current_database()::text, n.nspname::text, c.relname::text FROM pg_class c "
            "JOIN pg_namespace n ON n.oid = c.relnamespace "
            "WHERE c.relkind = ANY(%s) AND n.nspname LIKE coalesce(%s, '%%') "
            "AND n.nspname <> 'information_schema' AND n.nspname !~ '^pg_' "
            "AND has_table_privilege(c.oid, 'SELECT') ORDER BY 2, 3",
            ([_POSTGRES_KINDS[each] for each in types if each in _POSTGRES_KINDS], schema),
        )
        return [tuple(row) for row in found]

    def table_columns(self, name: tuple[str, ...], reading: Reading) -> list[TableColumn]:
        schema, table = (None, name[-1]) if len(name) == 1 else name[-2:]
        rows = self.connection().execute(
            "SELECT a.attname::text, "
            "format_type(CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE t.oid END, NULL), "
            "CASE WHEN t.typtype = 'd' THEN t.typtypmod ELSE a.atttypmod END, "
            "NOT a.attnotnull, "
            "EXISTS (SELECT 1 FROM pg_index i WHERE i.indrelid = c.oid AND i.indisprimary "
            "AND a.attnum = ANY(i.indkey)), "
            "a.attidentity <> '' OR coalesce(pg_get_expr(d.adbin, d.adrelid), '') "
            "LIKE 'nextval(%%' "
            "FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
            "JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped "
            "JOIN pg_type t ON t.oid = a.atttypid "
            "LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum "
            "WHERE c.relname = %s AND c.relkind = ANY('{r,p,v,m,f}') "
            "AND (n.nspname = %s OR %s::text IS NULL AND pg_table_is_visible(c.oid)) "
            "ORDER BY a.attnum",
            (table, schema, schema),
        )
        found = []
        for column, kind, modifier, optional, is_key, numbers_itself in rows:
            precision, scale = _postgres_size(kind, modifier)
            typed = _named(self._typed(kind, precision, scale, reading), column, optional)
            found.append(TableColumn(typed, is_key, numbers_itself))
        return found

    def _typed(
        self, kind: str, precision: int | None, scale: int | None, reading: Reading
    ) -> Column:
        if kind == "bytea":
            return _BINARY
        if kind == "bit" and precision is not None:
            return _postgres_bits(precision)
        return _by_name(kind, reading, precision, scale) or _TEXT

    def result_columns(self, cursor: Any, reading: Reading) -> list[Column]:
        types = self._driver.adapters.types
        found = []
        for each in cursor.description:
            info = types.get(each.type_code)
            kind = info.regtype if info is not None else "text"
            typed = self._typed(kind, each.precision, each.scale, reading)
            found.append(_named(typed, each.name, True))
        return found

    def now(self) -> datetime.datetime:
        (moment,) = self.connection().execute("SELECT clock_timestamp()").fetchone()
        utc: datetime.datetime = moment.astimezone(datetime.UTC)
        return utc

    def moment(self, value: datetime.datetime) -> Any:
        # For a column with a time zone, which is the session's, and for one without.
        return _local(value, self._zone).isoformat(sep=" ")

    def failure(self, error: Exception, what: str) -> ConnectError:
        away = isinstance(error, (self._driver.OperationalError, self._driver.InterfaceError))
        return _failure(error, what, away, self.shown)


#: Kinds of tables, as PostgreSQL's JDBC driver calls them.
_POSTGRES_KINDS: Final = {
    "TABLE": "r",
    "PARTITIONED TABLE": "p",
    "VIEW": "v",
    "MATERIALIZED VIEW": "m",
    "FOREIGN TABLE": "f",
}


def _postgres_size(kind: str, modifier: int) -> tuple[int | None, int | None]:
    """Precision and scale, or the length of bits, if they are declared."""
    if modifier < 0:
        return None, None
    if kind == "numeric":
        # A scale has eleven bits and may be negative.
        return (modifier - 4) >> 16 & 0xFFFF, ((modifier - 4 & 0x7FF) ^ 1024) - 1024
    return (modifier if kind == "bit" else None), None


def _postgres_bits(length: int) -> Column:
    if length == 1:
        return Column("", builders.BOOLEAN, lambda value: value == "1")
    if length <= _BITS_OF_BYTE:
        return Column("", builders.INT8, lambda value: _signed_byte(int(value, 2)))
    return Column("", builders.BYTES, lambda value: value.encode())


_BITS_OF_BYTE: Final = 8


def _signed_byte(value: int) -> int:
    return value - 256 if value > 127 else value


def _local(value: datetime.datetime, zone: datetime.tzinfo) -> datetime.datetime:
    return value.astimezone(zone).replace(tzinfo=None)


def _failure(error: Exception, what: str, away: bool, shown: str) -> ConnectError:
    kind = RetriableError if away else ConnectError
    return kind(f"{what} of {shown} failed: {error}")


class MySql:
    """MariaDB and MySQL."""

    syntax = statements.MYSQL

    def __init__(
        self, url: str, user: str | None, password: str | None, zone: datetime.tzinfo
    ) -> None:
        self._driver = library("pymysql", "PyMySQL")
        self._zone = zone
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
        }
        if not isinstance(zone, ZoneInfo) or zone.key == "UTC":
            # For columns of type TIMESTAMP. Names are known to servers with tables for them only:
            # then the server's own zone must be this one.
            offset = zone.utcoffset(None) or datetime.timedelta()
            self._parameters["init_command"] = f"SET time_zone = '{_offset_text(offset)}'"
        if query.get("useSSL", "").lower() == "true" or query.get("sslMode", "").upper() in (
            "REQUIRED", "TRUST", "VERIFY_CA", "VERIFY_IDENTITY",
        ):  # fmt: skip
            self._parameters["ssl"] = {"ca": query.get("serverSslCert")}
        self._connection: Any = None

    def connection(self) -> Any:
        if self._connection is None or not self._connection.open:
            self._connection = self._driver.connect(**self._parameters)
        return self._connection

    def reading_cursor(self) -> Any:
        return self.connection().cursor(import_module("pymysql.cursors").SSCursor)

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

    def table_columns(self, name: tuple[str, ...], reading: Reading) -> list[TableColumn]:
        schema, table = (None, name[-1]) if len(name) == 1 else name[-2:]
        rows = self._rows(
            "SELECT column_name, data_type, column_type, numeric_precision, numeric_scale, "
            "is_nullable, extra, column_key FROM information_schema.columns "
            "WHERE table_name = %s AND table_schema = coalesce(%s, database()) "
            "ORDER BY ordinal_position",
            table,
            schema,
        )
        found = []
        for column, kind, full, precision, scale, nullable, extra, key in rows:
            typed = self._typed(kind, full, precision, scale, reading)
            found.append(
                TableColumn(
                    _named(typed, column, nullable == "YES"),
                    key == "PRI",
                    "auto_increment" in (extra or ""),
                )
            )
        return found

    @staticmethod
    def _typed(
        kind: str, full: str, precision: int | None, scale: int | None, reading: Reading
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
            case "bit" if full in _SMALL_BITS:
                return Column(
                    "", builders.INT8, lambda value: _signed_byte(int.from_bytes(value, "big"))
                )
            case "binary" | "varbinary" | "blob" | "tinyblob" | "mediumblob" | "longblob" | "bit":
                return _BINARY
        return _by_name(kind, reading, precision, scale) or _TEXT

    def result_columns(self, cursor: Any, reading: Reading) -> list[Column]:
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
            typed = self._typed(names.get(code, "text"), "", precision, scale, reading)
            if typed is _TEXT:
                typed = Column("", builders.STRING, _decoded)
            found.append(_named(typed, name, True))
        return found

    def now(self) -> datetime.datetime:
        ((moment,),) = self._rows("SELECT UTC_TIMESTAMP(6)")
        return columns.instant(moment, datetime.UTC)

    def moment(self, value: datetime.datetime) -> Any:
        return _local(value, self._zone)

    def failure(self, error: Exception, what: str) -> ConnectError:
        away = isinstance(error, self._driver.err.InterfaceError) or (
            # The driver calls much of what the server refuses operational, too.
            isinstance(error, self._driver.err.OperationalError)
            and (not error.args or _is_passing(error.args[0]))
        )
        return _failure(error, what, away, self.shown)


_SMALL_BITS: Final = frozenset(f"bit({length})" for length in range(1, _BITS_OF_BYTE + 1))


#: Errors of the server that pass: too many connections, shut down, locked, deadlock and the like.
_PASSING: Final = frozenset(
    {1040, 1042, 1043, 1047, 1053, 1077, 1078, 1079, 1152, 1153, 1154, 1155, 1156, 1157, 1158, 1159,
     1160, 1161, 1184, 1203, 1205, 1213, 1226, 1290, 1836, 1927}
)  # fmt: skip
#: Errors of the client begin here: there is no connection, or it broke.
_CLIENT_ERRORS: Final = 2000


def _is_passing(code: Any) -> bool:
    return not isinstance(code, int) or code >= _CLIENT_ERRORS or code in _PASSING


def _offset_text(offset: datetime.timedelta) -> str:
    minutes = int(offset.total_seconds()) // 60
    sign, minutes = ("-", -minutes) if minutes < 0 else ("+", minutes)
    return f"{sign}{minutes // 60:02}:{minutes % 60:02}"


def _decoded(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else columns.text(value)


class Sqlite:
    syntax = statements.SQLITE

    def __init__(self, url: str, zone: datetime.tzinfo) -> None:
        self._zone = zone
        self._path = url.removeprefix("jdbc:sqlite:").removeprefix("file:").partition("?")[0]
        if not self._path:
            raise ConfigError.invalid(URL_KEY, url, "must name a file: jdbc:sqlite:/folder/file.db")
        self.shown = url
        self._connection: sqlite3.Connection | None = None

    def connection(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = sqlite3.connect(self._path, timeout=30.0, check_same_thread=False)
        return self._connection

    def reading_cursor(self) -> Any:
        return self.connection().cursor()

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

    def table_columns(self, name: tuple[str, ...], reading: Reading) -> list[TableColumn]:
        rows = self.connection().execute("SELECT * FROM pragma_table_info(?)", (name[-1],))
        found = []
        for _, column, declared, not_null, _, key in rows:
            typed = self._typed(declared, reading)
            optional = not not_null and not key
            # A primary key of one INTEGER column numbers itself.
            numbers_itself = bool(key) and declared.upper() == "INTEGER"
            found.append(TableColumn(_named(typed, column, optional), bool(key), numbers_itself))
        return found

    @staticmethod
    def _typed(declared: str, reading: Reading) -> Column:
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
        return _by_name(kind, reading, precision, scale) or _TEXT

    def result_columns(self, cursor: Any, reading: Reading) -> list[Column]:
        # Results have no declared types here, only values.
        return [
            Column(each[0], builders.OPTIONAL_STRING, columns.text) for each in cursor.description
        ]

    def now(self) -> datetime.datetime:
        return datetime.datetime.now(datetime.UTC)

    def moment(self, value: datetime.datetime) -> Any:
        return _local(value, self._zone).isoformat(sep=" ", timespec="milliseconds")

    def failure(self, error: Exception, what: str) -> ConnectError:
        away = isinstance(error, sqlite3.OperationalError) and any(
            each in str(error) for each in ("locked", "busy", "unable to open", "disk I/O")
        )
        return _failure(error, what, away, self.shown)
