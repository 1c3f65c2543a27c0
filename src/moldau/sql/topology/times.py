"""The time of a record, where a column says it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moldau.data.java_time.parsing import parser
from moldau.data.java_time.zones import UTC_ZONE
from moldau.sql.errors import KsqlException
from moldau.sql.sources.data_source import TimestampColumn
from moldau.sql.sources.schema import LogicalSchema
from moldau.sql.types import STRING, Namespace
from moldau.streams.errors import StreamsError
from moldau.streams.machine.definitions import TimestampExtractor
from moldau.streams.records import RecordContext

#: Milliseconds from a key and a row. It raises an error where there is no time.
ReadTime = Callable[[Any, Any], int]


def time_reader(schema: LogicalSchema, timestamp: TimestampColumn) -> ReadTime:
    """How a record's time is read from its columns."""
    column = schema.find(timestamp.name)
    if column is None:
        raise KsqlException(f"no column {timestamp.name}")
    in_key = column.namespace is Namespace.KEY
    names = [each.name for each in (schema.key if in_key else schema.value)]
    place = names.index(timestamp.name)
    if column.type is STRING and timestamp.format is not None:
        reader = parser(timestamp.format)

        def convert(value: Any) -> int:
            return reader.timestamp_ms(value, UTC_ZONE)
    else:

        def convert(value: Any) -> int:
            if value is None:
                raise ValueError("the timestamp column is NULL")
            return int(value)

    if in_key:
        return lambda key, row: convert((key.key if hasattr(key, "window") else key)[place])
    return lambda key, row: convert(row[place])


def is_key_time(schema: LogicalSchema, timestamp: TimestampColumn) -> bool:
    return schema.is_key(timestamp.name)


def extractor(
    schema: LogicalSchema, timestamp: TimestampColumn, *, throws: bool
) -> TimestampExtractor:
    """The times of a source's records; a record without one is skipped, or stops the query."""
    read = time_reader(schema, timestamp)

    def extract(where: RecordContext, row: Any, before: int) -> int:
        if row is None:
            return where.timestamp
        try:
            return read(None, row)
        except Exception as error:
            if throws:
                raise StreamsError(
                    "Fatal user code error in TimestampExtractor callback for record "
                    f"{where.topic}-{where.partition} at offset {where.offset}: {error}"
                ) from error
            return -1

    return extract
