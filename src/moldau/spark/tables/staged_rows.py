"""Rows that tasks staged for an upsert: which of them count, and those one batch after the other.

Of all rows only the key, and the column that orders rows of one key, are in the driver's memory at
once; the rows themselves pass through it in batches.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from .columns import last_of_each_key
from .storage import Storage

__all__ = ["StagedRows"]

_POSITION = "__moldau_place"
_BATCH_ROWS = 64 * 1024


class StagedRows:
    """The staged files of a batch, in the order of its tasks."""

    def __init__(
        self, storage: Storage, paths: Sequence[str], schema: Any, keys: tuple[str, ...], by: str
    ) -> None:
        """`by` is the column that orders rows of one key; empty: the last that came counts."""
        self._storage = storage
        self._paths = tuple(paths)
        self._schema = schema
        columns = list(dict.fromkeys([*keys, *([by] if by else [])]))
        found = self._columns(columns)
        places = pa.array(range(found.num_rows), pa.int64())
        self._total = found.num_rows
        self._kept = last_of_each_key(found.append_column(_POSITION, places), keys, by)

    def _columns(self, names: list[str]) -> Any:
        tables = []
        for path in self._paths:
            with self._storage.open(path) as stream:
                tables.append(pq.read_table(stream, columns=names))
        return pa.concat_tables(tables) if tables else self._schema.empty_table().select(names)

    @property
    def keys(self) -> Any:
        """Key and order of the rows that count, as a table."""
        return self._kept.drop_columns([_POSITION])

    def keep(self, wanted: Any) -> None:
        """Of the rows that count, only those for which this array is true."""
        self._kept = self._kept.filter(wanted)

    def __len__(self) -> int:
        return int(self._kept.num_rows)

    def reader(self) -> Any:
        """The rows that count, as a stream."""
        return pa.RecordBatchReader.from_batches(self._schema, self._batches())

    def _batches(self) -> Iterator[Any]:
        counts = pc.is_in(
            pa.array(range(self._total), pa.int64()),
            value_set=self._kept.column(_POSITION).combine_chunks(),
        )
        at = 0
        for path in self._paths:
            with self._storage.open(path) as stream:
                for batch in pq.ParquetFile(stream).iter_batches(_BATCH_ROWS):
                    kept = batch.filter(counts.slice(at, batch.num_rows))
                    at += batch.num_rows
                    if kept.num_rows:
                        yield kept.cast(self._schema)
