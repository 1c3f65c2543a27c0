"""Rows to JSON, as Connect's JsonConverter writes them without schemas.

The writer of a schema is generated source: one expression that puts the text of a row together.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from moldau.data.json_text import decimal_text, quoted
from moldau.sql.types import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    INTEGER,
    STRING,
    TIME,
    TIMESTAMP,
    ArrayType,
    DecimalType,
    MapType,
    SqlType,
    StructType,
)
from moldau.sql.values import decimals
from moldau.sql.values.doubles import double_text

_escape = json.encoder.c_encode_basestring or json.encoder.py_encode_basestring  # type: ignore[attr-defined]


def _text(value: str) -> str:
    written: str = _escape(value)
    # Jackson writes the digits of \u001F in capitals; hardly any text has such characters.
    return quoted(value) if "\\u" in written else written


def _name(key: str | None) -> str:
    # A NULL key shows as Java's String.valueOf shows it.
    return '"null"' if key is None else _text(key)


def _double(value: float) -> str:
    # Where Java and Python agree; the rest is rare.
    if 1e-3 <= value < 1e7 or -1e7 < value <= -1e-3:
        return repr(value)
    shown = double_text(value)
    return shown if math.isfinite(value) else f'"{shown}"'


def _bytes(value: bytes) -> str:
    return f'"{base64.b64encode(value).decode()}"'


def _decimal(value: Decimal, wanted: DecimalType) -> str:
    return decimal_text(decimals.ensure_fit(value, wanted))


_INTEGERS = frozenset({INTEGER, BIGINT, DATE, TIME, TIMESTAMP})


class _Generator:
    """Writes source; what it needs by name is collected in `names`."""

    def __init__(self) -> None:
        self.names: dict[str, Any] = {
            "_text": _text,
            "_double": _double,
            "_bytes": _bytes,
            "_decimal": _decimal,
        }
        self._helpers = 0

    def expression(self, sql_type: SqlType, value: str) -> str:
        """Source of the text of a value, which may be None; `value` is a name or a subscript."""
        if sql_type in _INTEGERS:
            written = f"str({value})"
        elif sql_type is STRING:
            written = f"_text({value})"
        elif sql_type is DOUBLE:
            written = f"_double({value})"
        elif sql_type is BOOLEAN:
            written = f"('true' if {value} else 'false')"
        elif sql_type is BYTES:
            written = f"_bytes({value})"
        else:
            written = f"{self._helper(sql_type)}({value})"
        return f"('null' if {value} is None else {written})"

    def _helper(self, sql_type: SqlType) -> str:
        self._helpers += 1
        name = f"_write_{self._helpers}"
        self.names[name] = self._nested(sql_type)
        return name

    def _nested(self, sql_type: SqlType) -> Callable[[Any], str]:
        match sql_type:
            case DecimalType():
                return lambda value: _decimal(value, sql_type)
            case ArrayType():
                item = self._compiled(sql_type.item)
                return lambda value: f"[{','.join(map(item, value))}]"
            case MapType():
                item = self._compiled(sql_type.value)
                return lambda value: (
                    "{"
                    + ",".join([f"{_name(key)}:{item(each)}" for key, each in value.items()])
                    + "}"
                )
            case StructType():
                return struct_writer(sql_type)
            case _:
                raise ValueError(f"JSON has no {sql_type}")

    def _compiled(self, sql_type: SqlType) -> Callable[[Any], str]:
        return value_writer(sql_type)


def value_writer(sql_type: SqlType) -> Callable[[Any], str]:
    """The text of a value of the type, which may be None."""
    generator = _Generator()
    body = generator.expression(sql_type, "value")
    return _function(f"def write(value):\n    return {body}\n", generator.names)


def struct_writer(sql_type: StructType) -> Callable[[tuple[Any, ...]], str]:
    """The text of a tuple of the fields, which is not None."""
    if not sql_type.fields:
        return lambda value: "{}"
    generator = _Generator()
    parts: list[str] = []
    places = [f"v{index}" for index in range(len(sql_type.fields))]
    for index, ((name, each), place) in enumerate(zip(sql_type.fields, places, strict=True)):
        mark = "{" if index == 0 else ","
        parts.append(repr(f"{mark}{quoted(name)}:"))
        parts.append(generator.expression(each, place))
    source = (
        f"def write(row):\n    ({', '.join(places)},) = row\n"
        f"    return {' + '.join(parts)} + '}}'\n"
    )
    return _function(source, generator.names)


def _function(source: str, names: dict[str, Any]) -> Callable[[Any], str]:
    scope = dict(names)
    exec(compile(source, "<json writer>", "exec"), scope)  # source is made of types alone
    written: Callable[[Any], str] = scope["write"]
    return written
