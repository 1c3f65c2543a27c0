"""The SQL that runs in MariaDB, as text.

Sessions have `sql_mode` ANSI_QUOTES, so names are quoted as everywhere else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from moldau.spark.tables.jdbc.machine.json_values import is_nested
from moldau.spark.tables.jdbc.machine.statements import (
    ROW_COLUMN,
    names,
    no_type,
    qualified,
    quoted,
)

__all__ = ["column_type", "move_staged", "replaced_by"]

# An index holds at most 3072 bytes, so the text of a key is bounded.
_KEY_LENGTH = 255
_TEXT = "CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin"


def column_type(arrow_type: Any, *, is_key: bool = False) -> str:
    """The type of a column that is created; of a key with a bound that an index can have."""
    simple = {
        pa.bool_(): "tinyint(1)",
        pa.int8(): "tinyint",
        pa.int16(): "smallint",
        pa.int32(): "int",
        pa.int64(): "bigint",
        pa.float32(): "float",
        pa.float64(): "double",
        pa.date32(): "date",
    }
    if arrow_type in simple:
        return simple[arrow_type]
    if pa.types.is_decimal(arrow_type):
        return f"decimal({arrow_type.precision},{arrow_type.scale})"
    if pa.types.is_timestamp(arrow_type):
        if not arrow_type.tz:
            return "datetime(6)"
        # Without these words a server may set the time of the last change by itself.
        return f"timestamp(6) {'DEFAULT 0' if is_key else 'NULL'}"
    if pa.types.is_string(arrow_type) or pa.types.is_large_string(arrow_type):
        return f"varchar({_KEY_LENGTH}) {_TEXT}" if is_key else f"longtext {_TEXT}"
    if pa.types.is_binary(arrow_type) or pa.types.is_large_binary(arrow_type):
        return f"varbinary({_KEY_LENGTH})" if is_key else "longblob"
    if is_nested(arrow_type):
        return "json"
    raise no_type(arrow_type)


def move_staged(
    table: str,
    staging: Sequence[tuple[str, int | None, int | None]],
    columns: Sequence[str],
    keys: Sequence[str],
    sequence_by: str,
) -> str:
    """All rows of staging tables (or of a range of their rows) into the table."""
    parts = []
    for position, (name, first, last) in enumerate(staging):
        where = "" if first is None else f" WHERE {ROW_COLUMN} BETWEEN {first} AND {last}"
        parts.append(
            f"SELECT {names(columns)}, {position} AS moldau_task, {ROW_COLUMN} FROM {name}{where}"
        )
    rows = " UNION ALL ".join(parts)
    selected = names(columns)
    if not keys:
        select = f"SELECT {selected} FROM ({rows}) staged ORDER BY moldau_task, {ROW_COLUMN}"
    else:
        newest = f"{quoted(sequence_by)} DESC, " if sequence_by else ""
        numbered = (
            f"SELECT staged.*, row_number() OVER (PARTITION BY {names(keys)} "
            f"ORDER BY {newest}moldau_task DESC, {ROW_COLUMN} DESC) AS moldau_number "
            f"FROM ({rows}) staged"
        )
        select = f"SELECT {selected} FROM ({numbered}) newest WHERE moldau_number = 1"
    tail = replaced_by(table, columns, keys, sequence_by)
    return f"INSERT INTO {qualified(table)} ({selected}) {select}{tail}"


def replaced_by(table: str, columns: Sequence[str], keys: Sequence[str], sequence_by: str) -> str:
    """The tail of an INSERT that replaces the row with the same key, unless that one is later."""
    if not keys:
        return ""
    others = [column for column in columns if column not in keys and column != sequence_by]
    if sequence_by and sequence_by not in keys:
        # Assignments take effect from left to right: what is compared is assigned last.
        others.append(sequence_by)
    # The rows that are selected have columns of the same names.
    held = qualified(table)
    if not others:
        return f" ON DUPLICATE KEY UPDATE {quoted(keys[0])} = {held}.{quoted(keys[0])}"
    sets = []
    for name in map(quoted, others):
        new = f"VALUES({name})"
        if sequence_by:
            version = quoted(sequence_by)
            is_newer = f"{held}.{version} IS NULL OR {held}.{version} <= VALUES({version})"
            new = f"IF({is_newer}, {new}, {held}.{name})"
        sets.append(f"{held}.{name} = {new}")
    return f" ON DUPLICATE KEY UPDATE {', '.join(sets)}"
