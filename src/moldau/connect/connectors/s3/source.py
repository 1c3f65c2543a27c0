"""The S3 source: objects that the sink wrote, back to topics, in their order and partitions.

A task has some of the partitions of topics. The source offset of a record is its object and its
place in it, so a task continues in the middle of an object.
"""

from __future__ import annotations

import re
import threading
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from moldau.connect.api import (
    ConfigDef,
    ExactlyOnceSupport,
    Kind,
    Range,
    SourceConnector,
    SourceRecord,
    SourceTask,
)
from moldau.connect.connectors.files.formats import FormatOptions, make_format
from moldau.connect.connectors.s3.storage import S3, define_s3

_NUMBER: Final = "task.number"
_COUNT: Final = "task.count"

CONFIG: Final = (
    define_s3(ConfigDef())
    .define("topics.dir", Kind.STRING, "topics", group="Storage", doc="The upper folder")
    .define("file.delim", Kind.STRING, "+", group="Storage", doc="Between parts of file names")
    .define("format.class", Kind.STRING, "JsonFormat", group="Storage",
            doc="JsonFormat, AvroFormat, ParquetFormat, ByteArrayFormat")
    .define("topic.prefix", Kind.STRING, "", group="Connector", doc="Prefix of the topics")
    .define("poll.interval.ms", Kind.LONG, 60_000, validator=Range(1), group="Connector",
            doc="How often to look for new objects")
    .define("record.batch.max.size", Kind.INT, 200, validator=Range(1), group="Connector",
            doc="How many records one poll returns")
)  # fmt: skip


class S3SourceConnector(SourceConnector):
    DESCRIPTION = "Objects that the S3 sink wrote, back to topics"

    def __init__(self) -> None:
        super().__init__()
        self._props: dict[str, str] = {}

    @classmethod
    def config(cls) -> ConfigDef:
        return CONFIG

    def start(self, props: Mapping[str, str]) -> None:
        CONFIG.parse(props)
        self._props = dict(props)

    def task_class(self) -> type[SourceTask]:
        return S3SourceTask

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        return [
            {**self._props, _NUMBER: str(number), _COUNT: str(max_tasks)}
            for number in range(max_tasks)
        ]

    def exactly_once_support(self, props: Mapping[str, str]) -> ExactlyOnceSupport:
        return ExactlyOnceSupport.SUPPORTED


class S3SourceTask(SourceTask):
    def __init__(self) -> None:
        super().__init__()
        self._stopped = threading.Event()
        self._records: Iterator[SourceRecord] = iter(())
        self._done: set[str] = set()
        self._wait_s = 0.0

    def start(self, props: Mapping[str, str]) -> None:
        config = self._config = CONFIG.parse(props)
        self._storage = S3(config)
        self._format = make_format(
            config["format.class"], FormatOptions(compression=config["s3.compression.type"])
        )
        self._number, self._count = int(props[_NUMBER]), int(props[_COUNT])
        delimiter = re.escape(config["file.delim"])
        self._name = re.compile(
            rf"(.+){delimiter}(\d+){delimiter}(\d+){re.escape(self._format.extension)}"
        )

    def poll(self) -> Sequence[SourceRecord] | None:
        found: list[SourceRecord] = []
        for record in self._records:
            found.append(record)
            if len(found) >= self._config["record.batch.max.size"]:
                return found
        if found:
            return found
        if self._stopped.wait(min(self._wait_s, 1.0)):
            return None
        self._wait_s -= 1.0
        if self._wait_s <= 0:
            self._wait_s = self._config["poll.interval.ms"] / 1000
            self._records = self._read_new()
        return None

    def _read_new(self) -> Iterator[SourceRecord]:
        objects = []
        for path in self._storage.list(self._config["topics.dir"]):
            match = self._name.fullmatch(path.rpartition("/")[2])
            if match is None or path in self._done:
                continue
            topic, partition, offset = match[1], int(match[2]), int(match[3])
            if zlib.crc32(f"{topic}-{partition}".encode()) % self._count == self._number:
                objects.append((topic, partition, offset, path))
        for topic, partition, offset, path in sorted(objects):
            yield from self._read_object(topic, partition, offset, path)
            self._done.add(path)

    def _read_object(
        self, topic: str, partition: int, offset: int, path: str
    ) -> Iterator[SourceRecord]:
        source = {"bucket": self._storage.bucket, "object": path}
        stored = self.context.offset_storage_reader.offset(source) or {}
        done = int(stored.get("records", 0))
        for number, each in enumerate(self._format.read(self._storage.read(path)), 1):
            if number > done:
                yield SourceRecord(
                    source,
                    {"records": number},
                    self._config["topic.prefix"] + topic,
                    partition,
                    value=each.value,
                    value_schema=each.schema,
                )

    def stop(self) -> None:
        self._stopped.set()
