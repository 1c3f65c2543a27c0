"""A task's part of a batch: rows into a transaction of its own, which stays open.

The record that proves the commit (see `log`) goes last into the same transaction. What always
holds: a task without rows opens no transaction; one that fails aborts what it opened, if it can.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Final

from moldau.client.errors import KafkaError
from moldau.spark.columns.schema import pyarrow
from moldau.spark.columns.writing import ColumnWriter
from moldau.spark.sink.machine.log import PARTITION_COUNT, TOPIC, part_key, partition_of
from moldau.spark.sink.machine.protocol import (
    Opened,
    TaskResult,
    Transaction,
    Treatment,
    transactional_id,
)

__all__ = ["Destination", "write_once", "write_part"]

# The end of the transaction before is waited for, which takes milliseconds.
_BACKOFF = {"retry.backoff.ms": "20"}


class _Expectation:
    """What a worker's next task is taken to have; a wrong guess costs a request."""

    has_rows = False


_expectation: Final = _Expectation()


@dataclass(frozen=True, slots=True)
class Destination:
    """Where rows go."""

    config: Mapping[str, str]
    topic: str | None
    columns: tuple[str, ...]

    def select(self, batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        """The columns that are written, of batches that have rows."""
        for batch in batches:
            if batch.num_rows:
                yield batch.select(list(self.columns))


def write_once(destination: Destination, batches: Iterable[pyarrow.RecordBatch]) -> int:
    """Without transactions, at least once; how many rows there were."""
    writer: ColumnWriter | None = None
    try:
        for batch in destination.select(batches):
            if writer is None:
                writer = ColumnWriter(destination.config, default_topic=destination.topic)
            writer.write(batch)
        if writer is None:
            return 0
        writer.flush()
        return writer.record_count
    finally:
        if writer is not None:
            writer.close()


def write_part(
    destination: Destination,
    batches: Iterable[pyarrow.RecordBatch],
    opened: Opened,
    *,
    query_id: str,
    batch_id: int,
    partition: int,
) -> TaskResult:
    """A task of an exactly-once write."""
    if opened.treatment(query_id, batch_id, partition) is Treatment.DISCARD:
        return TaskResult(
            opened.prefix,
            opened.token,
            query_id,
            batch_id,
            partition,
            discarded_count=sum(batch.num_rows for batch in batches),
            state=opened.partial_state(query_id, batch_id),
        )
    row_count = digest = 0
    transaction = None
    key = transactional_id(opened.prefix, partition)
    begun = partial(
        ColumnWriter,
        _BACKOFF | dict(destination.config),
        transactional_id=key,
        default_topic=destination.topic,
    )
    # Where the last task had rows this one will have some: its epoch is asked for while they are
    # being read.
    writer = begun() if _expectation.has_rows else None
    try:
        for batch in destination.select(batches):
            if writer is None:
                writer = begun()
            writer.write(batch)
        if writer is not None:
            row_count, digest = writer.record_count, writer.digest
            if row_count:
                writer.write(_proof(opened.prefix, key, query_id, batch_id))
            # Also without rows, when there is nothing to end: so the producer is kept.
            prepared = writer.prepared()
            if row_count:
                transaction = Transaction(
                    key, prepared.producer_id, prepared.producer_epoch, prepared.transaction_version
                )
        _expectation.has_rows = row_count > 0
    except BaseException:
        if writer is not None:
            # What is wrong is known already; what cannot be aborted now is at the next attempt.
            with suppress(KafkaError):
                writer.abort()
        raise
    finally:
        if writer is not None:
            writer.close()
    return TaskResult(
        opened.prefix,
        opened.token,
        query_id,
        batch_id,
        partition,
        row_count=row_count,
        digest=digest,
        transaction=transaction,
        state=opened.partial_state(query_id, batch_id),
    )


def _proof(prefix: str, key: str, query_id: str, batch_id: int) -> pyarrow.RecordBatch:
    value = json.dumps({"version": 1, "queryId": query_id, "batchId": batch_id}).encode()
    return pyarrow.record_batch(
        [
            pyarrow.array([part_key(key)], pyarrow.binary()),
            pyarrow.array([value], pyarrow.binary()),
            pyarrow.array([TOPIC], pyarrow.string()),
            pyarrow.array([partition_of(prefix, PARTITION_COUNT)], pyarrow.int32()),
        ],
        names=["key", "value", "topic", "partition"],
    )
