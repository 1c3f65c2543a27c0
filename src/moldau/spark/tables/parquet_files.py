"""Arrow batches into Parquet files of bounded size, by partition, with what is known about each.

At most `_OPEN_FILES_MAX` files are open at once: a task whose rows belong to more partitions gets
more, smaller files, not more memory.
"""

from __future__ import annotations

import datetime
import decimal
import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

_OPEN_FILES_MAX = 64
_STATISTICS_TEXT_MAX = 256
_MILLISECOND = datetime.timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True)
class DataFile:
    """A finished file: where it is, which partition's rows, and Delta's statistics of them."""

    path: str
    size: int
    row_count: int
    partition: tuple[tuple[str, str | None], ...]
    statistics: str


@dataclass(slots=True)
class _OpenFile:
    path: str
    stream: Any
    writer: Any
    metadata: list[Any]
    partition: tuple[tuple[str, str | None], ...]
    row_count: int = 0


class ParquetFiles:
    """Writes one task's rows. `abandon` removes what was written, `close` gives it."""

    def __init__(
        self,
        storage: Any,
        *,
        token: str,
        partition_by: tuple[str, ...],
        compression: str,
        file_size_max: int,
        folder: str = "",
    ) -> None:
        self._storage = storage
        self._token = token
        self._partition_by = partition_by
        self._compression = compression
        self._file_size_max = file_size_max
        self._folder = folder
        self._open: dict[tuple[Any, ...], _OpenFile] = {}
        self._paths: list[str] = []
        self._done: list[DataFile] = []

    def write(self, batch: Any) -> None:
        if not self._partition_by:
            self._append((), batch)
            return
        keys = batch.select(list(self._partition_by))
        groups = pa.Table.from_batches([keys]).group_by(keys.schema.names).aggregate([])
        for group in groups.to_batches():
            for index in range(group.num_rows):
                self._append_group(batch, [column[index] for column in group.columns])

    def _append_group(self, batch: Any, values: list[Any]) -> None:
        mask: Any = None
        for name, value in zip(self._partition_by, values, strict=True):
            column = batch.column(name)
            equal = column.is_null() if not value.is_valid else pc.equal(column, value)
            equal = equal.fill_null(False)
            mask = equal if mask is None else pc.and_(mask, equal)
        rows = batch.filter(mask)
        texts = tuple(partition_text(value.as_py()) for value in values)
        self._append(texts, rows.drop_columns(list(self._partition_by)))

    def _append(self, key: tuple[str | None, ...], rows: Any) -> None:
        if not rows.num_rows:
            return
        file = self._open.pop(key, None) or self._start(key, rows.schema)
        self._open[key] = file
        file.writer.write_batch(rows)
        file.row_count += rows.num_rows
        if file.stream.tell() >= self._file_size_max:
            self._finish(key)

    def _start(self, key: tuple[str | None, ...], schema: Any) -> _OpenFile:
        if len(self._open) >= _OPEN_FILES_MAX:
            self._finish(next(iter(self._open)))
        partition = tuple(zip(self._partition_by, key, strict=True))
        folders = [self._folder] if self._folder else []
        folders += [f"{name}={_folder_name(text)}" for name, text in partition]
        path = "/".join([*folders, f"part-{self._token}-{len(self._paths):05d}.parquet"])
        self._paths.append(path)
        stream = self._storage.create(path)
        collected: list[Any] = []
        writer = pq.ParquetWriter(
            stream, schema, compression=self._compression, metadata_collector=collected
        )
        return _OpenFile(path, stream, writer, collected, partition)

    def _finish(self, key: tuple[Any, ...]) -> None:
        file = self._open.pop(key)
        file.writer.close()
        file.stream.close()
        self._done.append(
            DataFile(
                file.path,
                self._storage.size(file.path),
                file.row_count,
                file.partition,
                delta_statistics(file.metadata[0], file.row_count),
            )
        )

    def close(self) -> tuple[DataFile, ...]:
        for key in list(self._open):
            self._finish(key)
        return tuple(self._done)

    def abandon(self) -> None:
        for file in self._open.values():
            file.writer.close()
            file.stream.close()
        self._open.clear()
        self._storage.delete(self._paths)


def _folder_name(text: str | None) -> str:
    """A readable folder name; the partition's value itself is in the table's log."""
    if text is None:
        return "__HIVE_DEFAULT_PARTITION__"
    return re.sub(r"[^A-Za-z0-9_.-]", "_", text)[:100] or "_"


def partition_text(value: object) -> str | None:
    """A partition's value as Delta's log writes it."""
    match value:
        case None | "":
            return None
        case bool():
            return str(value).lower()
        case datetime.datetime():
            value = value.astimezone(datetime.UTC) if value.tzinfo else value
            return value.strftime("%Y-%m-%d %H:%M:%S.%f")
        case bytes():
            return value.decode("latin-1")
        case _:
            return str(value)


def delta_statistics(metadata: Any, row_count: int) -> str:
    """numRecords, nullCount, minValues and maxValues as Delta's log holds them."""
    lows: dict[str, Any] = {}
    highs: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    for column in range(metadata.num_columns):
        groups = [metadata.row_group(g).column(column) for g in range(metadata.num_row_groups)]
        name = metadata.schema.column(column).path
        # Nested columns are left out: their statistics would have to be nested too.
        if "." in name or any(g.statistics is None for g in groups):
            continue
        statistics = [group.statistics for group in groups]
        if all(s.has_null_count for s in statistics):
            nulls[name] = sum(s.null_count for s in statistics)
        bounded = [s for s in statistics if s.has_min_max]
        if bounded and len(bounded) == sum(s.num_values > 0 for s in statistics):
            _put(lows, name, min(s.min for s in bounded), _low)
            _put(highs, name, max(s.max for s in bounded), _high)
    for name in set(lows) ^ set(highs):
        lows.pop(name, None)
        highs.pop(name, None)
    return json.dumps(
        {"numRecords": row_count, "minValues": lows, "maxValues": highs, "nullCount": nulls}
    )


def _put(into: dict[str, Any], name: str, value: object, form: Callable[[Any], Any]) -> None:
    formed = form(value)
    if formed is not None:
        into[name] = formed


def _low(value: object) -> Any:
    return _json_bound(value, round_up=False)


def _high(value: object) -> Any:
    return _json_bound(value, round_up=True)


def _json_bound(value: object, *, round_up: bool) -> Any:
    """A bound as JSON, or None for one that cannot be written without becoming wrong."""
    match value:
        case bool() | bytes() | decimal.Decimal():
            return None
        case int():
            return value
        case float():
            return value if math.isfinite(value) else None
        case str():
            return value if len(value) <= _STATISTICS_TEXT_MAX else None
        case datetime.datetime():
            return _millisecond_text(value, round_up=round_up)
        case datetime.date():
            return value.isoformat()
        case _:
            return None


def _millisecond_text(value: datetime.datetime, *, round_up: bool) -> str:
    # The log's timestamps have milliseconds: an upper bound must not become smaller by that.
    beyond = value.microsecond % 1000
    value = value.replace(microsecond=value.microsecond - beyond)
    if round_up and beyond:
        value += _MILLISECOND
    zone = "Z" if value.tzinfo else ""
    return value.replace(tzinfo=None).isoformat(timespec="milliseconds") + zone
