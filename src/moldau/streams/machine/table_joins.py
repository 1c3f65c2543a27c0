"""Joins of two tables by their keys, and `suppress`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from moldau.streams.errors import StreamsError
from moldau.streams.machine.context import Processor, ProcessorContext
from moldau.streams.machine.getters import (
    Found,
    Materializer,
    NotVersioned,
    TableSupplier,
    View,
    store_view,
)
from moldau.streams.records import Change, Record, ValueAndTimestamp, Windowed
from moldau.streams.stores.buffers import SuppressBuffer
from moldau.streams.windows import Suppressed

#: This side's value, the other side's.
SideJoiner = Callable[[Any, Any], Any]
#: inner; left and right: the two sides of a left join; outer.
JoinKind = Literal["inner", "left", "right", "outer"]


class TableJoinSide(TableSupplier):
    """One side of a join: an update of `this` table meets the row of the `other`."""

    def __init__(
        self, this: TableSupplier, other: TableSupplier, joiner: SideJoiner, kind: JoinKind
    ) -> None:
        super().__init__()
        self.this = this
        self.other = other
        self.joiner = joiner
        self.kind = kind

    def __call__(self) -> Processor:
        return _TableJoin(self, self.other.view())

    def enable_sending_old_values(self, force: bool) -> bool:
        self.this.enable_sending_old_values(True)
        self.other.enable_sending_old_values(True)
        self.send_old = True
        return True

    def joins(self, this: Any, other: Any) -> bool:
        """Whether two rows, of which either may be missing, have a result."""
        if self.kind == "inner":
            return this is not None and other is not None
        if self.kind == "left":
            return this is not None
        if self.kind == "right":
            return other is not None
        return this is not None or other is not None

    def view(self) -> View:
        this, other = self.this.view(), self.other.view()
        names = dict.fromkeys(this.store_names + other.store_names)

        def bind(context: ProcessorContext) -> NotVersioned:
            mine, theirs = this.bind(context), other.bind(context)

            def get(key: Any) -> Found:
                left, right = mine.get(key), theirs.get(key)
                a = None if left is None else left.value
                b = None if right is None else right.value
                if not self.joins(a, b):
                    return None
                value = self.joiner(a, b)
                times = [found.timestamp for found in (left, right) if found is not None]
                return None if value is None else ValueAndTimestamp(value, max(times))

            return NotVersioned(get)

        return View(tuple(names), bind)


class _TableJoin(Processor):
    def __init__(self, side: TableJoinSide, other: View) -> None:
        self._side = side
        self._view = other

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self._other = self._view.bind(context)

    def process(self, record: Record[Any, Change[Any]]) -> None:
        side, change = self._side, record.value
        if record.key is None:
            self.context.drop()
            return
        if side.versioned and not change.is_latest:
            self.context.drop()
            return
        found = self._other.get(record.key)
        other = None if found is None else found.value
        if other is None and (
            side.kind in ("inner", "right") or (change.new is None and change.old is None)
        ):
            return
        timestamp = record.timestamp if found is None else max(record.timestamp, found.timestamp)
        new = side.joiner(change.new, other) if side.joins(change.new, other) else None
        old = None
        if side.send_old and side.joins(change.old, other):
            old = side.joiner(change.old, other)
        result = Change(new, old, change.is_latest)
        self.context.forward(Record(record.key, result, timestamp, record.headers))


class TableJoinMerge(TableSupplier):
    """The result of both sides, with a store where it is materialized."""

    def __init__(self, left: TableJoinSide, right: TableJoinSide, store_name: str | None) -> None:
        super().__init__()
        self._left = left
        self._right = right
        self.store_name = store_name

    def __call__(self) -> Processor:
        return _Merge(self)

    def enable_sending_old_values(self, force: bool) -> bool:
        self._left.enable_sending_old_values(True)
        self._right.enable_sending_old_values(True)
        self.send_old = True
        return True

    def view(self) -> View:
        if self.store_name is not None:
            return store_view(self.store_name)
        return self._left.view()


class _Merge(Processor):
    def __init__(self, merge: TableJoinMerge) -> None:
        self._merge = merge

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        name, send_old = self._merge.store_name, self._merge.send_old
        self._table = None if name is None else Materializer(context, name, send_old)

    def process(self, record: Record[Any, Change[Any]]) -> None:
        change = record.value
        if self._table is not None:
            self._table.update(record, new=change.new, old=change.old, timestamp=record.timestamp)
        elif self._merge.send_old:
            self.context.forward(record)
        else:
            self.context.forward(record.with_value(Change(change.new, None, change.is_latest)))


class SuppressTable(TableSupplier):
    """Holds a table's updates back until their time has come."""

    def __init__(
        self, parent: TableSupplier, suppressed: Suppressed, store_name: str, wait_ms: int
    ) -> None:
        super().__init__()
        self.parent = parent
        self.suppressed = suppressed
        self.store_name = store_name
        self.wait_ms = wait_ms

    def __call__(self) -> Processor:
        return _Suppress(self)

    def enable_sending_old_values(self, force: bool) -> bool:
        return self.parent.enable_sending_old_values(force)

    def view(self) -> View:
        parent = self.parent.view()

        def bind(context: ProcessorContext) -> NotVersioned:
            rows, buffer = parent.bind(context), context.state_store(self.store_name)

            def get(key: Any) -> Found:
                held, prior = buffer.prior(key)
                if not held:
                    return rows.get(key)
                return None if prior is None else ValueAndTimestamp(prior, -1)

            return NotVersioned(get)

        return View((self.store_name, *parent.store_names), bind)


class _Suppress(Processor):
    def __init__(self, suppress: SuppressTable) -> None:
        self._suppress = suppress
        self._limits = suppress.suppressed
        self._final = suppress.suppressed.until == "window_closes"
        self._observed_ms = -1

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self._buffer: SuppressBuffer = context.state_store(self._suppress.store_name)

    def process(self, record: Record[Windowed[Any], Change[Any]]) -> None:
        buffer = self._buffer
        self._observed_ms = max(self._observed_ms, record.timestamp)
        context = self.context.runtime.core.record_context
        time = record.key.window.end if self._final else record.timestamp
        buffer.put(time, record, context.at(record.timestamp, context.headers))
        while buffer.min_timestamp <= self._observed_ms - self._suppress.wait_ms:
            self._emit()
        if not self._over_capacity():
            return
        if self._limits.shut_down_when_full:
            raise StreamsError(
                f"{self.context.name} buffer exceeded its max capacity. Currently "
                f"[{len(buffer)}/{self._limits.records_max}] records and "
                f"[{buffer.size_bytes}/{self._limits.bytes_max}] bytes."
            )
        while self._over_capacity():
            self._emit()

    def _over_capacity(self) -> bool:
        limits = self._limits
        return len(self._buffer) > limits.records_max or self._buffer.size_bytes > limits.bytes_max

    def _emit(self) -> None:
        record, context = self._buffer.first()
        if record.value.new is not None or not self._final:
            runtime = self.context.runtime
            before, runtime.core.record_context = runtime.core.record_context, context
            # Steps that follow and look into this table find what was emitted before.
            self.context.forward(record)
            runtime.core.record_context = before
        self._buffer.remove_first()
