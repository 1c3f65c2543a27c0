"""The HDFS sink: exactly once, as the names of files say which offsets are in them.

A file is written under another name and renamed, which is atomic. If several files are complete at
once (one per folder of a partitioner), a log of the renames is stored first and removed last. When
a task opens a partition it completes what a log says, and reads on after the highest offset in the
names of the partition's files, whatever the group has committed.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from moldau.connect.api import (
    CheckedBy,
    ConfigDef,
    ConfigValue,
    Importance,
    Kind,
    Range,
    RetriableError,
    SinkRecord,
    SinkTask,
    TopicPartition,
)
from moldau.connect.connectors.files.config import check_storage, define_storage, format_options
from moldau.connect.connectors.files.formats import Format, make_format
from moldau.connect.connectors.files.machine.rotation import OpenFile
from moldau.connect.connectors.files.sink import FilesSinkTask, Storage
from moldau.connect.connectors.hdfs.storage import WebHdfs, web_address
from moldau.connect.connectors.support.plain import PlainSink
from moldau.connect.connectors.support.web import define_connection
from moldau.data import json_text


def _check_url(key: str, value: Any) -> None:
    web_address(str(value), 9870)


CONFIG: Final = (
    define_connection(define_storage(ConfigDef(), format_class="AvroFormat"))
    .define("hdfs.url", Kind.STRING, importance=Importance.HIGH, group="HDFS",
            validator=CheckedBy(_check_url, "a URL"),
            doc="hdfs://HOST, or webhdfs://HOST:PORT (swebhdfs with TLS)")
    .define("hdfs.http.port", Kind.INT, 9870, validator=Range(1, 65535), group="HDFS",
            doc="Port of WebHDFS, if hdfs.url has that of the file system")
    .define("hdfs.user", Kind.STRING, "", group="HDFS", doc="The user that files belong to")
    .define("logs.dir", Kind.STRING, "logs", group="HDFS",
            doc="The upper folder of logs, which files of several folders need")
    .define("hdfs.compression.type", Kind.STRING, "none", group="HDFS",
            doc="none or gzip, for JSON and text")
)  # fmt: skip


class HdfsSinkConnector(PlainSink):
    DESCRIPTION = "Topics to files of HDFS: Avro, Parquet, JSON or text"
    SETTINGS = CONFIG

    def validate(self, props: Mapping[str, str]) -> list[ConfigValue]:
        values = super().validate(props)
        check_storage(values, "hdfs.compression.type")
        return values

    def task_class(self) -> type[SinkTask]:
        return HdfsSinkTask


class HdfsSinkTask(FilesSinkTask):
    def __init__(self) -> None:
        super().__init__()
        self._unknown: set[TopicPartition] = set()
        #: The last offsets that were stored when partitions were opened.
        self._stored_up_to: dict[TopicPartition, int] = {}

    def parse(self, props: Mapping[str, str]) -> dict[str, Any]:
        return CONFIG.parse(props)

    def open_storage(self, config: dict[str, Any]) -> tuple[Storage, Format]:
        self._files_of = WebHdfs(config)
        self._delimiter: str = config["file.delim"]
        self._top = _absolute(config["topics.dir"])
        self._logs = _absolute(config["logs.dir"])
        return self._files_of, make_format(
            config["format.class"], format_options(config, "hdfs.compression.type")
        )

    # Names.

    def name_of(self, at: TopicPartition, file: OpenFile) -> str:
        width, delimiter = self._config["filename.offset.zero.pad.width"], self._delimiter
        offsets = (file.first_offset, file.records[-1].original_offset)
        parts = [file.records[0].topic, str(at.partition)]
        return delimiter.join([*parts, *(str(each).zfill(width) for each in offsets)])

    def _last_offsets(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """The highest offset in the names of files, by partition."""
        delimiter = re.escape(self._delimiter)
        name = re.compile(rf"(.+){delimiter}(\d+){delimiter}(\d+){delimiter}(\d+)\..+")
        found: dict[TopicPartition, int] = {}
        for topic in {each.topic for each in partitions}:
            for path in self._files_of.names(f"{self._top}/{topic}"):
                match = name.fullmatch(path.rpartition("/")[2])
                if match is not None:
                    at = TopicPartition(topic, int(match[2]))
                    found[at] = max(found.get(at, -1), int(match[4]))
        return found

    # Storing.

    def open(self, partitions: Collection[TopicPartition]) -> None:
        super().open(partitions)
        self._unknown.update(partitions)
        # If HDFS is away, `put` asks again: a task that fails here is not tried again.
        with suppress(RetriableError):
            self._look()

    def _look(self) -> None:
        """Find out what is stored of partitions that were opened, and read on after it."""
        for at in self._unknown:
            self._redo(self._log_path(at))
        last = self._last_offsets(self._unknown)
        self._stored_up_to.update(last)
        self.context.offset({at: last[at] + 1 for at in self._unknown if at in last})
        self._unknown.clear()

    def put(self, records: Sequence[SinkRecord]) -> None:
        if self._unknown:
            self._look()
        super().put([each for each in records if not self._is_stored(each)])

    def _is_stored(self, record: SinkRecord) -> bool:
        at = TopicPartition(record.original_topic, record.original_partition)
        return record.original_offset <= self._stored_up_to.get(at, -1)

    def close(self, partitions: Collection[TopicPartition]) -> None:
        super().close(partitions)
        for at in partitions:
            self._unknown.discard(at)
            self._stored_up_to.pop(at, None)

    def store_files(self, at: TopicPartition, files: Sequence[tuple[str, bytes]]) -> None:
        storage = self._files_of
        renames = []
        for path, data in files:
            target = _absolute(path)
            folder, _, name = target.rpartition("/")
            waiting = f"{self._top}/+tmp/{folder.removeprefix(self._top).strip('/')}/{name}"
            storage.write(waiting, data)
            storage.make_folder(folder)
            renames.append([waiting, target])
        if len(renames) == 1:
            storage.rename(*renames[0])
            return
        log = self._log_path(at)
        storage.write(f"{log}.tmp", json_text.compact(renames).encode())
        storage.rename(f"{log}.tmp", log)
        self._redo(log)

    def _log_path(self, at: TopicPartition) -> str:
        return f"{self._logs}/{at.topic}/{at.partition}/log"

    def _redo(self, log: str) -> None:
        """Give the files of a log their names. Those that have them are left alone."""
        storage = self._files_of
        data = storage.read(log)
        if data is None:
            return
        for waiting, target in json_text.parse(data):
            if storage.exists(waiting):
                storage.rename(waiting, target)
        storage.delete(log)


def _absolute(path: str) -> str:
    return "/" + path.strip("/")
