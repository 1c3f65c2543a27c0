"""How a step reads a table: from its store, or computed from the tables it is derived from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from moldau.streams.errors import StreamsError
from moldau.streams.machine.context import Processor, ProcessorContext
from moldau.streams.records import Change, Record, ValueAndTimestamp

Found = ValueAndTimestamp[Any] | None


class Getter(Protocol):
    """The values of a table, within a task."""

    @property
    def is_versioned(self) -> bool: ...

    def get(self, key: Any) -> Found: ...

    def get_as_of(self, key: Any, timestamp: int) -> Found: ...


@dataclass(frozen=True, slots=True)
class View:
    """A table as seen by other steps: the stores they must be connected to, and the getter."""

    store_names: tuple[str, ...]
    bind: Callable[[ProcessorContext], Getter]


def store_view(name: str) -> View:
    """The view of a table that has a store."""
    return View((name,), lambda context: context.state_store(name))


class Computed:
    """A getter that maps what another one finds."""

    __slots__ = ("_compute", "_parent")

    def __init__(self, parent: Getter, compute: Callable[[Any, Found], Found]) -> None:
        self._parent = parent
        self._compute = compute

    @property
    def is_versioned(self) -> bool:
        return self._parent.is_versioned

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


class Materializer:
    """Writes a table's update to its store and forwards it."""

    __slots__ = ("_context", "_send_old", "store")

    def __init__(self, context: ProcessorContext, store_name: str, send_old: bool) -> None:
        self._context = context
        self._send_old = send_old
        self.store = context.state_store(store_name)

    def update(self, record: Record[Any, Any], *, new: Any, old: Any, timestamp: int) -> None:
        """Put the value; forward it unless the store refused it as too old."""
        is_latest = self.store.put(record.key, new, timestamp)
        if is_latest is not None:
            change = Change(new, old if self._send_old else None, is_latest)
            self._context.forward(Record(record.key, change, timestamp, record.headers))
