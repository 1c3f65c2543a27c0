"""Aggregates of grouped streams by windows of fixed size, and by sessions."""

from __future__ import annotations

from typing import Any

from moldau.streams.machine._window_steps import WindowAggregator
from moldau.streams.machine.aggregates import Aggregator, Initializer, Merger
from moldau.streams.machine.context import Processor, ProcessorContext
from moldau.streams.machine.getters import Forwarder, TableSupplier, View
from moldau.streams.machine.tables import session_view, window_view
from moldau.streams.records import Change, Record, Window, Windowed, aggregation
from moldau.streams.windows import EmitStrategy, SessionWindows, TimeWindows, UnlimitedWindows

#: Kafka Streams' internal setting of how often results of closed windows are looked for.
EMIT_INTERVAL = "__emit.interval.ms.kstreams.windowed.aggregation__"


class EmitTimer:
    """When the results of closed windows are emitted: at most once per interval of wall clock."""

    __slots__ = ("_context", "_interval_ms", "_kept", "_next_ms", "_store_name", "on_close")

    def __init__(self, context: ProcessorContext, emit: EmitStrategy, store_name: str) -> None:
        self._context = context
        self._store_name = store_name
        self.on_close = emit is EmitStrategy.ON_WINDOW_CLOSE
        self._interval_ms = int(context.runtime.config.get(EMIT_INTERVAL, 1000))
        self._next_ms = 0
        self._kept = context.runtime.progress.processors

    @property
    def closed_ms(self) -> int:
        """The close time up to which results were emitted; -1 before the first.

        It is committed with the offsets, so that a restart does not emit results again.
        """
        return self._kept.get(self._store_name, -1)

    @closed_ms.setter
    def closed_ms(self, close_ms: int) -> None:
        self._kept[self._store_name] = close_ms

    def is_due(self, close_ms: int) -> bool:
        """Whether results up to a close time are to be emitted now."""
        now_ms = self._context.current_system_time_ms()
        if not self.on_close or now_ms < self._next_ms:
            return False
        self._next_ms = now_ms + self._interval_ms
        return self.closed_ms == -1 or self.closed_ms < close_ms


class WindowAggregate(TableSupplier):
    """By tumbling, hopping or unlimited windows."""

    def __init__(
        self,
        store_name: str,
        windows: TimeWindows | UnlimitedWindows,
        initializer: Initializer | None,
        aggregator: Aggregator,
        emit: EmitStrategy,
    ) -> None:
        super().__init__()
        if emit is EmitStrategy.ON_WINDOW_CLOSE and not isinstance(windows, TimeWindows):
            raise ValueError("ON_WINDOW_CLOSE emit strategy cannot be used for UnlimitedWindows")
        self.store_name = store_name
        self.windows = windows
        self.initializer = initializer
        self.aggregator = aggregator
        self.emit = emit

    def __call__(self) -> Processor:
        if isinstance(self.windows, TimeWindows) and self.emit is EmitStrategy.ON_WINDOW_UPDATE:
            return WindowAggregator(
                self.store_name, self.windows, self.initializer, self.aggregator, self.send_old
            )
        return _WindowAggregate(self)

    def view(self) -> View:
        return window_view(self.store_name)


class _WindowAggregate(Processor):
    """For final results, unlimited windows, and stores of others."""

    def __init__(self, aggregate: WindowAggregate) -> None:
        self._aggregate = aggregate
        self._windows = aggregate.windows
        self._observed_ms = -1

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self._store = context.state_store(self._aggregate.store_name)
        self._timer = EmitTimer(context, self._aggregate.emit, self._aggregate.store_name)
        self._forwarder = Forwarder(context, self._store, self._aggregate.send_old)

    def process(self, record: Record[Any, Any]) -> None:
        if record.key is None:
            self.context.drop()
            return
        self._observed_ms = max(self._observed_ms, record.timestamp)
        close_ms = self._observed_ms - self._windows.grace_ms
        for window in self._windows.windows_for(record.timestamp):
            if window.end > close_ms:
                self._update(record, window)
            else:
                self.context.drop()
        if self._timer.is_due(close_ms):
            self._emit_closed(record, close_ms)

    def _update(self, record: Record[Any, Any], window: Window) -> None:
        aggregate, key, timestamp = self._aggregate, record.key, record.timestamp
        found = self._store.get(key, window.start)
        old = None
        if found is not None:
            old = found[0]
            timestamp = max(timestamp, found[1])
        elif aggregate.initializer is not None:
            old = aggregate.initializer()
        new = aggregate.aggregator(key, record.value, old)
        self._store.put(key, new, window.start, timestamp)
        if not self._timer.on_close:
            windowed = Windowed(key, window)
            self._forwarder.forward(windowed, new, old, timestamp, record.headers)

    def _emit_closed(self, record: Record[Any, Any], close_ms: int) -> None:
        size, last = self._windows.size_ms, self._timer.closed_ms
        high = close_ms - size
        if high < 0:
            return
        low = 0 if last == -1 else max(0, last - size) + 1
        if last != -1 and self._windows.windows_for(high) == self._windows.windows_for(low - 1):
            return
        emit_windows(self.context, self._store.fetch_all(low, high), record)
        self._timer.closed_ms = close_ms


def emit_windows(
    context: ProcessorContext,
    results: list[tuple[Windowed[Any], tuple[Any, ...]]],
    record: Record[Any, Any],
) -> None:
    """Forward final results, with the headers of the record that closed their windows."""
    for key, found in results:
        context.forward(Record(key, Change(found[0], None), found[1], record.headers))


class SessionAggregate(TableSupplier):
    """By sessions: a record extends the sessions it touches, and joins them into one."""

    def __init__(
        self,
        store_name: str,
        windows: SessionWindows,
        initializer: Initializer,
        aggregator: Aggregator,
        merger: Merger,
        emit: EmitStrategy,
    ) -> None:
        super().__init__()
        self.store_name = store_name
        self.windows = windows
        self.initializer = initializer
        self.aggregator = aggregator
        self.merger = merger
        self.emit = emit

    def __call__(self) -> Processor:
        return _SessionAggregate(self)

    def view(self) -> View:
        return session_view(self.store_name)


class _SessionAggregate(Processor):
    def __init__(self, aggregate: SessionAggregate) -> None:
        self._aggregate = aggregate
        self._observed_ms = -1

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self._store = context.state_store(self._aggregate.store_name)
        self._timer = EmitTimer(context, self._aggregate.emit, self._aggregate.store_name)
        self._forwarder = Forwarder(context, self._store, self._aggregate.send_old)

    def process(self, record: Record[Any, Any]) -> None:
        aggregate, key, timestamp = self._aggregate, record.key, record.timestamp
        if key is None:
            self.context.drop()
            return
        self._observed_ms = max(self._observed_ms, timestamp)
        gap = aggregate.windows.inactivity_gap_ms
        close_ms = self._observed_ms - aggregate.windows.grace_ms - gap
        alone = window = Window(timestamp, timestamp)
        value = aggregate.initializer()
        touched = [
            (session, aggregation(found))
            for session, found in self._store.find_sessions(key, timestamp - gap, timestamp + gap)
        ]
        for session, found in touched:
            value = aggregate.merger(key, value, found)
            start, end = session.window
            window = Window(min(window.start, start), max(window.end, end))
        if window.end < close_ms:
            self.context.drop()
        else:
            if window != alone:
                for session, found in touched:
                    self._store.put(session, None)
                    self._forward(session, None, found)
            value = aggregate.aggregator(key, record.value, value)
            self._store.put(Windowed(key, window), value)
            self._forward(Windowed(key, window), value, None)
        if self._timer.is_due(close_ms):
            low, high = max(0, self._timer.closed_ms), close_ms - 1
            if high >= 0 and high >= low:
                ended = self._store.find_ended(low, high)
                results = [(key, (aggregation(found), key.window.end)) for key, found in ended]
                emit_windows(self.context, results, record)
                self._timer.closed_ms = close_ms

    def _forward(self, session: Windowed[Any], new: Any, old: Any) -> None:
        if not self._timer.on_close:
            self._forwarder.forward(session, new, old, session.window.end, ())
