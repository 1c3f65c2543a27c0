"""Values between the engine, JSON and functions of users, by their SQL types.

JSON, and not pickle: what comes back from a user's function must not be able to run code here.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

from moldau.data.sql_types import ArrayType, BaseType, DecimalType, MapType, SqlType, StructType

__all__ = ["from_engine", "from_python", "to_engine", "to_python"]

Convert = Callable[[Any], Any]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY_MS = 86_400_000
_INT_BITS: dict[SqlType, int] = {BaseType.INTEGER: 31, BaseType.BIGINT: 63}


def _same(value: Any) -> Any:
    return value


def _composed(kind: SqlType, leaf: Callable[[SqlType], Convert], *, as_tuple: bool) -> Convert:
    """Conversion of a type from that of its parts; structs are lists in JSON."""
    match kind:
        case ArrayType():
            item = _composed(kind.item, leaf, as_tuple=as_tuple)
            return _nullable(lambda value: [item(each) for each in value])
        case MapType():
            key = _composed(kind.key, leaf, as_tuple=as_tuple)
            entry = _composed(kind.value, leaf, as_tuple=as_tuple)
            if as_tuple:
                return _nullable(lambda value: {key(one): entry(each) for one, each in value})
            return _nullable(lambda value: [[key(k), entry(v)] for k, v in value.items()])
        case StructType():
            fields = [_composed(each, leaf, as_tuple=as_tuple) for _, each in kind.fields]
            made = tuple if as_tuple else list
            return _nullable(
                lambda value: made([read(each) for read, each in zip(fields, value, strict=True)])
            )
    return _nullable(leaf(kind))


def _nullable(convert: Convert) -> Convert:
    return convert if convert is _same else lambda value: None if value is None else convert(value)


def from_engine(kind: SqlType) -> Convert:
    """A value of a row as JSON."""

    def leaf(each: SqlType) -> Convert:
        if isinstance(each, DecimalType):
            return str
        return (lambda value: base64.b64encode(value).decode()) if each is BaseType.BYTES else _same

    return _composed(kind, leaf, as_tuple=False)


def to_engine(kind: SqlType) -> Convert:
    """JSON as a value of a row, checked: it comes from outside."""

    def leaf(each: SqlType) -> Convert:
        if isinstance(each, DecimalType):
            return _decimal(each)
        if each is BaseType.BYTES:
            return base64.b64decode
        if each is BaseType.DOUBLE:
            return float
        if each is BaseType.BOOLEAN or each is BaseType.STRING:
            wanted = bool if each is BaseType.BOOLEAN else str
            return lambda value: _checked(value, wanted, each)
        return lambda value: _integer(value, each)

    return _composed(kind, leaf, as_tuple=True)


def _checked(value: Any, wanted: type, kind: SqlType) -> Any:
    if not isinstance(value, wanted):
        raise ValueError(f"{value!r} is not of type {kind}")
    return value


def _integer(value: Any, kind: SqlType) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"{value!r} is not of type {kind}")
    bits = _INT_BITS.get(kind, 63)
    if not -(1 << bits) <= value < 1 << bits:
        raise ValueError(f"{value} does not fit {kind}")
    return value


def _decimal(kind: DecimalType) -> Convert:
    step = Decimal(1).scaleb(-kind.scale)

    def convert(value: Any) -> Decimal:
        found = Decimal(str(value)).quantize(step)
        if len(found.as_tuple().digits) > kind.precision:
            raise ValueError(f"{value} does not fit {kind}")
        return found

    return convert


def to_python(kind: SqlType) -> Convert:
    """JSON as functions of users see it: dates as dates, structs as dicts."""
    match kind:
        case ArrayType():
            item = to_python(kind.item)
            return _nullable(lambda value: [item(each) for each in value])
        case MapType():
            key, entry = to_python(kind.key), to_python(kind.value)
            return _nullable(lambda value: {key(one): entry(each) for one, each in value})
        case StructType():
            fields = [(name, to_python(each)) for name, each in kind.fields]
            return _nullable(
                lambda value: {
                    name: read(each) for (name, read), each in zip(fields, value, strict=True)
                }
            )
        case DecimalType():
            return _nullable(Decimal)
    return _nullable(_TO_PYTHON.get(kind, _same))


def from_python(kind: SqlType) -> Convert:
    """What a function of a user returned, as JSON."""
    match kind:
        case ArrayType():
            item = from_python(kind.item)
            return _nullable(lambda value: [item(each) for each in value])
        case MapType():
            key, entry = from_python(kind.key), from_python(kind.value)
            return _nullable(lambda value: [[key(k), entry(v)] for k, v in value.items()])
        case StructType():
            fields = [(name, from_python(each)) for name, each in kind.fields]

            def struct(value: Any) -> list[Any]:
                upper = {str(name).upper(): each for name, each in value.items()}
                return [write(upper.get(name.upper())) for name, write in fields]

            return _nullable(struct)
        case DecimalType():
            return _nullable(str)
    return _nullable(_FROM_PYTHON.get(kind, _same))


def _moment(ms: int) -> datetime:
    return _EPOCH + timedelta(milliseconds=ms)


def _ms(moment: datetime) -> int:
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return (aware - _EPOCH) // timedelta(milliseconds=1)


def _time_ms(value: time) -> int:
    seconds = (value.hour * 60 + value.minute) * 60 + value.second
    return seconds * 1000 + value.microsecond // 1000


_TO_PYTHON: dict[SqlType, Convert] = {
    BaseType.BYTES: base64.b64decode,
    BaseType.DATE: lambda days: _moment(days * _DAY_MS).date(),
    BaseType.TIME: lambda ms: _moment(ms).time(),
    BaseType.TIMESTAMP: _moment,
}
_FROM_PYTHON: dict[SqlType, Convert] = {
    BaseType.BYTES: lambda value: base64.b64encode(value).decode(),
    BaseType.DATE: lambda value: (value - date(1970, 1, 1)).days,
    BaseType.TIME: _time_ms,
    BaseType.TIMESTAMP: _ms,
    BaseType.DOUBLE: float,
}
