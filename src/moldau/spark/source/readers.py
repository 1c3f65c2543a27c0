"""What Spark calls: readers of batch and of streaming queries.

Spark makes a reader in its driver and sends copies of it to tasks, which only call `read`. So a
reader holds its options and nothing else that cannot be sent; connections are made when asked for.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from moldau.client.topics import TopicPartition
from moldau.invariant import of_type
from moldau.spark import workers
from moldau.spark.source.machine.limits import LIMIT_MAX
from moldau.spark.source.machine.offsets import (
    EARLIEST,
    LATEST,
    OffsetsJson,
    offsets_from_json,
    offsets_to_json,
)
from moldau.spark.source.machine.options import SourceOptions, parse_options
from moldau.spark.source.machine.planning import batch_ranges, questions, settled
from moldau.spark.source.machine.ranges import OffsetRange, cut
from moldau.spark.source.schema import topic_schema
from moldau.spark.topic_options import OptionError

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql.types import StructType

    from moldau.spark.schemas.source import TypedColumns
    from moldau.spark.source.stream import StreamRun

__all__ = ["TopicReader", "TopicStreamReader", "topic_reader", "topic_stream_reader"]

_log = logging.getLogger(__name__)


@dataclass
class TopicRange(InputPartition):
    """What one task reads."""

    range: OffsetRange
    #: With which to announce the query's consumer group, once it has been read.
    token: str | None = None


def topic_reader(given: Mapping[str, str], schema: StructType) -> TopicReader:
    """Of a batch query. Raises OptionError."""
    options = _checked(given, schema, streaming=False)
    return TopicReader(options, _typed(options, schema))


def topic_stream_reader(given: Mapping[str, str], schema: StructType) -> TopicStreamReader:
    """Of a streaming query. Raises OptionError."""
    options = _checked(given, schema, streaming=True)
    return TopicStreamReader(options, _typed(options, schema))


def _typed(options: SourceOptions, schema: StructType) -> TypedColumns | None:
    if not options.schemas:
        return None
    from moldau.spark.schemas.source import TypedColumns

    return TypedColumns.of(options.schemas, schema, options.config)


def _checked(given: Mapping[str, str], schema: StructType, *, streaming: bool) -> SourceOptions:
    options = parse_options(given, streaming=streaming)
    own = topic_schema(include_headers=options.include_headers)
    if options.schemas:
        # Their types are checked when their schemas are chosen.
        return options
    if schema.simpleString() != own.simpleString():
        raise OptionError(
            "Kafka source has a fixed schema and cannot be set with a custom one: remove "
            f".schema(...); the columns are {own.simpleString()}"
        )
    return options


class TopicReader(DataSourceReader):
    """Reads what is between two places of topics."""

    def __init__(self, options: SourceOptions, typed: TypedColumns | None = None) -> None:
        self._options = options
        self._typed = typed

    def partitions(self) -> Sequence[InputPartition]:
        from moldau.spark.source.cluster import SourceCluster

        options = self._options
        for warning in options.warnings:
            _log.warning("%s", warning)
        starting = EARLIEST if options.starting is None else options.starting
        ending = LATEST if options.ending is None else options.ending
        cluster = SourceCluster(options)
        try:
            there = cluster.partitions(fresh=True)
            latest = cluster.latest(there)
            begin, end = (
                settled(
                    asked,
                    cluster.at_times(asked.asked),
                    latest,
                    latest_if_no_match=is_end or options.latest_if_no_match,
                )
                for asked, is_end in (
                    (questions(starting, there, edge="starting"), False),
                    (questions(ending, there, edge="ending"), True),
                )
            )
        finally:
            cluster.close()
        ranges = cut(
            batch_ranges(begin, end).ranges,
            min_partitions=options.min_partitions,
            max_records=options.max_records_per_partition,
        )
        return [TopicRange(each) for each in ranges]

    def read(self, partition: InputPartition) -> Iterator[pyarrow.RecordBatch]:
        return _read(self._options, partition, self._typed)


class TopicStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads what comes in, batch by batch."""

    def __init__(self, options: SourceOptions, typed: TypedColumns | None = None) -> None:
        self._options = options
        self._typed = typed
        self._run: StreamRun | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"_options": self._options, "_typed": self._typed, "_run": None}

    def _running(self) -> StreamRun:
        if self._run is None:
            from moldau.spark.source.stream import StreamRun

            self._run = StreamRun(self._options)
        return self._run

    def initialOffset(self) -> OffsetsJson:
        return offsets_to_json(self._running().initial())

    def prepareForTriggerAvailableNow(self) -> None:
        self._running().prepare_available_now()

    def getDefaultReadLimit(self) -> ReadLimit:
        # Spark takes one limit of a Python source. What comes back shows whether the trigger wants
        # limits at all; both of them are in the options.
        if self._options.max_offsets_per_trigger is not None:
            return ReadMaxRows(self._options.max_offsets_per_trigger)
        if self._options.target_batch_ms is not None:
            return ReadMaxRows(LIMIT_MAX)
        if self._options.min_offsets_per_trigger is not None:
            return ReadMinRows(self._options.min_offsets_per_trigger)
        return ReadAllAvailable()

    def latestOffset(self, start: OffsetsJson, limit: ReadLimit) -> OffsetsJson:
        limited = not isinstance(limit, ReadAllAvailable)
        begin = offsets_from_json(start)
        end = self._running().latest(begin, limited=limited)
        # As it came, where nothing is new: Spark compares texts.
        return start if end == begin else offsets_to_json(end)

    def reportLatestOffset(self) -> dict[str, Any] | None:
        return self._running().report()

    def partitions(self, start: OffsetsJson, end: OffsetsJson) -> Sequence[InputPartition]:
        run = self._running()
        ranges = run.plan(offsets_from_json(start), offsets_from_json(end))
        token = run.announcement() if ranges else None
        return [
            TopicRange(each, token if index == 0 else None) for index, each in enumerate(ranges)
        ]

    def read(self, partition: InputPartition) -> Iterator[pyarrow.RecordBatch]:
        return _read(self._options, partition, self._typed)

    def commit(self, end: OffsetsJson) -> None:
        # Comes a batch late and never for the last one: `latestOffset` returns it sooner.
        pass

    def stop(self) -> None:
        if self._run is not None:
            self._run.close()
            self._run = None


def _read(
    options: SourceOptions, partition: InputPartition, typed: TypedColumns | None
) -> Iterator[pyarrow.RecordBatch]:
    """In a task."""
    from moldau.spark.columns.reading import read_range

    workers.used()
    given = of_type(partition, TopicRange)
    topic, number, start, end = given.range
    config = {"default.api.timeout.ms": str(options.poll_timeout_ms), **options.config}
    batches = read_range(
        config,
        topic,
        number,
        start,
        end,
        isolation_level=options.isolation_level,
        # Headers may name the schemas of typed columns.
        include_headers=options.include_headers or typed is not None,
        fail_on_data_loss=options.fail_on_data_loss,
    )
    if typed is None:
        yield from batches
    else:
        yield from _typed_batches(typed, batches, include_headers=options.include_headers)
    if given.token is not None:
        _announce(options, TopicPartition(topic, number), start, given.token)


def _typed_batches(
    typed: TypedColumns, batches: Iterator[pyarrow.RecordBatch], *, include_headers: bool
) -> Iterator[pyarrow.RecordBatch]:
    reading = typed.reading()
    try:
        for batch in map(reading.typed, batches):
            yield batch if include_headers else batch.drop_columns(["headers"])
    finally:
        reading.close()


def _announce(options: SourceOptions, key: TopicPartition, offset: int, token: str) -> None:
    from pyspark import TaskContext

    from moldau.spark.source.mirror import announce, query_group

    context = TaskContext.get()
    if context is None:
        return
    group = query_group(
        options.group_id_prefix,
        context.getLocalProperty("spark.job.description"),
        context.getLocalProperty("sql.streaming.queryId"),
    )
    if group is not None:
        announce(options, group, key, offset, token)
