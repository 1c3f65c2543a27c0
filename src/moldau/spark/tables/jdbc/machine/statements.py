"""The SQL that sinks run, as text. PostgreSQL's and SQLite's differ in types and placeholders."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from moldau.spark.tables.errors import SchemaMismatchError
from moldau.spark.tables.jdbc.machine.json_values import is_nested

BATCHES_TABLE = "moldau_batches"
STAGING_PREFIX = "moldau_staging_"
ROW_COLUMN = "moldau_row"
# Beyond 15 digits SQLite would keep a decimal as a double, so such ones are kept as text.
_SQLITE_EXACT_DIGITS = 15


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def qualified(table: str) -> str:
    """`schema.table` with each part quoted; parts that are quoted already are left so."""
    return ".".join(part if part.startswith('"') else quoted(part) for part in table_parts(table))


def table_parts(table: str) -> list[str]:
    parts: list[str] = []
    inside = False
    current = ""
    for character in table:
        if character == '"':
            inside = not inside
        if character == "." and not inside:
            parts.append(current)
            current = ""
        else:
            current += character
    return [*parts, current]


def postgresql_type(arrow_type: Any) -> str:
    simple = {
        pa.bool_(): "boolean",
        pa.int8(): "smallint",
        pa.int16(): "smallint",
        pa.int32(): "integer",
        pa.int64(): "bigint",
        pa.float32(): "real",
        pa.float64(): "double precision",
        pa.date32(): "date",
    }
    if arrow_type in simple:
        return simple[arrow_type]
    if pa.types.is_decimal(arrow_type):
        return f"numeric({arrow_type.precision},{arrow_type.scale})"
    if pa.types.is_timestamp(arrow_type):
        return "timestamptz" if arrow_type.tz else "timestamp"
    if pa.types.is_string(arrow_type) or pa.types.is_large_string(arrow_type):
        return "text"
    if pa.types.is_binary(arrow_type) or pa.types.is_large_binary(arrow_type):
        return "bytea"
    if is_nested(arrow_type):
        return "jsonb"
    raise no_type(arrow_type)


def sqlite_type(arrow_type: Any) -> str:
    if pa.types.is_boolean(arrow_type):
        return "BOOLEAN"
    if pa.types.is_integer(arrow_type):
        return "INTEGER"
    if pa.types.is_floating(arrow_type):
        return "REAL"
    if pa.types.is_date(arrow_type):
        return "DATE"
    if pa.types.is_timestamp(arrow_type):
        return "TIMESTAMP" if arrow_type.tz else "DATETIME"
    if pa.types.is_decimal(arrow_type):
        word = "DECIMAL" if arrow_type.precision <= _SQLITE_EXACT_DIGITS else "DECIMAL_TEXT"
        return f"{word}({arrow_type.precision},{arrow_type.scale})"
    if pa.types.is_string(arrow_type) or pa.types.is_large_string(arrow_type):
        return "TEXT"
    if pa.types.is_binary(arrow_type) or pa.types.is_large_binary(arrow_type):
        return "BLOB"
    if is_nested(arrow_type):
        return "JSON_TEXT"
    raise no_type(arrow_type)


def no_type(arrow_type: Any) -> SchemaMismatchError:
    return SchemaMismatchError(
        f"there is no column type for {arrow_type}", "Cast it in a step, for instance to text"
    )


def create_table(table: str, columns: Sequence[tuple[str, str]], keys: Sequence[str]) -> str:
    lines = [f"{quoted(name)} {sql_type}" for name, sql_type in columns]
    if keys:
        lines.append(f"PRIMARY KEY ({names(keys)})")
    return f"CREATE TABLE IF NOT EXISTS {qualified(table)} ({', '.join(lines)})"


def create_batches(schema: str = "") -> str:
    table = f"{schema}.{BATCHES_TABLE}" if schema else BATCHES_TABLE
    return (
        f"CREATE TABLE IF NOT EXISTS {table} (application_id text NOT NULL, "
        "table_name text NOT NULL, batch_id bigint NOT NULL, "
        "committed_at timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP, "
        "PRIMARY KEY (application_id, table_name))"
    )


def names(columns: Sequence[str]) -> str:
    return ", ".join(quoted(column) for column in columns)


def on_conflict(table: str, columns: Sequence[str], keys: Sequence[str], sequence_by: str) -> str:
    """The tail of an INSERT that replaces the row with the same key, unless that one is later."""
    if not keys:
        return ""
    others = [column for column in columns if column not in keys]
    if not others:
        return f" ON CONFLICT ({names(keys)}) DO NOTHING"
    sets = ", ".join(f"{quoted(column)} = excluded.{quoted(column)}" for column in others)
    tail = f" ON CONFLICT ({names(keys)}) DO UPDATE SET {sets}"
    if sequence_by:
        held = f"{qualified(table)}.{quoted(sequence_by)}"
        tail += f" WHERE {held} IS NULL OR {held} <= excluded.{quoted(sequence_by)}"
    return tail


def move_staged(
    table: str,
    staging: Sequence[tuple[str, int | None, int | None]],
    columns: Sequence[str],
    keys: Sequence[str],
    sequence_by: str,
) -> str:
    """PostgreSQL: all rows of staging tables (or of a range of their rows) into the table."""
    parts = []
    for position, (name, first, last) in enumerate(staging):
        where = "" if first is None else f" WHERE {ROW_COLUMN} BETWEEN {first} AND {last}"
        parts.append(
            f"SELECT {names(columns)}, {position} AS moldau_task, {ROW_COLUMN} FROM {name}{where}"
        )
    rows = " UNION ALL ".join(parts)
    if not keys:
        order = f"ORDER BY moldau_task, {ROW_COLUMN}"
        select = f"SELECT {names(columns)} FROM ({rows}) staged {order}"
    else:
        # One statement may touch a row only once, so the last of each key is chosen first.
        newest = f"{quoted(sequence_by)} DESC NULLS LAST, " if sequence_by else ""
        order = f"{names(keys)}, {newest}moldau_task DESC, {ROW_COLUMN} DESC"
        select = (
            f"SELECT DISTINCT ON ({names(keys)}) {names(columns)} FROM ({rows}) staged "
            f"ORDER BY {order}"
        )
    tail = on_conflict(table, columns, keys, sequence_by)
    return f"INSERT INTO {qualified(table)} ({names(columns)}) {select}{tail}"


def insert_row(table: str, columns: Sequence[str], keys: Sequence[str], sequence_by: str) -> str:
    """SQLite: one row."""
    values = ", ".join("?" for _ in columns)
    tail = on_conflict(table, columns, keys, sequence_by)
    return f"INSERT INTO {qualified(table)} ({names(columns)}) VALUES ({values}){tail}"
