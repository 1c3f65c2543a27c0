"""The SQL of a sink, for all dialects: what differs between them is in `Syntax`."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from moldau.connect.connectors.jdbc.machine.tables import parse_names
from moldau.data import logical
from moldau.data.errors import DataError
from moldau.data.schema import Schema, Type
from moldau.data.struct import Struct


@dataclass(frozen=True, slots=True)
class Syntax:
    """`upsert` is the clause behind an insert: `on conflict` or `on duplicate key`."""

    quote: str
    placeholder: str
    types: Mapping[Type, str]
    logical_types: Mapping[str, str]
    decimal: str
    """With {scale}."""
    key_text: str
    """The type of a text that is part of a primary key."""
    upsert: str
    timestamp: str = "{}"
    """How a timestamp column is compared."""
    booleans: tuple[str, str] = ("0", "1")
    """False and true, as default values."""
    arrays: bool = False
    """Whether columns may be arrays."""

    def quoted(self, name: str) -> str:
        return f"{self.quote}{name.replace(self.quote, self.quote * 2)}{self.quote}"

    def bound(self, statement: str) -> str:
        """A statement for the driver, from one with marks for its values: only these are its
        placeholders, whatever is in names and in a user's query."""
        if "%" in self.placeholder:
            statement = statement.replace("%", "%%")
        return statement.replace(MARK, self.placeholder)

    def table(self, name: str | tuple[str, ...]) -> str:
        """`schema.table` with each part quoted. Parts of a text may be quoted already."""
        parts = parse_names(name)[0] if isinstance(name, str) else name
        return ".".join(self.quoted(part) for part in parts)


#: Stands for a value in a statement until `Syntax.bound`.
MARK: Final = "\0"

ON_CONFLICT: Final = "on conflict"
ON_DUPLICATE_KEY: Final = "on duplicate key"

POSTGRESQL: Final = Syntax(
    quote='"',
    placeholder="%s",
    types={
        Type.INT8: "SMALLINT",
        Type.INT16: "SMALLINT",
        Type.INT32: "INT",
        Type.INT64: "BIGINT",
        Type.FLOAT32: "REAL",
        Type.FLOAT64: "DOUBLE PRECISION",
        Type.BOOLEAN: "BOOLEAN",
        Type.STRING: "TEXT",
        Type.BYTES: "BYTEA",
    },
    logical_types={
        logical.DATE_NAME: "DATE",
        logical.TIME_NAME: "TIME",
        logical.TIMESTAMP_NAME: "TIMESTAMP",
    },
    decimal="DECIMAL",
    key_text="TEXT",
    upsert=ON_CONFLICT,
    booleans=("FALSE", "TRUE"),
    arrays=True,
)
MYSQL: Final = Syntax(
    quote="`",
    placeholder="%s",
    types={
        Type.INT8: "TINYINT",
        Type.INT16: "SMALLINT",
        Type.INT32: "INT",
        Type.INT64: "BIGINT",
        Type.FLOAT32: "FLOAT",
        Type.FLOAT64: "DOUBLE",
        Type.BOOLEAN: "TINYINT",
        Type.STRING: "TEXT",
        Type.BYTES: "VARBINARY(1024)",
    },
    logical_types={
        logical.DATE_NAME: "DATE",
        logical.TIME_NAME: "TIME(3)",
        logical.TIMESTAMP_NAME: "DATETIME(3)",
    },
    decimal="DECIMAL(65,{scale})",
    # A TEXT cannot be a primary key without a length.
    key_text="VARCHAR(256)",
    upsert=ON_DUPLICATE_KEY,
)
SQLITE: Final = Syntax(
    quote='"',
    placeholder="?",
    types={
        Type.INT8: "INTEGER",
        Type.INT16: "INTEGER",
        Type.INT32: "INTEGER",
        Type.INT64: "INTEGER",
        Type.FLOAT32: "REAL",
        Type.FLOAT64: "REAL",
        Type.BOOLEAN: "INTEGER",
        Type.STRING: "TEXT",
        Type.BYTES: "BLOB",
    },
    logical_types={
        logical.DATE_NAME: "DATE",
        logical.TIME_NAME: "TIME",
        logical.TIMESTAMP_NAME: "TIMESTAMP",
    },
    decimal="NUMERIC",
    key_text="TEXT",
    upsert=ON_CONFLICT,
    # Timestamps are texts here, with and without fractions of a second.
    timestamp="strftime('%Y-%m-%d %H:%M:%f', {})",
)


@dataclass(frozen=True, slots=True)
class SinkField:
    name: str
    schema: Schema
    is_key: bool


def column_type(syntax: Syntax, field: SinkField) -> str:
    schema = field.schema
    if schema.name == logical.DECIMAL_NAME:
        return syntax.decimal.format(scale=logical.scale_of(schema))
    if schema.name is not None and schema.name in syntax.logical_types:
        return syntax.logical_types[schema.name]
    if schema.type is Type.STRING and field.is_key:
        return syntax.key_text
    if schema.type is Type.ARRAY and syntax.arrays and schema.value_schema is not None:
        return column_type(syntax, SinkField(field.name, schema.value_schema, field.is_key)) + "[]"
    found = syntax.types.get(schema.type)
    if found is None:
        raise DataError(
            f"field {field.name} is a {schema.type.value}, for which a table has no column type: "
            "flatten it (Flatten), or leave it out (fields.whitelist)"
        )
    return found


def _column(syntax: Syntax, field: SinkField) -> str:
    parts = [syntax.quoted(field.name), column_type(syntax, field)]
    default = field.schema.default
    if default is not None and not isinstance(default, (bytes, list, dict, Struct)):
        parts.append(f"DEFAULT {_literal(syntax, default)}")
    parts.append("NULL" if field.schema.optional and not field.is_key else "NOT NULL")
    return " ".join(parts)


def _literal(syntax: Syntax, value: object) -> str:
    if isinstance(value, bool):
        return syntax.booleans[value]
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, datetime.datetime):
        value = value.replace(tzinfo=None).isoformat(sep=" ", timespec="milliseconds")
    elif isinstance(value, datetime.time):
        value = value.isoformat(timespec="milliseconds")
    return "'" + str(value).replace("'", "''") + "'"


def create_table(syntax: Syntax, table: str, fields: Sequence[SinkField]) -> str:
    lines = [_column(syntax, field) for field in fields]
    keys = [syntax.quoted(field.name) for field in fields if field.is_key]
    if keys:
        lines.append(f"PRIMARY KEY({', '.join(keys)})")
    return f"CREATE TABLE {syntax.table(table)} ({', '.join(lines)})"


def add_columns(syntax: Syntax, table: str, fields: Sequence[SinkField]) -> list[str]:
    """One statement per column: SQLite knows no other way."""
    for field in fields:
        if not field.schema.optional and field.schema.default is None:
            raise DataError(
                f"Cannot ALTER {table} to add missing field {field.name}, as the field is not "
                "optional and does not have a default value"
            )
    return [
        f"ALTER TABLE {syntax.table(table)} ADD COLUMN {_column(syntax, field)}" for field in fields
    ]


def insert(syntax: Syntax, table: str, names: Sequence[str]) -> str:
    columns = ", ".join(map(syntax.quoted, names))
    values = ", ".join([MARK] * len(names))
    return f"INSERT INTO {syntax.table(table)} ({columns}) VALUES ({values})"


def upsert(syntax: Syntax, table: str, keys: Sequence[str], others: Sequence[str]) -> str:
    text = insert(syntax, table, [*keys, *others])
    if syntax.upsert == ON_DUPLICATE_KEY:
        # A table whose columns are all keys still needs something to set.
        changed = [
            f"{syntax.quoted(name)} = VALUES({syntax.quoted(name)})" for name in others or keys[:1]
        ]
        return f"{text} ON DUPLICATE KEY UPDATE {', '.join(changed)}"
    target = ", ".join(map(syntax.quoted, keys))
    if not others:
        return f"{text} ON CONFLICT ({target}) DO NOTHING"
    changed = [f"{syntax.quoted(name)} = EXCLUDED.{syntax.quoted(name)}" for name in others]
    return f"{text} ON CONFLICT ({target}) DO UPDATE SET {', '.join(changed)}"


def update(syntax: Syntax, table: str, keys: Sequence[str], others: Sequence[str]) -> str:
    """Values come in the order of `others`, then `keys`."""
    changed = ", ".join(f"{syntax.quoted(name)} = {MARK}" for name in others)
    return f"UPDATE {syntax.table(table)} SET {changed}{_where(syntax, keys)}"


def delete(syntax: Syntax, table: str, keys: Sequence[str]) -> str:
    return f"DELETE FROM {syntax.table(table)}{_where(syntax, keys)}"


def _where(syntax: Syntax, keys: Sequence[str]) -> str:
    if not keys:
        return ""
    return " WHERE " + " AND ".join(f"{syntax.quoted(key)} = {MARK}" for key in keys)
