"""The writers that Spark calls.

Spark makes a writer on the driver for every batch and sends copies of it to the tasks; commit and
abort of a stream are called on yet another one, in another process, made of the options alone. So
an attempt is opened when a writer is pickled, which is when it leaves for the tasks, and all that
commit has to know comes back to it in the tasks' messages.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from moldau.spark import workers
from moldau.spark.columns.schema import pyarrow
from moldau.spark.sink import tasks
from moldau.spark.sink.machine import protocol
from moldau.spark.sink.machine.options import (
    TRANSACTION_TIMEOUT_MS,
    SinkOptions,
    check_columns,
    parse,
)
from moldau.spark.sink.machine.protocol import Opened, SinkError, TaskResult
from moldau.spark.sink.shell import clusters
from moldau.spark.topic_options import OptionError

__all__ = ["TopicStreamWriter", "TopicWriter", "make_stream_writer", "make_writer"]

_TIMEOUT = "transaction.timeout.ms"


@dataclass
class TopicMessage(WriterCommitMessage):
    """What a task reports; None if it took part in no transaction."""

    result: TaskResult | None = None


class _Writer:
    """What the writers of batches and of streams have in common."""

    def __init__(self, options: SinkOptions, columns: tuple[str, ...], prefix: str) -> None:
        self._options = options
        self._columns = columns
        self._prefix = prefix
        self._opened: Opened | None = None
        self._timeout_ms = 0

    def __getstate__(self) -> dict[str, Any]:
        if self._options.exactly_once and self._opened is None:
            with clusters.lease(self._options.config) as cluster:
                self._opened = cluster.open_attempt(self._prefix)
                if _TIMEOUT not in self._options.config:
                    self._timeout_ms = cluster.transaction_timeout_ms(TRANSACTION_TIMEOUT_MS)
        return self.__dict__

    def _write(
        self, batches: Iterator[pyarrow.RecordBatch], query_id: str, batch_id: int
    ) -> TopicMessage:
        workers.used()
        config = self._options.config
        if self._timeout_ms:
            config = {_TIMEOUT: str(self._timeout_ms), **config}
        if self._options.schemas:
            from moldau.spark.schemas.sink import encoded

            batches = encoded(batches, self._options.schemas)
        destination = tasks.Destination(config, self._options.topic, self._columns)
        if self._opened is None:
            tasks.write_once(destination, batches)
            return TopicMessage()
        result = tasks.write_part(
            destination,
            batches,
            self._opened,
            query_id=query_id,
            batch_id=batch_id,
            partition=_context().partitionId(),
        )
        return TopicMessage(result)

    def _commit(self, messages: list[WriterCommitMessage | None]) -> None:
        results = _results(messages)
        decision = protocol.plan(results)
        if decision is not None:
            with clusters.lease(self._options.config) as cluster:
                cluster.run(protocol.commit(decision, results[0].prefix))

    def _abort(self, messages: list[WriterCommitMessage | None]) -> None:
        results = _results(messages)
        if not results:
            # No task came to its end. The next attempt aborts what they left.
            return
        open_ones = tuple(each.transaction for each in results if each.transaction is not None)
        steps = protocol.abort(results[0].prefix, results[0].token, open_ones)
        with clusters.lease(self._options.config) as cluster:
            cluster.run(steps)


class TopicStreamWriter(_Writer, DataSourceStreamArrowWriter):
    """A stream's batches, by the ids of query and batch."""

    def write(self, iterator: Iterator[pyarrow.RecordBatch]) -> TopicMessage:
        if self._opened is None:
            return self._write(iterator, "", 0)
        context = _context()
        query_id = context.getLocalProperty("sql.streaming.queryId")
        batch_id = context.getLocalProperty("streaming.sql.batchId")
        if query_id is None or batch_id is None:
            raise SinkError(
                "Spark did not give the task the query and batch it belongs to "
                "(sql.streaming.queryId, streaming.sql.batchId); an exactly-once stream needs both"
            )
        return self._write(iterator, query_id, int(batch_id))

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        self._commit(messages)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        self._abort(messages)


class TopicWriter(_Writer, DataSourceArrowWriter):
    """One batch, with the name and number that it was given, or with one of its own."""

    def __init__(self, options: SinkOptions, columns: tuple[str, ...], prefix: str) -> None:
        super().__init__(options, columns, prefix)
        self._is_anonymous = not options.prefix
        self._name = options.transaction or (uuid4().hex, 0)

    def write(self, iterator: Iterator[pyarrow.RecordBatch]) -> TopicMessage:
        return self._write(iterator, *self._name)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        self._commit(messages)
        self._forget(messages)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        self._abort(messages)

    def _forget(self, messages: list[WriterCommitMessage | None]) -> None:
        ids = [each.transaction[0] for each in _results(messages) if each.transaction is not None]
        if ids and self._is_anonymous:
            # Nobody can ask for it again: its ids are not known to anybody else.
            with clusters.lease(self._options.config) as cluster:
                cluster.forget(self._prefix, ids)


def _context() -> Any:
    context = TaskContext.get()
    if context is None:
        raise SinkError("only a task of Spark can write rows, and this is not one")
    return context


def _results(messages: list[WriterCommitMessage | None]) -> list[TaskResult]:
    """Of tasks that failed there is no message."""
    return [
        each.result
        for each in messages
        if isinstance(each, TopicMessage) and each.result is not None
    ]


def make_writer(given: Mapping[str, str], schema: Any, overwrite: bool) -> TopicWriter:
    """A writer of a batch; raises OptionError."""
    workers.used()
    if overwrite:
        raise OptionError(
            "Save mode Overwrite not allowed for Kafka. Allowed save modes are Append and "
            "ErrorIfExists (default)."
        )
    options = parse(given, is_stream=False)
    columns = check_columns(_types(schema), options)
    return TopicWriter(options, columns, options.prefix or f"moldau-spark-{uuid4().hex}")


def make_stream_writer(given: Mapping[str, str], schema: Any, overwrite: bool) -> TopicStreamWriter:
    """A writer of a stream's batch; raises OptionError. In the output mode complete every
    batch appends the whole result, as Spark's own sink does."""
    workers.used()
    options = parse(given, is_stream=True)
    columns = check_columns(_types(schema), options)
    return TopicStreamWriter(options, columns, options.prefix)


def _types(schema: Any) -> dict[str, str]:
    return {field.name: field.dataType.simpleString() for field in schema.fields}
