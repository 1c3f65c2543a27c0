"""Records that wait for their time: of `suppress`, and of a stream-table join with grace."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator
from typing import Any

from moldau.streams.errors import StreamsError
from moldau.streams.records import Change, Record, RecordContext
from moldau.streams.serdes import Serde
from moldau.streams.stores.base import ChangelogRecord, Log, no_log
from moldau.streams.stores.formats import (
    BUFFER_HEADERS,
    Buffered,
    buffer_key,
    buffered_value,
    read_buffer_key,
    read_buffered_value,
)

_NEVER = 2**63 - 1
_READABLE = (b"\x03",)


def _context_size(context: RecordContext) -> int:
    headers = sum(len(name) + len(value or b"") for name, value in context.headers)
    return 8 + 8 + len(context.topic) + 4 + headers


def _size(held: Buffered) -> int:
    """An estimate of the memory that an update takes."""
    old = 0 if held.old == held.prior else len(held.old or b"")
    sizes = len(held.prior or b"") + old + len(held.new or b"")
    return sizes + _context_size(held.context)


class SuppressBuffer:
    """The newest update of each key, in the order of the time at which the key was first held.

    The changelog is written at a commit: a key that came and went in between leaves a tombstone.
    """

    def __init__(
        self,
        name: str,
        key_serde: Serde[Any],
        value_serde: Serde[Any],
        log: Log = no_log,
        topic: str | None = None,
    ) -> None:
        self.name = name
        self._topic = topic or name
        self._keys = key_serde
        self._values = value_serde
        self._log = log
        self._order: list[tuple[int, bytes]] = []
        self._held: dict[bytes, Buffered] = {}
        self._dirty: dict[bytes, None] = {}
        self.size_bytes = 0

    def __len__(self) -> int:
        return len(self._order)

    @property
    def min_timestamp(self) -> int:
        return self._order[0][0] if self._order else _NEVER

    def put(self, time: int, record: Record[Any, Change[Any]], context: RecordContext) -> None:
        """Hold an update; a later one of the same key takes its place in the order."""
        key = self._keys.serialize(self._topic, record.key) or b""
        old = self._values.serialize(self._topic, record.value.old)
        new = self._values.serialize(self._topic, record.value.new)
        before = self._held.get(key)
        if before is not None:
            time = before.time
        prior = old if before is None else before.prior
        self._set(key, Buffered(context, prior, old, new, time))
        self._dirty[key] = None

    def _set(self, key: bytes, held: Buffered) -> None:
        self._remove(key)
        insort(self._order, (held.time, key))
        self._held[key] = held
        self.size_bytes += 8 + len(key) + _size(held)

    def _remove(self, key: bytes) -> None:
        before = self._held.pop(key, None)
        if before is not None:
            del self._order[bisect_left(self._order, (before.time, key))]
            self.size_bytes -= 8 + len(key) + _size(before)

    def first(self) -> tuple[Record[Any, Change[Any]], RecordContext]:
        """The update that has waited longest."""
        _, key = self._order[0]
        held = self._held[key]
        topic, context = self._topic, held.context
        new = self._values.deserialize(topic, held.new)
        change = Change(new, self._values.deserialize(topic, held.old))
        typed = self._keys.deserialize(topic, key)
        return Record(typed, change, context.timestamp, context.headers), context

    def remove_first(self) -> None:
        """Let go of the update that has waited longest."""
        _, key = self._order[0]
        self._remove(key)
        self._dirty[key] = None

    def prior(self, key: Any) -> tuple[bool, Any]:
        """Whether a key is held back, and the value that was last emitted for it."""
        held = self._held.get(self._keys.serialize(self._topic, key) or b"")
        return held is not None, self._values.deserialize(self._topic, held.prior if held else None)

    def flush(self) -> None:
        """Write the changes since the last commit to the changelog."""
        for key in self._dirty:
            held = self._held.get(key)
            if held is None:
                self._log(key, None, None)
            else:
                self._log(key, buffered_value(held), None, BUFFER_HEADERS)
        self._dirty.clear()

    def close(self) -> None:
        """Nothing to close."""

    def restore(self, records: Iterable[ChangelogRecord]) -> None:
        for key, value, _, headers in records:
            if value is None:
                self._remove(key)
            elif headers and dict(headers).get("v") not in _READABLE:
                raise StreamsError(
                    f"the changelog of {self.name} has a record of another version: {headers}. "
                    f"Versions before 3 are of Kafka Streams before 2.4; let one that is newer "
                    f"run the application once"
                )
            else:
                self._set(key, read_buffered_value(value))


class JoinBuffer:
    """The records of a stream that wait until the table is known as of their time."""

    def __init__(
        self,
        name: str,
        key_serde: Serde[Any],
        value_serde: Serde[Any],
        grace_ms: int,
        log: Log = no_log,
        topic: str | None = None,
    ) -> None:
        self.name = name
        self._topic = topic or name
        self._keys = key_serde
        self._values = value_serde
        self._grace_ms = grace_ms
        self._log = log
        #: The newest time of a record that was held; others do not count.
        self._observed_ms = -1
        self._sequence = 0
        #: By time, key and sequence, which is also the key of the changelog.
        self._order: list[bytes] = []
        self._held: dict[bytes, Buffered] = {}

    def put(self, record: Record[Any, Any], context: RecordContext) -> bool:
        """Hold a record; false when it has to be joined at once: it is late, or has no key.

        Kafka Streams fails on a null key here. There is no row for it at any time, so waiting
        would gain nothing.
        """
        if record.key is None or self._observed_ms - self._grace_ms > record.timestamp:
            return False
        self._observed_ms = max(self._observed_ms, record.timestamp)
        self._sequence = (self._sequence + 1) & 0x7FFF_FFFF
        key = self._keys.serialize(self._topic, record.key) or b""
        value = self._values.serialize(self._topic, record.value)
        context = context.at(record.timestamp, record.headers)
        place = buffer_key(key, record.timestamp, self._sequence)
        held = Buffered(context, None, None, value, 0)
        insort(self._order, place)
        self._held[place] = held
        self._log(place, buffered_value(held), None)
        return True

    def due(self) -> Iterator[tuple[Record[Any, Any], RecordContext]]:
        """Remove and return the records whose grace is over, the earliest first."""
        limit = self._observed_ms - self._grace_ms + 1
        if limit <= 0:
            return
        count = bisect_left(self._order, buffer_key(b"", limit, 0)[:9])
        ready, self._order = self._order[:count], self._order[count:]
        for place in ready:
            held = self._held.pop(place)
            self._log(place, None, None)
            key = self._keys.deserialize(self._topic, read_buffer_key(place))
            value = self._values.deserialize(self._topic, held.new)
            context = held.context
            yield Record(key, value, context.timestamp, context.headers), context

    def flush(self) -> None:
        """Nothing is held back from the changelog."""

    def close(self) -> None:
        """Nothing to close."""

    def restore(self, records: Iterable[ChangelogRecord]) -> None:
        for key, value, _, _ in records:
            if key in self._held:
                del self._held[key], self._order[bisect_left(self._order, key)]
            if value is not None:
                held = self._held[key] = read_buffered_value(value)
                insort(self._order, key)
                self._observed_ms = max(self._observed_ms, held.context.timestamp)
                self._sequence = max(self._sequence, int.from_bytes(key[-4:]))
