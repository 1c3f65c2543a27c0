"""PostgreSQL's types as Connect's schemas, with the names that Debezium gives them.

A column's values come as the database's texts. `adaptive` keeps integers, as Debezium does by
default: of milliseconds where a column has up to three digits of a second, else of microseconds.
`connect` uses Connect's own types, in milliseconds.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from moldau.connect.connectors.capture.machine.columns import binary
from moldau.connect.connectors.capture.machine.envelope import ColumnType
from moldau.connect.connectors.postgres_cdc.machine import texts
from moldau.data import builders, logical
from moldau.data.errors import DataError
from moldau.data.schema import Schema
from moldau.data.struct import Struct

Convert = Callable[[str], Any]

_EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_US: Final = datetime.timedelta(microseconds=1)
#: What PostgreSQL's Java driver makes of them, in microseconds.
_INFINITE: Final = {"infinity": 9223372036825200000, "-infinity": -9223372036832400000}
_DIGITS: Final = 6
_MS_DIGITS: Final = 3
VARIABLE_DECIMAL: Final = builders.struct(
    {"scale": builders.INT32, "value": builders.BYTES},
    name="io.debezium.data.VariableScaleDecimal",
    version=1,
)


@dataclass(frozen=True, slots=True)
class Options:
    decimals: str = "precise"
    times: str = "adaptive"
    include_unknown: bool = False
    binaries: str = "bytes"
    intervals: str = "numeric"
    hstores: str = "json"
    money_digits: int = 2


@dataclass(frozen=True, slots=True)
class PgType:
    """What the catalogue says of a type. `element` is the type of an array's items."""

    name: str
    kind: str = "b"
    """typtype: b for base, e for enum, d for domain."""
    element: PgType | None = None
    labels: tuple[str, ...] = ()


def column_type(found: PgType, modifier: int, options: Options) -> ColumnType | None:
    """How a column is written; None for a type that is left out."""
    if found.element is not None:
        return _array(found.element, modifier, options)
    if found.kind == "e":
        schema = builders.STRING.replace(
            name="io.debezium.data.Enum", version=1, parameters={"allowed": ",".join(found.labels)}
        )
        return ColumnType(schema, str)
    made = _MADE.get(found.name)
    if made is not None:
        return made(modifier, options)
    plain = _PLAIN.get(found.name)
    if plain is None and options.include_unknown:
        return binary(options.binaries, str.encode)
    return plain


def _boolean(text: str) -> bool:
    return text in ("t", "true")


def _bytes(text: str) -> bytes:
    if not text.startswith("\\x"):
        raise DataError(f"bytea_output must be hex, not {text[:20]!r}")
    return bytes.fromhex(text[2:])


def _named(name: str) -> ColumnType:
    return ColumnType(builders.STRING.replace(name=name, version=1), str)


_INT32: Final = ColumnType(builders.INT32, int)
_INT64: Final = ColumnType(builders.INT64, int)
_TEXT: Final = ColumnType(builders.STRING, str)
_PLAIN: Final[dict[str, ColumnType]] = {
    "bool": ColumnType(builders.BOOLEAN, _boolean),
    "int2": ColumnType(builders.INT16, int),
    "int4": _INT32,
    "int8": _INT64,
    "oid": _INT64,
    "float4": ColumnType(builders.FLOAT32, float),
    "float8": ColumnType(builders.FLOAT64, float),
    "point": ColumnType(texts.POINT, texts.point),
    "ltree": _named("io.debezium.data.Ltree"),
    "tsvector": _named("io.debezium.data.Tsvector"),
    "uuid": _named("io.debezium.data.Uuid"),
    "json": _named("io.debezium.data.Json"),
    "jsonb": _named("io.debezium.data.Json"),
    "xml": _named("io.debezium.data.Xml"),
    **dict.fromkeys(
        (
            "text", "varchar", "bpchar", "char", "name", "citext", "inet", "cidr", "macaddr",
            "macaddr8", "int4range", "int8range", "numrange", "tsrange", "tstzrange", "daterange",
        ),
        _TEXT,
    ),
}  # fmt: skip


def _decimal(modifier: int, options: Options) -> ColumnType:
    if options.decimals == "double":
        return ColumnType(builders.FLOAT64, float)
    if options.decimals == "string":
        return _TEXT
    if modifier < 0:
        return ColumnType(VARIABLE_DECIMAL, _variable)
    packed = modifier - 4
    precision, scale = packed >> 16 & 0xFFFF, packed & 0x7FF
    scale = (scale ^ 1024) - 1024
    schema = logical.decimal(scale, precision=precision)
    return ColumnType(schema, lambda text: _scaled(text, scale))


def _scaled(text: str, scale: int) -> Decimal:
    number = Decimal(text)
    if not number.is_finite():
        raise DataError(f"{text} cannot be a decimal: set decimal.handling.mode=string")
    return number.quantize(Decimal(1).scaleb(-scale))


def _variable(text: str) -> Struct:
    number = Decimal(text)
    exponent = number.as_tuple().exponent
    if not isinstance(exponent, int):
        raise DataError(f"{text} cannot be a decimal: set decimal.handling.mode=string")
    scale = max(0, -exponent)
    unscaled = int(number.scaleb(scale))
    size = unscaled.bit_length() // 8 + 1
    value = unscaled.to_bytes(size, "big", signed=True)
    return Struct(VARIABLE_DECIMAL, {"scale": scale, "value": value})


def _debezium(name: str, base: Schema, convert: Convert) -> ColumnType:
    return ColumnType(base.replace(name=f"io.debezium.time.{name}", version=1), convert)


def _date(text: str) -> datetime.date:
    try:
        return datetime.date.fromisoformat(text)
    except ValueError:
        raise DataError(f"the date {text} is outside of the years 1 to 9999") from None


def _days(text: str) -> int:
    return (_date(text) - _EPOCH.date()).days


def _moment(text: str) -> datetime.datetime:
    if text.endswith("BC") or "infinity" in text:
        raise DataError(f"the timestamp {text} is outside of the years 1 to 9999")
    # The database leaves out zeros: 12:00:00.1+00
    moment = datetime.datetime.fromisoformat(_padded(text))
    return moment.replace(tzinfo=datetime.UTC) if moment.tzinfo is None else moment


def _padded(text: str) -> str:
    head, point, rest = text.partition(".")
    if not point:
        return text
    digits = 0
    while digits < len(rest) and rest[digits].isdigit():
        digits += 1
    return f"{head}.{rest[:digits].ljust(6, '0')}{rest[digits:]}"


def _micros(text: str) -> int:
    infinite = _INFINITE.get(text)
    return (_moment(text) - _EPOCH) // _US if infinite is None else infinite


def _zoned(text: str, digits: int) -> str:
    """In UTC, with as many digits of a second as the column has."""
    if text in _INFINITE:
        return text
    moment = _moment(text).astimezone(datetime.UTC)
    fraction = f".{moment.microsecond:06d}"[: digits + 1] if digits else ""
    return f"{moment:%Y-%m-%dT%H:%M:%S}{fraction}Z"


def _time(text: str) -> datetime.time:
    return datetime.time.fromisoformat(_padded(text))


def _time_micros(text: str) -> int:
    found = _time(text)
    return ((found.hour * 60 + found.minute) * 60 + found.second) * 1_000_000 + found.microsecond


def _connect_time(text: str) -> datetime.time:
    found = _time(text)
    return found.replace(microsecond=found.microsecond // 1000 * 1000)


def _connect_timestamp(text: str) -> datetime.datetime:
    found = _moment(text).astimezone(datetime.UTC)
    return found.replace(microsecond=found.microsecond // 1000 * 1000)


def _money(options: Options) -> ColumnType:
    unit = Decimal(1).scaleb(-options.money_digits)
    if options.decimals == "double":
        return ColumnType(builders.FLOAT64, lambda text: float(texts.money(text)))
    if options.decimals == "string":
        return ColumnType(builders.STRING, lambda text: str(texts.money(text).quantize(unit)))
    schema = logical.decimal(options.money_digits)
    return ColumnType(schema, lambda text: texts.money(text).quantize(unit))


def _bits(modifier: int) -> ColumnType:
    if modifier == 1:
        return ColumnType(builders.BOOLEAN, lambda text: "1" in text)
    length = {"length": str(modifier if modifier > 0 else 2**31 - 1)}
    schema = builders.BYTES.replace(name="io.debezium.data.Bits", version=1, parameters=length)
    return ColumnType(schema, texts.bits)


def _interval(options: Options) -> ColumnType:
    if options.intervals == "string":
        return _debezium("Interval", builders.STRING, texts.interval_text)
    return _debezium("MicroDuration", builders.INT64, texts.interval_micros)


def _hstore(options: Options) -> ColumnType:
    if options.hstores == "map":
        return ColumnType(builders.map_of(builders.STRING, builders.OPTIONAL_STRING), texts.hstore)
    schema = builders.STRING.replace(name="io.debezium.data.Json", version=1)
    return ColumnType(schema, texts.hstore_json)


def _date_type(options: Options) -> ColumnType:
    if options.times == "connect":
        return ColumnType(logical.DATE, _date)
    return _debezium("Date", builders.INT32, _days)


def _time_type(modifier: int, options: Options) -> ColumnType:
    if options.times == "connect":
        return ColumnType(logical.TIME, _connect_time)
    if options.times == "adaptive" and 0 <= modifier <= _MS_DIGITS:
        return _debezium("Time", builders.INT32, lambda text: _time_micros(text) // 1000)
    return _debezium("MicroTime", builders.INT64, _time_micros)


def _timestamp_type(modifier: int, options: Options) -> ColumnType:
    if options.times == "connect":
        return ColumnType(logical.TIMESTAMP, _connect_timestamp)
    if 0 <= modifier <= _MS_DIGITS:
        return _debezium("Timestamp", builders.INT64, lambda text: _micros(text) // 1000)
    return _debezium("MicroTimestamp", builders.INT64, _micros)


def _zoned_type(modifier: int) -> ColumnType:
    digits = _DIGITS if modifier < 0 else modifier
    return _debezium("ZonedTimestamp", builders.STRING, lambda text: _zoned(text, digits))


#: Types whose form depends on their size or on a setting.
_MADE: Final[dict[str, Callable[[int, Options], ColumnType]]] = {
    "numeric": _decimal,
    "money": lambda _, options: _money(options),
    "bytea": lambda _, options: binary(options.binaries, _bytes),
    "bit": lambda modifier, _: _bits(modifier),
    "varbit": lambda modifier, _: _bits(modifier),
    "hstore": lambda _, options: _hstore(options),
    "date": lambda _, options: _date_type(options),
    "time": _time_type,
    "timestamp": _timestamp_type,
    "timestamptz": lambda modifier, _: _zoned_type(modifier),
    "timetz": lambda *_: _debezium("ZonedTime", builders.STRING, texts.zoned_time),
    "interval": lambda _, options: _interval(options),
}


def _array(element: PgType, modifier: int, options: Options) -> ColumnType | None:
    inner = column_type(element, modifier, options)
    if inner is None:
        return None
    schema = builders.array(inner.schema.as_optional())
    return ColumnType(
        schema,
        lambda text: [None if item is None else inner.convert(item) for item in array_items(text)],
    )


def array_items(text: str) -> list[str | None]:
    """The items of an array of one dimension, as in {a,"b c",NULL}."""
    if not text.startswith("{"):
        raise DataError(f"not an array of one dimension: {text[:40]}")
    items: list[str | None] = []
    at, end = 1, len(text) - 1
    while at < end:
        if text[at] == "{":
            raise DataError(f"not an array of one dimension: {text[:40]}")
        item, quoted = "", text[at] == '"'
        at += quoted
        while at < end and (quoted or text[at] != ","):
            if quoted and text[at] == '"':
                at += 1
                break
            at += text[at] == "\\"
            item += text[at]
            at += 1
        items.append(None if not quoted and item == "NULL" else item)
        at += 1
    return items
