"""Delta source: the files of a version, or those that each new version adds."""

from __future__ import annotations

import datetime
import urllib.parse
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from moldau.spark.tables.machine.delta_log import (
    DeltaFile,
    commit_path,
    deletion_vector,
    parse_commit,
)
from moldau.spark.tables.machine.growth import Position, Version
from moldau.spark.tables.machine.options import Options

from . import delta_table
from .errors import TableError
from .parquet_files import partition_text
from .storage import Storage

_CACHED_VERSIONS = 64
_BATCH_ROWS = 65_536


class DeltaLog:
    """A Delta table's versions. Those read lately are kept: a stream asks for them again."""

    def __init__(self, options: Options) -> None:
        self._folder = options.address
        self._storage_options = options.prefixed("storage.")
        self._storage = delta_table.table_storage(self._folder, self._storage_options)
        self._cache: dict[tuple[int, bool], Version] = {}
        self._latest = -1

    def open(self, version: int | None = None) -> Any:
        table = delta_table.open_table(self._folder, self._storage_options, version)
        delta_table.check_readable(table, self._folder)
        return table

    def latest(self) -> int:
        """The newest version. Only the commits after the last known one are looked for."""
        if self._latest < 0:
            self._latest = int(self.open().version())
        while self._storage.exists(commit_path(self._latest + 1)):
            self._latest += 1
        return self._latest

    def following(self, number: int) -> Sequence[int]:
        return range(number + 1, self.latest() + 1)

    def version(self, number: int) -> Version:
        return self._cached(number, False)

    def whole(self, number: int) -> Version:
        return self._cached(number, True)

    def _cached(self, number: int, whole: bool) -> Version:
        found = self._cache.get((number, whole))
        if found is None:
            found = self._all_files(number) if whole else self._commit(number)
            while len(self._cache) >= _CACHED_VERSIONS:
                self._cache.pop(next(iter(self._cache)))
            self._cache[number, whole] = found
        return found

    def _commit(self, number: int) -> Version:
        try:
            text = self._storage.read(commit_path(number)).decode()
        except FileNotFoundError:
            raise TableError(
                f"version {number} is gone from the log of the Delta table {self._folder}",
                "Its log was cleaned before the stream had read it: start again with a new "
                "checkpoint, or raise delta.logRetentionDuration",
            ) from None
        return parse_commit(number, text)

    def _all_files(self, number: int) -> Version:
        table = self.open(number)
        if vectors := pa.table(table.deletion_vectors().read_all()).num_rows:
            raise deletion_vector(f"({vectors} files)")
        actions = pa.table(table.get_add_actions(flatten=False)).to_pylist()
        files = [
            DeltaFile(
                urllib.parse.unquote(action["path"]),
                tuple((k, partition_text(v)) for k, v in (action.get("partition") or {}).items()),
            )
            for action in actions
        ]
        return Version(number, tuple(sorted(files, key=lambda file: file.path)))


class DeltaSource:
    """What a query needs to read a Delta table; travels to tasks by pickle."""

    def __init__(self, options: Options) -> None:
        self._options = options

    def log(self) -> DeltaLog:
        return DeltaLog(self._options)

    def schema(self) -> Any:
        return delta_table.columns(self.log().open(self._pinned()))

    def _pinned(self) -> int | None:
        return self._options.number("versionAsOf") if "versionAsOf" in self._options else None

    def batch_files(self) -> Sequence[DeltaFile]:
        log = self.log()
        pinned = self._pinned()
        return log.whole(log.latest() if pinned is None else pinned).files

    def start(self, log: DeltaLog) -> Position:
        wanted = self._options.text("startingVersion")
        latest = log.latest()
        if not wanted:
            return Position(latest, 0, whole=True)
        if wanted == "latest":
            return Position(latest, len(log.version(latest).files))
        number = 0 if wanted == "earliest" else int(wanted)
        if number > latest:
            raise TableError(
                f"startingVersion {number} does not exist: the newest version is {latest}"
            )
        return Position(number, 0)

    def read(self, file: DeltaFile, schema: Any) -> Iterator[Any]:
        storage = delta_table.table_storage(
            self._options.address, self._options.prefixed("storage.")
        )
        yield from read_parquet(storage, file, schema)


def read_parquet(storage: Storage, file: DeltaFile, schema: Any) -> Iterator[Any]:
    """A file's rows with the columns asked for; what neither file nor partition has is null."""
    partition = dict(file.partition)
    with storage.open(file.path) as stream:
        parquet = pq.ParquetFile(stream)
        present = set(parquet.schema_arrow.names)
        wanted = [name for name in schema.names if name in present and name not in partition]
        if not wanted:
            # Every column comes from the partition: only the number of rows is in the file.
            yield _batch(None, parquet.metadata.num_rows, partition, schema)
            return
        for batch in parquet.iter_batches(_BATCH_ROWS, columns=wanted):
            yield _batch(batch, batch.num_rows, partition, schema)


def _batch(rows: Any, count: int, partition: dict[str, str | None], schema: Any) -> Any:
    columns = []
    for field in schema:
        if field.name in partition:
            value = _partition_value(partition[field.name], field.type)
            columns.append(pa.repeat(value, count))
        elif rows is not None and field.name in rows.schema.names:
            columns.append(rows.column(field.name).cast(field.type))
        else:
            columns.append(pa.nulls(count, field.type))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _partition_value(text: str | None, arrow_type: Any) -> Any:
    """A partition's value from the log's text, where times without a zone are UTC."""
    if text is not None and pa.types.is_timestamp(arrow_type) and arrow_type.tz:
        time = datetime.datetime.fromisoformat(text)
        return pa.scalar(time if time.tzinfo else time.replace(tzinfo=datetime.UTC), arrow_type)
    if text is not None and pa.types.is_binary(arrow_type):
        return pa.scalar(text.encode("latin-1"), arrow_type)
    return pa.scalar(text, pa.string()).cast(arrow_type)
