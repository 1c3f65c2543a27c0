"""The redrive source: records of a dead-letter topic, written to the topics they failed in.

The topic is the one in Connect's header `__connect.errors.topic` (or of Streams' or pipelines' own
header), unless `redrive.topic` is set. Bytes are passed on as they are, so the converters must be
ByteArrayConverter. Headers about the error are dropped; `__moldau.redrive.count` counts how often a
record has been sent back, and one that comes too often stays where it is.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping, Sequence
from typing import Any, Final

from moldau.client import Consumer, TopicPartition
from moldau.client.errors import KafkaError
from moldau.connect.api import (
    ConfigDef,
    ConnectError,
    ExactlyOnceSupport,
    Header,
    Importance,
    Kind,
    Range,
    RetriableError,
    SourceConnector,
    SourceRecord,
    SourceTask,
    ValidRegex,
)
from moldau.data.builders import OPTIONAL_BYTES

COUNT: Final = "__moldau.redrive.count"
_TOPIC_HEADERS: Final = ("__connect.errors.topic", "__streams.errors.topic")
_ERROR_HEADERS: Final = ("__connect.errors.", "__streams.errors.")
_PARTITIONS: Final = "redrive.partitions"

CONFIG: Final = (
    ConfigDef()
    .define("redrive.from", Kind.STRING, importance=Importance.HIGH, doc="The dead-letter topic")
    .define("redrive.bootstrap.servers", Kind.STRING, importance=Importance.HIGH,
            doc="The cluster of the dead-letter topic")
    .define("redrive.topic", Kind.STRING, "",
            doc="Topic to write to; empty: the one that a record's headers name")
    .define("redrive.attempts.max", Kind.INT, 3, validator=Range(1),
            doc="How often a record is sent back")
    .define("redrive.errors", Kind.STRING, "", validator=ValidRegex(),
            doc="Only records whose error, class or message, contains this regular expression")
)  # fmt: skip


def _consumer(props: Mapping[str, str], config: Mapping[str, Any]) -> Consumer[Any, Any]:
    prefix = "redrive.consumer."
    own = {name.removeprefix(prefix): value for name, value in props.items()
           if name.startswith(prefix)}  # fmt: skip
    return Consumer(
        {
            **own,
            "bootstrap.servers": config["redrive.bootstrap.servers"],
            "enable.auto.commit": "false",
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
        }
    )


class RedriveConnector(SourceConnector):
    DESCRIPTION = "Records of a dead-letter topic back to the topics they failed in"

    def __init__(self) -> None:
        super().__init__()
        self._props: dict[str, str] = {}
        self._partitions: list[int] = []

    @classmethod
    def config(cls) -> ConfigDef:
        return CONFIG

    def start(self, props: Mapping[str, str]) -> None:
        config = CONFIG.parse(props)
        self._props = dict(props)
        with _consumer(props, config) as consumer:
            found = consumer.partitions_for(config["redrive.from"])
        if not found:
            raise ConnectError(f"there is no topic {config['redrive.from']}")
        self._partitions = sorted(each.partition for each in found)

    def task_class(self) -> type[SourceTask]:
        return RedriveTask

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        groups = [self._partitions[number::max_tasks] for number in range(max_tasks)]
        return [
            {**self._props, _PARTITIONS: ",".join(map(str, group))} for group in groups if group
        ]

    def exactly_once_support(self, props: Mapping[str, str]) -> ExactlyOnceSupport:
        return ExactlyOnceSupport.SUPPORTED


class RedriveTask(SourceTask):
    def __init__(self) -> None:
        super().__init__()
        self._stopped = threading.Event()
        self._consumer: Consumer[Any, Any] | None = None

    def start(self, props: Mapping[str, str]) -> None:
        self._props = dict(props)
        config = self._config = CONFIG.parse(props)
        self._errors = re.compile(config["redrive.errors"]) if config["redrive.errors"] else None
        self._topic = config["redrive.from"]

    def _source(self, partition: int) -> dict[str, Any]:
        return {"topic": self._topic, "partition": partition}

    def _open(self) -> Consumer[Any, Any]:
        if self._consumer is None:
            partitions = [int(each) for each in self._props[_PARTITIONS].split(",")]
            consumer = _consumer(self._props, self._config)
            consumer.assign([TopicPartition(self._topic, each) for each in partitions])
            reader = self.context.offset_storage_reader
            for each in partitions:
                stored = reader.offset(self._source(each)) or {}
                if "offset" in stored:
                    consumer.seek(TopicPartition(self._topic, each), int(stored["offset"]))
            self._consumer = consumer
        return self._consumer

    def poll(self) -> Sequence[SourceRecord] | None:
        try:
            found = self._open().poll(0.5)
        except KafkaError as error:
            self._close()
            raise RetriableError(f"reading {self._topic} failed: {error}") from error
        return [made for record in found if (made := self._back(record)) is not None] or None

    def _back(self, record: Any) -> SourceRecord | None:
        headers: dict[str, bytes | None] = dict(record.headers)
        count = int(headers.get(COUNT) or b"0")
        target = self._config["redrive.topic"] or next(
            (value.decode() for name in _TOPIC_HEADERS if (value := headers.get(name))), ""
        )
        if not target or count >= self._config["redrive.attempts.max"] or not self._wanted(headers):
            return None
        kept = [
            Header(name, value, OPTIONAL_BYTES)
            for name, value in record.headers
            if not name.startswith(_ERROR_HEADERS) and name != COUNT
        ]
        return SourceRecord(
            self._source(record.partition),
            {"offset": record.offset + 1},
            target,
            key=record.key,
            key_schema=OPTIONAL_BYTES,
            value=record.value,
            value_schema=OPTIONAL_BYTES,
            timestamp=record.timestamp,
            headers=[*kept, Header(COUNT, str(count + 1).encode(), OPTIONAL_BYTES)],
        )

    def _wanted(self, headers: Mapping[str, bytes | None]) -> bool:
        if self._errors is None:
            return True
        texts = [
            (value or b"").decode("utf-8", "replace")
            for name, value in headers.items()
            if name.startswith(_ERROR_HEADERS)
        ]
        return any(self._errors.search(text) for text in texts)

    def _close(self) -> None:
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            consumer.close()

    def stop(self) -> None:
        self._stopped.set()
        self._close()
