"""Delta sink: tasks write Parquet files, the driver adds them to the table in one commit.

The commit carries Delta's own application transaction (`txn`: query id, batch number), so a batch
that runs again is recognised by what the table itself says, and two drivers that race with the same
batch conflict in the log. With `upsert` the staged rows are merged by key in that same commit.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from moldau.spark.tables.machine.batches import Attempt, is_committed
from moldau.spark.tables.machine.options import Options

from . import delta_table
from .columns import added_columns, fit, require_columns
from .errors import SchemaMismatchError, TableError
from .parquet_files import DataFile, ParquetFiles
from .sinks import Staged
from .staged_rows import StagedRows

# Staged rows of an upsert are no data files of the table; Delta's vacuum leaves `_` folders alone.
_STAGING_FOLDER = "_moldau/staging"
_FILE_SIZE_MAX = 128 << 20


class DeltaSink:
    def __init__(self, options: Options, schema: Any, *, overwrite: bool) -> None:
        self._folder = options.address
        self._where = f"the Delta table {self._folder}"
        self._options = options
        self._frame = schema
        self._overwrite = overwrite
        self._upsert = options.names("upsert")
        self._partition_by = options.names("partitionBy")
        self._storage_options = options.prefixed("storage.")
        self._schema: Any = None

    @property
    def keeps_staged(self) -> bool:
        return not self._upsert

    def prepare(self) -> None:
        """Create the table or check that the rows fit it, adding columns if that was asked for."""
        require_columns(self._where, "partitionBy", self._partition_by, self._frame)
        require_columns(self._where, "upsert", self._upsert, self._frame)
        require_columns(self._where, "sequenceBy", self._sequence_by(), self._frame)
        if not delta_table.exists(self._folder, self._storage_options):
            self._create()
        table = self._open()
        delta_table.check_writable(table, self._folder)
        added = added_columns(
            self._where,
            delta_table.columns(table),
            self._frame,
            merge_schema=self._options.flag("mergeSchema"),
        )
        if added:
            table.alter.add_columns(_delta_schema(added).fields)
            table = self._open()
        existing = tuple(table.metadata().partition_columns)
        if self._partition_by and self._partition_by != existing:
            raise SchemaMismatchError(
                f"{self._where} is partitioned by {list(existing)}, "
                f"not by {list(self._partition_by)}",
                "Leave out partitionBy, or write to a new folder",
            )
        self._partition_by = existing
        self._schema = delta_table.columns(table)

    def _create(self) -> None:
        # `ignore` lets the process that comes second take what the first has made.
        delta_table.library().DeltaTable.create(
            self._folder,
            schema=_delta_schema(self._frame),
            mode="ignore",
            partition_by=list(self._partition_by),
            storage_options=self._storage_options,
        )

    def _open(self) -> Any:
        return delta_table.open_table(self._folder, self._storage_options)

    def _storage(self) -> Any:
        return delta_table.table_storage(self._folder, self._storage_options)

    def _sequence_by(self) -> tuple[str, ...]:
        return (self._options.text("sequenceBy"),) if "sequenceBy" in self._options else ()

    def write(self, batches: Iterator[Any], attempt: Attempt) -> Staged:
        storage = self._storage()
        storage.mark(attempt)
        files = ParquetFiles(
            storage,
            token=attempt.token,
            partition_by=() if self._upsert else self._partition_by,
            compression=self._options.text("compression", "snappy"),
            file_size_max=self._options.number("targetFileSize", _FILE_SIZE_MAX),
            folder=_STAGING_FOLDER if self._upsert else "",
        )
        row_count = 0
        try:
            for batch in batches:
                files.write(fit(self._where, batch, self._schema))
                row_count += batch.num_rows
            return Staged(attempt, row_count, files.close())
        except BaseException:
            files.abandon()
            storage.delete([attempt.marker])
            raise

    def commit(self, staged: Sequence[Staged], batch_id: int) -> bool:
        if not staged:
            return False
        query_id = staged[0].attempt.query_id
        table, storage = self._open(), self._storage()
        files = [file for part in staged for file in part.parts]
        done = is_committed(batch_id, table.transaction_version(query_id))
        if not done:
            self._add(table, files, query_id, batch_id)
        if done or self._upsert:
            storage.delete(file.path for file in files)
        storage.settle(
            query_id=query_id,
            batch_id=batch_id,
            winners=self._winners(staged, done=done),
            table_files=table.file_uris,
        )
        return not done

    def _winners(self, staged: Sequence[Staged], *, done: bool) -> set[str] | None:
        if self._upsert:
            # Staged rows are no files of the table, so those of every attempt can go.
            return set()
        return None if done else {part.attempt.token for part in staged}

    def _add(self, table: Any, files: list[DataFile], query_id: str, batch_id: int) -> None:
        delta = delta_table.library()
        from deltalake.transaction import CommitProperties, Transaction

        properties = CommitProperties(app_transactions=[Transaction(query_id, batch_id)])
        try:
            if self._upsert:
                self._merge(table, files, properties)
            else:
                table.create_write_transaction(
                    _add_actions(files),
                    "overwrite" if self._overwrite else "append",
                    table.schema(),
                    list(self._partition_by),
                    commit_properties=properties,
                )
        except delta.exceptions.DeltaError as error:
            raise TableError(
                f"batch {batch_id} could not be committed to {self._where}: {error}",
                "Nothing of it is visible; the batch runs again when the query is restarted",
            ) from error

    def _merge(self, table: Any, files: list[DataFile], properties: Any) -> None:
        sequence = "".join(self._sequence_by())
        paths = [file.path for file in files]
        rows = StagedRows(self._storage(), paths, self._schema, self._upsert, sequence)
        # Null matches null, as where a batch is made unique; OR would make this a nested loop.
        matches = " AND ".join(
            f"(t.{_quoted(name)} IS NOT DISTINCT FROM s.{_quoted(name)})" for name in self._upsert
        )
        newer = f"t.{_quoted(sequence)} <= s.{_quoted(sequence)}" if sequence else None
        merge = table.merge(
            rows.reader(),
            matches,
            source_alias="s",
            target_alias="t",
            streamed_exec=True,
            commit_properties=properties,
        )
        merge.when_matched_update_all(predicate=newer).when_not_matched_insert_all().execute()

    def abort(self, staged: Sequence[Staged], batch_id: int) -> None:
        storage = self._storage()
        storage.delete(file.path for part in staged for file in part.parts)
        storage.delete(part.attempt.marker for part in staged)


def _delta_schema(fields: Any) -> Any:
    delta_table.library()
    from deltalake import Schema

    return Schema.from_arrow(pa.schema(fields))


def _add_actions(files: list[DataFile]) -> list[Any]:
    from deltalake.transaction import AddAction

    now_ms = int(time.time() * 1000)
    return [
        AddAction(file.path, file.size, dict(file.partition), now_ms, True, file.statistics)
        for file in files
    ]


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
