"""SQL's types, and how their values look in Python.

| type | value |
|---|---|
| BOOLEAN | bool |
| INTEGER, BIGINT | int within 32 or 64 bits |
| DOUBLE | float |
| DECIMAL(p, s) | Decimal with exactly the scale s |
| STRING | str |
| BYTES | bytes |
| DATE | int: days since 1970-01-01 |
| TIME | int: milliseconds since midnight |
| TIMESTAMP | int: milliseconds since 1970-01-01T00:00:00Z |
| ARRAY | list |
| MAP | dict |
| STRUCT | tuple with one value per field, in the order of the type's fields |

NULL is `None`. A row, and a part of it such as the key columns, is a tuple in the order of its
columns. Types are known when a query is compiled, so no value carries its type.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from moldau.data.sql_types import (
    ArrayType,
    BaseType,
    DecimalType,
    MapType,
    SqlType,
    StructType,
    connect_schema,
    parse,
    quoted,
    sql_type,
)

__all__ = [
    "BIGINT",
    "BOOLEAN",
    "BYTES",
    "DATE",
    "DOUBLE",
    "HEADERS_TYPE",
    "INTEGER",
    "STRING",
    "TIME",
    "TIMESTAMP",
    "ArrayType",
    "BaseType",
    "Column",
    "DecimalType",
    "LambdaType",
    "MapType",
    "Namespace",
    "SqlType",
    "StructType",
    "connect_schema",
    "is_numeric",
    "parse",
    "quoted",
    "sql_type",
]

BOOLEAN = BaseType.BOOLEAN
INTEGER = BaseType.INTEGER
BIGINT = BaseType.BIGINT
DOUBLE = BaseType.DOUBLE
STRING = BaseType.STRING
BYTES = BaseType.BYTES
DATE = BaseType.DATE
TIME = BaseType.TIME
TIMESTAMP = BaseType.TIMESTAMP

#: The type of a column that holds all headers of a record.
HEADERS_TYPE = ArrayType(StructType((("KEY", STRING), ("VALUE", BYTES))))


@dataclass(frozen=True, slots=True)
class LambdaType:
    """The type of a lambda argument: only functions take it, no column has it."""

    inputs: tuple[SqlType, ...]
    result: SqlType

    def __str__(self) -> str:
        shown = ", ".join(str(each) for each in self.inputs)
        return f"LAMBDA ({shown}) => {self.result}"


class Namespace(Enum):
    """Where in a record a column is."""

    KEY = "KEY"
    VALUE = "VALUE"
    HEADERS = "HEADERS"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a source. `header_key` names the one header that a HEADER('key') column holds."""

    name: str
    type: SqlType
    namespace: Namespace = Namespace.VALUE
    header_key: str | None = None

    def __str__(self) -> str:
        marker = "" if self.namespace is Namespace.VALUE else f" {self.namespace.value}"
        if self.header_key is not None:
            marker = f" HEADER('{self.header_key}')"
        return f"{quoted(self.name)} {self.type}{marker}"


_NUMERIC = frozenset({INTEGER, BIGINT, DOUBLE})


def is_numeric(sql_type: SqlType) -> bool:
    """Whether arithmetic applies to the type."""
    return isinstance(sql_type, DecimalType) or sql_type in _NUMERIC
