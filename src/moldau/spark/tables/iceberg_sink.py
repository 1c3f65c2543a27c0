"""Iceberg sink: tasks write data files, the driver adds them in one commit of the table.

The same commit sets the table property `moldau.batch.<query id>` to the batch's number: it outlives
the expiry of snapshots, and a batch that runs again is recognised by it. Commits are tried again
after a conflict only after another look at that property, so two drivers that race with the same
batch cannot both win. The snapshots' summaries name query and batch too, for people.
"""

from __future__ import annotations

import contextlib
import itertools
import uuid
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from moldau.spark.tables.machine.batches import Attempt, is_committed
from moldau.spark.tables.machine.options import Options

from . import iceberg_table
from .columns import added_columns, fit, require_columns
from .errors import SchemaMismatchError, TableError
from .parquet_files import ParquetFiles
from .sinks import Staged
from .staged_rows import StagedRows

_STAGING_FOLDER = "_moldau/staging"
_FILE_SIZE_MAX = 128 << 20
_COMMIT_TRIES = 5
# A filter is evaluated for each file of the table: keys go into it by that many at a time.
_KEYS_PER_FILTER = 10_000


class IcebergSink:
    def __init__(self, options: Options, schema: Any, *, overwrite: bool) -> None:
        self._options = options
        self._where = f"the Iceberg table {options.text('table')}"
        self._frame = schema
        self._overwrite = overwrite
        self._upsert = options.names("upsert")
        self._partition_by = options.names("partitionBy")
        self._schema: Any = None
        self._metadata: Any = None
        self._io: Any = None
        self._storage: Any = None

    @property
    def keeps_staged(self) -> bool:
        return not self._upsert

    def prepare(self) -> None:
        """Create the table or check that the rows fit it, adding columns if that was asked for."""
        sequence = self._options.text("sequenceBy")
        require_columns(self._where, "partitionBy", self._partition_by, self._frame)
        require_columns(self._where, "upsert", self._upsert, self._frame)
        require_columns(self._where, "sequenceBy", [sequence] if sequence else [], self._frame)
        catalog = iceberg_table.open_catalog(self._options)
        if not iceberg_table.exists(self._options, catalog):
            iceberg_table.create(self._options, catalog, self._frame, self._partition_by)
        table = iceberg_table.open_table(self._options, catalog)
        added = added_columns(
            self._where,
            iceberg_table.columns(table),
            self._frame,
            merge_schema=self._options.flag("mergeSchema"),
        )
        if added:
            with table.update_schema() as update:
                update.union_by_name(pa.schema(added))
            table = iceberg_table.open_table(self._options, catalog)
        self._check_partitions(table)
        self._schema = iceberg_table.columns(table)
        self._metadata, self._io = table.metadata, table.io
        self._storage = iceberg_table.table_storage(table)

    def _check_partitions(self, table: Any) -> None:
        existing = tuple(field.name for field in table.spec().fields)
        if self._partition_by and self._partition_by != existing:
            raise SchemaMismatchError(
                f"{self._where} is partitioned by {list(existing)}, "
                f"not by {list(self._partition_by)}",
                "Leave out partitionBy, or write to a new table",
            )

    def write(self, batches: Iterator[Any], attempt: Attempt) -> Staged:
        self._storage.mark(attempt)
        try:
            fitted = (fit(self._where, batch, self._schema) for batch in batches)
            return (
                self._stage_rows(fitted, attempt)
                if self._upsert
                else self._write_files(fitted, attempt)
            )
        except BaseException:
            self._storage.delete_attempts([attempt.token])
            self._storage.delete([attempt.marker])
            raise

    def _stage_rows(self, batches: Iterator[Any], attempt: Attempt) -> Staged:
        files = ParquetFiles(
            self._storage,
            token=attempt.token,
            partition_by=(),
            compression="snappy",
            file_size_max=_FILE_SIZE_MAX,
            folder=_STAGING_FOLDER,
        )
        row_count = 0
        for batch in batches:
            files.write(batch)
            row_count += batch.num_rows
        return Staged(attempt, row_count, files.close())

    def _write_files(self, batches: Iterator[Any], attempt: Attempt) -> Staged:
        """Iceberg data files, written by pyiceberg so that ids, metrics and partitions are its."""
        from pyiceberg.io.pyarrow import _dataframe_to_data_files

        size_max = self._options.number("targetFileSize", _FILE_SIZE_MAX)
        counter = itertools.count(0)
        files: list[Any] = []
        row_count = 0
        for rows in _chunks(batches, size_max):
            row_count += rows.num_rows
            files += _dataframe_to_data_files(
                self._metadata, rows, self._io, uuid.UUID(attempt.token), counter
            )
        return Staged(attempt, row_count, tuple(files))

    def commit(self, staged: Sequence[Staged], batch_id: int) -> bool:
        if not staged:
            return False
        query_id = staged[0].attempt.query_id
        committed = False
        for _ in range(_COMMIT_TRIES):
            table = iceberg_table.open_table(self._options)
            last = table.properties.get(_property(query_id))
            if is_committed(batch_id, None if last is None else int(last)):
                break
            if self._try_commit(table, staged, query_id, batch_id):
                committed = True
                break
        else:
            raise TableError(
                f"batch {batch_id} could not be committed to {self._where}: others committed "
                f"first {_COMMIT_TRIES} times",
                "Nothing of it is visible; the batch runs again when the query is restarted",
            )
        if self._upsert:
            self._delete_staged(staged)
        elif not committed:
            self._delete_unused(staged, table)
        self._storage.settle(
            query_id=query_id,
            batch_id=batch_id,
            winners=self._winners(staged, committed=committed),
            table_files=lambda: _files_of(table),
        )
        return committed

    def _winners(self, staged: Sequence[Staged], *, committed: bool) -> set[str] | None:
        if self._upsert:
            # Staged rows are no files of the table, so those of every attempt can go.
            return set()
        return {part.attempt.token for part in staged} if committed else None

    def _try_commit(
        self, table: Any, staged: Sequence[Staged], query_id: str, batch_id: int
    ) -> bool:
        from pyiceberg.exceptions import CommitFailedException

        # pyiceberg's own retries would not look at the batch's number again.
        table.metadata = table.metadata.model_copy(
            update={"properties": {**table.properties, "commit.retry.num-retries": "0"}}
        )
        summary = {"moldau.query-id": query_id, "moldau.batch-id": str(batch_id)}
        transaction = table.transaction()
        transaction.set_properties({_property(query_id): str(batch_id)})
        try:
            if self._upsert:
                self._merge(table, transaction, staged, summary)
            else:
                if self._overwrite and table.current_snapshot() is not None:
                    transaction.delete("true", snapshot_properties=summary)
                with transaction.update_snapshot(summary).fast_append() as append:
                    for file in (file for part in staged for file in part.parts):
                        append.append_data_file(file)
            transaction.commit_transaction()
        except CommitFailedException:
            return False
        return True

    def _merge(
        self, table: Any, transaction: Any, staged: Sequence[Staged], summary: dict[str, str]
    ) -> None:
        sequence = self._options.text("sequenceBy")
        paths = [file.path for part in staged for file in part.parts]
        rows = StagedRows(self._storage, paths, self._schema, self._upsert, sequence)
        if sequence and table.current_snapshot() is not None:
            rows.keep(self._is_newer(table, rows.keys, sequence))
        if table.current_snapshot() is not None:
            for start in range(0, len(rows), _KEYS_PER_FILTER):
                keys = rows.keys.slice(start, _KEYS_PER_FILTER).select(list(self._upsert))
                transaction.delete(_any_of(keys), snapshot_properties=summary)
        if len(rows):
            self._append(table, transaction, rows.reader(), summary)

    def _append(self, table: Any, transaction: Any, rows: Any, summary: dict[str, str]) -> None:
        """Rows as data files of a bounded size, one after the other, in one snapshot."""
        from pyiceberg.io.pyarrow import _dataframe_to_data_files

        size_max = self._options.number("targetFileSize", _FILE_SIZE_MAX)
        counter, token = itertools.count(0), uuid.uuid4()
        with transaction.update_snapshot(summary).fast_append() as append:
            for chunk in _chunks(rows, size_max):
                files = _dataframe_to_data_files(table.metadata, chunk, table.io, token, counter)
                for file in files:
                    append.append_data_file(file)

    def _is_newer(self, table: Any, rows: Any, sequence: str) -> Any:
        """For each of these keys, whether the table holds no later row of it."""
        newer: list[bool] = []
        for start in range(0, rows.num_rows, _KEYS_PER_FILTER):
            part = rows.slice(start, _KEYS_PER_FILTER)
            scan = table.scan(
                row_filter=_any_of(part.select(list(self._upsert))),
                selected_fields=(*self._upsert, sequence),
            )
            held = _largest(scan.to_arrow().to_pylist(), self._upsert, sequence)
            newer += [
                _is_newer(row[sequence], held.get(tuple(row[key] for key in self._upsert)))
                for row in part.select([*self._upsert, sequence]).to_pylist()
            ]
        return pa.array(newer, pa.bool_())

    def _delete_staged(self, staged: Sequence[Staged]) -> None:
        for file in (file for part in staged for file in part.parts):
            if self._upsert:
                self._storage.delete([file.path])
            else:
                with contextlib.suppress(FileNotFoundError):
                    self._io.delete(file.file_path)

    def _delete_unused(self, staged: Sequence[Staged], table: Any) -> None:
        """A catalog may report a commit as failed that got through: its answer was lost, and it was
        asked again."""
        used = set(_files_of(table))
        for file in (file for part in staged for file in part.parts):
            if file.file_path not in used:
                with contextlib.suppress(FileNotFoundError):
                    self._io.delete(file.file_path)

    def abort(self, staged: Sequence[Staged], batch_id: int) -> None:
        self._delete_staged(staged)
        self._storage.delete(part.attempt.marker for part in staged)


def _files_of(table: Any) -> Iterator[str]:
    return (task.file.file_path for task in table.scan().plan_files())


def _property(query_id: str) -> str:
    return f"moldau.batch.{query_id}"


def _chunks(batches: Iterator[Any], size_max: int) -> Iterator[Any]:
    held: list[Any] = []
    size = 0
    for batch in batches:
        held.append(batch)
        size += batch.nbytes
        if size >= size_max:
            yield pa.Table.from_batches(held)
            held, size = [], 0
    if any(batch.num_rows for batch in held):
        yield pa.Table.from_batches(held)


def _any_of(keys: Any) -> Any:
    """A filter that matches the rows with one of these keys; null is a key like any other."""
    build = _expressions()
    names = keys.schema.names
    if len(names) == 1:
        values = keys.column(0).unique().to_pylist()
        present = [value for value in values if value is not None]
        match = build.In(names[0], present) if present else build.AlwaysFalse()
        return build.Or(match, build.IsNull(names[0])) if None in values else match

    def equal(name: str, value: object) -> Any:
        return build.IsNull(name) if value is None else build.EqualTo(name, value)

    matches = [build.And(*(equal(name, row[name]) for name in names)) for row in keys.to_pylist()]
    return _balanced_or(matches) if matches else build.AlwaysFalse()


def _balanced_or(parts: list[Any]) -> Any:
    """One expression that is as shallow as can be: pyiceberg walks it recursively."""
    while len(parts) > 1:
        pairs = zip(parts[::2], parts[1::2], strict=False)
        parts = [_expressions().Or(a, b) for a, b in pairs] + (
            [parts[-1]] if len(parts) % 2 else []
        )
    return parts[0]


def _expressions() -> Any:
    from pyiceberg import expressions

    return expressions


def _largest(rows: list[dict[str, Any]], keys: tuple[str, ...], sequence: str) -> dict[Any, Any]:
    """The largest `sequence` that the table holds of each key."""
    held: dict[Any, Any] = {}
    for row in rows:
        key = tuple(row[name] for name in keys)
        if row[sequence] is not None and (key not in held or held[key] < row[sequence]):
            held[key] = row[sequence]
    return held


def _is_newer(value: Any, held: Any) -> bool:
    return held is None or (value is not None and bool(held <= value))
