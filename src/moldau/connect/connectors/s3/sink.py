"""The S3 sink: exactly once, as files are named and cut by what is in them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from moldau.connect.api import (
    ConfigDef,
    ConfigError,
    ConfigValue,
    DataError,
    Header,
    Kind,
    OneOf,
    Range,
    SinkRecord,
    SinkTask,
)
from moldau.connect.connectors.files.config import check_storage, define_storage, format_options
from moldau.connect.connectors.files.formats import AvroFormat, Format, JsonFormat, make_format
from moldau.connect.connectors.files.machine.rotation import OpenFile
from moldau.connect.connectors.files.sink import FilesSinkTask, Storage
from moldau.connect.connectors.s3.storage import ACLS, S3, define_s3
from moldau.connect.connectors.support.documents import json_bytes, text_of
from moldau.connect.connectors.support.plain import PlainSink
from moldau.data import builders
from moldau.data.struct import Struct

CONFIG: Final = define_s3(define_storage(ConfigDef())).define(
    "s3.compression.level", Kind.INT, -1, validator=Range(-1, 9), group="S3",
    doc="How much gzip compresses, from 1 to 9; -1: as usual",
).define(
    "s3.acl.canned", Kind.STRING, "", validator=OneOf(("", *ACLS)), group="S3",
    doc="Who else may read or write objects: one of Amazon's canned ACLs",
).define(
    "store.kafka.keys", Kind.BOOLEAN, False, group="Storage",
    doc="Whether keys are stored beside values, as NAME.keys.EXTENSION",
).define(
    "keys.format.class", Kind.STRING, "AvroFormat", group="Storage",
    doc="JsonFormat, AvroFormat, ParquetFormat, ByteArrayFormat or StringFormat",
).define(
    "store.kafka.headers", Kind.BOOLEAN, False, group="Storage",
    doc="Whether headers are stored beside values, as NAME.headers.EXTENSION",
).define(
    "headers.format.class", Kind.STRING, "AvroFormat", group="Storage",
    doc="JsonFormat or AvroFormat",
)  # fmt: skip

_KEYS: Final = "keys.format.class"
_HEADERS: Final = "headers.format.class"
_BESIDE: Final = {_KEYS: "store.kafka.keys", _HEADERS: "store.kafka.headers"}
_HEADER: Final = builders.struct(
    {"key": builders.STRING, "value": builders.OPTIONAL_STRING}, name="Header"
)
_LIST: Final = builders.array(_HEADER)


class S3SinkConnector(PlainSink):
    DESCRIPTION = "Topics to objects of S3: JSON, Avro, Parquet or bytes"
    SETTINGS = CONFIG

    def validate(self, props: Mapping[str, str]) -> list[ConfigValue]:
        values = super().validate(props)
        check_storage(values, "s3.compression.type")
        if not any(each.errors for each in values):
            config = {each.name: each.value for each in values}
            for each in values:
                if each.name in _BESIDE:
                    try:
                        _format_beside(each.name, config)
                    except ConfigError as error:
                        each.errors.append(str(error))
        return values

    def task_class(self) -> type[SinkTask]:
        return S3SinkTask


def _format_beside(key: str, config: Mapping[str, Any]) -> Format:
    name: str = config[key]
    try:
        made = make_format(name, format_options(config, "s3.compression.type"))
    except ConfigError:
        made = None
    if made is None or (key == _HEADERS and not isinstance(made, (JsonFormat, AvroFormat))):
        raise ConfigError.invalid(key, name, f"must be {CONFIG[key].doc}")
    return made


class S3SinkTask(FilesSinkTask):
    INTERVAL_NEEDS_TIME = True

    def parse(self, props: Mapping[str, str]) -> dict[str, Any]:
        return CONFIG.parse(props)

    def open_storage(self, config: dict[str, Any]) -> tuple[Storage, Format]:
        self._beside = {
            key: _format_beside(key, config) for key, wanted in _BESIDE.items() if config[wanted]
        }
        options = format_options(config, "s3.compression.type")
        return S3(config), make_format(config["format.class"], options)

    def check(self, record: SinkRecord) -> None:
        if _KEYS in self._beside and record.key is None:
            raise DataError(
                f"record {record.topic}-{record.partition}@{record.offset} has no key, and "
                "store.kafka.keys is true"
            )

    def beside(self, file: OpenFile) -> list[tuple[str, bytes]]:
        found = []
        if made := self._beside.get(_KEYS):
            schema = file.records[0].key_schema
            keys = [each.new_record(value=each.key) for each in file.records]
            found.append((f".keys{made.extension}", made.write(schema, keys)))
        if made := self._beside.get(_HEADERS):
            headers = [each.new_record(value=_headers(each)) for each in file.records]
            found.append((f".headers{made.extension}", made.write(_LIST, headers)))
        return found


def _headers(record: SinkRecord) -> list[Struct]:
    return [
        Struct(_HEADER, {"key": each.key, "value": _header_text(each)}) for each in record.headers
    ]


def _header_text(header: Header) -> str | None:
    if header.value is None:
        return None
    if isinstance(header.value, (Struct, dict, list)):
        return json_bytes(header.value).decode()
    return text_of(header.value, header.schema, "a header")
