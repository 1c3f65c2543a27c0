"""A range of a partition's offsets as Arrow batches."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping

import pyarrow

from moldau.client.consumer import Consumer
from moldau.client.topics import TopicPartition
from moldau.spark.columns.errors import DataLossError, OpenTransactionError
from moldau.spark.columns.schema import source_schema

__all__ = ["read_range"]

BATCH_ROWS = 64 * 1024


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
    """The records from `start` up to but not including `end`, at most `batch_rows` in a batch."""
    key = TopicPartition(topic, partition)
    schema = source_schema(include_headers=include_headers)
    own = {name: value for name, value in config.items() if name != "group.id"}
    with Consumer({**own, "isolation.level": isolation_level}) as consumer:
        first = consumer.beginning_offsets([key])[key]
        last = consumer.end_offsets([key])[key]
        if first > start and fail_on_data_loss:
            raise DataLossError(topic, partition, (start, end), (first, last))
        consumer.assign([key])
        consumer.seek(key, max(start, first))
        until = time.monotonic() + 60
        while consumer.position(key) < end:
            records = [each for each in consumer.poll(0.1) if each.offset < end]
            if time.monotonic() > until:
                raise OpenTransactionError(topic, partition, last, end, 60_000)
            rows = [
                {
                    "key": each.key,
                    "value": each.value,
                    "topic": topic,
                    "partition": partition,
                    "offset": each.offset,
                    "timestamp": each.timestamp * 1000,
                    "timestampType": int(each.timestamp_type),
                    "headers": [{"key": name, "value": value} for name, value in each.headers]
                    or None,
                }
                for each in records
            ]
            if rows:
                yield pyarrow.RecordBatch.from_pylist(rows, schema=schema)
