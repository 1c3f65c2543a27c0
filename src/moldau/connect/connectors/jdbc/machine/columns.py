"""Columns of a result set as fields of a struct.

A database's driver returns Python values; a column knows the schema that stands for its type and
how to turn a value into one that fits. Numbers without a fraction may become integers
(`numeric.mapping`), as the JDBC source of Confluent does it.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from moldau.data import builders, logical
from moldau.data.errors import DataError
from moldau.data.schema import Schema
from moldau.data.struct import Struct

Convert = Callable[[Any], Any]

#: A decimal column that declares no scale gets this one.
SCALE_UNDECLARED: Final = 18

_INTEGERS: Final = (
    (2, builders.INT8),
    (4, builders.INT16),
    (9, builders.INT32),
    (18, builders.INT64),
)


@dataclass(frozen=True, slots=True)
class Column:
    """`convert` is called for values that are not null; None if they fit already."""

    name: str
    schema: Schema
    convert: Convert | None = None

    def optional(self, optional: bool) -> Column:
        schema = self.schema.as_optional() if optional else self.schema.as_required()
        return Column(self.name, schema, self.convert)


class Row:
    """Makes structs of rows. The schema is made once for a result set."""

    def __init__(self, name: str | None, columns: Sequence[Column]) -> None:
        self.schema = builders.struct([(each.name, each.schema) for each in columns], name=name)
        self._converts = [each.convert for each in columns]

    def struct(self, values: Sequence[Any]) -> Struct:
        return Struct.unchecked(
            self.schema,
            [
                value if convert is None or value is None else convert(value)
                for value, convert in zip(values, self._converts, strict=True)
            ],
        )


def numeric(name: str, precision: int | None, scale: int | None, mapping: str) -> Column:
    """A decimal column, by `numeric.mapping`: none, precision_only, best_fit, ..._eager_double."""
    if mapping != "none" and precision and scale is not None:
        integer = next((schema for digits, schema in _INTEGERS if precision <= digits), None)
        if scale == 0 and integer is not None:
            return Column(name, integer, int)
        if scale > 0 and mapping == "best_fit_eager_double":
            return Column(name, builders.FLOAT64, float)
        if scale > 0 and mapping == "best_fit" and precision <= 18:
            return Column(name, builders.FLOAT64, float)
    digits = SCALE_UNDECLARED if scale is None else scale
    return Column(name, logical.decimal(digits), _scaled(name, digits))


def _scaled(name: str, scale: int) -> Convert:
    unit = Decimal(1).scaleb(-scale)

    def convert(value: Any) -> Decimal:
        number = value if isinstance(value, Decimal) else Decimal(str(value))
        if not number.is_finite():
            raise DataError(f"column {name} has {number}, which a Decimal cannot be")
        scaled = number.quantize(unit) if number.as_tuple().exponent != -scale else number
        if scaled != number:
            raise DataError(
                f"column {name} has {number}, which has more than {scale} digits after the point: "
                "declare the column with a scale, or select it with a cast"
            )
        return scaled

    return convert


def timestamp(value: Any) -> datetime.datetime:
    """A database's timestamp as one in UTC, in whole milliseconds."""
    if isinstance(value, str):
        value = datetime.datetime.fromisoformat(value)
    if not isinstance(value, datetime.datetime):
        value = datetime.datetime(value.year, value.month, value.day)
    aware = value.replace(tzinfo=datetime.UTC) if value.tzinfo is None else value
    utc: datetime.datetime = aware.astimezone(datetime.UTC)
    return utc.replace(microsecond=utc.microsecond // 1000 * 1000)


def time_of_day(value: Any) -> datetime.time:
    if isinstance(value, datetime.timedelta):  # As PyMySQL returns a TIME.
        value = (datetime.datetime.min + (value % datetime.timedelta(days=1))).time()
    if isinstance(value, str):
        value = datetime.time.fromisoformat(value)
    made: datetime.time = value.replace(tzinfo=None, microsecond=value.microsecond // 1000 * 1000)
    return made


def date(value: Any) -> datetime.date:
    return datetime.date.fromisoformat(value[:10]) if isinstance(value, str) else value


def text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value) if isinstance(value, (dict, list)) else str(value)
