"""Records that wait for their time: of `suppress`, and of a stream-table join with grace."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from typing import Any

from moldau.streams.records import Change, Record, RecordContext
from moldau.streams.serdes import Serde

_NEVER = 2**63 - 1


def _context_size(context: RecordContext) -> int:
    headers = sum(len(name) + len(value or b"") for name, value in context.headers)
    return 8 + 8 + len(context.topic) + 4 + headers


class _Held:
    __slots__ = ("context", "new", "old", "prior", "record")

    def __init__(
        self,
        record: Record[Any, Change[Any]],
        context: RecordContext,
        parts: tuple[bytes | None, bytes | None, bytes | None],
    ) -> None:
        self.record = record
        self.context = context
        self.prior, self.old, self.new = parts

    @property
    def size(self) -> int:
        old = 0 if self.old == self.prior else len(self.old or b"")
        return len(self.prior or b"") + old + len(self.new or b"") + _context_size(self.context)


class SuppressBuffer:
    """The newest update of each key, in the order of the time at which the key was first held.

    Values are kept as objects too: the buffer is emptied before anything else can change them.
    """

    def __init__(self, name: str, key_serde: Serde[Any], value_serde: Serde[Any]) -> None:
        self.name = name
        self._keys = key_serde
        self._values = value_serde
        self._order: list[tuple[int, bytes]] = []
        self._time_of: dict[bytes, int] = {}
        self._held: dict[bytes, _Held] = {}
        self.size_bytes = 0

    def __len__(self) -> int:
        return len(self._order)

    @property
    def min_timestamp(self) -> int:
        return self._order[0][0] if self._order else _NEVER

    def put(self, time: int, record: Record[Any, Change[Any]], context: RecordContext) -> None:
        """Hold an update; a later one of the same key takes its place in the order."""
        key = self._keys.serialize(self.name, record.key) or b""
        old = self._values.serialize(self.name, record.value.old)
        new = self._values.serialize(self.name, record.value.new)
        before = self._held.get(key)
        if before is None:
            self._time_of[key] = time
            insort(self._order, (time, key))
            prior = old
            self.size_bytes += 8 + len(key)
        else:
            prior = before.prior
            self.size_bytes -= before.size
        held = _Held(record, context, (prior, old, new))
        self._held[key] = held
        self.size_bytes += held.size

    def pop(self) -> tuple[Record[Any, Change[Any]], RecordContext]:
        """Remove and return the update that has waited longest."""
        _, key = self._order.pop(0)
        del self._time_of[key]
        held = self._held.pop(key)
        self.size_bytes -= 8 + len(key) + held.size
        return held.record, held.context

    def prior(self, key: Any) -> tuple[bool, Any]:
        """Whether a key is held back, and the value that was last emitted for it."""
        held = self._held.get(self._keys.serialize(self.name, key) or b"")
        return held is not None, self._values.deserialize(self.name, held.prior if held else None)

    def flush(self) -> None:
        """Nothing is held back."""

    def close(self) -> None:
        """Nothing to close."""

    def restore(self, key: bytes, value: bytes | None, timestamp: int) -> None:
        """Buffers have no changelog yet."""


class JoinBuffer:
    """The records of a stream that wait until the table is known as of their time."""

    def __init__(self, name: str, key_serde: Serde[Any], grace_ms: int) -> None:
        self.name = name
        self._keys = key_serde
        self._grace_ms = grace_ms
        self._observed_ms = -1
        self._sequence = 0
        self._order: list[tuple[int, bytes, int]] = []
        self._held: dict[tuple[int, bytes, int], tuple[Record[Any, Any], RecordContext]] = {}

    def put(self, observed_ms: int, record: Record[Any, Any], context: RecordContext) -> bool:
        """Hold a record; false when it is late, and has to be joined at once."""
        self._observed_ms = max(self._observed_ms, observed_ms)
        if self._observed_ms - self._grace_ms > record.timestamp:
            return False
        self._sequence += 1
        key = self._keys.serialize(self.name, record.key) or b""
        place = record.timestamp, key, self._sequence
        insort(self._order, place)
        self._held[place] = record, context
        return True

    def due(self) -> Iterator[tuple[Record[Any, Any], RecordContext]]:
        """Remove and return the records whose grace is over, the earliest first."""
        limit = bisect_left(self._order, (self._observed_ms - self._grace_ms + 1,))
        ready, self._order = self._order[:limit], self._order[limit:]
        for place in ready:
            yield self._held.pop(place)

    def flush(self) -> None:
        """Nothing is held back."""

    def close(self) -> None:
        """Nothing to close."""

    def restore(self, key: bytes, value: bytes | None, timestamp: int) -> None:
        """Buffers have no changelog yet."""
