"""Connectors for tests of the worker: they do what their settings and a test say."""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar

from moldau.connect.api import (
    ConfigDef,
    ConnectError,
    ConnectorTransactionBoundaries,
    DataError,
    ExactlyOnceSupport,
    Kind,
    RetriableError,
    SinkConnector,
    SinkRecord,
    SinkTask,
    SourceConnector,
    SourceRecord,
    SourceTask,
    TopicPartition,
)
from moldau.data.builders import INT64, STRING


class Numbers(SourceConnector):
    """Numbers from where the offset is, `count` per poll, up to `limit`."""

    CONFIG = (
        ConfigDef()
        .define("topic", Kind.STRING)
        .define("limit", Kind.INT, 100)
        .define("count", Kind.INT, 10)
        .define("abort.every", Kind.INT, 0)
    )

    def start(self, props: Mapping[str, str]) -> None:
        self._props = dict(props)

    def task_class(self) -> type[SourceTask]:
        return NumbersTask

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        return [{**self._props, "part": str(n)} for n in range(max_tasks)]

    @classmethod
    def config(cls) -> ConfigDef:
        return cls.CONFIG

    def exactly_once_support(self, props: Mapping[str, str]) -> ExactlyOnceSupport:
        return ExactlyOnceSupport.SUPPORTED

    def can_define_transaction_boundaries(
        self, props: Mapping[str, str]
    ) -> ConnectorTransactionBoundaries:
        return ConnectorTransactionBoundaries.SUPPORTED


class NumbersTask(SourceTask):
    def start(self, props: Mapping[str, str]) -> None:
        self._config = Numbers.CONFIG.parse(props)
        self._partition = {"part": props["part"]}
        stored = self.context.offset_storage_reader.offset(self._partition)
        self._next = (stored or {"next": 0})["next"]
        self._stopped = threading.Event()

    def poll(self) -> Sequence[SourceRecord] | None:
        config = self._config
        end = min(self._next + config["count"], config["limit"])
        if self._next >= end:
            self._stopped.wait(0.05)
            return None
        found = [
            SourceRecord(
                self._partition,
                {"next": n + 1},
                config["topic"],
                key=n,
                key_schema=INT64,
                value=f"{self._partition['part']}:{n}",
                value_schema=STRING,
            )
            for n in range(self._next, end)
        ]
        self._next = end
        transactions = self.context.transaction_context
        if transactions is not None:
            every = config["abort.every"]
            if every and (end // config["count"]) % every == 0:
                transactions.abort_transaction()
            else:
                transactions.commit_transaction(found[-1])
        return found

    def stop(self) -> None:
        self._stopped.set()


class Target(SinkConnector):
    """Keeps values in a list by connector name; refuses and fails as it is told."""

    CONFIG = ConfigDef().define("report", Kind.BOOLEAN, False)
    received: ClassVar[dict[str, list[Any]]] = {}
    #: How often the next puts fail, by connector.
    down: ClassVar[dict[str, int]] = {}
    #: The offset that the target has, by connector.
    begin: ClassVar[dict[str, int]] = {}

    def start(self, props: Mapping[str, str]) -> None:
        self._props = dict(props)

    def task_class(self) -> type[SinkTask]:
        return TargetTask

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        return [dict(self._props) for _ in range(max_tasks)]

    @classmethod
    def config(cls) -> ConfigDef:
        return cls.CONFIG


class TargetTask(SinkTask):
    def start(self, props: Mapping[str, str]) -> None:
        self._name = props["name"]
        self._reports = Target.CONFIG.parse(props)["report"]
        self._waits = 0

    def open(self, partitions: Collection[TopicPartition]) -> None:
        begin = Target.begin.get(self._name)
        if begin is not None:
            self.context.offset(dict.fromkeys(partitions, begin))

    def put(self, records: Sequence[SinkRecord]) -> None:
        self._pause_and_resume(records)
        if records and Target.down.get(self._name, 0) > 0:
            Target.down[self._name] -= 1
            self.context.timeout(10)
            raise RetriableError("the target is down")
        bad = [each for each in records if "bad" in str(each.value)]
        reporter = self.context.errant_record_reporter if self._reports else None
        if bad and reporter is not None:
            for each in bad:
                reporter.report(each, DataError("refused"))
        elif bad:
            raise DataError("refused")
        into = Target.received.setdefault(self._name, [])
        into.extend(each.value for each in records if each not in bad)

    def _pause_and_resume(self, records: Sequence[SinkRecord]) -> None:
        """After the value `pause` nothing is read, until three puts had no records."""
        if records and self._waits:
            raise ConnectError("records of a partition that is paused")
        if "pause" in [each.value for each in records]:
            self.context.pause(*self.context.assignment())
            self.context.request_commit()
            self._waits = 3
        elif self._waits:
            self._waits -= 1
            if not self._waits:
                self.context.resume(*self.context.assignment())

    def stop(self) -> None: ...
