"""How a step reads a table: from its store, or computed from the tables it is derived from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from moldau.streams.errors import StreamsError
from moldau.streams.machine.context import Processor, ProcessorContext
from moldau.streams.records import Change, Headers, Record, ValueAndTimestamp
from moldau.streams.stores.base import (
    PUT_RETURN_CODE_NOT_PUT,
    PUT_RETURN_CODE_VALID_TO_UNDEFINED,
)

Found = ValueAndTimestamp[Any] | None


class Getter(Protocol):
    """The values of a table, within a task."""

    @property
    def is_versioned(self) -> bool: ...

    def get(self, key: Any) -> Found: ...

    def get_as_of(self, key: Any, timestamp: int) -> Found: ...


class View(NamedTuple):
    """A table as seen by other steps: the stores they must be connected to, and the getter."""

    store_names: tuple[str, ...]
    bind: Callable[[ProcessorContext], Getter]


def store_view(name: str) -> View:
    """The view of a table that has a store."""
    return View((name,), lambda context: context.state_store(name))


class Computed:
    """A getter that maps what another one finds."""

    __slots__ = ("_compute", "_parent", "is_versioned")

    def __init__(self, parent: Getter, compute: Callable[[Any, Found], Found]) -> None:
        self._parent = parent
        self._compute = compute
        # Joins ask for it with every record, and tables are computed from tables.
        self.is_versioned = parent.is_versioned

    def get(self, key: Any) -> Found:
        return self._compute(key, self._parent.get(key))

    def get_as_of(self, key: Any, timestamp: int) -> Found:
        return self._compute(key, self._parent.get_as_of(key, timestamp))


class NotVersioned:
    """A getter made of a function, without a past."""

    __slots__ = ("get",)
    is_versioned = False

    def __init__(self, get: Callable[[Any], Found]) -> None:
        self.get = get

    def get_as_of(self, key: Any, timestamp: int) -> Found:
        raise StreamsError("this table is not versioned")


class TableSupplier:
    """Makes the processor of a table, and knows what the steps after it asked for.

    `send_old`: a later step needs old values; `versioned`: updates that are not the latest are
    dropped, because the table they come from is versioned.
    """

    def __init__(self) -> None:
        self.send_old = False
        self.versioned = False

    def __call__(self) -> Processor:
        raise NotImplementedError

    def enable_sending_old_values(self, force: bool) -> bool:
        """Ask for old values; `force` creates a store where none is there. Whether they come."""
        self.send_old = True
        return True

    def view(self) -> View:
        """How other steps read the table."""
        raise NotImplementedError


class Forwarder:
    """Forwards the updates of a store that a processor has written, at once or from the cache."""

    __slots__ = ("_context", "_send_old", "cached")

    def __init__(self, context: ProcessorContext, store: Any, send_old: bool) -> None:
        self._context = context
        self._send_old = send_old
        listen = getattr(store, "listen", None)
        #: The store's cache passes updates on, so the processor must not.
        self.cached = listen is not None and listen(self._from_cache)

    def _from_cache(
        self, key: Any, new: Any, old: Any, timestamp: int | None, headers: Headers | None = None
    ) -> None:
        where = self._context.runtime.core.record_context
        time = where.timestamp if timestamp is None else timestamp
        change = Change(new, old if self._send_old else None)
        if headers is None:
            headers = where.headers
        self._context.forward(Record(key, change, time, headers))

    def forward(
        self, key: Any, new: Any, old: Any, timestamp: int, headers: Headers, is_latest: bool = True
    ) -> None:
        """Forward an update that was just written, unless it waits in the cache."""
        if not self.cached:
            change = Change(new, old if self._send_old else None, is_latest)
            self._context.forward(Record(key, change, timestamp, headers))


class Materializer:
    """Writes a table's update to its store and forwards it."""

    __slots__ = ("_forwarder", "store")

    def __init__(self, context: ProcessorContext, store_name: str, send_old: bool) -> None:
        self.store = context.state_store(store_name)
        self._forwarder = Forwarder(context, self.store, send_old)

    def update(self, record: Record[Any, Any], *, new: Any, old: Any, timestamp: int) -> None:
        """Put the value; forward it unless the store refused it as too old."""
        valid_to = self.store.put(record.key, new, timestamp)
        if valid_to != PUT_RETURN_CODE_NOT_PUT:
            is_latest = valid_to == PUT_RETURN_CODE_VALID_TO_UNDEFINED
            self._forwarder.forward(record.key, new, old, timestamp, record.headers, is_latest)
