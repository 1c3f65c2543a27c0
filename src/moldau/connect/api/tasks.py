"""Tasks: the part of a connector that moves records.

The worker calls a task's methods one at a time in the task's own thread, so they may block; `stop`
of a source task is the exception: it may come from another thread while `poll` waits, and should
make it return.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Protocol

from moldau.client.topics import OffsetAndMetadata, TopicPartition
from moldau.connect.api.errors import ConnectError
from moldau.connect.api.metrics import PluginMetrics
from moldau.connect.api.records import SinkRecord, SourceRecord
from moldau.invariant import invariant

__all__ = [
    "BulkSinkTask",
    "ErrantRecordReporter",
    "Reported",
    "SinkTask",
    "SinkTaskContext",
    "SourceTask",
    "SourceTaskContext",
    "TransactionContext",
]


class TransactionContext(Protocol):
    """For a source with `transaction.boundary=connector`: where transactions end."""

    def commit_transaction(self, record: SourceRecord | None = None) -> None:
        """After this record, or after the records of the next poll."""

    def abort_transaction(self, record: SourceRecord | None = None) -> None: ...


class SourceTaskContext(Protocol):
    def configs(self) -> dict[str, str]:
        """The task's configuration with variables replaced."""

    @property
    def offset_storage_reader(self) -> Any:
        """An `OffsetReader`."""

    @property
    def transaction_context(self) -> TransactionContext | None:
        """None unless the connector defines the transactions."""

    @property
    def plugin_metrics(self) -> PluginMetrics:
        """The task's own metrics."""


class Reported(Protocol):
    """A record on its way to the dead-letter topic, such as a `concurrent.futures.Future`."""

    def done(self) -> bool: ...

    def result(self, timeout: float | None = None) -> Any:
        """Wait until it is there; raises if that failed. Offsets are committed only after that."""


class ErrantRecordReporter(Protocol):
    def report(self, record: SinkRecord, error: BaseException) -> Reported:
        """Send a record that the target refused to the dead-letter topic, or log it, by the error
        settings of the connector. Raises ConnectError if errors are not tolerated."""


class SinkTaskContext(Protocol):
    def configs(self) -> dict[str, str]: ...

    def offset(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Continue reading from these offsets, after the current call."""

    def timeout(self, timeout_ms: int) -> None:
        """How long to wait before the next `put`, after it raised RetriableError."""

    def assignment(self) -> set[TopicPartition]: ...

    def pause(self, *partitions: TopicPartition) -> None: ...

    def resume(self, *partitions: TopicPartition) -> None: ...

    def request_commit(self) -> None:
        """Commit offsets as soon as possible instead of at the next interval."""

    @property
    def errant_record_reporter(self) -> ErrantRecordReporter | None:
        """None if the worker has none; check before use."""

    @property
    def plugin_metrics(self) -> PluginMetrics:
        """The task's own metrics."""


class _Task(ABC):
    def __init__(self) -> None:
        self._context: Any = None

    def initialize(self, context: Any) -> None:
        self._context = context

    @abstractmethod
    def start(self, props: Mapping[str, str]) -> None:
        """Begin with one of the configurations that `task_configs` returned."""


class SourceTask(_Task):
    @property
    def context(self) -> SourceTaskContext:
        invariant(self._context is not None, "the task has not been initialized")
        found: SourceTaskContext = self._context
        return found

    @abstractmethod
    def poll(self) -> Sequence[SourceRecord] | None:
        """The next records, or None if there are none for now. It should wait a little rather than
        return at once, and must return when `stop` was called."""

    @abstractmethod
    def stop(self) -> None:
        """End; may be called from another thread."""

    def commit(self) -> None:
        """The offsets of all records returned so far are committed."""

    def commit_record(self, record: SourceRecord, metadata: Any) -> None:
        """The record is in Kafka (`metadata` is its RecordMetadata) or was dropped (None)."""

    def pre_commit(
        self, written: Sequence[tuple[SourceRecord, Any]]
    ) -> Iterable[tuple[str, bytes | None, bytes | None]]:
        """With exactly once, before a transaction ends: its records with their RecordMetadata (None
        if dropped). Returns more to write with it, each as (topic, key, value); Moldau's own."""
        return ()


class SinkTask(_Task):
    @property
    def context(self) -> SinkTaskContext:
        invariant(self._context is not None, "the task has not been initialized")
        found: SinkTaskContext = self._context
        return found

    @abstractmethod
    def put(self, records: Sequence[SinkRecord]) -> None:
        """Write records to the target, or begin to. Called with an empty list now and then.

        RetriableError has the same records put again, later.
        """

    def flush(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Have everything in the target that was put before; raise if that fails."""

    def pre_commit(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata]
    ) -> Mapping[TopicPartition, OffsetAndMetadata]:
        """The offsets that may be committed; fewer or smaller ones if less is safe."""
        self.flush(offsets)
        return offsets

    def open(self, partitions: Collection[TopicPartition]) -> None:
        """Partitions were assigned."""

    def close(self, partitions: Collection[TopicPartition]) -> None:
        """Partitions are taken away; nothing more is put for them."""

    @abstractmethod
    def stop(self) -> None:
        """End, after the last `put`."""


class BulkSinkTask(SinkTask):
    """Stands for the pipeline of a bulk sink: a worker never gives it records."""

    def start(self, props: Mapping[str, str]) -> None: ...

    def put(self, records: Sequence[SinkRecord]) -> None:
        raise ConnectError("A bulk sink is written by a pipeline on Spark, not record by record")

    def stop(self) -> None: ...
