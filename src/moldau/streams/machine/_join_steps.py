# cython: annotation_typing=False
"""The steps of joins that read a stream record by record.

The file is plain Python, and with `_join_steps.pxd` beside it also the source of a compiled module
with the same names and results. What a join consists of (its spec) is in `stream_joins.py`.
"""

from __future__ import annotations

from typing import Any

from moldau.streams._records import Record, new_record
from moldau.streams.machine._nodes import Processor, ProcessorContext
from moldau.streams.records import MAX_TIMESTAMP
from moldau.streams.stores._tables import TimestampedKeyValueStore
from moldau.streams.stores._windows import WindowStore
from moldau.streams.stores.formats import join_side_key

#: Kafka Streams' internal setting of how often unmatched records are looked for.
EMIT_INTERVAL = "__emit.interval.ms.kstreams.outer.join.spurious.results.fix__"


class JoinWindow(Processor):
    """Keeps a stream's records for the other side of the join."""

    def __init__(self, store_name: str) -> None:
        self._store_name = store_name
        self._store: Any = None

    def init(self, context: ProcessorContext) -> None:
        """Get the store."""
        self.context = context
        self._store = context.state_store(self._store_name)

    def process(self, record: Record[Any, Any]) -> None:
        # First the join: a self join must not find the record itself twice.
        self.context.forward(record)
        if record.key is not None:
            self._store.put(record.key, record.value, record.timestamp)


class JoinClock:
    """The stream time that both sides of a join share."""

    __slots__ = ("min_ms", "next_emit_ms", "stream_time_ms")

    def __init__(self) -> None:
        self.stream_time_ms = -1
        self.min_ms = MAX_TIMESTAMP
        self.next_emit_ms = 0


class StreamJoin(Processor):
    """One side of a join of two streams."""

    def __init__(self, spec: Any) -> None:
        self._spec = spec
        self._is_left = spec.is_left
        self._joiner = spec.joiner
        windows = spec.windows
        self._before_ms = windows.before_ms if spec.is_left else windows.after_ms
        self._after_ms = windows.after_ms if spec.is_left else windows.before_ms
        self._other: Any = None
        self._shared: Any = None
        self._clock: Any = None
        self._interval_ms = 0

    def init(self, context: ProcessorContext) -> None:
        """Get the stores and the clock that both sides share."""
        self.context = context
        spec = self._spec
        other = context.state_store(spec.other_store)
        if not isinstance(other, WindowStore):
            raise TypeError(f"store {spec.other_store} is not a window store: {other!r}")
        self._other = other
        if spec.shared_store is not None:
            self._shared = context.state_store(spec.shared_store)
        self._clock = spec.clock.of(context)
        self._interval_ms = int(context.runtime.config.get(EMIT_INTERVAL, 1000))

    def _join(self, key: Any, this: Any, other: Any) -> Any:
        if self._is_left:
            return self._joiner(key, this, other)
        return self._joiner(key, other, this)

    def process(self, record: Record[Any, Any]) -> None:
        clock, timestamp, spec = self._clock, record.timestamp, self._spec
        if timestamp > clock.stream_time_ms:
            clock.stream_time_ms = timestamp
        if record.key is None and record.value is not None and spec.outer:
            self.context.forward(record.with_value(self._join(None, record.value, None)))
            return
        if record.key is None or record.value is None:
            self.context.drop()
            return
        if self._shared is not None and timestamp == clock.stream_time_ms:
            self._emit_unmatched(self._shared, record)
        low, high = max(0, timestamp - self._before_ms), max(0, timestamp + self._after_ms)
        matches = self._other.fetch(record.key, low, high)
        for time, (value, _) in matches:
            if self._shared is not None:
                self._shared.delete(self._key(record.key, time, left=not self._is_left))
            joined = self._join(record.key, record.value, value)
            latest = timestamp if timestamp > time else time
            self.context.forward(new_record(record.key, joined, latest, record.headers))
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

    def _keep(self, shared: Any, record: Record[Any, Any]) -> None:
        spec = self._spec
        serde = spec.left_serde if spec.is_left else spec.right_serde
        value = serde.serialize(shared.name, record.value) or b""
        side = b"\x01" if spec.is_left else b"\x00"
        shared.add(self._key(record.key, record.timestamp, left=spec.is_left), side + value)

    def _emit_unmatched(self, shared: Any, record: Record[Any, Any]) -> None:
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


def own_key(key: Any, value: Any) -> Any:
    """The table's key for a record is the record's own."""
    return key


class StreamTableJoin(Processor):
    """Joins each record of a stream with the row of a table."""

    def __init__(self, spec: Any) -> None:
        self._spec = spec
        self._joiner = spec.joiner
        self._key = None if spec.key is own_key else spec.key
        self._left = spec.left
        self._table: Any = None
        #: The same, if it is a plain store, where it can be reached faster.
        self._store: Any = None
        self._buffer: Any = None

    def init(self, context: ProcessorContext) -> None:
        """Get the table and the buffer."""
        self.context = context
        self._table = self._spec.view.bind(context)
        if isinstance(self._table, TimestampedKeyValueStore):
            self._store = self._table
        name = self._spec.buffer_name
        self._buffer = None if name is None else context.state_store(name)

    def process(self, record: Record[Any, Any]) -> None:
        if record.value is None:
            self.context.drop()
            return
        key = record.key if self._key is None else self._key(record.key, record.value)
        # A left join has a result without a key, too.
        if key is None and not self._left:
            self.context.drop()
            return
        if self._buffer is None:
            self._join(key, record)
        else:
            self._process_buffered(key, record)

    def _process_buffered(self, key: Any, record: Record[Any, Any]) -> None:
        core = self.context.runtime.core
        where = core.record_context
        if not self._buffer.put(record, where):
            self._join(key, record)
            return
        for each, context in self._buffer.due():
            core.record_context = context
            found = each.key if self._key is None else self._key(each.key, each.value)
            self._join(found, each)
        core.record_context = where

    def _join(self, key: Any, record: Record[Any, Any]) -> None:
        value: Any = None
        if key is not None:
            if self._store is not None:
                kept = self._store.find(self._store.raw_key(key))
                value = None if kept is None else self._store.value_of(kept)
            else:
                value = self._value(key, record.timestamp)
        if value is None and not self._left:
            return
        self.context.forward(record.with_value(self._joiner(record.key, record.value, value)))

    def _value(self, key: Any, timestamp: int) -> Any:
        table = self._table
        found = table.get_as_of(key, timestamp) if table.is_versioned else table.get(key)
        return None if found is None else found.value
