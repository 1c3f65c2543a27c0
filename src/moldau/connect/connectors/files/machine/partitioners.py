"""Folders for records: by Kafka partition, by fields, or by time. Names are Confluent's."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from moldau.connect.api.errors import ConfigError
from moldau.connect.api.records import SinkRecord
from moldau.connect.transforms.java_dates import DateFormat
from moldau.data.errors import DataError
from moldau.data.primitive_bytes import java_text
from moldau.data.struct import Struct

#: The folder of a record, for a time of the wall clock in ms.
Partitioner: TypeAlias = Callable[[SinkRecord, int], str]
#: The time of a record in ms.
TimestampExtractor: TypeAlias = Callable[[SinkRecord, int], int]

PARTITIONERS: Final = {
    "DefaultPartitioner": "default",
    "FieldPartitioner": "field",
    "TimeBasedPartitioner": "time",
    "HourlyPartitioner": "hourly",
    "DailyPartitioner": "daily",
}
HOUR_MS: Final = 3_600_000
_PATHS: Final = {
    "hourly": ("'year'=yyyy/'month'=MM/'day'=dd/'hour'=HH", HOUR_MS),
    "daily": ("'year'=yyyy/'month'=MM/'day'=dd", 24 * HOUR_MS),
}


def partitioner_kind(name: str) -> str:
    """Which partitioner a class name, Java's or short, stands for."""
    short = name.rpartition(".")[2]
    if short not in PARTITIONERS:
        raise ConfigError.invalid(
            "partitioner.class", name, f"must be one of {', '.join(PARTITIONERS)}"
        )
    return PARTITIONERS[short]


def is_time_based(name: str) -> bool:
    return partitioner_kind(name) not in ("default", "field")


def make_partitioner(
    config: Mapping[str, Any], zone_offset_ms: Callable[[int], int] = lambda _: 0
) -> Partitioner:
    """`zone_offset_ms` is how far the time zone of folders is from UTC at a time."""
    kind = partitioner_kind(config["partitioner.class"])
    delimiter = config["directory.delim"]
    if kind == "default":
        return lambda record, _: f"partition={record.original_partition}"
    if kind == "field":
        return _by_fields(config["partition.field.name"], delimiter)
    path, duration_ms = _PATHS.get(kind) or (config["path.format"], config["partition.duration.ms"])
    if not path:
        raise ConfigError.invalid("path.format", path, "must be set with TimeBasedPartitioner")
    if duration_ms <= 0:
        raise ConfigError.invalid("partition.duration.ms", duration_ms, "must be positive")
    # In Joda's patterns, which these are, YYYY is the year, not that of the week.
    pattern = DateFormat(path.replace("Y", "y"))
    timestamp = make_extractor(config)

    def folder(record: SinkRecord, now_ms: int) -> str:
        moment = timestamp(record, now_ms)
        # A day is one of the zone, not one of UTC.
        local = moment + zone_offset_ms(moment)
        text = pattern.format(local // duration_ms * duration_ms)
        return text.replace("/", delimiter) if delimiter != "/" else text

    return folder


def _by_fields(names: list[str] | tuple[str, ...], delimiter: str) -> Partitioner:
    if not names:
        raise ConfigError.invalid("partition.field.name", "", "must be set with FieldPartitioner")

    def folder(record: SinkRecord, _: int) -> str:
        return delimiter.join(f"{name}={_folder_text(field_of(record, name))}" for name in names)

    return folder


def _folder_text(value: Any) -> str:
    text = value if isinstance(value, str) else java_text(value)
    # A value must not lead out of its folder.
    return text.replace("/", "%2F").replace("..", "%2E%2E")


def field_of(record: SinkRecord, name: str) -> Any:
    """A field of the value, `a.b` for a field within a field."""
    value = record.value
    for part in name.split("."):
        if isinstance(value, Struct) and value.schema.field(part) is not None:
            value = value.get(part)
        elif isinstance(value, dict) and part in value:
            value = value[part]
        else:
            raise DataError(
                f"record {record.topic}-{record.partition}@{record.offset} has no field {name}"
            )
    return value


def make_extractor(config: Mapping[str, Any]) -> TimestampExtractor:
    name = str(config["timestamp.extractor"]).rpartition(".")[2].partition("$")
    short = (name[2] or name[0]).removesuffix("TimestampExtractor").lower()
    match short:
        case "wallclock":
            return lambda _, now_ms: now_ms
        case "record":
            return _record_time
        case "recordfield":
            field = config["timestamp.field"]
            return lambda record, _: _milliseconds(field_of(record, field), field)
    raise ConfigError.invalid(
        "timestamp.extractor", config["timestamp.extractor"],
        "must be Wallclock, Record or RecordField",
    )  # fmt: skip


def _record_time(record: SinkRecord, _: int) -> int:
    if record.timestamp is None:
        raise DataError(
            f"record {record.topic}-{record.partition}@{record.offset} has no timestamp"
        )
    return record.timestamp


def _milliseconds(value: Any, field: str) -> int:
    if isinstance(value, datetime.datetime):
        aware = value if value.tzinfo else value.replace(tzinfo=datetime.UTC)
        return int(aware.timestamp() * 1000)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str):
        try:
            moment = datetime.datetime.fromisoformat(value)
        except ValueError:
            raise DataError(f"field {field} has no time in it: {value!r}") from None
        aware = moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)
        return int(aware.timestamp() * 1000)
    raise DataError(f"field {field} has no time in it: {value!r}")
