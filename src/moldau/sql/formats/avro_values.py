"""SQL's values as those that Avro's encoder takes, without the way through Connect.

Writing is always possible this way. Reading is for schemas of usual shape; for others `reader`
gives None, and Connect's rules decide.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moldau.data.avro.connect_names import INTERNAL_TYPE, MAP_ENTRY
from moldau.data.avro.model import MISSING, Array, AvroType, Map, Primitive, Record, Union
from moldau.data.logical import decimal_from_bytes, decimal_to_bytes
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

__all__ = ["reader", "writer"]

Convert = Callable[[Any], Any]


def _same(value: Any) -> Any:
    return value


def _nullable(convert: Convert) -> Convert:
    if convert is _same:
        return _same
    return lambda value: None if value is None else convert(value)


def writer(sql_type: SqlType) -> Convert:
    """A value that is not NULL, for `AvroEncoder(..., logical_types=False)`."""
    match sql_type:
        case DecimalType():
            return lambda value: decimal_to_bytes(
                decimals.ensure_fit(value, sql_type), sql_type.scale
            )
        case ArrayType():
            item = _nullable(writer(sql_type.item))
            return list if item is _same else lambda value: [item(each) for each in value]
        case MapType():
            entry = _nullable(writer(sql_type.value))
            return lambda value: [{"key": key, "value": entry(each)} for key, each in value.items()]
        case StructType():
            return _struct_writer(sql_type)
        case _:
            return _same


def _struct_writer(sql_type: StructType) -> Convert:
    fields = [(name.replace(".", "_"), _nullable(writer(each))) for name, each in sql_type.fields]
    names = [name for name, _ in fields]
    changed = [(index, name, to) for index, (name, to) in enumerate(fields) if to is not _same]

    def write(row: tuple[Any, ...]) -> dict[str, Any]:
        found = dict(zip(names, row, strict=True))
        for index, name, to in changed:
            found[name] = to(row[index])
        return found

    return write


class _Unusual(Exception):
    """Connect's rules are needed."""


def reader(sql_type: SqlType, written: AvroType) -> Convert | None:
    """A decoded value as one of the type; None if that takes more than renaming."""
    try:
        return _read(sql_type, written)
    except _Unusual:
        return None


#: Which of SQL's types a primitive is read as without any change, by its logical type.
_PLAIN: dict[tuple[str, str | None], frozenset[SqlType]] = {
    ("int", None): frozenset({INTEGER, BIGINT}),
    ("long", None): frozenset({BIGINT}),
    ("float", None): frozenset({DOUBLE}),
    ("double", None): frozenset({DOUBLE}),
    ("boolean", None): frozenset({BOOLEAN}),
    ("string", None): frozenset({STRING}),
    ("bytes", None): frozenset({BYTES}),
    ("int", "date"): frozenset({DATE}),
    ("int", "time-millis"): frozenset({TIME}),
    ("long", "timestamp-millis"): frozenset({TIMESTAMP}),
}


def _read(sql_type: SqlType, written: AvroType) -> Convert:
    match written, sql_type:
        case Union(), _:
            others = [each for each in written.branches if each.kind != "null"]
            if len(others) != 1 or len(written.branches) != 2:
                raise _Unusual
            return _nullable(_read(sql_type, others[0]))
        case Record(), StructType():
            return _record(sql_type, written)
        case Array(), ArrayType():
            item = _read(sql_type.item, written.items)
            return _same if item is _same else lambda value: [item(each) for each in value]
        case Array(), MapType():
            return _entries(sql_type, written.items)
        case Map(), MapType():
            if sql_type.key is not STRING:
                raise _Unusual
            each = _read(sql_type.value, written.values)
            return lambda value: {key: each(item) for key, item in value.items()}
        case Primitive(), _:
            return _primitive(sql_type, written)
    raise _Unusual


def _primitive(sql_type: SqlType, written: Primitive) -> Convert:
    logical = written.props.get("logicalType")
    if isinstance(sql_type, DecimalType):
        scale = written.props.get("scale")
        if written.kind != "bytes" or logical != "decimal" or not isinstance(scale, int):
            raise _Unusual
        return lambda value: decimals.ensure_fit(decimal_from_bytes(value, scale), sql_type)
    if sql_type not in _PLAIN.get((written.kind, logical), frozenset()):
        raise _Unusual
    return _same


def _entries(sql_type: MapType, written: AvroType) -> Convert:
    if not isinstance(written, Record) or written.props.get(INTERNAL_TYPE) != MAP_ENTRY:
        raise _Unusual
    parts = {each.name: each.type for each in written.fields}
    key, item = _read(sql_type.key, parts["key"]), _read(sql_type.value, parts["value"])
    return lambda value: {key(each["key"]): item(each["value"]) for each in value}


def _record(sql_type: StructType, written: Record) -> Convert:
    places = {name: index for index, (name, _) in enumerate(sql_type.fields)}
    types = dict(sql_type.fields)
    found: dict[int, tuple[str, Convert]] = {}
    for field in written.fields:
        if field.default is not MISSING and field.default is not None:
            raise _Unusual
        name = field.name if field.name in places else field.name.upper()
        if name in places:
            found[places[name]] = field.name, _read(types[name], field.type)
    steps = [found.get(index) for index in range(len(places))]
    return lambda value: tuple(
        [None if step is None else step[1](value[step[0]]) for step in steps]
    )
