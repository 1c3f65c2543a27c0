"""Joins of a stream: with another stream, with a table, with a global table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from moldau.streams.machine.context import Processor, ProcessorContext
from moldau.streams.machine.getters import Getter, View
from moldau.streams.records import MAX_TIMESTAMP, Record
from moldau.streams.serdes import Serde
from moldau.streams.stores.formats import join_side_key
from moldau.streams.stores.key_value import ListStore
from moldau.streams.windows import JoinWindows

#: Key, left value, right value.
Joiner = Callable[[Any, Any, Any], Any]

#: Kafka Streams' internal setting of how often unmatched records are looked for.
EMIT_INTERVAL = "__emit.interval.ms.kstreams.outer.join.spurious.results.fix__"


class JoinWindow(Processor):
    """Keeps a stream's records for the other side of the join."""

    def __init__(self, store_name: str) -> None:
        self._store_name = store_name

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self._store = context.state_store(self._store_name)

    def process(self, record: Record[Any, Any]) -> None:
        # First the join: a self join must not find the record itself twice.
        self.context.forward(record)
        if record.key is not None:
            self._store.put(record.key, record.value, record.timestamp)


class _Clock:
    """The stream time that both sides of a join share."""

    __slots__ = ("min_ms", "next_emit_ms", "stream_time_ms")

    def __init__(self) -> None:
        self.stream_time_ms = -1
        self.min_ms = MAX_TIMESTAMP
        self.next_emit_ms = 0


class SharedClock:
    """Gives the two processors of a join in a task the same clock, which the task keeps."""

    def of(self, context: ProcessorContext) -> _Clock:
        clock: _Clock = context.runtime.shared.setdefault(self, _Clock())
        return clock


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamJoinSpec:
    """One side of a join of two streams."""

    is_left: bool
    #: Records of this side come out even without a match.
    outer: bool
    other_store: str
    #: Records without a match yet, of both sides; only left and outer joins have it.
    shared_store: str | None
    windows: JoinWindows
    joiner: Joiner
    key_serde: Serde[Any]
    left_serde: Serde[Any]
    right_serde: Serde[Any]
    clock: SharedClock


class StreamJoin(Processor):
    """One side of a join of two streams."""

    def __init__(self, spec: StreamJoinSpec) -> None:
        self._spec = spec
        windows = spec.windows
        self._before_ms = windows.before_ms if spec.is_left else windows.after_ms
        self._after_ms = windows.after_ms if spec.is_left else windows.before_ms

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        spec = self._spec
        self._other = context.state_store(spec.other_store)
        self._shared: ListStore | None = None
        if spec.shared_store is not None:
            self._shared = context.state_store(spec.shared_store)
        self._clock = spec.clock.of(context)
        self._interval_ms = int(context.runtime.config.get(EMIT_INTERVAL, 1000))

    def _join(self, key: Any, this: Any, other: Any) -> Any:
        joiner = self._spec.joiner
        return joiner(key, this, other) if self._spec.is_left else joiner(key, other, this)

    def process(self, record: Record[Any, Any]) -> None:
        clock, timestamp, spec = self._clock, record.timestamp, self._spec
        clock.stream_time_ms = max(clock.stream_time_ms, timestamp)
        if record.key is None and record.value is not None and spec.outer:
            self.context.forward(record.with_value(self._join(None, record.value, None)))
            return
        if record.key is None or record.value is None:
            self.context.runtime.dropped += 1
            return
        if self._shared is not None and timestamp == clock.stream_time_ms:
            self._emit_unmatched(self._shared, record)
        low, high = max(0, timestamp - self._before_ms), max(0, timestamp + self._after_ms)
        matches = self._other.fetch(record.key, low, high)
        for time, (value, _) in matches:
            if self._shared is not None:
                self._shared.delete(self._key(record.key, time, left=not spec.is_left))
            joined = self._join(record.key, record.value, value)
            self.context.forward(Record(record.key, joined, max(timestamp, time), record.headers))
        if spec.outer and not matches:
            if self._shared is None or high < clock.stream_time_ms:
                joined = self._join(record.key, record.value, None)
                self.context.forward(record.with_value(joined))
            else:
                clock.min_ms = min(clock.min_ms, timestamp)
                self._keep(self._shared, record)

    def _key(self, key: Any, time: int, *, left: bool) -> bytes:
        data = self._spec.key_serde.serialize(self._spec.other_store, key) or b""
        return join_side_key(data, time, left=left)

    def _keep(self, shared: ListStore, record: Record[Any, Any]) -> None:
        spec = self._spec
        serde = spec.left_serde if spec.is_left else spec.right_serde
        value = serde.serialize(shared.name, record.value) or b""
        side = b"\x01" if spec.is_left else b"\x00"
        shared.add(self._key(record.key, record.timestamp, left=spec.is_left), side + value)

    def _emit_unmatched(self, shared: ListStore, record: Record[Any, Any]) -> None:
        """Forward the records of both sides whose window has closed without a match."""
        clock, windows = self._clock, self._spec.windows
        if clock.min_ms + self._after_ms + windows.grace_ms >= clock.stream_time_ms:
            return
        now_ms = self.context.current_system_time_ms()
        if now_ms < clock.next_emit_ms:
            return
        clock.next_emit_ms = now_ms + self._interval_ms
        clock.min_ms = MAX_TIMESTAMP
        left_open = right_open = False
        previous: bytes | None = None
        for key, value in shared.all():
            time, is_left = int.from_bytes(key[:8]), key[8] == 1
            clock.min_ms = time
            if left_open and right_open:
                break
            look_ahead = windows.after_ms if is_left else windows.before_ms
            if time + look_ahead + windows.grace_ms >= clock.stream_time_ms:
                left_open, right_open = left_open or is_left, right_open or not is_left
                continue
            self._forward_unmatched(shared.name, record, (key, value))
            if previous is not None and previous != key:
                shared.delete(previous)
            previous = key
        if previous is not None:
            shared.delete(previous)

    def _forward_unmatched(
        self, store: str, record: Record[Any, Any], entry: tuple[bytes, bytes]
    ) -> None:
        spec, (raw, data) = self._spec, entry
        key = spec.key_serde.deserialize(store, raw[9:])
        if raw[8] == 1:
            value = spec.joiner(key, spec.left_serde.deserialize(store, data[1:]), None)
        else:
            value = spec.joiner(key, None, spec.right_serde.deserialize(store, data[1:]))
        self.context.forward(Record(key, value, int.from_bytes(raw[:8]), record.headers))


class SelfJoin(Processor):
    """A stream joined with itself through one store."""

    def __init__(self, store_name: str, windows: JoinWindows, joiner: Joiner) -> None:
        self._store_name = store_name
        self._windows = windows
        self._retention_ms = windows.size_ms + windows.grace_ms
        self._joiner = joiner
        self._stream_time_ms = -1

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self._store = context.state_store(self._store_name)

    def process(self, record: Record[Any, Any]) -> None:
        key, value, timestamp = record.key, record.value, record.timestamp
        if key is None or value is None:
            self.context.runtime.dropped += 1
            return
        windows, joiner = self._windows, self._joiner
        self._stream_time_ms = max(self._stream_time_ms, timestamp)
        itself = record.with_value(joiner(key, value, value))
        emits_itself = timestamp > self._stream_time_ms - self._retention_ms + 1
        low, high = max(0, timestamp - windows.before_ms), max(0, timestamp + windows.after_ms)
        for time, (other, _) in self._store.fetch(key, low, high):
            self._send(record, joiner(key, value, other), time)
        low, high = max(0, timestamp - windows.after_ms), max(0, timestamp + windows.before_ms)
        for time, (other, _) in self._store.fetch(key, low, high):
            if time > timestamp and emits_itself:
                emits_itself = False
                self.context.forward(itself)
            self._send(record, joiner(key, other, value), time)
        if emits_itself:
            self.context.forward(itself)

    def _send(self, record: Record[Any, Any], value: Any, time: int) -> None:
        timestamp = max(record.timestamp, time)
        self.context.forward(Record(record.key, value, timestamp, record.headers))


@dataclass(frozen=True, slots=True, kw_only=True)
class TableJoinSpec:
    """A join of a stream with a table or a global table."""

    view: View
    joiner: Joiner
    left: bool
    #: The table's key for a record; joins with a table use the record's own.
    key: Callable[[Any, Any], Any]
    #: With a grace period records wait in this buffer.
    buffer_name: str | None = None


class StreamTableJoin(Processor):
    """Joins each record of a stream with the row of a table."""

    def __init__(self, spec: TableJoinSpec) -> None:
        self._spec = spec
        self._observed_ms = -1

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self._table: Getter = self._spec.view.bind(context)
        name = self._spec.buffer_name
        self._buffer = None if name is None else context.state_store(name)

    def process(self, record: Record[Any, Any]) -> None:
        spec, runtime = self._spec, self.context.runtime
        self._observed_ms = max(self._observed_ms, record.timestamp)
        if self._is_dropped(record):
            runtime.dropped += 1
            return
        buffer, where = self._buffer, runtime.record_context
        if buffer is None or not buffer.put(self._observed_ms, record, where):
            self._join(spec, record)
        else:
            for each, context in buffer.due():
                runtime.record_context = context
                self._join(spec, each)
            runtime.record_context = where

    def _is_dropped(self, record: Record[Any, Any]) -> bool:
        spec = self._spec
        if record.value is None:
            return True
        # A left join has a result without a key, too.
        return not spec.left and spec.key(record.key, record.value) is None

    def _join(self, spec: TableJoinSpec, record: Record[Any, Any]) -> None:
        key = spec.key(record.key, record.value)
        found = None
        if key is not None:
            table = self._table
            found = table.get_as_of(key, record.timestamp) if table.is_versioned else table.get(key)
        if found is None and not spec.left:
            return
        value = None if found is None else found.value
        self.context.forward(record.with_value(spec.joiner(record.key, record.value, value)))
