"""Defaults as Python values, in the form in which the encoding gives and takes values."""

from __future__ import annotations

import datetime
import uuid
from typing import Any

from moldau.data import logical
from moldau.data.avro.defaults import DefaultChecker
from moldau.data.avro.logical_types import decimal_precision_and_scale, logical_type
from moldau.data.avro.model import Array, AvroType, Map, Record, Union
from moldau.data.errors import DataError

_MICROSECOND = datetime.timedelta(microseconds=1)
_EPOCH = datetime.datetime(1970, 1, 1)


#: Values in one default, those of the fields of records in it included. Defaults that rest on
#: other defaults multiply: a small schema can stand for more values than a computer holds.
_VALUES_MAX = 10_000


def default_value(schema: AvroType, default: Any, *, logical_types: bool = True) -> Any:
    """The value that a valid default stands for, without `logical_types` the one underneath.

    A record's fields that it leaves out have their own defaults; bytes are written as a text of
    characters up to 255; and in a union it is a value of the first branch that it fits.
    """
    return _Values(logical_types=logical_types).of(schema, default)


class _Values:
    def __init__(self, *, logical_types: bool) -> None:
        self._logical_types = logical_types
        self._count = 0
        self._checker = DefaultChecker()

    def of(self, schema: AvroType, default: Any) -> Any:
        self._count += 1
        if self._count > _VALUES_MAX:
            raise DataError(f"A default of the schema stands for more than {_VALUES_MAX} values")
        match schema:
            case Union():
                return self.of(self._branch(schema, default), default)
            case Array():
                return [self.of(schema.items, each) for each in default]
            case Map():
                return {key: self.of(schema.values, each) for key, each in default.items()}
            case Record():
                return {
                    each.name: self.of(each.type, default.get(each.name, each.default))
                    for each in schema.fields
                }
            case _:
                name = logical_type(schema) if self._logical_types else None
                return _simple(schema, default, name)

    def _branch(self, schema: Union, default: Any) -> AvroType:
        for branch in schema.branches:
            if self._checker.is_valid(branch, default):
                return branch
        raise DataError(f"The default {default!r} fits no branch of the union")


def _simple(schema: AvroType, default: Any, name: str | None) -> Any:
    match schema.kind:
        case "bytes" | "fixed":
            try:
                data = default.encode("latin-1")
            except UnicodeEncodeError:
                raise DataError(f"The default {default!r} has characters beyond 255") from None
            if name == "decimal":
                _, scale = decimal_precision_and_scale(schema)
                return logical.decimal_from_bytes(data, scale)
            return data
        case "float" | "double":
            return float(default)
        case "int" | "long":
            return _temporal(name, default)
        case "string" if name == "uuid":
            try:
                return uuid.UUID(default)
            except ValueError:
                return default
        case _:
            return default


def _temporal(name: str | None, number: int) -> Any:
    match name:
        case "date":
            return logical.date_from_days(number)
        case "time-millis":
            return logical.time_from_ms(number)
        case "time-micros":
            moment = _EPOCH + number * _MICROSECOND
            return moment.time()
        case "timestamp-millis":
            return logical.timestamp_from_ms(number)
        case "timestamp-micros":
            return (_EPOCH + number * _MICROSECOND).replace(tzinfo=datetime.UTC)
        case "local-timestamp-millis":
            return _EPOCH + number * 1000 * _MICROSECOND
        case "local-timestamp-micros":
            return _EPOCH + number * _MICROSECOND
        case _:
            return number
