"""Processors that the language of streams has no operator for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from moldau.sql.sources.schema import LogicalSchema
from moldau.sql.topology.times import ReadTime
from moldau.sql.types import Column
from moldau.streams.machine.context import Processor
from moldau.streams.records import Record, RecordContext

Headers = tuple[tuple[str, bytes | None], ...]
#: The key columns of a record's key.
KeyColumns = Callable[[Any], tuple[Any, ...]]
OnError = Callable[[str, Exception, Any], None]


def key_columns(schema: LogicalSchema, *, windowed: bool) -> KeyColumns:
    """The key of a row as columns: its values, and the bounds of its window."""
    nulls = (None,) * (len(schema.key) + (2 if windowed else 0))
    if windowed:
        return lambda key: nulls if key is None else (*key.key, key.window.start, key.window.end)
    return lambda key: nulls if key is None else key


def header_columns(columns: Sequence[Column]) -> Callable[[Headers], tuple[Any, ...]]:
    """The values of header columns: all headers, or the last one of a key."""

    def one(headers: Headers, wanted: str) -> bytes | None:
        found = [value for key, value in headers if key == wanted]
        return found[-1] if found else None

    def values(headers: Headers) -> tuple[Any, ...]:
        return tuple(
            [(key, value) for key, value in headers]
            if each.header_key is None
            else one(headers, each.header_key)
            for each in columns
        )

    return values


class AddColumns(Processor):
    """Adds headers, pseudo columns and the key to the rows of a stream."""

    def __init__(
        self,
        keys: KeyColumns,
        headers: Callable[[Headers], tuple[Any, ...]] | None,
        read_time: ReadTime | None,
    ) -> None:
        self._keys = keys
        self._headers = headers
        self._read_time = read_time
        self._is_plain = headers is None and read_time is None

    def process(self, record: Record[Any, Any]) -> None:
        row = record.value
        if row is None:
            self.context.forward(record)
            return
        where: RecordContext = self.context.record_context
        timestamp = record.timestamp
        if self._is_plain:
            row += (timestamp, where.partition, where.offset, *self._keys(record.key))
            self.context.forward(Record(record.key, row, timestamp, record.headers))
            return
        if self._read_time is not None:
            try:
                timestamp = self._read_time(record.key, row)
            except Exception:  # a record without a time is skipped
                self.context.drop()
                return
            record = record.with_timestamp(timestamp)
        if self._headers is not None:
            row += self._headers(record.headers)
        row += (timestamp, where.partition, where.offset)
        # What is read from a topic has headers; what a query writes has none.
        self.context.forward(
            Record(record.key, row + self._keys(record.key), timestamp, record.headers)
        )


class FlatMapRows(Processor):
    """Rows for the values of table functions, side by side; shorter ones end in NULLs."""

    def __init__(self, appliers: Sequence[Callable[[Any], list[Any]]]) -> None:
        self._appliers = list(appliers)

    def process(self, record: Record[Any, Any]) -> None:
        row = record.value
        if row is None:
            return
        lists = [apply(row) for apply in self._appliers]
        for index in range(max(len(each) for each in lists)):
            added = tuple(each[index] if index < len(each) else None for each in lists)
            self.context.forward(record.with_value(row + added))


class SetTime(Processor):
    """Gives records the time of a column; a tombstone has the stream's time."""

    def __init__(self, read_time: ReadTime, on_error: OnError) -> None:
        self._read_time = read_time
        self._on_error = on_error

    def process(self, record: Record[Any, Any]) -> None:
        if record.value is None:
            timestamp = self.context.current_stream_time_ms()
        else:
            try:
                timestamp = self._read_time(record.key, record.value)
                if timestamp < 0:
                    raise ValueError(f"negative timestamp: {timestamp}")
            except Exception as error:
                message = f"Error writing row with extracted timestamp: {error}"
                self._on_error(message, error, record.value)
                return
        self.context.forward(record.with_timestamp(timestamp))
