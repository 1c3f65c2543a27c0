"""Tables that Spark reaches through Python: its data source interface over our sinks and sources.

Nothing is decided here. Spark makes a new writer on the driver before each batch and again for the
commit, so `prepare` runs in both; a writer that travels to tasks carries what `prepare` found.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow

from moldau.spark.tables.jdbc.machine.address import MARIADB, POSTGRESQL, Address, parse_address
from moldau.spark.tables.jdbc.machine.queries import Progress, earlier, progress_of
from moldau.spark.tables.machine.batches import Attempt
from moldau.spark.tables.machine.formats import SINK, SOURCE
from moldau.spark.tables.machine.growth import (
    advance,
    batch_range,
    between,
    initial_offset,
    next_offset,
    position_of,
)
from moldau.spark.tables.machine.options import Options, check_options

from .columns import arrow_schema
from .sinks import Staged, TableSink

# How often an idle stream looks at its table, and how it waits: Spark asks every few milliseconds.
_POLL_SECONDS = 0.5
_DATABASE_POLL_MS = 1000
_SPARKS_OWN = ("checkpointlocation", "queryname", "path.global")


@dataclass
class StagedMessage(WriterCommitMessage):
    staged: Staged


class StreamWriter(DataSourceStreamArrowWriter):
    def __init__(self, sink: TableSink) -> None:
        self._sink = sink
        sink.prepare()

    def write(self, iterator: Iterator[Any]) -> StagedMessage:
        return StagedMessage(self._sink.write(iterator, _attempt()))

    def commit(self, messages: list[Any], batchId: int) -> None:
        self._sink.commit(_staged(messages), batchId)

    def abort(self, messages: list[Any], batchId: int) -> None:
        _abort(self._sink, messages, batchId)


class BatchWriter(DataSourceArrowWriter):
    """`df.write`: with Delta's `txnAppId` and `txnVersion` written once however often it is run.

    Without them it is the only batch of a query of its own.
    """

    def __init__(self, sink: TableSink, query_id: str, batch_id: int) -> None:
        self._sink = sink
        self._query_id = query_id
        self._batch_id = batch_id
        sink.prepare()

    def write(self, iterator: Iterator[Any]) -> StagedMessage:
        partition = _task().partitionId()
        attempt = Attempt(self._query_id, self._batch_id, partition, str(uuid.uuid4()))
        return StagedMessage(self._sink.write(iterator, attempt))

    def commit(self, messages: list[Any]) -> None:
        self._sink.commit(_staged(messages), self._batch_id)

    def abort(self, messages: list[Any]) -> None:
        _abort(self._sink, messages, self._batch_id)


def _task() -> Any:
    return TaskContext.get()


def _attempt() -> Attempt:
    task = _task()
    return Attempt(
        task.getLocalProperty("sql.streaming.queryId"),
        int(task.getLocalProperty("streaming.sql.batchId")),
        task.partitionId(),
        str(uuid.uuid4()),
    )


def _staged(messages: list[Any]) -> list[Staged]:
    staged = [message.staged for message in messages if message is not None]
    return sorted(staged, key=lambda part: part.attempt.partition)


def _abort(sink: TableSink, messages: list[Any], batch_id: int) -> None:
    """Spark also calls this when the process that commits has died: when all tasks have reported,
    the commit may have got through. What it left is removed when the batch has run again."""
    if sink.keeps_staged and None not in messages:
        return
    sink.abort(_staged(messages), batch_id)


class FilesReader(DataSourceReader):
    """A table's files as they are now, one Spark partition for each."""

    def __init__(self, source: Any, schema: Any) -> None:
        self._source = source
        self._schema = schema
        self._files = source.batch_files()

    def partitions(self) -> Sequence[InputPartition]:
        return [InputPartition(file) for file in self._files]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        if partition is None:
            return iter(())
        return iter(self._source.read(partition.value, self._schema))


class GrowingReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A table's files as it grows. Which ones are in a batch depends on its two offsets only."""

    def __init__(self, source: Any, schema: Any, options: Options) -> None:
        self._source = source
        self._schema = schema
        self._files_max = options.number("maxFilesPerTrigger") or None
        self._skip_changes = options.flag("skipChangeCommits")
        self._log: Any = None
        self._last: int | None = None
        self._newest = 0
        self._looked = 0.0

    def _opened(self) -> Any:
        if self._log is None:
            self._log = self._source.log()
        return self._log

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_log": None}

    def prepareForTriggerAvailableNow(self) -> None:
        self._last = self._opened().latest()

    def initialOffset(self) -> dict[str, object]:
        return initial_offset(self._source.start(self._opened()))

    def latestOffset(self, start: dict[str, Any], limit: Any) -> dict[str, object]:
        since = time.monotonic() - self._looked
        if since < _POLL_SECONDS and self._last is None:
            time.sleep(_POLL_SECONDS - since)
        position = position_of(start)
        self._newest = self._opened().latest()
        end = advance(
            self._log,
            position,
            files_max=self._files_max,
            last=self._newest if self._last is None else self._last,
            skip_changes=self._skip_changes,
        )
        if end == position:
            self._looked = time.monotonic()
        return next_offset(start, end)

    def reportLatestOffset(self) -> dict[str, object]:
        return {"version": str(self._newest)}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        self._opened().latest()
        first, last = batch_range(start, end)
        files = between(self._log, first, last, skip_changes=self._skip_changes)
        return [InputPartition(file) for file in files]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return iter(self._source.read(partition.value, self._schema))

    def commit(self, end: dict[str, Any]) -> None:
        pass

    def stop(self) -> None:
        pass


class RowsReader(DataSourceReader):
    """A database's rows as they are now, one Spark partition for each part."""

    def __init__(self, source: Any, schema: Any) -> None:
        self._source = source
        self._schema = schema

    def partitions(self) -> Sequence[InputPartition]:
        return [InputPartition(condition) for condition in self._source.conditions()]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return iter(self._source.read(partition.value, self._schema))


class RowsStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A database's rows as they are added, in order, one Spark partition for a batch."""

    def __init__(self, source: Any, schema: Any, options: Options) -> None:
        self._source = source
        self._schema = schema
        self._cursor = source.checked_cursor()
        self._rows_max = options.number("batch.max.rows")
        self._poll_seconds = options.number("poll.interval.ms", _DATABASE_POLL_MS) / 1000
        self._last: Progress | None = None
        self._seen = Progress()
        self._looked = 0.0

    def prepareForTriggerAvailableNow(self) -> None:
        self._last = self._source.latest(Progress(), 0)

    def initialOffset(self) -> dict[str, Any]:
        return Progress().as_offset()

    def latestOffset(self, start: dict[str, Any], limit: Any) -> dict[str, Any]:
        since = time.monotonic() - self._looked
        if since < self._poll_seconds and self._last is None:
            # Bounded, so that a query with a long interval still stops at once.
            time.sleep(min(self._poll_seconds - since, _POLL_SECONDS))
            if time.monotonic() - self._looked < self._poll_seconds:
                return start
        position = progress_of(start)
        end: Progress = self._source.latest(position, self._rows_max)
        if self._last is not None:
            end = earlier(end, self._last)
        if end == position:
            self._looked = time.monotonic()
        self._seen = end
        return end.as_offset()

    def reportLatestOffset(self) -> dict[str, Any]:
        return self._seen.as_offset()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        if start == end:
            return []
        return [InputPartition(self._cursor.between(progress_of(start), progress_of(end)))]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return iter(self._source.read(partition.value, self._schema, self._cursor.order))

    def commit(self, end: dict[str, Any]) -> None:
        pass

    def stop(self) -> None:
        pass


class _TableDataSource(DataSource):
    kind: str

    @classmethod
    def name(cls) -> str:
        return f"moldau_{cls.kind}"

    def _checked(self, role: str) -> Options:
        given = {
            name: value for name, value in self.options.items() if name.lower() not in _SPARKS_OWN
        }
        return check_options(self.kind, role, given)

    def schema(self) -> Any:
        return from_arrow_schema(self._source().schema())

    def reader(self, schema: Any) -> DataSourceReader:
        return FilesReader(self._source(), arrow_schema(schema))

    def streamReader(self, schema: Any) -> DataSourceStreamReader:
        return GrowingReader(self._source(), arrow_schema(schema), self._checked(SOURCE))

    def writer(self, schema: Any, overwrite: bool) -> BatchWriter:
        options = self._checked(SINK)
        query_id = options.text("txnAppId") or str(uuid.uuid4())
        return BatchWriter(self._sink(schema, overwrite), query_id, options.number("txnVersion"))

    def streamWriter(self, schema: Any, overwrite: bool) -> StreamWriter:
        return StreamWriter(self._sink(schema, overwrite))

    def _source(self) -> Any:
        raise TypeError(f"{self.kind} has no source")

    def _sink(self, schema: Any, overwrite: bool) -> TableSink:
        raise TypeError(f"{self.kind} has no sink")


class DeltaDataSource(_TableDataSource):
    kind = "delta"

    def _source(self) -> Any:
        from .delta_source import DeltaSource

        return DeltaSource(self._checked(SOURCE))

    def _sink(self, schema: Any, overwrite: bool) -> TableSink:
        from .delta_sink import DeltaSink

        return DeltaSink(self._checked(SINK), arrow_schema(schema), overwrite=overwrite)


class AvroDataSource(_TableDataSource):
    """The sink of Avro files; `avro_source.py` reads them."""

    kind = "avro"

    def _sink(self, schema: Any, overwrite: bool) -> TableSink:
        from .avro_sink import AvroSink

        return AvroSink(self._checked(SINK), arrow_schema(schema), overwrite=overwrite)


class IcebergDataSource(_TableDataSource):
    kind = "iceberg"

    def _source(self) -> Any:
        from .iceberg_source import IcebergSource

        return IcebergSource(self._checked(SOURCE))

    def _sink(self, schema: Any, overwrite: bool) -> TableSink:
        from .iceberg_sink import IcebergSink

        return IcebergSink(self._checked(SINK), arrow_schema(schema), overwrite=overwrite)


class JdbcDataSource(_TableDataSource):
    """PostgreSQL, MariaDB and SQLite; other databases go through Spark's own `jdbc`."""

    kind = "jdbc"

    def _address(self, options: Options) -> Address:
        return parse_address(options.address, options.text("user"), options.text("password"))

    def _source(self) -> Any:
        from .jdbc.source import JdbcSource

        options = self._checked(SOURCE)
        return JdbcSource(options, self._address(options))

    def reader(self, schema: Any) -> DataSourceReader:
        return RowsReader(self._source(), arrow_schema(schema))

    def streamReader(self, schema: Any) -> DataSourceStreamReader:
        return RowsStreamReader(self._source(), arrow_schema(schema), self._checked(SOURCE))

    def _sink(self, schema: Any, overwrite: bool) -> TableSink:
        options = self._checked(SINK)
        address = self._address(options)
        if address.database == POSTGRESQL:
            from .jdbc.postgres_sink import PostgresSink

            return PostgresSink(options, address, arrow_schema(schema), overwrite=overwrite)
        if address.database == MARIADB:
            from .jdbc.mariadb_sink import MariaDbSink

            return MariaDbSink(options, address, arrow_schema(schema), overwrite=overwrite)
        from .jdbc.sqlite_sink import SqliteSink

        return SqliteSink(options, address.path, arrow_schema(schema), overwrite=overwrite)
