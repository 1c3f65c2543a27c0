"""Values converted from one type to another: Connect's org.apache.kafka.connect.data.Values.

Header converters and casts use it. A number becomes a smaller one by being cut, as in Java, and a
text is read with `value_text.parse_string` where a number or a date is wanted.
"""

from __future__ import annotations

import base64
import datetime
import math
from decimal import Decimal, InvalidOperation
from typing import Any

from moldau.data import builders, json_text, logical
from moldau.data.errors import DataError
from moldau.data.schema import INTEGER_BITS, Schema, Type
from moldau.data.struct import Struct

_TEMPORAL = (datetime.date, datetime.time)
_NULL = "Unable to convert a null value to a schema that requires a value"


def infer_schema(value: Any) -> Schema | None:
    """The schema that a plain value has; None if there is none, as for an empty list."""
    match value:
        case str():
            return builders.STRING
        case bool():
            return builders.BOOLEAN
        case int():
            return builders.INT64
        case float():
            return builders.FLOAT64
        case bytes() | bytearray() | memoryview():
            return builders.BYTES
        case list() | tuple():
            items = _common([infer_schema(each) for each in value if each is not None])
            if items is None:
                return None
            return builders.array(items.as_optional() if None in value else items)
        case dict():
            keys = _common([infer_schema(each) for each in value])
            held = [each for each in value.values() if each is not None]
            items = _common([infer_schema(each) for each in held])
            if keys is None or items is None:
                return None
            optional = len(held) < len(value)
            return builders.map_of(keys, items.as_optional() if optional else items)
        case Struct():
            return value.schema
        case _:
            return None


def _common(schemas: list[Schema | None]) -> Schema | None:
    first = schemas[0] if schemas else None
    return first if all(each == first for each in schemas) else None


def as_integer(value: Any, schema: Schema | None = None) -> int:
    """A number, a text of one, or the number under a date or time; fractions are cut off."""
    match value:
        case bool():
            pass
        case int():
            return value
        case float():
            if math.isnan(value):
                return 0
            if math.isinf(value):
                return 2**63 - 1 if value > 0 else -(2**63)
            return int(value)
        case Decimal() if value.is_finite():
            return int(value)
        case str():
            return int(_number(value))
        case _ if schema is not None and isinstance(value, _TEMPORAL):
            if logical.is_logical(schema):
                return int(logical.to_base(schema, value))
    raise DataError(f"Unable to convert {value!r} ({type(value).__name__}) to a number")


def as_double(value: Any, schema: Schema | None = None) -> float:
    if isinstance(value, str):
        return float(_number(value))
    if isinstance(value, (int, float, Decimal)) and not isinstance(value, bool):
        return float(value)
    return float(as_integer(value, schema))


def _number(text: str) -> Decimal:
    try:
        number = Decimal(text)
    except InvalidOperation:
        raise DataError(f"Unable to convert {text!r} (str) to a number") from None
    if not number.is_finite() or number.adjusted() > 1000:
        raise DataError(f"Unable to convert {text!r} (str) to a number")
    return number


def convert_integer(kind: Type, value: Any, schema: Schema | None = None) -> int:
    """The value as INT8 to INT64, cut to the type's bits."""
    half = 1 << INTEGER_BITS[kind] - 1
    return (as_integer(value, schema) + half & 2 * half - 1) - half


def convert_float(kind: Type, value: Any, schema: Schema | None = None) -> float:
    number = as_double(value, schema)
    return json_text.to_float32(number) if kind is Type.FLOAT32 else number


def convert_decimal(value: Any, scale: int) -> Decimal:
    match value:
        case None:
            raise DataError(_NULL)
        case bytes() | bytearray() | memoryview():
            return logical.decimal_from_bytes(bytes(value), scale)
        case Decimal():
            return value
        case bool():
            pass
        case int() | float():
            # By way of a double's text, as BigDecimal.valueOf does.
            return Decimal(json_text.double_text(float(value)))
        case str():
            return _number(value)
    raise DataError(f"Unable to convert {value!r} ({type(value).__name__}) to Decimal")


def convert_bytes(schema: Schema, value: Any) -> bytes:
    match value:
        case bytes() | bytearray() | memoryview():
            return bytes(value)
        case Decimal():
            return bytes(logical.to_base(schema, value))
    raise DataError(f"Unable to convert {value!r} ({type(value).__name__}) to {schema}")


def convert_temporal(target: Schema, value: Any, source: Schema | None = None) -> Any:
    """A date, time or timestamp, from another of them or from the number underneath."""
    if value is None:
        raise DataError(_NULL)
    if isinstance(value, _TEMPORAL):
        return _between_temporals(target.name, value)
    # The number underneath has 32 bits for dates and times.
    return logical.from_base(target, convert_integer(target.type, value, source))


def _between_temporals(name: str | None, value: Any) -> Any:
    match name, value:
        case logical.TIMESTAMP_NAME, datetime.datetime():
            return value
        case logical.TIMESTAMP_NAME, datetime.date():
            return logical.timestamp_from_ms(logical.date_to_days(value) * logical.DAY_MS)
        case logical.TIMESTAMP_NAME, _:
            return logical.timestamp_from_ms(logical.time_to_ms(value))
        case logical.DATE_NAME, datetime.datetime():
            return logical.date_from_days(logical.timestamp_to_ms(value) // logical.DAY_MS)
        case logical.DATE_NAME, datetime.date():
            return value
        case logical.TIME_NAME, datetime.datetime():
            return logical.time_from_ms(logical.timestamp_to_ms(value) % logical.DAY_MS)
        case logical.TIME_NAME, datetime.time():
            return value
    raise DataError(f"Unable to convert {value} to {name}")


def to_text(value: Any, schema: Schema | None = None) -> str | None:
    """The value as a text, as Connect writes it into headers; None for None.

    The schema is only asked whether a float is of 32 bits, which Java's own value would say.
    """
    return None if value is None else _text(value, schema, embedded=False)


def _text(value: Any, schema: Schema | None, *, embedded: bool) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            small = schema is not None and schema.type is Type.FLOAT32
            return json_text.float_text(value) if small else json_text.double_text(value)
        case Decimal():
            return json_text.decimal_text(value)
        case str():
            return f'"{_escaped(value)}"' if embedded else value
        case bytes() | bytearray() | memoryview():
            encoded = base64.b64encode(value).decode()
            return f'"{encoded}"' if embedded else encoded
        case list() | tuple():
            items = schema.value_schema if schema is not None else None
            return "[" + ",".join(_text(each, items, embedded=True) for each in value) + "]"
        case dict():
            return "{" + ",".join(_map_entries(value, schema)) + "}"
        case Struct():
            fields = [
                f'"{_escaped(each.name)}":'
                + _text(value.get(each.name), each.schema, embedded=True)
                for each in value.schema.fields
            ]
            return "{" + ",".join(fields) + "}"
        case datetime.date() | datetime.time():
            return _temporal_text(value)
        case _:
            raise DataError(
                f"Failed to serialize unexpected value type {type(value).__name__}: {value!r}"
            )


def _map_entries(value: dict[Any, Any], schema: Schema | None) -> list[str]:
    keys = schema.key_schema if schema is not None else None
    items = schema.value_schema if schema is not None else None
    return [
        _text(key, keys, embedded=True) + ":" + _text(each, items, embedded=True)
        for key, each in value.items()
    ]


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _temporal_text(value: datetime.date | datetime.time) -> str:
    """Connect looks only at the milliseconds: before the second day of 1970 it sees a time."""
    match value:
        case datetime.time():
            since_epoch = logical.time_to_ms(value)
        case datetime.datetime():
            since_epoch = logical.timestamp_to_ms(value)
        case _:
            since_epoch = logical.date_to_days(value) * logical.DAY_MS
    days, rest = divmod(since_epoch, logical.DAY_MS)
    time = logical.time_from_ms(rest).isoformat("milliseconds") + "Z"
    if since_epoch < logical.DAY_MS:
        return time
    date = logical.date_from_days(days).isoformat()
    return date if not rest else f"{date}T{time}"
