"""From a connector's records to Kafka's and back: transforms and converters, step by step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from moldau.client.consumer_record import ConsumerRecord
from moldau.connect.api import (
    ConfigError,
    Converter,
    Header,
    HeaderConverter,
    SinkRecord,
    SourceRecord,
)
from moldau.connect.api.records import CREATE_TIME, LOG_APPEND_TIME, NO_TIMESTAMP_TYPE
from moldau.connect.built_in import PluginKind
from moldau.connect.chain import Chain, with_prefix
from moldau.connect.machine.ids import Stage
from moldau.connect.plugins import PLUGIN_VERSION, Plugins, checked_class
from moldau.connect.runtime.failures import StepFailed
from moldau.data.schema import SchemaAndValue

_new = object.__new__
_TIMESTAMP_TYPES = {0: CREATE_TIME, 1: LOG_APPEND_TIME, -1: NO_TIMESTAMP_TYPE}


@dataclass(slots=True)
class Converters:
    """Those of one task."""

    key: Converter
    value: Converter
    header: HeaderConverter

    def close(self) -> None:
        self.key.close()
        self.value.close()
        self.header.close()


def converters_of(
    worker: Mapping[str, str], connector: Mapping[str, str], plugins: Plugins
) -> Converters:
    """The connector's converters, or the worker's where it has none of its own."""
    key, value = (
        _converter(worker, connector, plugins, f"{side}.converter", is_key=side == "key")
        for side in ("key", "value")
    )
    return Converters(key, value, _header_converter(worker, connector, plugins))


def _chosen(
    worker: Mapping[str, str], connector: Mapping[str, str], key: str, default: str | None
) -> tuple[str, dict[str, str], str | None]:
    """The class, its settings and its version: all from the connector, or all from the worker."""
    source = connector if connector.get(key) else worker
    name = source.get(key) or default
    if name is None:
        raise ConfigError(f'Missing required configuration "{key}" which has no default value.')
    settings = with_prefix(source, f"{key}.")
    return name, settings, settings.pop(PLUGIN_VERSION, None)


def _converter(
    worker: Mapping[str, str],
    connector: Mapping[str, str],
    plugins: Plugins,
    key: str,
    *,
    is_key: bool,
) -> Converter:
    name, settings, version = _chosen(worker, connector, key, None)
    made: Converter = checked_class(plugins, key, name, PluginKind.CONVERTER, version=version)()
    made.configure(settings, is_key=is_key)
    return made


def _header_converter(
    worker: Mapping[str, str], connector: Mapping[str, str], plugins: Plugins
) -> HeaderConverter:
    key = "header.converter"
    name, settings, version = _chosen(worker, connector, key, "SimpleHeaderConverter")
    made: HeaderConverter = checked_class(
        plugins, key, name, PluginKind.HEADER_CONVERTER, version=version
    )()
    made.configure(settings)
    return made


#: topic, value, key, partition, timestamp, headers: the arguments of `Producer.send`.
Outgoing = tuple[
    str, bytes | None, bytes | None, int | None, int | None, list[tuple[str, bytes | None]] | None
]


class SourceConversion:
    """A source's records as Kafka's."""

    def __init__(self, chain: Chain, converters: Converters) -> None:
        self._chain = chain
        self._transforms = bool(chain)
        self._converters = converters
        self._key = converters.key.from_connect_data
        self._value = converters.value.from_connect_data

    def convert(self, record: SourceRecord) -> Outgoing | None:
        """None if a transform drops the record; StepFailed for what goes wrong."""
        if self._transforms or record.headers:
            return self._convert(record)
        # The short way of most records; a failure takes the long one, which says what failed.
        topic = record.topic
        try:
            return (
                topic,
                self._value(topic, record.value_schema, record.value),
                self._key(topic, record.key_schema, record.key),
                record.partition,
                record.timestamp,
                None,
            )
        except Exception:
            return self._convert(record)

    def _convert(self, record: SourceRecord) -> Outgoing | None:
        stage: Stage = Stage.TRANSFORMATION
        plugin: object = self._chain
        try:
            if self._transforms:
                changed = self._chain.apply(record)
                if changed is None:
                    return None
                record = changed
            headers = None
            if record.headers:
                stage, plugin = Stage.HEADER_CONVERTER, self._converters.header
                headers = self._headers(record)
            stage, plugin = Stage.KEY_CONVERTER, self._converters.key
            topic = record.topic
            key = self._key(topic, record.key_schema, record.key, headers)
            stage, plugin = Stage.VALUE_CONVERTER, self._converters.value
            value = self._value(topic, record.value_schema, record.value, headers)
        except Exception as error:
            raise StepFailed(stage, plugin, error) from error
        return topic, value, key, record.partition, record.timestamp, headers

    def _headers(self, record: SourceRecord) -> list[tuple[str, bytes | None]]:
        convert = self._converters.header.from_connect_header
        topic = record.topic
        return [
            (each.key, convert(topic, each.key, each.schema, each.value)) for each in record.headers
        ]


class SinkConversion:
    """Kafka's records as a sink's."""

    def __init__(self, chain: Chain, converters: Converters) -> None:
        self._chain = chain
        self._transforms = bool(chain)
        self._converters = converters
        self._key = converters.key.to_connect_data
        self._value = converters.value.to_connect_data

    def convert(self, record: ConsumerRecord[bytes, bytes]) -> SinkRecord | None:
        """None if a transform drops the record; StepFailed for what goes wrong."""
        if self._transforms or record.headers:
            return self._convert(record)
        # The short way of most records; a failure takes the long one, which says what failed.
        topic = record.topic
        try:
            key = self._key(topic, record.key)
            value = self._value(topic, record.value)
        except Exception:
            return self._convert(record)
        return _sink_record(record, key, value, ())

    def _convert(self, record: ConsumerRecord[bytes, bytes]) -> SinkRecord | None:
        stage: Stage = Stage.KEY_CONVERTER
        plugin: object = self._converters.key
        try:
            topic = record.topic
            raw: Any = record.headers or None
            key = self._key(topic, record.key, raw)
            stage, plugin = Stage.VALUE_CONVERTER, self._converters.value
            value = self._value(topic, record.value, raw)
            headers: list[Header] = []
            if raw:
                stage, plugin = Stage.HEADER_CONVERTER, self._converters.header
                headers = self._headers(topic, raw)
            made = _sink_record(record, key, value, headers)
            stage, plugin = Stage.TRANSFORMATION, self._chain
            return self._chain.apply(made)
        except Exception as error:
            raise StepFailed(stage, plugin, error) from error

    def _headers(self, topic: str, raw: Any) -> list[Header]:
        found = []
        for key, data in raw:
            read = self._converters.header.to_connect_header(topic, key, data)
            found.append(Header(key, read.value, read.schema))
        return found


def _sink_record(
    record: ConsumerRecord[bytes, bytes],
    key: SchemaAndValue,
    value: SchemaAndValue,
    headers: Sequence[Header],
) -> SinkRecord:
    # Set one by one: a call with that many names takes longer than all the rest.
    made = _new(SinkRecord)
    made.topic = made.original_topic = record.topic
    made.partition = made.original_partition = record.partition
    made.offset = made.original_offset = record.offset
    made.key_schema, made.key = key
    made.value_schema, made.value = value
    timestamp = record.timestamp
    made.timestamp = None if timestamp is None or timestamp < 0 else timestamp
    made.timestamp_type = _TIMESTAMP_TYPES.get(record.timestamp_type, NO_TIMESTAMP_TYPE)
    made.headers = tuple(headers)
    made.raw = record
    return made
