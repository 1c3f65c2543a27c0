"""MariaDB's and MySQL's types as Connect's schemas, with the names that Debezium gives them.

Values come from two drivers, that of queries and that of the binary log, which differ a little.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from moldau.connect.connectors.capture.machine.columns import binary
from moldau.connect.connectors.capture.machine.envelope import ColumnType
from moldau.data import builders, logical
from moldau.data.errors import DataError
from moldau.data.schema import Schema

_EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MS: Final = datetime.timedelta(milliseconds=1)
_US: Final = datetime.timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class SqlColumn:
    """A column as information_schema describes it."""

    name: str
    kind: str
    full: str
    """With sizes and words: `int(10) unsigned`."""
    precision: int | None
    scale: int | None
    time_precision: int | None


@dataclass(frozen=True, slots=True)
class Options:
    decimals: str = "precise"
    times: str = "adaptive"
    binaries: str = "bytes"
    unsigned: str = "long"


def column_type(column: SqlColumn, options: Options) -> ColumnType:
    unsigned = "unsigned" in column.full
    match column.kind:
        case "tinyint":
            return ColumnType(builders.INT16, int)
        case "smallint":
            return ColumnType(builders.INT32 if unsigned else builders.INT16, int)
        case "mediumint":
            return ColumnType(builders.INT32, int)
        case "int" | "integer":
            return ColumnType(builders.INT64 if unsigned else builders.INT32, int)
        case "bigint":
            if unsigned and options.unsigned == "precise":
                return ColumnType(logical.decimal(0), Decimal)
            return ColumnType(builders.INT64, _long)
        case "float":
            return ColumnType(builders.FLOAT32, float)
        case "double":
            return ColumnType(builders.FLOAT64, float)
        case "decimal":
            return _decimal(column, options.decimals)
        case "bit":
            return _bits(column.precision or 1)
        case "binary" | "varbinary" | "tinyblob" | "blob" | "mediumblob" | "longblob":
            return binary(options.binaries, _bytes)
        case "enum" | "set":
            return _choice(column)
        case "json":
            json = builders.STRING.replace(name="io.debezium.data.Json", version=1)
            return ColumnType(json, _text)
        case "year":
            return _debezium("Year", builders.INT32, int)
        case "date" | "time" | "datetime" | "timestamp":
            return _temporal(column, options.times)
    return ColumnType(builders.STRING, _text)


def _long(value: Any) -> int:
    number = int(value)
    if number >= 1 << 63:
        raise DataError(f"{number} does not fit a signed integer of 64 bits")
    return number


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _bytes(value: Any) -> bytes:
    return value.encode("latin-1") if isinstance(value, str) else bytes(value)


def _decimal(column: SqlColumn, mode: str) -> ColumnType:
    if mode == "double":
        return ColumnType(builders.FLOAT64, float)
    if mode == "string":
        return ColumnType(builders.STRING, str)
    scale = column.scale or 0
    unit = Decimal(1).scaleb(-scale)
    return ColumnType(
        logical.decimal(scale, precision=column.precision),
        lambda value: Decimal(value).quantize(unit),
    )


def _bits(size: int) -> ColumnType:
    if size == 1:
        return ColumnType(builders.BOOLEAN, lambda value: _bit_number(value) != 0)
    schema = builders.BYTES.replace(
        name="io.debezium.data.Bits", version=1, parameters={"length": str(size)}
    )
    width = (size + 7) // 8
    return ColumnType(schema, lambda value: _bit_number(value).to_bytes(width, "little"))


def _bit_number(value: Any) -> int:
    """The binary log's driver returns a text of ones and zeros, the other one bytes."""
    return int(value, 2) if isinstance(value, str) else int.from_bytes(value, "big")


def _choice(column: SqlColumn) -> ColumnType:
    words = column.full.partition("(")[2].rpartition(")")[0]
    allowed = ",".join(each.strip().strip("'") for each in words.split("','"))
    name = "io.debezium.data.Enum" if column.kind == "enum" else "io.debezium.data.EnumSet"
    schema = builders.STRING.replace(name=name, version=1, parameters={"allowed": allowed})
    order = {word: place for place, word in enumerate(allowed.split(","))}

    def convert(value: Any) -> str:
        if isinstance(value, (set, frozenset, list, tuple)):
            return ",".join(sorted(value, key=lambda each: order.get(each, 0)))
        return _text(value)

    return ColumnType(schema, convert)


def _debezium(name: str, base: Schema, convert: Callable[[Any], Any]) -> ColumnType:
    return ColumnType(base.replace(name=f"io.debezium.time.{name}", version=1), convert)


def _temporal(column: SqlColumn, times: str) -> ColumnType:
    connect = times == "connect"
    match column.kind:
        case "date":
            if connect:
                return ColumnType(logical.DATE, lambda value: value)
            return _debezium("Date", builders.INT32, lambda value: (value - _EPOCH.date()).days)
        case "time":
            if connect:
                return ColumnType(logical.TIME, _time)
            return _debezium("MicroTime", builders.INT64, lambda value: value // _US)
        case "timestamp":
            return _debezium("ZonedTimestamp", builders.STRING, _zoned)
    if connect:
        return ColumnType(logical.TIMESTAMP, _whole_ms)
    if (column.time_precision or 0) <= 3:
        return _debezium("Timestamp", builders.INT64, lambda value: _since(value) // _MS)
    return _debezium("MicroTimestamp", builders.INT64, lambda value: _since(value) // _US)


def _since(value: datetime.datetime) -> datetime.timedelta:
    return _moment(value) - _EPOCH


def _moment(value: datetime.datetime) -> datetime.datetime:
    return value if value.tzinfo else value.replace(tzinfo=datetime.UTC)


def _time(value: Any) -> datetime.time:
    if isinstance(value, datetime.timedelta):
        value = (datetime.datetime.min + value).time()
    made: datetime.time = value.replace(microsecond=value.microsecond // 1000 * 1000)
    return made


def _zoned(value: datetime.datetime) -> str:
    moment = _moment(value).astimezone(datetime.UTC)
    fraction = f".{moment.microsecond:06d}".rstrip("0") if moment.microsecond else ""
    return f"{moment:%Y-%m-%dT%H:%M:%S}{fraction}Z"


def _whole_ms(value: datetime.datetime) -> datetime.datetime:
    moment = _moment(value)
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)
