"""The Redis sink. A batch is one transaction (MULTI), so it is there as a whole or not at all.

SET, HSET, DEL and SADD give the same result when a record comes again; LPUSH, RPUSH, XADD and
PUBLISH do not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from moldau.connect.api import (
    ConfigDef,
    ConnectError,
    DataError,
    Importance,
    Kind,
    OneOf,
    Range,
    SinkRecord,
    SinkTask,
)
from moldau.connect.connectors.redis.client import Redis, define_redis
from moldau.connect.connectors.support.documents import document, json_bytes, text_of
from moldau.connect.connectors.support.plain import PlainSink
from moldau.data.struct import Struct

_COMMANDS: Final = ("SET", "HSET", "LPUSH", "RPUSH", "SADD", "XADD", "PUBLISH")

CONFIG: Final = (
    define_redis(ConfigDef())
    .define("redis.command", Kind.STRING, "SET", group="Redis", importance=Importance.HIGH,
            validator=OneOf(_COMMANDS, ignore_case=True), doc=", ".join(_COMMANDS))
    .define("redis.key", Kind.STRING, "${topic}", group="Redis",
            doc="Name of the list, set, stream or channel; in front of keys of SET and HSET if it "
            "is set. ${topic} is replaced")
    .define("redis.separator", Kind.STRING, ":", group="Redis",
            doc="Between the name and the key of a record")
    .define("redis.ttl.seconds", Kind.LONG, -1, validator=Range(-1), group="Redis",
            doc="How long keys of SET and HSET live; -1: for ever")
)  # fmt: skip


class RedisSinkConnector(PlainSink):
    DESCRIPTION = "Records to keys, hashes, lists, sets, streams or channels of Redis"
    SETTINGS = CONFIG

    def task_class(self) -> type[SinkTask]:
        return RedisSinkTask


class RedisSinkTask(SinkTask):
    def start(self, props: Mapping[str, str]) -> None:
        self._config = CONFIG.parse(props)
        self._redis = Redis(self._config)
        self._command = self._config["redis.command"].upper()

    def put(self, records: Sequence[SinkRecord]) -> None:
        if not records:
            return
        pipeline = self._redis.client.pipeline(transaction=True)
        for record in records:
            try:
                self._add(pipeline, record)
            except DataError as error:
                reporter = self.context.errant_record_reporter
                if reporter is None:
                    raise
                reporter.report(record, error)
        try:
            pipeline.execute()
        except Exception as error:
            if self._redis.is_own(error):
                raise self._redis.failure(error) from error
            raise ConnectError(f"Redis: {error}") from error

    def _add(self, pipeline: Any, record: SinkRecord) -> None:
        name = self._config["redis.key"].replace("${topic}", record.topic)
        if self._command in ("SET", "HSET"):
            self._add_keyed(pipeline, record, name)
        elif record.value is None:
            if self._command == "SADD" and record.key is not None:
                pipeline.srem(name, _bytes(record.key))
        elif self._command == "XADD":
            pipeline.xadd(name, _fields(record))
        elif self._command == "SADD":
            pipeline.sadd(name, _bytes(record.value if record.key is None else record.key))
        else:
            getattr(pipeline, self._command.lower())(name, _bytes(record.value))

    def _add_keyed(self, pipeline: Any, record: SinkRecord, name: str) -> None:
        if record.key is None:
            raise DataError(
                f"record {record.topic}-{record.partition}@{record.offset} has no key, which "
                f"{self._command} needs"
            )
        own = text_of(record.key, record.key_schema, "a key of Redis")
        key = f"{name}{self._config['redis.separator']}{own}" if name else own
        if record.value is None:
            pipeline.delete(key)
            return
        if self._command == "SET":
            pipeline.set(key, _bytes(record.value))
        else:
            # Fields that the record does not have any more go, too.
            pipeline.delete(key)
            pipeline.hset(key, mapping=_fields(record))
        if self._config["redis.ttl.seconds"] > 0:
            pipeline.expire(key, self._config["redis.ttl.seconds"])

    def stop(self) -> None:
        self._redis.close()


def _bytes(value: Any) -> bytes:
    if isinstance(value, (bytes, bytearray)):
        return bytes(value)
    return value.encode() if isinstance(value, str) else json_bytes(value)


def _fields(record: SinkRecord) -> dict[str, bytes]:
    if not isinstance(record.value, (Struct, dict)):
        raise DataError(
            f"record {record.topic}-{record.partition}@{record.offset} has no fields, which HSET "
            "and XADD need"
        )
    found = document(record.value)
    return {name: _bytes(value) for name, value in found.items() if value is not None}
