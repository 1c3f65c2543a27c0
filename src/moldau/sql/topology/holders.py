"""What a step becomes: a stream or a table, and how its rows are found in a store."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from moldau.sql.sources.data_source import KeyFormat, WindowInfo
from moldau.sql.sources.schema import LogicalSchema
from moldau.streams.serdes import Serde
from moldau.streams.topology.handles import Handle, TableHandle

#: From key, row and timestamp to the row as the query shows it; None drops it.
Transform = Callable[[Any, Any, int], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Materialization:
    """The store behind a table, and what is done to its rows before they are shown."""

    store_name: str
    store_schema: LogicalSchema
    schema: LogicalSchema
    key_format: KeyFormat
    window: WindowInfo | None = None
    transforms: tuple[Transform, ...] = ()

    def then(self, transform: Transform, schema: LogicalSchema) -> Materialization:
        return replace(self, transforms=(*self.transforms, transform), schema=schema)

    def row(self, key: Any, row: Any, timestamp: int) -> Any:
        """A row of the store as the table shows it."""
        for transform in self.transforms:
            if row is None:
                return None
            row = transform(key, row, timestamp)
        return row


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamHolder:
    handle: Handle
    schema: LogicalSchema

    def with_serdes(self, keys: Serde[Any], values: Serde[Any]) -> Handle:
        return replace(self.handle, key_serde=keys, value_serde=values)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableHolder:
    table: TableHandle
    schema: LogicalSchema
    materialization: Materialization | None = None

    def with_serdes(self, keys: Serde[Any], values: Serde[Any]) -> TableHandle:
        handle = replace(self.table.handle, key_serde=keys, value_serde=values)
        return self.table._replace(handle=handle)


Holder = StreamHolder | TableHolder
