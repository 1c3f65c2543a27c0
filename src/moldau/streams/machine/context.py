"""What a processor is given, `ProcessorContext`, and what it is: `Processor`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moldau.streams.errors import StreamsError
from moldau.streams.machine._nodes import (
    Cancellable,
    Node,
    Processor,
    ProcessorContext,
    PunctuationType,
    Runtime,
)
from moldau.streams.records import Record
from moldau.streams.stores.base import StoreBuilder

__all__ = [
    "Cancellable",
    "FixedKeyAdapter",
    "FixedKeyContext",
    "FixedKeySupplier",
    "Node",
    "Processor",
    "ProcessorContext",
    "PunctuationType",
    "Runtime",
    "check_supplier",
    "provided_stores",
]


def check_supplier(supplier: Callable[[], Processor]) -> Callable[[], Processor]:
    """Itself, unless it gives the same processor twice: each task needs its own."""
    if not isinstance(supplier, type) and supplier() is supplier():
        name = getattr(supplier, "__qualname__", type(supplier).__qualname__)
        raise ValueError(
            f"{name} generates single reference. {name}#get() must return a new object each time "
            f"it is called."
        )
    return supplier


class FixedKeyContext(ProcessorContext):
    """The context of `process_values`: keys must not change, or partitions would be wrong."""

    __slots__ = ("_key",)

    def at(self, key: Any) -> None:
        """Records that are forwarded from now on must have this key."""
        self._key = key

    def forward(self, record: Record[Any, Any], child: str | None = None) -> None:
        if record.key is not self._key and record.key != self._key:
            raise StreamsError(
                f"process_values in {self.name} changed the key {self._key!r} to {record.key!r}: "
                f"use process"
            )
        super().forward(record, child)


def provided_stores(supplier: Callable[[], Processor]) -> tuple[StoreBuilder, ...]:
    """The stores that come with a supplier: what its `stores()` returns, if it has one."""
    provide = getattr(supplier, "stores", None)
    return tuple(provide() or ()) if callable(provide) else ()


class FixedKeySupplier:
    """Makes the processors of `process_values`, and has the stores of the user's supplier."""

    def __init__(self, supplier: Callable[[], Processor]) -> None:
        self._supplier = supplier

    def __call__(self) -> Processor:
        return FixedKeyAdapter(self._supplier())

    def stores(self) -> tuple[StoreBuilder, ...]:
        return provided_stores(self._supplier)


class FixedKeyAdapter(Processor):
    """Runs a processor whose records keep their keys."""

    __slots__ = ("_fixed", "_inner")

    def __init__(self, inner: Processor) -> None:
        self._inner = inner

    def init(self, context: ProcessorContext) -> None:
        self._fixed = FixedKeyContext(context.node, context.runtime)
        self._fixed.at(None)
        self._inner.init(self._fixed)

    def process(self, record: Record[Any, Any]) -> None:
        self._fixed.at(record.key)
        self._inner.process(record)

    def close(self) -> None:
        self._inner.close()
