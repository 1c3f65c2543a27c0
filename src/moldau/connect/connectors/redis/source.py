"""The Redis source: entries of a stream as records. The offset is the id of an entry."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any, Final

from moldau.connect.api import (
    ConfigDef,
    ExactlyOnceSupport,
    Importance,
    Kind,
    Range,
    SourceRecord,
    SourceTask,
)
from moldau.connect.connectors.redis.client import Redis, define_redis
from moldau.connect.connectors.support.plain import SingleSource
from moldau.data.builders import STRING, map_of

_WAIT_MS: Final = 500
_FIELDS: Final = map_of(STRING, STRING)

CONFIG: Final = (
    define_redis(ConfigDef())
    .define("redis.stream.name", Kind.STRING, group="Stream", importance=Importance.HIGH,
            doc="The stream")
    .define("redis.stream.offset", Kind.STRING, "0-0", group="Stream",
            doc="Id to begin after; $: only new entries")
    .define("redis.stream.count", Kind.INT, 500, validator=Range(1), group="Stream",
            doc="How many entries one poll returns")
    .define("topic", Kind.STRING, "${stream}", group="Stream", doc="Topic; ${stream} is replaced")
)  # fmt: skip


class RedisStreamSourceConnector(SingleSource):
    DESCRIPTION = "Entries of a stream of Redis to a topic"
    SETTINGS = CONFIG

    def task_class(self) -> type[SourceTask]:
        return RedisStreamSourceTask

    def exactly_once_support(self, props: Mapping[str, str]) -> ExactlyOnceSupport:
        return ExactlyOnceSupport.SUPPORTED


class RedisStreamSourceTask(SourceTask):
    def __init__(self) -> None:
        super().__init__()
        self._stopped = threading.Event()
        self._last: str | None = None

    def start(self, props: Mapping[str, str]) -> None:
        self._config = CONFIG.parse(props)
        self._redis = Redis(self._config)
        self._stream = self._config["redis.stream.name"]
        self._partition = {"stream": self._stream}
        self._topic = self._config["topic"].replace("${stream}", self._stream)

    def poll(self) -> Sequence[SourceRecord] | None:
        if self._last is None:
            stored = self.context.offset_storage_reader.offset(self._partition) or {}
            self._last = str(stored.get("id", self._config["redis.stream.offset"]))
        try:
            found: Any = self._redis.client.xread(
                {self._stream: self._last},
                count=self._config["redis.stream.count"],
                block=_WAIT_MS,
            )
        except Exception as error:
            if self._stopped.is_set():
                return None
            if self._redis.is_own(error):
                raise self._redis.failure(error) from error
            raise
        records = [self._record(id_, fields) for _, entries in found for id_, fields in entries]
        return records or None

    def _record(self, id_: bytes, fields: Mapping[bytes, bytes]) -> SourceRecord:
        self._last = id_.decode()
        value = {
            name.decode("utf-8", "replace"): each.decode("utf-8", "replace")
            for name, each in fields.items()
        }
        return SourceRecord(
            self._partition,
            {"id": self._last},
            self._topic,
            key=self._last,
            key_schema=STRING,
            value=value,
            value_schema=_FIELDS,
            timestamp=int(self._last.partition("-")[0]),
        )

    def stop(self) -> None:
        self._stopped.set()
        self._redis.close()
