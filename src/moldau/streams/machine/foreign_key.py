"""Joins of a table with the rows of another that its values point to.

The left table sends a subscription to the partition of the foreign key; the right table answers it
at once and at each change of its row; the left table takes an answer only if its row is still the
one that was sent, which a hash of the value shows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moldau.streams.machine.context import Processor, ProcessorContext
from moldau.streams.machine.getters import TableSupplier, View
from moldau.streams.machine.murmur3 import hash128
from moldau.streams.records import Change, Record
from moldau.streams.serdes import Serde
from moldau.streams.stores.formats import (
    Subscription,
    read_subscription_key,
    read_subscription_value,
    subscription_key,
    subscription_value,
)

DELETE_SILENTLY, DELETE, ANSWER_ALWAYS, ANSWER_IF_FOUND = range(4)


class SubscriptionSend(TableSupplier):
    """An update of the left table becomes subscriptions of its old and new foreign keys."""

    def __init__(
        self,
        foreign_key: Callable[[Any, Any], Any],
        *,
        primary_serde: Serde[Any],
        foreign_serde: Serde[Any],
        value_serde: Serde[Any],
        left: bool,
    ) -> None:
        super().__init__()
        self.foreign_key = foreign_key
        self.primary_serde = primary_serde
        self.foreign_serde = foreign_serde
        self.value_serde = value_serde
        self.left = left

    def __call__(self) -> Processor:
        return _Send(self)


class _Send(Processor):
    def __init__(self, spec: SubscriptionSend) -> None:
        self._spec = spec

    def process(self, record: Record[Any, Change[Any]]) -> None:
        spec, change = self._spec, record.value
        if spec.versioned and not change.is_latest:
            self.context.drop()
            return
        key = record.key
        old = None if change.old is None else spec.foreign_key(key, change.old)
        new = None if change.new is None else spec.foreign_key(key, change.new)
        moved = old is not None and self._bytes(old) != self._bytes(new)
        if spec.left:
            if moved:
                self._send(record, old, DELETE_SILENTLY)
            if change.old is not None or change.new is not None:
                self._send(record, new, ANSWER_ALWAYS)
        elif new is None:
            # An inner join has no result without a foreign key: one that was there is deleted.
            if change.new is not None:
                self.context.drop()
            if old is not None:
                self._send(record, old, DELETE)
        else:
            if moved:
                self._send(record, old, DELETE_SILENTLY)
            self._send(record, new, ANSWER_ALWAYS if moved else ANSWER_IF_FOUND)

    def _bytes(self, key: Any) -> bytes | None:
        return self._spec.foreign_serde.serialize(self.context.name, key)

    def _send(self, record: Record[Any, Change[Any]], key: Any, instruction: int) -> None:
        spec, new = self._spec, record.value.new
        data = spec.value_serde.serialize(self.context.name, new)
        primary = spec.primary_serde.serialize(self.context.name, record.key) or b""
        partition = self.context.record_context.partition
        found = None if data is None else hash128(data)
        value = Subscription(found, instruction, primary, max(0, partition))
        self.context.forward(Record(key, value, record.timestamp, record.headers))


class SubscriptionReceive(Processor):
    """Keeps subscriptions in a store, by foreign and primary key."""

    def __init__(self, store_name: str, foreign_serde: Serde[Any]) -> None:
        self._store_name = store_name
        self._foreign_serde = foreign_serde

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self._store = context.state_store(self._store_name)

    def process(self, record: Record[Any, Subscription]) -> None:
        value = record.value
        if record.key is None:
            if value.instruction != ANSWER_ALWAYS:
                self.context.drop()
                return
        else:
            foreign = self._foreign_serde.serialize(self._store_name, record.key) or b""
            key = subscription_key(foreign, value.primary_key)
            deletes = value.instruction in (DELETE, DELETE_SILENTLY)
            data = None if deletes else subscription_value(value)
            self._store.put(key, data, record.timestamp)
        self.context.forward(record)


class SubscriptionJoin(Processor):
    """Answers a subscription with the row of the right table."""

    def __init__(self, right: View, primary_serde: Serde[Any]) -> None:
        self._view = right
        self._primary_serde = primary_serde

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self._right = self._view.bind(context)

    def process(self, record: Record[Any, Subscription]) -> None:
        value = record.value
        found = None if record.key is None else self._right.get(record.key)
        timestamp = record.timestamp if found is None else max(record.timestamp, found.timestamp)
        if value.instruction == DELETE_SILENTLY:
            return
        if value.instruction == ANSWER_IF_FOUND and found is None:
            return
        row = None if found is None or value.instruction == DELETE else found.value
        key = self._primary_serde.deserialize(self.context.name, value.primary_key)
        answer = value.hash, row, value.primary_partition
        self.context.forward(Record(key, answer, timestamp, record.headers))


class ForeignTable(TableSupplier):
    """A change of a row of the right table answers all its subscriptions."""

    def __init__(
        self, store_name: str, *, primary_serde: Serde[Any], foreign_serde: Serde[Any]
    ) -> None:
        super().__init__()
        self.store_name = store_name
        self.primary_serde = primary_serde
        self.foreign_serde = foreign_serde

    def __call__(self) -> Processor:
        return _ForeignTable(self)


class _ForeignTable(Processor):
    def __init__(self, spec: ForeignTable) -> None:
        self._spec = spec

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self._store = context.state_store(self._spec.store_name)

    def process(self, record: Record[Any, Change[Any]]) -> None:
        spec = self._spec
        if record.key is None or (spec.versioned and not record.value.is_latest):
            self.context.drop()
            return
        name = spec.store_name
        prefix = subscription_key(spec.foreign_serde.serialize(name, record.key) or b"", b"")
        for raw, found in list(self._store.prefix_scan(prefix)):
            _, primary = read_subscription_key(raw)
            value = read_subscription_value(found.value)
            key = spec.primary_serde.deserialize(name, primary)
            answer = value.hash, record.value.new, value.primary_partition
            self.context.forward(Record(key, answer, record.timestamp, record.headers))


class ResponseJoin(Processor):
    """Joins an answer with the row of the left table, if it is still the same row."""

    def __init__(
        self,
        left_table: View,
        value_serde: Serde[Any],
        joiner: Callable[[Any, Any], Any],
        *,
        left: bool,
    ) -> None:
        self._view = left_table
        self._value_serde = value_serde
        self._joiner = joiner
        self._left = left

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self._table = self._view.bind(context)

    def process(self, record: Record[Any, tuple[bytes | None, Any]]) -> None:
        sent, right = record.value
        found = self._table.get(record.key)
        row = None if found is None else found.value
        data = self._value_serde.serialize(self.context.name, row)
        if sent != (None if data is None else hash128(data)):
            self.context.drop()
            return
        result = None
        if row is not None and (right is not None or self._left):
            result = self._joiner(row, right)
        self.context.forward(record.with_value(result))
