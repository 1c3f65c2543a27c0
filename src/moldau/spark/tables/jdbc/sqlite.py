"""SQLite as Python sees it: connections, the types of its columns, rows as Arrow batches.

SQLite keeps what it is given, so types here are conventions: dates and times are ISO text in UTC
(which sorts as time does), truth values 0 and 1, arrays and structs JSON, decimals beyond fifteen
digits text. Columns are read back by their declared types.
"""

from __future__ import annotations

import datetime
import decimal
import os
import re
import sqlite3
import urllib.parse
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from moldau.spark.tables.jdbc.machine.json_values import is_nested, json_text

from ..errors import TableError

MARK = "?"
AS_TEXT = "text"
# How long a write waits for another one: SQLite has one writer at a time.
_BUSY_SECONDS = 60.0
# Spark's decimals have up to 38 digits; Python's own default is 28.
_EXACT = decimal.Context(prec=100)


def connect(path: str, *, create: bool = False) -> sqlite3.Connection:
    """A connection in which transactions begin and end where the statements say so."""
    new = create and not os.path.exists(path)
    uri = f"file:{urllib.parse.quote(path)}?mode={'rwc' if create else 'rw'}"
    try:
        connection = sqlite3.connect(uri, uri=True, timeout=_BUSY_SECONDS, isolation_level=None)
        if new:
            # Readers then do not wait for the writer. A database that was there keeps its own way.
            connection.execute("PRAGMA journal_mode = WAL").fetchone()
    except sqlite3.Error as error:
        raise TableError(
            f"the SQLite database {path} cannot be opened: {error}",
            "Its folder must exist and be writable for Spark's processes",
        ) from None
    return connection


def errors() -> Any:
    return sqlite3.Error


def delayed_now(delay_ms: int) -> str:
    return f"strftime('%Y-%m-%d %H:%M:%f', 'now', '-{delay_ms / 1000:.3f} seconds')"


def relation_columns(connection: Any, relation: str) -> list[tuple[str, Any, str]]:
    """Name, Arrow type and SQL expression of each column of a table or (query)."""
    connection.execute("DROP VIEW IF EXISTS temp.moldau_columns")
    connection.execute(f"CREATE TEMP VIEW moldau_columns AS SELECT * FROM {relation}")
    rows = connection.execute("PRAGMA table_info(moldau_columns)").fetchall()
    connection.execute("DROP VIEW temp.moldau_columns")
    return [
        (row[1], declared_type(row[2] or ""), '"' + row[1].replace('"', '""') + '"') for row in rows
    ]


def declared_type(declared: str) -> Any:
    """The Arrow type of a declared one: dates and decimals by name, else SQLite's affinity."""
    word = declared.upper()
    if match := re.match(r"(?:DECIMAL|NUMERIC|DECIMAL_TEXT)\s*\((\d+)\s*(?:,\s*(\d+))?\)", word):
        precision, scale = int(match[1]), int(match[2] or 0)
        if 0 < precision <= 38 and scale <= precision:
            return pa.decimal128(precision, scale)
    exact = {
        "DATE": pa.date32(),
        "TIMESTAMP": pa.timestamp("us", "UTC"),
        "DATETIME": pa.timestamp("us"),
    }
    if word in exact:
        return exact[word]
    if word.startswith("BOOL"):
        return pa.bool_()
    if "INT" in word:
        return pa.int64()
    if any(part in word for part in ("CHAR", "CLOB", "TEXT", "JSON")):
        return pa.string()
    if any(part in word for part in ("REAL", "FLOA", "DOUB", "NUMERIC", "DECIMAL")):
        return pa.float64()
    return pa.binary() if "BLOB" in word else pa.string()


def select(
    connection: Any, statement: str, parameters: Sequence[Any], schema: Any, fetch_size: int
) -> Iterator[Any]:
    cursor = connection.execute(statement, parameters)
    readers = [reader(field.name, field.type) for field in schema]
    while rows := cursor.fetchmany(fetch_size):
        columns = zip(*rows, strict=True)
        arrays = [
            pa.array([read(value) for value in column], arrow_type)
            for read, column, arrow_type in zip(readers, columns, schema.types, strict=True)
        ]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def reader(name: str, arrow_type: Any) -> Callable[[Any], Any]:
    """How a stored value becomes one of the column's type; an error names column and value."""
    convert = _reading(arrow_type)

    def read(value: Any) -> Any:
        if value is None:
            return None
        try:
            return convert(value)
        except (ValueError, TypeError, ArithmeticError):
            raise TableError(
                f"column {name!r} has the value {value!r}, which is no {arrow_type}",
                "Cast the column in a query:, or give schema: with its type as STRING",
            ) from None

    return read


def _reading(arrow_type: Any) -> Callable[[Any], Any]:
    if pa.types.is_boolean(arrow_type):
        return lambda value: bool(int(value))
    if pa.types.is_integer(arrow_type):
        return int
    if pa.types.is_floating(arrow_type):
        return float
    if pa.types.is_decimal(arrow_type):
        step = decimal.Decimal(1).scaleb(-arrow_type.scale)
        return lambda value: decimal.Decimal(str(value)).quantize(step, context=_EXACT)
    if pa.types.is_date(arrow_type):
        return lambda value: datetime.date.fromisoformat(str(value)[:10])
    if pa.types.is_timestamp(arrow_type):
        return _utc if arrow_type.tz else _wall_clock
    if pa.types.is_binary(arrow_type):
        return lambda value: value if isinstance(value, bytes) else str(value).encode()
    return lambda value: value.decode() if isinstance(value, bytes) else str(value)


def _time(value: Any) -> datetime.datetime:
    """ISO text, or seconds since 1970, as SQLite's own functions understand them."""
    if isinstance(value, (int, float)):
        return datetime.datetime.fromtimestamp(value, datetime.UTC)
    return datetime.datetime.fromisoformat(value)


def _utc(value: Any) -> datetime.datetime:
    time = _time(value)
    return time.astimezone(datetime.UTC) if time.tzinfo else time.replace(tzinfo=datetime.UTC)


def _wall_clock(value: Any) -> datetime.datetime:
    return _time(value).replace(tzinfo=None)


def storing(arrow_type: Any) -> Callable[[Any], Any] | None:
    """How a value of this type is stored; None if just as it is."""
    if is_nested(arrow_type):
        return lambda value: json_text(value, arrow_type)
    if pa.types.is_decimal(arrow_type):
        return str
    if pa.types.is_boolean(arrow_type):
        return int
    if pa.types.is_date(arrow_type):
        return lambda value: str(value.isoformat())
    if pa.types.is_timestamp(arrow_type):
        return lambda value: str(value.strftime("%Y-%m-%d %H:%M:%S.%f"))
    return None
