"""ksqlDB's types: read from text, written as text, and as Connect's schemas.

    BOOLEAN INTEGER BIGINT DOUBLE DECIMAL(precision, scale) STRING BYTES DATE TIME TIMESTAMP
    ARRAY<type> MAP<type, type> STRUCT<name type, ...>

INT is INTEGER and VARCHAR is STRING, with a length or without. Everything may be null in SQL, so
the schemas are optional all the way down.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from moldau.data import logical
from moldau.data.errors import DataError
from moldau.data.schema import Field, Schema, Type

_NESTING_MAX = 100
_PRECISION_DEFAULT = 64
_TOKEN = re.compile(r"\s*(?:([A-Za-z_@][A-Za-z0-9_@]*)|([0-9]+)|`((?:[^`]|``)+)`|([<>(),]))")
_END = re.compile(r"\s*\Z")


class BaseType(Enum):
    """Types without parts."""

    BOOLEAN = "BOOLEAN"
    INTEGER = "INTEGER"
    BIGINT = "BIGINT"
    DOUBLE = "DOUBLE"
    STRING = "STRING"
    BYTES = "BYTES"
    DATE = "DATE"
    TIME = "TIME"
    TIMESTAMP = "TIMESTAMP"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, slots=True)
class DecimalType:
    precision: int
    scale: int

    def __post_init__(self) -> None:
        if self.precision < 1:
            raise DataError(f"DECIMAL precision must be >= 1: {self}")
        if self.scale < 0:
            raise DataError(f"DECIMAL scale must be >= 0: {self}")
        if self.scale > self.precision:
            raise DataError(f"DECIMAL precision must be >= scale: {self}")

    def __str__(self) -> str:
        return f"DECIMAL({self.precision}, {self.scale})"


@dataclass(frozen=True, slots=True)
class ArrayType:
    item: SqlType

    def __str__(self) -> str:
        return f"ARRAY<{self.item}>"


@dataclass(frozen=True, slots=True)
class MapType:
    key: SqlType
    value: SqlType

    def __str__(self) -> str:
        return f"MAP<{self.key}, {self.value}>"


@dataclass(frozen=True, slots=True)
class StructType:
    fields: tuple[tuple[str, SqlType], ...]

    def __str__(self) -> str:
        shown = ", ".join(f"{quoted(name)} {each}" for name, each in self.fields)
        return f"STRUCT<{shown}>" if shown else "STRUCT< >"


SqlType: TypeAlias = BaseType | DecimalType | ArrayType | MapType | StructType
_WORDS = {
    **{each.value: each for each in BaseType},
    "INT": BaseType.INTEGER,
    "VARCHAR": BaseType.STRING,
}


def quoted(name: str) -> str:
    """An identifier as ksqlDB shows it."""
    return "`" + name.replace("`", "``") + "`"


def parse(text: str) -> SqlType:
    """The type that a text names; a field's name without quotes is in capitals, as in SQL."""
    parser = _Parser(text)
    found = parser.type(1)
    parser.end()
    return found


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0

    def type(self, depth: int) -> SqlType:
        if depth > _NESTING_MAX:
            raise DataError(f"A type is nested more than {_NESTING_MAX} levels deep")
        word = self._word()
        match word:
            case "ARRAY":
                self._expect("<")
                item = self.type(depth + 1)
                self._expect(">")
                return ArrayType(item)
            case "MAP":
                self._expect("<")
                key = self.type(depth + 1)
                self._expect(",")
                value = self.type(depth + 1)
                self._expect(">")
                return MapType(key, value)
            case "STRUCT":
                return self._struct(depth)
            case "DECIMAL" | "DEC":
                precision, scale = self._numbers(2)
                return DecimalType(precision, scale)
            case "VARCHAR" | "STRING":
                if self._peek() == "(":
                    self._numbers(1)
                return BaseType.STRING
        found = _WORDS.get(word)
        if found is None:
            raise DataError(f"Unknown SQL type {word}: use one of {', '.join(_ALL)}")
        return found

    def _struct(self, depth: int) -> StructType:
        self._expect("<")
        fields: dict[str, SqlType] = {}
        while self._peek() != ">":
            if fields:
                self._expect(",")
            name = self._name()
            if name in fields:
                raise DataError(f"Duplicate field {quoted(name)} in a STRUCT")
            fields[name] = self.type(depth + 1)
        self._expect(">")
        return StructType(tuple(fields.items()))

    def _numbers(self, count: int) -> list[int]:
        self._expect("(")
        numbers = []
        for index in range(count):
            if index:
                self._expect(",")
            token = self._next()
            if not token.isdigit() or len(token) > 9:
                raise self._error(f"a number, not {token!r}")
            numbers.append(int(token))
        self._expect(")")
        return numbers

    def _word(self) -> str:
        token = self._next()
        if not token[:1].isalpha():
            raise self._error(f"a type, not {token!r}")
        return token.upper()

    def _name(self) -> str:
        token = self._next()
        if token.startswith("`"):
            return token[1:-1].replace("``", "`")
        if not (token[:1].isalpha() or token[:1] in ("_", "@")):
            raise self._error(f"the name of a field, not {token!r}")
        return token.upper()

    def _expect(self, wanted: str) -> None:
        token = self._next()
        if token != wanted:
            raise self._error(f"{wanted!r}, not {token!r}")

    def _peek(self) -> str:
        """The next token, which stays where it is; "" at the end."""
        found = _TOKEN.match(self._text, self._position)
        return "" if found is None else found.group().strip()

    def _next(self) -> str:
        found = _TOKEN.match(self._text, self._position)
        if found is None:
            raise self._error("more of the type")
        self._position = found.end()
        return found.group().strip()

    def end(self) -> None:
        if not _END.match(self._text, self._position):
            raise self._error("the end of the type")

    def _error(self, wanted: str) -> DataError:
        return DataError(
            f"Cannot read the SQL type {self._text!r}: expected {wanted} before position "
            f"{self._position}"
        )


_ALL = [*(each.value for each in BaseType), "DECIMAL(p, s)", "ARRAY<>", "MAP<,>", "STRUCT<>"]

_SCHEMAS = {
    BaseType.BOOLEAN: Schema(type=Type.BOOLEAN, optional=True),
    BaseType.INTEGER: Schema(type=Type.INT32, optional=True),
    BaseType.BIGINT: Schema(type=Type.INT64, optional=True),
    BaseType.DOUBLE: Schema(type=Type.FLOAT64, optional=True),
    BaseType.STRING: Schema(type=Type.STRING, optional=True),
    BaseType.BYTES: Schema(type=Type.BYTES, optional=True),
    BaseType.DATE: logical.DATE.as_optional(),
    BaseType.TIME: logical.TIME.as_optional(),
    BaseType.TIMESTAMP: logical.TIMESTAMP.as_optional(),
}
_BASE_TYPES = {
    Type.BOOLEAN: BaseType.BOOLEAN,
    Type.INT8: BaseType.INTEGER,
    Type.INT16: BaseType.INTEGER,
    Type.INT32: BaseType.INTEGER,
    Type.INT64: BaseType.BIGINT,
    Type.FLOAT32: BaseType.DOUBLE,
    Type.FLOAT64: BaseType.DOUBLE,
    Type.STRING: BaseType.STRING,
    Type.BYTES: BaseType.BYTES,
}
_LOGICAL_TYPES = {
    logical.DATE_NAME: BaseType.DATE,
    logical.TIME_NAME: BaseType.TIME,
    logical.TIMESTAMP_NAME: BaseType.TIMESTAMP,
}


def connect_schema(sql_type: SqlType) -> Schema:
    """The schema of the type's values."""
    match sql_type:
        case BaseType():
            return _SCHEMAS[sql_type]
        case DecimalType():
            return logical.decimal(sql_type.scale, precision=sql_type.precision, optional=True)
        case ArrayType():
            return Schema(
                type=Type.ARRAY, value_schema=connect_schema(sql_type.item), optional=True
            )
        case MapType():
            return Schema(
                type=Type.MAP,
                key_schema=connect_schema(sql_type.key),
                value_schema=connect_schema(sql_type.value),
                optional=True,
            )
        case StructType():
            fields = (
                Field(name, index, connect_schema(each))
                for index, (name, each) in enumerate(sql_type.fields)
            )
            return Schema(type=Type.STRUCT, fields=tuple(fields), optional=True)


def sql_type(schema: Schema) -> SqlType:
    """The type that holds the schema's values: small integers widen, and floats to DOUBLE."""
    if schema.name == logical.DECIMAL_NAME:
        text = schema.parameters.get(logical.PRECISION_PARAMETER, str(_PRECISION_DEFAULT))
        if not text.isdigit():
            raise DataError(f"The precision of {schema} is no number: {text}")
        return DecimalType(int(text), logical.scale_of(schema))
    found = _LOGICAL_TYPES.get(schema.name or "")
    if found is not None:
        return found
    match schema.type:
        case Type.ARRAY:
            return ArrayType(sql_type(schema.items))
        case Type.MAP:
            return MapType(sql_type(schema.keys), sql_type(schema.items))
        case Type.STRUCT:
            return StructType(tuple((each.name, sql_type(each.schema)) for each in schema.fields))
        case _:
            return _BASE_TYPES[schema.type]
