"""Runs a connector in a test, without broker and worker: records in, records out, in milliseconds.

    with SourceDriver(MySource, {"topic": "lines", "file": "/tmp/x"}) as source:
        records = source.poll_until(2)

    with SinkDriver(MySink, {"topics": "orders", "url": "..."}) as sink:
        sink.send("orders", {"id": 1}, key="1")
        sink.commit()

Transforms of the configuration are applied. Class names are found as a worker finds them; a class
can be given as well.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any

from moldau.connect.api import (
    ConfigError,
    ConnectError,
    Connector,
    Header,
    OffsetAndMetadata,
    PluginMetrics,
    SinkConnector,
    SinkRecord,
    SinkTask,
    SourceConnector,
    SourcePartition,
    SourceRecord,
    SourceTask,
    TopicPartition,
)
from moldau.connect.chain import Chain, chain_of
from moldau.connect.machine.dialects import translated
from moldau.connect.plugins import Plugins
from moldau.data.schema import Schema

__all__ = ["SinkDriver", "SourceDriver", "config_errors", "transform"]


def config_errors(
    connector: type[Connector] | str, config: Mapping[str, str]
) -> dict[str, list[str]]:
    """What is wrong with a connector's own settings, by key."""
    made = _connector_class(connector, Plugins())()
    return {each.name: each.errors for each in made.validate(config) if each.errors}


def transform(config: Mapping[str, str], record: Any) -> Any:
    """The record after the transforms of a configuration; None if one dropped it."""
    chain = chain_of(config, Plugins())
    try:
        return chain.apply(record)
    finally:
        chain.close()


def _connector_class(connector: type[Connector] | str, plugins: Plugins) -> type[Any]:
    return plugins.connector(connector) if isinstance(connector, str) else connector


class _Started:
    """A connector that runs, and the configurations of its tasks."""

    def __init__(
        self, connector: type[Connector] | str, config: Mapping[str, str], context: Any
    ) -> None:
        plugins = Plugins()
        self.config = {"name": "test", "tasks.max": "1", **config}
        if isinstance(connector, str):
            # As a worker does: a Java class name brings the names of its settings.
            self.config = translated({"connector.class": connector, **self.config})
        self.connector: Any = _connector_class(connector, plugins)()
        self.connector.initialize(context)
        errors = [e for each in self.connector.validate(self.config) for e in each.errors]
        if errors:
            raise ConfigError("; ".join(errors))
        self.connector.start(self.config)
        self.task_configs: list[dict[str, str]] = self.connector.task_configs(
            int(self.config["tasks.max"])
        )
        self.chain: Chain = chain_of(self.config, plugins)

    def stop(self) -> None:
        self.connector.stop()
        self.chain.close()


class _ConnectorContext:
    """What connectors may ask; `reconfigurations` counts, `error` is what was raised."""

    def __init__(self, offsets: _Offsets) -> None:
        self.offset_storage_reader = offsets
        self.reconfigurations = 0
        self.plugin_metrics = PluginMetrics()
        self.error: Exception | None = None

    def request_task_reconfiguration(self) -> None:
        self.reconfigurations += 1

    def raise_error(self, error: Exception) -> None:
        self.error = error


class _Offsets:
    def __init__(self, stored: dict[SourcePartition, dict[str, Any]]) -> None:
        self._stored = stored

    def offset(self, partition: Mapping[str, Any]) -> dict[str, Any] | None:
        return self._stored.get(SourcePartition(partition))

    def offsets(self, partitions: Sequence[Mapping[str, Any]]) -> list[dict[str, Any] | None]:
        return [self.offset(each) for each in partitions]


class _Transactions:
    def __init__(self) -> None:
        self.calls: list[tuple[str, SourceRecord | None]] = []

    def commit_transaction(self, record: SourceRecord | None = None) -> None:
        self.calls.append(("commit", record))

    def abort_transaction(self, record: SourceRecord | None = None) -> None:
        self.calls.append(("abort", record))


class _SourceTaskContext:
    def __init__(self, config: dict[str, str], offsets: _Offsets, transactions: Any) -> None:
        self._config = config
        self.offset_storage_reader = offsets
        self.transaction_context = transactions
        self.plugin_metrics = PluginMetrics()

    def configs(self) -> dict[str, str]:
        return dict(self._config)


class SourceDriver:
    """One task of a source connector.

    `offsets` are the committed ones, from pairs of source partition and offset; `commit` adds those
    of the records polled so far. `restart` begins again from what is committed.
    """

    def __init__(
        self,
        connector: type[SourceConnector] | str,
        config: Mapping[str, str],
        *,
        task: int = 0,
        offsets: Iterable[tuple[Mapping[str, Any], Mapping[str, Any]]] = (),
    ) -> None:
        self.offsets = {SourcePartition(each): dict(offset) for each, offset in offsets}
        self._pending: dict[SourcePartition, dict[str, Any]] = {}
        self._unacknowledged: list[SourceRecord] = []
        self._what = (connector, config)
        self._index = task
        self.transactions = _Transactions()
        self._start()

    def _start(self) -> None:
        reader = _Offsets(self.offsets)
        self.context = _ConnectorContext(reader)
        self._started = _Started(*self._what, self.context)
        config = self._started.task_configs[self._index]
        task_class = self._started.connector.task_class()
        self.task: SourceTask = task_class()
        self.task.initialize(_SourceTaskContext(config, reader, self.transactions))
        self.task.start(config)

    @property
    def connector(self) -> Any:
        return self._started.connector

    @property
    def task_configs(self) -> list[dict[str, str]]:
        return self._started.task_configs

    def poll(self) -> list[SourceRecord]:
        """What one poll returns, after the transforms."""
        found = []
        for record in self.task.poll() or ():
            if record.source_partition is not None and record.source_offset is not None:
                self._pending[SourcePartition(record.source_partition)] = dict(record.source_offset)
            self._unacknowledged.append(record)
            changed = self._started.chain.apply(record)
            if changed is not None:
                found.append(changed)
        return found

    def poll_until(self, count: int, *, timeout: float = 10.0) -> list[SourceRecord]:
        """Polls until there are `count` records; TimeoutError if there are not."""
        deadline = time.monotonic() + timeout
        found: list[SourceRecord] = []
        while len(found) < count:
            found += self.poll()
            if len(found) < count and time.monotonic() > deadline:
                raise TimeoutError(f"{len(found)} of {count} records after {timeout} s: {found}")
        return found

    def commit(self) -> dict[SourcePartition, dict[str, Any]]:
        """As if everything polled was in Kafka and its offsets stored. Returns all offsets."""
        for record in self._unacknowledged:
            self.task.commit_record(record, None)
        self._unacknowledged.clear()
        self.offsets.update(self._pending)
        self._pending.clear()
        self.task.commit()
        return self.offsets

    def restart(self) -> None:
        """Stop, and start again from the committed offsets."""
        self.stop()
        self._pending.clear()
        self._unacknowledged.clear()
        self._start()

    def stop(self) -> None:
        self.task.stop()
        self._started.stop()

    def __enter__(self) -> SourceDriver:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


class _SinkTaskContext:
    def __init__(self, config: dict[str, str], reporter: _Reporter | None) -> None:
        self._config = config
        self.partitions: set[TopicPartition] = set()
        self.paused: set[TopicPartition] = set()
        self.rewound: dict[TopicPartition, int] = {}
        self.timeout_ms: int | None = None
        self.commit_requested = False
        self.errant_record_reporter = reporter
        self.plugin_metrics = PluginMetrics()

    def configs(self) -> dict[str, str]:
        return dict(self._config)

    def offset(self, offsets: Mapping[TopicPartition, int]) -> None:
        self.rewound.update(offsets)

    def timeout(self, timeout_ms: int) -> None:
        self.timeout_ms = timeout_ms

    def assignment(self) -> set[TopicPartition]:
        return set(self.partitions)

    def pause(self, *partitions: TopicPartition) -> None:
        self.paused.update(partitions)

    def resume(self, *partitions: TopicPartition) -> None:
        self.paused.difference_update(partitions)

    def request_commit(self) -> None:
        self.commit_requested = True


class _Reporter:
    def __init__(self) -> None:
        self.reported: list[tuple[SinkRecord, BaseException]] = []

    def report(self, record: SinkRecord, error: BaseException) -> Future[None]:
        self.reported.append((record, error))
        done: Future[None] = Future()
        done.set_result(None)
        return done


class SinkDriver:
    """One task of a sink connector; partitions are opened when records of them come.

    `errant` has what the task reported as (record, error). With `reports=False` it has no reporter,
    as in a worker whose connector has neither a dead-letter topic nor errors.log.enable.
    """

    def __init__(
        self,
        connector: type[SinkConnector] | str,
        config: Mapping[str, str],
        *,
        task: int = 0,
        partitions: Iterable[TopicPartition | tuple[str, int]] = (),
        reports: bool = True,
    ) -> None:
        self._reporter = _Reporter()
        self.context = _ConnectorContext(_Offsets({}))
        self._started = _Started(connector, config, self.context)
        own = self._started.task_configs[task]
        self.task: SinkTask = self._started.connector.task_class()()
        self.task_context = _SinkTaskContext(own, self._reporter if reports else None)
        self.task.initialize(self.task_context)
        self.task.start(own)
        self._next: dict[TopicPartition, int] = {}
        self.open(*partitions)

    @property
    def connector(self) -> Any:
        return self._started.connector

    @property
    def errant(self) -> list[tuple[SinkRecord, BaseException]]:
        return self._reporter.reported

    def open(self, *partitions: TopicPartition | tuple[str, int]) -> None:
        fresh = {TopicPartition(*each) for each in partitions} - self.task_context.partitions
        if fresh:
            self.task_context.partitions |= fresh
            self.task.open(fresh)

    def record(
        self,
        topic: str,
        value: Any,
        *,
        key: Any = None,
        value_schema: Schema | None = None,
        key_schema: Schema | None = None,
        partition: int = 0,
        timestamp: int | None = None,
        headers: Iterable[Header] = (),
    ) -> SinkRecord:
        """A record with the next offset of its partition."""
        at = TopicPartition(topic, partition)
        offset = self._next.get(at, 0)
        self._next[at] = offset + 1
        return SinkRecord(
            topic,
            partition,
            offset,
            key=key,
            key_schema=key_schema,
            value=value,
            value_schema=value_schema,
            timestamp=timestamp,
            headers=headers,
        )

    def send(self, topic: str, value: Any, **parts: Any) -> None:
        """Put one record."""
        self.put([self.record(topic, value, **parts)])

    def put(self, records: Iterable[SinkRecord]) -> None:
        """Put records after the transforms."""
        batch = list(records)
        self.open(*{(each.topic, each.partition or 0) for each in batch})
        for each in batch:
            at = TopicPartition(each.original_topic, each.original_partition)
            self._next[at] = max(self._next.get(at, 0), each.original_offset + 1)
        changed = (self._started.chain.apply(each) for each in batch)
        self.task.put([each for each in changed if each is not None])

    def commit(self) -> dict[TopicPartition, int]:
        """The offsets that the task allows to be committed."""
        current = {at: OffsetAndMetadata(offset) for at, offset in self._next.items()}
        allowed = self.task.pre_commit(current)
        for at, each in allowed.items():
            if at not in current:
                raise ConnectError(f"pre_commit returned {at}, which is not assigned")
            if each.offset > current[at].offset:
                raise ConnectError(
                    f"pre_commit returned offset {each.offset} of {at}, not yet read"
                )
        return {at: each.offset for at, each in allowed.items()}

    def stop(self) -> None:
        self.task.close(set(self.task_context.partitions))
        self.task.stop()
        self._started.stop()

    def __enter__(self) -> SinkDriver:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
