"""Values of test files: written as the formats of topics have them, read back, and compared."""

from __future__ import annotations

import base64
import json
from decimal import Context, Decimal
from typing import Any

from moldau.sql.types import (
    BYTES,
    DATE,
    DOUBLE,
    STRING,
    TIME,
    TIMESTAMP,
    ArrayType,
    BaseType,
    Column,
    DecimalType,
    MapType,
    SqlType,
    StructType,
)


class Number(str):
    """A number of a file, character by character: 1.10 is not 1.1."""

    __slots__ = ()

    @property
    def value(self) -> Decimal:
        return Decimal(self)


_WIDE = Context(prec=1000)
_WHOLE = (BaseType.INTEGER, BaseType.BIGINT, DATE, TIME, TIMESTAMP)


def json_text(value: Any) -> str:
    """JSON with numbers as the case writes them."""
    match value:
        case Number():
            return str(value)
        case dict():
            parts = [f"{json.dumps(key)}:{json_text(each)}" for key, each in value.items()]
            return "{" + ",".join(parts) + "}"
        case list():
            return "[" + ",".join(json_text(each) for each in value) + "]"
    return json.dumps(value)


def read_json(data: bytes | str) -> Any:
    """JSON whose numbers keep their text."""
    return json.loads(data, parse_float=Number, parse_int=Number)


def looked_up(names: dict[str, Any], name: str) -> Any:
    """A field by its name, without regard to case."""
    if name in names:
        return names[name]
    return next((value for key, value in names.items() if key.upper() == name.upper()), None)


def typed(value: Any, kind: SqlType) -> Any:
    """A case's value as the engine's rows hold it."""
    if value is None:
        return None
    match kind:
        case DecimalType(_, scale):
            return Decimal(str(value)).quantize(Decimal((0, (1,), -scale)), context=_WIDE)
        case ArrayType(item):
            return [typed(each, item) for each in value]
        case MapType(key, item):
            return {typed(_key(each), key): typed(value[each], item) for each in value}
        case StructType(fields):
            return tuple(typed(looked_up(value, name), each) for name, each in fields)
    if kind in _WHOLE:
        return int(value)
    if kind is DOUBLE:
        return float(value)
    if kind is BYTES:
        return base64.b64decode(value)
    if kind is STRING:
        return value if not isinstance(value, Number | dict | list) else json_text(value)
    return value


def _key(name: str) -> Any:
    return name


def row(value: Any, columns: tuple[Column, ...], *, unwrapped: bool) -> tuple[Any, ...] | None:
    """The columns of a record's key or value."""
    if value is None:
        return None
    if unwrapped or not isinstance(value, dict):
        return (typed(value, columns[0].type),) if columns else ()
    return tuple(typed(looked_up(value, each.name), each.type) for each in columns)


def shown(value: Any, kind: SqlType) -> Any:
    """A value of a row with its type, to compare: structs as maps by field."""
    if value is None:
        return None
    match kind:
        case ArrayType(item):
            return [shown(each, item) for each in value]
        case MapType(_, item):
            return {str(key): shown(each, item) for key, each in value.items()}
        case StructType(fields):
            return {
                name: shown(each, kind) for (name, kind), each in zip(fields, value, strict=True)
            }
    return value


def same(expected: Any, actual: Any, *, exact: bool = True) -> bool:
    """Whether a value is what a case expects."""
    if expected is None or actual is None:
        return expected is actual
    match expected:
        case dict():
            return (
                isinstance(actual, dict)
                and len(expected) == len(actual)
                and all(
                    same(each, actual.get(name, actual.get(name.upper())), exact=exact)
                    for name, each in expected.items()
                )
            )
        case list():
            return (
                isinstance(actual, list)
                and len(expected) == len(actual)
                and all(same(*pair, exact=exact) for pair in zip(expected, actual, strict=True))
            )
    if isinstance(actual, bool) or isinstance(expected, bool):
        return expected is actual
    return _same_scalar(expected, actual, exact=exact)


def _same_scalar(expected: Any, actual: Any, *, exact: bool) -> bool:
    if isinstance(actual, bytes):
        return bool(expected == base64.b64encode(actual).decode())
    if isinstance(actual, Number):
        if not isinstance(expected, Number):
            return isinstance(expected, str) and "." in actual and expected == str(actual)
        return _same_number(expected, actual, exact=exact)
    if isinstance(actual, Decimal):
        if isinstance(expected, str):
            wanted = Decimal(str(expected))
            return wanted == actual and wanted.as_tuple().exponent == actual.as_tuple().exponent
        return False
    if isinstance(actual, float):
        if not isinstance(expected, str):
            return False
        wanted_float = float(expected)
        return wanted_float == actual or abs(wanted_float - actual) < 1e-6
    if isinstance(actual, int):
        return isinstance(expected, Number) and Decimal(expected) == actual
    return isinstance(expected, str) and not isinstance(expected, Number) and expected == actual


def _same_number(expected: Number, actual: Number, *, exact: bool) -> bool:
    one, other = expected.value, actual.value
    if not exact or "E" in actual.upper():
        return abs(one - other) < Decimal("1e-6") or one == other
    fraction = "." in actual
    if not fraction:
        return one == other
    return one == other and ("." in expected or "E" in expected.upper())
