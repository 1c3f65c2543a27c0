"""Records of test files: JSON to bytes by the formats of sources, back again, and compared."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from moldau.sql.errors import KsqlException
from moldau.sql.ports import FormatFactory
from moldau.sql.sources.data_source import UNWRAP, DataSource, KeyFormat
from moldau.sql.testing.registry import MemoryRegistry
from moldau.sql.testing.values import json_text, read_json, row, same, shown
from moldau.sql.topology.serdes import Serdes
from moldau.sql.types import Column, SqlType, StructType
from moldau.streams.records import MAX_TIMESTAMP, Produced, Window, Windowed
from moldau.streams.serdes import SessionWindowedSerde, TimeWindowedSerde

__all__ = ["RecordCodec"]

_WITH_SCHEMAS = ("AVRO", "JSON_SR", "PROTOBUF")


@dataclass(frozen=True, slots=True)
class RecordCodec:
    """`sources` are the sources by topic."""

    serdes: Serdes
    formats: FormatFactory
    registry: MemoryRegistry
    sources: Mapping[str, DataSource]

    def encode(self, raw: Mapping[str, Any]) -> Produced:
        """A record as a file has it: topic, key, value, timestamp, window, headers."""
        topic = raw["topic"]
        source = self.sources.get(topic)
        timestamp = int(raw.get("timestamp", 0))
        if source is None:
            value = raw.get("value")
            data = None if value is None else json_text(value).encode()
            return Produced(topic, None, data, timestamp, _headers(raw))
        key = self._key_bytes(source, raw)
        return Produced(
            topic, key, self._value_bytes(source, raw.get("value")), timestamp, _headers(raw)
        )

    def difference(
        self, wanted: Mapping[str, Any], found: Produced, *, exact: bool, any_time: bool = False
    ) -> str | None:
        """What is not as expected; None if nothing. `any_time`: an expected 0 fits all times."""
        key, window = self.key(found)
        if not same(wanted.get("key"), key, exact=exact):
            return f"key {key!r} instead of {wanted.get('key')!r}"
        value = self.value(found)
        if not same(wanted.get("value"), value, exact=exact):
            return f"value {value!r} instead of {wanted.get('value')!r}"
        expected_window = wanted.get("window")
        if expected_window is not None:
            bounds = Window(int(expected_window["start"]), int(expected_window["end"]))
            if window != bounds:
                return f"window {window} instead of {bounds}"
        if "timestamp" in wanted:
            time = int(wanted["timestamp"])
            if time != found.timestamp and not (time == 0 and any_time):
                return f"timestamp {found.timestamp} instead of {time}"
        headers = list(_headers(wanted))
        if list(found.headers) != headers:
            return f"headers {found.headers} instead of {headers}"
        return None

    def shown(self, record: Produced) -> tuple[Any, Any, int]:
        """Key, value and time for messages."""
        try:
            key, _ = self.key(record)
            return key, self.value(record), record.timestamp
        except Exception:  # bytes that the format does not read are shown as they are
            return record.key, record.value, record.timestamp

    def key(self, record: Produced) -> tuple[Any, Window | None]:
        """The key of a record, and its window if it has one."""
        source = self.sources.get(record.topic)
        data = record.key
        if source is None or data is None:
            return (None if data is None else read_json(data)), None
        info = source.key_format
        window = None
        if info.window is not None:
            inner = _Passed(None)
            found = _windowed(info, inner).deserialize(record.topic, data)
            window = None if found is None else found.window
            data = inner.data or b""
        if info.format.name == "JSON":
            return read_json(data), window
        if info.format.name == "DELIMITED":
            return data.decode(), window
        plain = self.serdes.plain_key(info, source.schema)
        key = _shown_row(
            plain.deserialize(record.topic, data),
            source.schema.key,
            info.features,
            info.format.name,
        )
        return key, window

    def value(self, record: Produced) -> Any:
        """The value of a record."""
        data = record.value
        source = self.sources.get(record.topic)
        if data is None:
            return None
        if source is None:
            return read_json(data)
        info = source.value_format
        name = info.format.name
        if name == "JSON":
            return read_json(data)
        if name == "DELIMITED":
            return data.decode().rstrip("\r\n")
        columns = source.schema.value
        if name in _WITH_SCHEMAS and UNWRAP not in info.features:
            return self._by_schema(record.topic, data, source)
        serde = self.serdes.value(info.format, source.schema, info.features)
        return _shown_row(serde.deserialize(record.topic, data), columns, info.features, name)

    def _by_schema(self, topic: str, data: bytes, source: DataSource) -> Any:
        """By the schema that it was written with: it may have more fields than the source."""
        info = source.value_format
        schema_id = int.from_bytes(data[1:5], "big")
        kind, text = self.registry.by_id(schema_id)
        properties = {**dict(info.format.properties), "schemaId": str(schema_id)}
        by_id = self.formats(info.format.name, properties)
        found = by_id.columns_of(kind, text, info.features, is_key=False)
        columns = tuple(Column(name, each) for name, each in found)
        serde = by_id.serde(columns, info.features, self.registry, is_key=False)
        return _shown_row(serde.deserialize(topic, data), columns, info.features, "")

    def _key_bytes(self, source: DataSource, raw: Mapping[str, Any]) -> bytes | None:
        key, window = raw.get("key"), raw.get("window")
        info = source.key_format
        if key is None or not source.schema.key:
            return None
        data = _raw(key, info.format.name)
        if data is None:
            unwrapped = _is_unwrapped(source.schema.key, info.features, info.format.name)
            found = row(key, source.schema.key, unwrapped=unwrapped or not isinstance(key, dict))
            data = self.serdes.plain_key(info, source.schema).serialize(source.topic, found)
        if window is None:
            return data
        bounds = Window(int(window["start"]), int(window["end"]))
        serialize: Callable[[str, Any], bytes] = _windowed(info, _Passed(data)).serialize
        return serialize(source.topic, Windowed(None, bounds))

    def _value_bytes(self, source: DataSource, value: Any) -> bytes | None:
        info = source.value_format
        if value is None:
            return None
        data = _raw(value, info.format.name)
        if data is not None:
            return data
        columns = source.schema.value
        unwrapped = _is_unwrapped(columns, info.features, info.format.name)
        found = row(value, columns, unwrapped=unwrapped)
        return self.serdes.value(info.format, source.schema, info.features).serialize(
            source.topic, found
        )


@dataclass(slots=True)
class _Passed:
    """A serde inside that of windows: it passes bytes on as they are."""

    data: bytes | None

    def serialize(self, topic: str, value: Any) -> bytes | None:
        return self.data

    def deserialize(self, topic: str, data: bytes | None) -> Any:
        self.data = data
        return data


def _headers(raw: Mapping[str, Any]) -> tuple[tuple[str, bytes | None], ...]:
    return tuple(
        (each["KEY"], None if each["VALUE"] is None else base64.b64decode(each["VALUE"]))
        for each in raw.get("headers", ())
    )


def _is_unwrapped(columns: tuple[Column, ...], features: frozenset[str], name: str) -> bool:
    return len(columns) == 1 and (UNWRAP in features or name in ("KAFKA", "DELIMITED"))


def _raw(value: Any, name: str) -> bytes | None:
    if value is None:
        return None
    if name == "JSON":
        return json_text(value).encode()
    if name == "DELIMITED":
        return (value if isinstance(value, str) else json_text(value)).encode()
    return None


def _windowed(info: KeyFormat, inner: Any) -> Any:
    window = info.window
    if window is None:
        raise KsqlException("the record has a window, but its source has none")
    if window.kind == "SESSION":
        return SessionWindowedSerde(inner)
    return TimeWindowedSerde(inner, min(window.size_ms or 0, MAX_TIMESTAMP))


def _shown_row(
    found: tuple[Any, ...] | None,
    columns: tuple[Column, ...],
    features: frozenset[str],
    name: str,
) -> Any:
    if found is None:
        return None
    if _is_unwrapped(columns, features, name):
        only = shown(found[0], columns[0].type)
        return only.decode() if name == "KAFKA" and isinstance(only, bytes) else only
    kind: SqlType = StructType(tuple((each.name, each.type) for each in columns))
    return shown(found, kind)
