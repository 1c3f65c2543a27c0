# cython: annotation_typing=False
"""The aggregate of a grouped stream by windows of a fixed size.

The file is plain Python, and with `_window_steps.pxd` beside it also the source of a compiled
module with the same names and results.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from moldau.streams._records import Record, new_change, new_record
from moldau.streams.machine._nodes import Processor, ProcessorContext
from moldau.streams.machine._steps import count_one
from moldau.streams.machine.getters import Forwarder
from moldau.streams.records import Window, Windowed
from moldau.streams.stores._windows import WindowStore

try:
    import cython
except ImportError:
    # Only the compiler needs the real one, and it does not let its name be assigned.
    globals()["cython"] = SimpleNamespace(compiled=False)

if not cython.compiled:
    # The compiler takes it from the .pxd, as C.
    from moldau.streams.longs import unpack_long


class WindowAggregator(Processor):
    """By tumbling or hopping windows; each update is forwarded."""

    def __init__(
        self,
        store_name: str,
        windows: Any,
        initializer: Callable[[], Any] | None,
        aggregator: Callable[[Any, Any, Any], Any],
        send_old: bool,
    ) -> None:
        self._store_name = store_name
        self._size_ms = windows.size_ms
        self._advance_ms = windows.advance_ms
        self._grace_ms = windows.grace_ms
        self._initializer = initializer
        self._aggregator = aggregator
        self._counts = aggregator is count_one
        self._send_old = send_old
        self._cached = False
        self._observed_ms = -1
        self._store: Any = None

    def init(self, context: ProcessorContext) -> None:
        """Get the store, and let its cache forward where it has one."""
        self.context = context
        store = context.state_store(self._store_name)
        if not isinstance(store, WindowStore):
            raise TypeError(f"store {self._store_name} is not a window store: {store!r}")
        self._store = store
        self._cached = Forwarder(context, store, self._send_old).cached

    def process(self, record: Record[Any, Any]) -> None:
        if record.key is None:
            self.context.drop()
            return
        timestamp, advance = record.timestamp, self._advance_ms
        if timestamp > self._observed_ms:
            self._observed_ms = timestamp
        close_ms = self._observed_ms - self._grace_ms
        start = timestamp - self._size_ms + advance
        start = 0 if start < 0 else start // advance * advance
        raw = self._store.raw_key(record.key)
        while start <= timestamp:
            if start + self._size_ms > close_ms:
                self._update(record, raw, start)
            else:
                self.context.drop()
            start += advance

    def _update(self, record: Record[Any, Any], raw: bytes, start: int) -> None:
        store, timestamp = self._store, record.timestamp
        kept = store.find((raw, start, 0))
        old: Any = None
        if kept is not None:
            old = store.value_of(kept)
            since = unpack_long(kept, 0)
            if since > timestamp:
                timestamp = since
        elif self._initializer is not None:
            old = self._initializer()
        new = old + 1 if self._counts else self._aggregator(record.key, record.value, old)
        store.write(raw, new, start, timestamp)
        if not self._cached:
            key = Windowed(record.key, Window(start, start + self._size_ms))
            change = new_change(new, old if self._send_old else None)
            self.context.forward(new_record(key, change, timestamp, record.headers))
