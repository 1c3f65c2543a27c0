# cython: annotation_typing=False
"""Record caches: of several updates of a key between commits, only the last is passed on.

A cached store is written at once, so that reads see the newest value. What waits is the changelog
record and what is forwarded to the next steps: until a commit, or until the cache is full. They are
then written in the order of the last updates, each under the context of the record that made it,
with the value that was there before the first update as the old one.

The file is plain Python, and with `_cache.pxd` beside it also the source of a compiled module with
the same names and results.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moldau.streams._records import RecordContext, TaskCore

#: What a cached entry takes beside its bytes: Kafka Streams' estimate for a node of its list and
#: for the context without topic and headers.
_OVERHEAD = 24 + 1 + 20


class RecordCache:
    """The bytes that the caches of a thread's tasks may take together."""

    __slots__ = ("bytes_max", "size_bytes")

    def __init__(self, bytes_max: int) -> None:
        self.bytes_max = bytes_max
        self.size_bytes = 0


class StoreCache:
    """The updates of one store that wait."""

    __slots__ = ("_runtime", "_shared", "_size_bytes", "_waiting", "forwards", "write")

    def __init__(self, shared: RecordCache, runtime: TaskCore) -> None:
        self._shared = shared
        self._runtime = runtime
        self._size_bytes = 0
        #: The old value, the new one and the context of each key.
        self._waiting: dict[Any, tuple[bytes | None, bytes | None, RecordContext]] = {}
        #: Whether someone listens to the store: a key that came and went is then not passed on.
        self.forwards = False
        #: Set by the store: writes the changelog record of a key and forwards its change.
        self.write: Callable[[Any, bytes | None, bytes | None], None] = _no_store

    def has(self, key: Any) -> bool:
        """Whether an update of a key waits."""
        return key in self._waiting

    def stored(self, key: Any, found: bytes | None) -> bytes | None:
        """What was there before the updates that wait; `found` if none of this key does."""
        waiting = self._waiting.get(key)
        return found if waiting is None else waiting[0]

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, key: Any, size: int, old: bytes | None, new: bytes | None) -> None:
        """An update waits. `old` counts only if none of this key waits already."""
        context = self._runtime.record_context
        before = self._waiting.pop(key, None)
        if before is None:
            grown = size + _OVERHEAD + len(context.topic)
        else:
            old, grown = before[0], 0
        if new is not None:
            grown += len(new)
        if before is not None and before[1] is not None:
            grown -= len(before[1])
        self._waiting[key] = old, new, context
        self._size_bytes += grown
        self._shared.size_bytes += grown
        if self._shared.size_bytes > self._shared.bytes_max:
            self.flush()

    def discard(self) -> None:
        """Forget what waits, and free its room: the task is closed without a commit."""
        self._waiting = {}
        self._shared.size_bytes -= self._size_bytes
        self._size_bytes = 0

    def flush(self) -> None:
        """Pass on what waits."""
        waiting, self._waiting = self._waiting, {}
        self._shared.size_bytes -= self._size_bytes
        self._size_bytes = 0
        runtime = self._runtime
        current = runtime.record_context
        try:
            for key, (old, new, context) in waiting.items():
                # A key that came and went again between two commits never was there.
                if old is not None or new is not None or not self.forwards:
                    runtime.record_context = context
                    self.write(key, old, new)
        finally:
            runtime.record_context = current


def _no_store(key: Any, old: bytes | None, new: bytes | None) -> None:
    raise NotImplementedError("a cache belongs to a store")
