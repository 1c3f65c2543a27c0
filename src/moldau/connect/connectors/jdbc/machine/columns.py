"""Columns of a result set as fields of a struct.

A database's driver returns Python values; a column knows the schema that stands for its type and
how to turn a value into one that fits. Numbers without a fraction may become integers
(`numeric.mapping`), as the JDBC source of Confluent does it.
"""

from __future__ import annotations

import datetime
import json
import zoneinfo
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from moldau.data import builders, logical
from moldau.data.errors import DataError
from moldau.data.java_time import zones as java_time
from moldau.data.schema import Schema
from moldau.data.struct import Struct

Convert = Callable[[Any], Any]

CONNECT_LOGICAL: Final = "connect_logical"

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
        if scale <= 0 and integer is not None:
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


@dataclass(frozen=True, slots=True)
class Reading:
    """How values are read: `numeric.mapping`, `db.timezone` and `timestamp.granularity`."""

    mapping: str = "none"
    zone: datetime.tzinfo = datetime.UTC
    granularity: str = CONNECT_LOGICAL

    def numeric(self, precision: int | None, scale: int | None) -> Column:
        return numeric("", precision, scale, self.mapping)

    def timestamp(self) -> Column:
        schema, convert = _GRANULARITIES[self.granularity]
        return Column("", schema, lambda value: convert(instant(value, self.zone), self.zone))

    def time(self) -> Column:
        offset = datetime.datetime(1970, 1, 1, tzinfo=self.zone).utcoffset() or _NO_TIME
        return Column("", logical.TIME, lambda value: _time_of_day(value, offset))


def zone_of(name: str) -> datetime.tzinfo:
    """ValueError for a name that Java's ZoneId does not know."""
    found = java_time.zone(name)
    if found.is_offset:
        return datetime.timezone(datetime.timedelta(seconds=found.offset_at(0)))
    return zoneinfo.ZoneInfo(name)


_NO_TIME: Final = datetime.timedelta()
_EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MICROSECOND: Final = datetime.timedelta(microseconds=1)


def instant(value: Any, zone: datetime.tzinfo) -> datetime.datetime:
    """A database's timestamp in UTC; one without a zone is in `zone`."""
    if isinstance(value, str):
        value = datetime.datetime.fromisoformat(value)
    if not isinstance(value, datetime.datetime):
        value = datetime.datetime(value.year, value.month, value.day)
    aware = value.replace(tzinfo=zone) if value.tzinfo is None else value
    utc: datetime.datetime = aware.astimezone(datetime.UTC)
    return utc


def _logical(moment: datetime.datetime, zone: datetime.tzinfo) -> datetime.datetime:
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


def _micros(moment: datetime.datetime, zone: datetime.tzinfo) -> int:
    return (moment - _EPOCH) // _MICROSECOND


def _nanos(moment: datetime.datetime, zone: datetime.tzinfo) -> int:
    return _micros(moment, zone) * 1000


def _iso_micros(moment: datetime.datetime, zone: datetime.tzinfo) -> str:
    local = moment.astimezone(zone).replace(tzinfo=None)
    return local.isoformat(timespec="microseconds")


_GRANULARITIES: Final[
    dict[str, tuple[Schema, Callable[[datetime.datetime, datetime.tzinfo], Any]]]
] = {
    CONNECT_LOGICAL: (logical.TIMESTAMP, _logical),
    "micros_long": (builders.INT64, _micros),
    "micros_string": (builders.STRING, lambda moment, zone: str(_micros(moment, zone))),
    "micros_iso_datetime_string": (builders.STRING, _iso_micros),
    "nanos_long": (builders.INT64, _nanos),
    "nanos_string": (builders.STRING, lambda moment, zone: str(_nanos(moment, zone))),
    "nanos_iso_datetime_string": (
        builders.STRING,
        lambda moment, zone: _iso_micros(moment, zone) + "000",
    ),
}
GRANULARITIES: Final = tuple(_GRANULARITIES)


def _time_of_day(value: Any, offset: datetime.timedelta) -> datetime.time:
    if isinstance(value, str):
        value = datetime.time.fromisoformat(value)
    if isinstance(value, datetime.time):
        value = datetime.datetime.combine(datetime.date.min, value) - datetime.datetime.min
    # As PyMySQL returns a TIME, which may be more than a day.
    since: datetime.timedelta = (value - offset) % datetime.timedelta(days=1)
    made = (datetime.datetime.min + since).time()
    return made.replace(tzinfo=None, microsecond=made.microsecond // 1000 * 1000)


def date(value: Any) -> datetime.date:
    return datetime.date.fromisoformat(value[:10]) if isinstance(value, str) else value


def text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value) if isinstance(value, (dict, list)) else str(value)
