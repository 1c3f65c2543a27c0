"""What is measured inside a task: calls of stores, and what topics give and take.

At INFO only topics are counted, in the hosts' own loops. At DEBUG the place where a store keeps its
entries is wrapped: compiled steps run as they are. Nodes count by themselves (`Task.counts`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from moldau.streams.machine.definitions import Definition, ProcessorDefinition
from moldau.streams.records import TaskCore
from moldau.streams.stores._cache import RecordCache, StoreCache
from moldau.streams.stores._maps import OrderedMap
from moldau.streams.stores.base import Drop, Entry, SegmentedMap, Storage
from moldau.streams.stores.buffers import SuppressBuffer


class StoreKind(Enum):
    """By which tag a store is known, behind `in-memory-` or `rocksdb-`."""

    KEY_VALUE = "state-id"
    WINDOW = "window-state-id"
    SESSION = "session-state-id"
    BUFFER = "suppression-state-id"


@dataclass(slots=True)
class Calls:
    """Calls since they were last taken."""

    count: int = 0
    total_ns: int = 0
    max_ns: int = 0

    def add(self, spent_ns: int) -> None:
        self.count += 1
        self.total_ns += spent_ns
        self.max_ns = max(self.max_ns, spent_ns)


@dataclass(slots=True)
class StoreMeter:
    """What is done to one store."""

    name: str
    kind: StoreKind = StoreKind.KEY_VALUE
    is_persistent: bool = False
    is_cached: bool = False
    size: Callable[[], float] | None = None
    held: Callable[[], tuple[int, int]] = lambda: (0, 0)
    calls: dict[str, Calls] = field(default_factory=dict)

    @property
    def tag(self) -> str:
        return f"{'rocksdb' if self.is_persistent else 'in-memory'}-{self.kind.value}"

    def add(self, operation: str, spent_ns: int) -> None:
        found = self.calls.get(operation)
        if found is None:
            found = self.calls[operation] = Calls()
        found.add(spent_ns)

    def take(self) -> dict[str, Calls]:
        taken, self.calls = self.calls, {}
        return taken


class TaskMeter:
    """Of one task. `is_debug` decides what is wrapped."""

    def __init__(self, *, is_debug: bool, topic_name: Callable[[str], str] = str) -> None:
        self.is_debug = is_debug
        self.topic_name = topic_name
        #: Records and bytes, by topic.
        self.consumed: dict[str, list[int]] = {}
        self.produced: dict[str, list[int]] = {}
        self.stores: dict[str, StoreMeter] = {}
        self._shared: RecordCache | None = None

    def is_buffer(self, node: Definition) -> bool:
        """Whether a node holds records back."""
        return isinstance(node, ProcessorDefinition) and any(
            self.stores[store].kind is StoreKind.BUFFER
            for store in node.stores
            if store in self.stores
        )

    # Stores.

    def storage(self, name: str, storage: Storage) -> Storage:
        """Where a store keeps its entries, measured at DEBUG."""
        meter = self.stores.setdefault(name, StoreMeter(name))
        return _MeasuredStorage(storage, meter) if self.is_debug else storage

    def cache(self, name: str, shared: RecordCache, core: TaskCore) -> StoreCache:
        """The cache of a store, measured at DEBUG."""
        meter = self.stores.setdefault(name, StoreMeter(name))
        meter.is_cached = True
        cache = _MeasuredCache(shared, core, meter) if self.is_debug else StoreCache(shared, core)
        self._shared = shared
        return cache

    def cache_bytes(self) -> int:
        """What waits in the caches of the thread, which its tasks share."""
        return 0 if self._shared is None else self._shared.size_bytes

    def created(self, name: str, store: Any, *, persistent: bool) -> None:
        """A store is there: its kind is known."""
        meter = self.stores.setdefault(name, StoreMeter(name))
        meter.is_persistent = persistent
        if isinstance(store, SuppressBuffer):
            meter.kind = StoreKind.BUFFER
            meter.held = lambda: (len(store), store.size_bytes)
        elif hasattr(store, "approximate_num_entries"):
            meter.size = lambda: float(store.approximate_num_entries())
        else:
            meter.kind = _kind_by_windows(store, meter.kind)

    def run(self, name: str, operation: str, work: Callable[[], None]) -> None:
        """Do something to a store as a whole."""
        if not self.is_debug or name not in self.stores:
            work()
            return
        started = time.monotonic_ns()
        work()
        self.stores[name].add(operation, time.monotonic_ns() - started)


class _MeasuredCache(StoreCache):
    """Notes whether an update finds one of its key that waits."""

    def __init__(self, shared: RecordCache, runtime: TaskCore, meter: StoreMeter) -> None:
        super().__init__(shared, runtime)
        self._meter = meter

    def put(self, key: Any, size: int, old: bytes | None, new: bytes | None) -> None:
        self._meter.add("hit-ratio", int(self.has(key)))
        super().put(key, size, old, new)


class _MeasuredStorage:
    """`stores.base.Storage` whose maps are measured."""

    def __init__(self, inner: Storage, meter: StoreMeter) -> None:
        self._inner = inner
        self._meter = meter

    @property
    def observed_ms(self) -> int:
        return self._inner.observed_ms

    @observed_ms.setter
    def observed_ms(self, value: int) -> None:
        self._inner.observed_ms = value

    @property
    def is_used(self) -> bool:
        return self._inner.is_used

    def map(self) -> OrderedMap:
        return _MeasuredMap(self._inner.map(), self._meter)

    def segments(self, retention_ms: int, drop: Drop) -> SegmentedMap:
        return _MeasuredSegments(self._inner.segments(retention_ms, drop), self._meter)


class _MeasuredMap(OrderedMap):
    def __init__(self, inner: OrderedMap, meter: StoreMeter) -> None:
        self._inner = inner
        self._meter = meter

    def get(self, key: bytes) -> bytes | None:
        started = time.monotonic_ns()
        found = self._inner.get(key)
        self._meter.add("get", time.monotonic_ns() - started)
        return found

    def put(self, key: bytes, value: bytes | None) -> None:
        started = time.monotonic_ns()
        self._inner.put(key, value)
        self._meter.add("delete" if value is None else "put", time.monotonic_ns() - started)

    def range(self, start: bytes = b"", end: bytes | None = None) -> Iterator[tuple[bytes, bytes]]:
        started = time.monotonic_ns()
        found = self._inner.range(start, end)
        operation = "range" if start or end is not None else "all"
        self._meter.add(operation, time.monotonic_ns() - started)
        return found

    def prefix(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        started = time.monotonic_ns()
        found = self._inner.prefix(prefix)
        self._meter.add("prefix-scan", time.monotonic_ns() - started)
        return found

    def __len__(self) -> int:
        return len(self._inner)


class _MeasuredSegments:
    """`stores.base.SegmentedMap`."""

    def __init__(self, inner: SegmentedMap, meter: StoreMeter) -> None:
        self._inner = inner
        self._meter = meter

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def _timed(self, operation: str, work: Callable[..., Any], *arguments: Any) -> Any:
        started = time.monotonic_ns()
        found = work(*arguments)
        self._meter.add(operation, time.monotonic_ns() - started)
        return found

    def get(self, entry: Entry) -> bytes | None:
        found: bytes | None = self._timed("fetch", self._inner.get, entry)
        return found

    def put(self, entry: Entry, value: bytes | None) -> bool:
        is_removal = value is None and self._meter.kind is StoreKind.SESSION
        kept = self._timed("remove" if is_removal else "put", self._inner.put, entry, value)
        return bool(kept)

    def of_key(self, key: bytes, low: int, high: int) -> Iterator[tuple[Entry, bytes]]:
        found: Iterator[tuple[Entry, bytes]] = self._timed(
            "fetch", self._inner.of_key, key, low, high
        )
        return found

    def between(self, low: int, high: int) -> list[tuple[Entry, bytes]]:
        found: list[tuple[Entry, bytes]] = self._timed("fetch", self._inner.between, low, high)
        return found

    def all(self) -> list[tuple[Entry, bytes]]:
        found: list[tuple[Entry, bytes]] = self._timed("fetch", self._inner.all)
        return found


def _kind_by_windows(store: Any, otherwise: StoreKind) -> StoreKind:
    # Imported here: most programs have no windows.
    from moldau.streams.stores.windowed import SessionStore, WindowStore

    if isinstance(store, SessionStore):
        return StoreKind.SESSION
    return StoreKind.WINDOW if isinstance(store, WindowStore) else otherwise
