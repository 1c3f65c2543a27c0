"""A range of a partition's offsets as Arrow batches.

Invariants: the next part is being fetched while one is decoded, and no more than these two
are in memory beside the batch that is being filled; rows are in the order of their offsets, every
record of the range that may be seen is there once, and the range ends, also if its last offsets
hold no records.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from moldau.client.topics import TopicPartition
from moldau.spark.columns._decoder import ColumnDecoder
from moldau.spark.columns.clients import lease
from moldau.spark.columns.column_buffers import BinaryColumn, Columns, HeaderColumn
from moldau.spark.columns.fetching import RangeFetcher
from moldau.spark.columns.schema import HEADERS, pyarrow, source_schema

__all__ = ["BATCH_BYTES", "BATCH_ROWS", "read_range"]

BATCH_ROWS = 64 * 1024
# Wide rows make batches of fewer of them.
BATCH_BYTES = 8 * 1024 * 1024


def read_range(
    config: Mapping[str, str],
    topic: str,
    partition: int,
    start: int,
    end: int,
    *,
    isolation_level: str = "read_uncommitted",
    include_headers: bool = False,
    fail_on_data_loss: bool = True,
    batch_rows: int = BATCH_ROWS,
) -> Iterator[pyarrow.RecordBatch]:
    """The records from `start` up to but not including `end`, at most `batch_rows` in a batch.

    `config` has the consumer's keys by Kafka's names. Timestamps whose microseconds would not fit
    64 bits become the first or the last that do. Raises DataLossError where records are gone,
    unless `fail_on_data_loss` is false, OpenTransactionError where `read_committed` does not get
    to the end within `default.api.timeout.ms`, and KafkaError.
    """
    if isolation_level not in ("read_uncommitted", "read_committed"):
        raise ValueError(
            f"isolation.level {isolation_level!r} must be read_uncommitted or read_committed"
        )
    if batch_rows < 1:
        raise ValueError(f"batch_rows {batch_rows} must be positive")
    if not 0 <= start <= end:
        raise ValueError(f"{topic}-{partition}: offsets {start} to {end} are no range")
    return _read(
        config,
        TopicPartition(topic, partition),
        start,
        end,
        isolation_level == "read_committed",
        include_headers,
        fail_on_data_loss,
        batch_rows,
    )


def _read(
    config: Mapping[str, str],
    key: TopicPartition,
    start: int,
    end: int,
    read_committed: bool,
    include_headers: bool,
    fail_on_data_loss: bool,
    batch_rows: int,
) -> Iterator[pyarrow.RecordBatch]:
    if start == end:
        return
    with lease(config, key.topic) as (client, lane):
        decoder = ColumnDecoder(
            key.topic,
            key.partition,
            start,
            end,
            rows_max=batch_rows,
            bytes_max=BATCH_BYTES,
            include_headers=include_headers,
            check_crcs=client.values["check.crcs"],
            read_committed=read_committed,
        )
        made = _Batches(key, include_headers=include_headers)
        fetcher = RangeFetcher(
            client,
            lane,
            key,
            start,
            end,
            read_committed=read_committed,
            fail_on_data_loss=fail_on_data_loss,
        )
        coming = client.thread.submit(fetcher.fetch(start))
        try:
            while True:
                part = coming.result()
                if part.next_offset < end:
                    coming = client.thread.submit(fetcher.fetch(part.next_offset))
                if part.records is not None:
                    decoder.skip_to(part.position)
                    decoder.open(part.records, part.aborted)
                    while decoder.fill():
                        yield made.batch(decoder.take())
                if part.next_offset >= end:
                    break
        finally:
            coming.cancel()
        if decoder.row_count:
            yield made.batch(decoder.take())


class _Batches:
    """Puts Arrow arrays around the buffers of columns, without copying them."""

    def __init__(self, key: TopicPartition, *, include_headers: bool) -> None:
        self._key = key
        self._schema = source_schema(include_headers=include_headers)
        # The same in every row: made once for the largest batch so far, and cut.
        self._topics = pyarrow.array([], pyarrow.string())
        self._partitions = pyarrow.array([], pyarrow.int32())

    def batch(self, columns: Columns) -> pyarrow.RecordBatch:
        count = columns.row_count
        if len(self._topics) < count:
            self._topics = pyarrow.repeat(pyarrow.scalar(self._key.topic), count)
            partition = pyarrow.scalar(self._key.partition, pyarrow.int32())
            self._partitions = pyarrow.repeat(partition, count)
        arrays = [
            _binary(columns.key, count, pyarrow.binary()),
            _binary(columns.value, count, pyarrow.binary()),
            self._topics[:count],
            self._partitions[:count],
            _numbers(columns.offsets, count, pyarrow.int64()),
            _numbers(columns.timestamps, count, pyarrow.timestamp("us", tz="UTC")),
            _numbers(columns.timestamp_types, count, pyarrow.int32()),
        ]
        if columns.headers is not None:
            arrays.append(_headers(columns.headers, count))
        return pyarrow.RecordBatch.from_arrays(arrays, schema=self._schema)


def _numbers(buffer: bytearray, count: int, kind: pyarrow.DataType) -> pyarrow.Array:
    return pyarrow.Array.from_buffers(kind, count, [None, pyarrow.py_buffer(buffer)], 0)


def _binary(column: BinaryColumn, count: int, kind: pyarrow.DataType) -> pyarrow.Array:
    buffers = [
        None if column.validity is None else pyarrow.py_buffer(column.validity),
        pyarrow.py_buffer(column.ends),
        pyarrow.py_buffer(column.data).slice(0, column.size),
    ]
    return pyarrow.Array.from_buffers(kind, count, buffers, column.null_count)


def _headers(column: HeaderColumn, count: int) -> pyarrow.Array:
    pairs = pyarrow.StructArray.from_arrays(
        [
            _binary(column.names, column.pair_count, pyarrow.string()),
            _binary(column.values, column.pair_count, pyarrow.binary()),
        ],
        fields=list(HEADERS.value_type),
    )
    buffers = [
        None if column.validity is None else pyarrow.py_buffer(column.validity),
        pyarrow.py_buffer(column.ends),
    ]
    return pyarrow.Array.from_buffers(HEADERS, count, buffers, column.null_count, children=[pairs])
