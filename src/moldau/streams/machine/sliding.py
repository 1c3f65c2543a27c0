"""Aggregates by sliding windows.

A window exists for every set of records of a key that fit into `time_difference`: one ends at each
record (its left window), and one starts right after each record (its right window) unless that
would be empty. Windows that would start before 0 are one window, [0, time_difference].
"""

from __future__ import annotations

from typing import Any

from moldau.streams.machine.aggregates import Aggregator, Initializer
from moldau.streams.machine.context import Processor, ProcessorContext
from moldau.streams.machine.getters import Forwarder, TableSupplier, View
from moldau.streams.machine.tables import window_view
from moldau.streams.machine.window_aggregates import EmitTimer, emit_windows
from moldau.streams.records import Record, ValueAndTimestamp, Window, Windowed
from moldau.streams.windows import EmitStrategy, SlidingWindows

#: A value and its time; stores with headers have a third part, which results do not have.
_Value = tuple[Any, ...]


class SlidingAggregate(TableSupplier):
    """By sliding windows."""

    def __init__(
        self,
        store_name: str,
        windows: SlidingWindows,
        initializer: Initializer | None,
        aggregator: Aggregator,
        emit: EmitStrategy,
    ) -> None:
        super().__init__()
        self.store_name = store_name
        self.windows = windows
        self.initializer = initializer
        self.aggregator = aggregator
        self.emit = emit

    def __call__(self) -> Processor:
        return _SlidingAggregate(self)

    def view(self) -> View:
        return window_view(self.store_name)


class _SlidingAggregate(Processor):
    def __init__(self, aggregate: SlidingAggregate) -> None:
        self._aggregate = aggregate
        self._span_ms = aggregate.windows.time_difference_ms
        self._observed_ms = -1
        self._close_ms = -1

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self._store = context.state_store(self._aggregate.store_name)
        self._timer = EmitTimer(context, self._aggregate.emit, self._aggregate.store_name)
        self._forwarder = Forwarder(context, self._store, self._aggregate.send_old)

    def process(self, record: Record[Any, Any]) -> None:
        timestamp = record.timestamp
        if record.key is None or record.value is None:
            self.context.drop()
            return
        self._observed_ms = max(self._observed_ms, timestamp)
        close_ms = self._close_ms = self._observed_ms - self._aggregate.windows.grace_ms
        if timestamp + self._span_ms < close_ms:
            self.context.drop()
            return
        if timestamp < self._span_ms:
            # Kafka Streams emits no closed windows after an early record.
            self._process_early(record)
            return
        self._process(record)
        if self._timer.is_due(close_ms):
            high = close_ms - self._span_ms - 1
            last = self._timer.closed_ms
            if high >= 0:
                low = 0 if last == -1 else max(0, last - self._span_ms)
                emit_windows(self.context, self._store.fetch_all(low, high), record)
                self._timer.closed_ms = close_ms

    def _process(self, record: Record[Any, Any]) -> None:
        """From the newest window that the record may touch to the oldest."""
        timestamp, span = record.timestamp, self._span_ms
        starts: set[int] = set()
        left: _Value | None = None
        right: _Value | None = None
        previous: int | None = None
        has_left = has_right = False
        found = self._store.fetch(record.key, max(0, timestamp - 2 * span), timestamp + 1)
        for start, value in reversed(found):
            starts.add(start)
            end = start + span
            if start == timestamp + 1:
                has_right = True
            elif end > timestamp:
                right = right or value
                self._update(record, start, value)
            elif end == timestamp:
                has_left = True
                self._update(record, start, value)
                if value[1] >= timestamp:
                    # The record's time is known: all its windows exist.
                    return
                previous = value[1]
            else:
                left, previous = value, value[1]
                break
        if previous is not None:
            after = previous + 1
            if after not in starts and after + span >= timestamp:
                self._update(record, after, self._empty(timestamp))
        if not has_left:
            start_value = self._empty(timestamp)
            if left is not None and previous is not None and timestamp - span <= previous:
                start_value = left[0], timestamp
            self._update(record, timestamp - span, start_value)
        if not has_right and right is not None and right[1] > timestamp:
            self._create_right(record, right)

    def _process_early(self, record: Record[Any, Any]) -> None:
        """The record's left window would start before 0."""
        timestamp = record.timestamp
        starts: set[int] = set()
        combined: _Value | None = None
        right: _Value | None = None
        previous: int | None = None
        has_right = False
        for start, value in self._store.fetch(record.key, 0, timestamp + 1):
            starts.add(start)
            if start == 0:
                combined = value
                if value[1] < timestamp:
                    previous = value[1]
            elif start <= timestamp:
                right = value
                self._update(record, start, value)
            else:
                has_right = True
        if right is None and combined is not None and combined[1] > timestamp:
            right = combined
        if not has_right and right is not None and right[1] > timestamp:
            self._create_right(record, right)
        if previous is not None and previous + 1 not in starts:
            self._update(record, previous + 1, self._empty(timestamp))
        self._update(record, 0, self._empty(timestamp) if combined is None else combined)

    def _empty(self, timestamp: int) -> _Value:
        initializer = self._aggregate.initializer
        return (None if initializer is None else initializer()), timestamp

    def _update(self, record: Record[Any, Any], start: int, value: _Value) -> None:
        window = Window(start, start + self._span_ms)
        if window.end < self._close_ms:
            self.context.drop()
            return
        old, since = value[0], value[1]
        new = self._aggregate.aggregator(record.key, record.value, old)
        timestamp = record.timestamp if old is None else max(record.timestamp, since)
        self._store.put(record.key, new, start, timestamp)
        self._forward(record, window, old, ValueAndTimestamp(new, timestamp))

    def _create_right(self, record: Record[Any, Any], value: _Value) -> None:
        """The window after the record holds what the windows around the record held before it."""
        start = record.timestamp + 1
        self._store.put(record.key, value[0], start, value[1])
        window = Window(start, start + self._span_ms)
        self._forward(record, window, None, ValueAndTimestamp(value[0], value[1]))

    def _forward(
        self, record: Record[Any, Any], window: Window, old: Any, new: ValueAndTimestamp[Any]
    ) -> None:
        if not self._timer.on_close:
            key = Windowed(record.key, window)
            self._forwarder.forward(key, new.value, old, new.timestamp, record.headers)
