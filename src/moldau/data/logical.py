"""Connect's logical types: what their schemas are called and what stands for their values.

| name      | value in Python      | value underneath                                  |
|-----------|----------------------|---------------------------------------------------|
| Decimal   | `decimal.Decimal`    | bytes: the unscaled integer, two's complement     |
| Date      | `datetime.date`      | int32: days since 1970                            |
| Time      | `datetime.time`      | int32: milliseconds since midnight                |
| Timestamp | `datetime.datetime`  | int64: milliseconds since 1970, always in UTC     |

A `datetime.datetime` may also stand for a date (at midnight) or a time (on the first day of 1970),
as java.util.Date stands for all three in Connect. Reading gives the types of the table.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from moldau.data.errors import DataError
from moldau.data.schema import Schema, Type

_PREFIX = "org.apache.kafka.connect.data."
DECIMAL_NAME = _PREFIX + "Decimal"
DATE_NAME = _PREFIX + "Date"
TIME_NAME = _PREFIX + "Time"
TIMESTAMP_NAME = _PREFIX + "Timestamp"
SCALE_PARAMETER = "scale"
#: Written by converters from databases and read by those to Avro and SQL.
PRECISION_PARAMETER = "connect.decimal.precision"

DATE = Schema(type=Type.INT32, name=DATE_NAME, version=1)
TIME = Schema(type=Type.INT32, name=TIME_NAME, version=1)
TIMESTAMP = Schema(type=Type.INT64, name=TIMESTAMP_NAME, version=1)

#: The Python types that a value of each logical type may have.
PYTHON_TYPES: dict[str, tuple[type, ...]] = {
    DECIMAL_NAME: (Decimal,),
    DATE_NAME: (datetime.date,),
    TIME_NAME: (datetime.time, datetime.datetime),
    TIMESTAMP_NAME: (datetime.datetime,),
}

DAY_MS = 86_400_000
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_EPOCH_DAY = _EPOCH.toordinal()
_MS = datetime.timedelta(milliseconds=1)


def decimal(scale: int, *, precision: int | None = None, optional: bool = False) -> Schema:
    """The schema of decimals with `scale` digits after the point."""
    parameters = {SCALE_PARAMETER: str(scale)}
    if precision is not None:
        parameters[PRECISION_PARAMETER] = str(precision)
    return Schema(
        type=Type.BYTES, optional=optional, name=DECIMAL_NAME, version=1, parameters=parameters
    )


def scale_of(schema: Schema) -> int:
    """The scale of a decimal's schema."""
    text = schema.parameters.get(SCALE_PARAMETER)
    if text is None:
        raise DataError("Invalid Decimal schema: scale parameter not found.")
    try:
        return int(text)
    except ValueError:
        raise DataError(f"Invalid scale parameter found in Decimal schema: {text!r}") from None


def unscaled(value: Decimal, scale: int) -> int:
    """The integer that `value` is, times ten to the power of `scale`."""
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise DataError(f"{value} is not a decimal number")
    if -exponent != scale:
        raise DataError(
            "Decimal value has mismatching scale for given Decimal schema. "
            f"Schema has scale {scale}, value has scale {-exponent}."
        )
    return int(Decimal((sign, digits, 0)))


def decimal_to_bytes(value: Decimal, scale: int) -> bytes:
    number = unscaled(value, scale)
    # Java's BigInteger.toByteArray: as few bytes as hold the number and its sign.
    size = (number if number >= 0 else ~number).bit_length() // 8 + 1
    return number.to_bytes(size, "big", signed=True)


def decimal_from_bytes(data: bytes, scale: int) -> Decimal:
    return decimal_from_unscaled(int.from_bytes(data, "big", signed=True), scale)


def decimal_from_unscaled(number: int, scale: int) -> Decimal:
    # By digits: arithmetic on decimals would round to the precision of the context.
    sign, digits, _ = Decimal(number).as_tuple()
    return Decimal((sign, digits, -scale))


def date_to_days(value: datetime.date) -> int:
    if isinstance(value, datetime.datetime):
        days, rest = divmod(timestamp_to_ms(value), DAY_MS)
        if rest:
            raise DataError(
                f"{value} is no date: Kafka Connect Date type should not have any time fields set "
                "to non-zero values."
            )
        return days
    return value.toordinal() - _EPOCH_DAY


def date_from_days(days: int) -> datetime.date:
    try:
        return datetime.date.fromordinal(days + _EPOCH_DAY)
    except (ValueError, OverflowError):
        raise DataError(f"Day {days} since 1970 is outside of the years 1 to 9999") from None


def time_to_ms(value: datetime.time | datetime.datetime) -> int:
    if isinstance(value, datetime.datetime):
        since_epoch = timestamp_to_ms(value)
        # The end of the day is allowed, as in Connect.
        if not 0 <= since_epoch <= DAY_MS:
            raise DataError(
                f"{value} is no time of day: Kafka Connect Time type should not have any date "
                "fields set to non-zero values."
            )
        return since_epoch
    seconds = (value.hour * 60 + value.minute) * 60 + value.second
    return seconds * 1000 + value.microsecond // 1000


def time_from_ms(milliseconds: int) -> datetime.time:
    if not 0 <= milliseconds < DAY_MS:
        raise DataError(f"{milliseconds} ms is no time of day: it must be from 0 to {DAY_MS - 1}")
    seconds, rest = divmod(milliseconds, 1000)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    return datetime.time(hour, minute, second, rest * 1000)


def timestamp_to_ms(value: datetime.datetime) -> int:
    if value.tzinfo is None:
        raise DataError(f"{value!r} has no time zone: give it one, for example datetime.UTC")
    return (value - _EPOCH) // _MS


def timestamp_from_ms(milliseconds: int) -> datetime.datetime:
    try:
        return _EPOCH + milliseconds * _MS
    except OverflowError:
        raise DataError(f"{milliseconds} ms since 1970 is outside of the years 1 to 9999") from None


_TO_BASE: dict[str, Callable[[Schema, Any], Any]] = {
    DECIMAL_NAME: lambda schema, value: decimal_to_bytes(value, scale_of(schema)),
    DATE_NAME: lambda schema, value: date_to_days(value),
    TIME_NAME: lambda schema, value: time_to_ms(value),
    TIMESTAMP_NAME: lambda schema, value: timestamp_to_ms(value),
}
_FROM_BASE: dict[str, Callable[[Schema, Any], Any]] = {
    DECIMAL_NAME: lambda schema, value: decimal_from_bytes(value, scale_of(schema)),
    DATE_NAME: lambda schema, value: date_from_days(value),
    TIME_NAME: lambda schema, value: time_from_ms(value),
    TIMESTAMP_NAME: lambda schema, value: timestamp_from_ms(value),
}
_BASE_TYPES = {
    DECIMAL_NAME: Type.BYTES,
    DATE_NAME: Type.INT32,
    TIME_NAME: Type.INT32,
    TIMESTAMP_NAME: Type.INT64,
}


def is_logical(schema: Schema) -> bool:
    """Whether values of the schema are those of a logical type.

    By the name alone, as in Connect; a schema with one of the names and another type is an error
    when it is used.
    """
    return schema.name in _TO_BASE


def to_base(schema: Schema, value: Any) -> Any:
    """The number or bytes under a logical type's value."""
    name = _checked_name(schema)
    if not isinstance(value, PYTHON_TYPES[name]):
        raise DataError(
            f"Invalid type for {name.removeprefix(_PREFIX)}, expected "
            f"{PYTHON_TYPES[name][0].__name__} but was {type(value).__name__}"
        )
    return _TO_BASE[name](schema, value)


def from_base(schema: Schema, value: Any) -> Any:
    """The logical type's value for the number or bytes under it."""
    return _FROM_BASE[_checked_name(schema)](schema, value)


def _checked_name(schema: Schema) -> str:
    name = schema.name
    if name is None or name not in _TO_BASE:
        raise DataError(f"{schema} is not a logical type")
    if schema.type is not _BASE_TYPES[name]:
        raise DataError(
            f"A schema named {name} must have type {_BASE_TYPES[name].name}, not {schema.type.name}"
        )
    return name
