"""Joins of a stream: with another stream, with a table, with a global table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from moldau.streams.machine._join_steps import JoinClock
from moldau.streams.machine._join_steps import JoinWindow as JoinWindow
from moldau.streams.machine._join_steps import StreamJoin as StreamJoin
from moldau.streams.machine._join_steps import StreamTableJoin as StreamTableJoin
from moldau.streams.machine.context import Processor, ProcessorContext
from moldau.streams.machine.getters import View
from moldau.streams.records import Record
from moldau.streams.serdes import Serde
from moldau.streams.windows import JoinWindows

#: Key, left value, right value.
Joiner = Callable[[Any, Any, Any], Any]



class SharedClock:
    """Gives the two processors of a join in a task the same clock, which the task keeps."""

    def of(self, context: ProcessorContext) -> JoinClock:
        clock: JoinClock = context.runtime.shared.setdefault(self, JoinClock())
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
            self.context.drop()
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
