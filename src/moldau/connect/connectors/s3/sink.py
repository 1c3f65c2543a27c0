"""The S3 sink: exactly once, as files are named and cut by what is in them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from moldau.connect.api import ConfigDef, ConfigError, ConfigValue, SinkTask
from moldau.connect.connectors.files.config import define_storage
from moldau.connect.connectors.files.formats import Format, make_format
from moldau.connect.connectors.files.machine.partitioners import make_extractor, make_partitioner
from moldau.connect.connectors.files.machine.zones import offset_ms_of
from moldau.connect.connectors.files.sink import FilesSinkTask, Storage
from moldau.connect.connectors.s3.storage import S3, define_s3
from moldau.connect.connectors.support.plain import PlainSink

CONFIG: Final = define_s3(define_storage(ConfigDef()))


class S3SinkConnector(PlainSink):
    DESCRIPTION = "Topics to objects of S3: JSON, Avro, Parquet or bytes"
    SETTINGS = CONFIG

    def validate(self, props: Mapping[str, str]) -> list[ConfigValue]:
        values = super().validate(props)
        if not any(each.errors for each in values):
            parsed = {each.name: each.value for each in values}
            by_name = {each.name: each for each in values}
            for check in (make_partitioner, make_extractor, _check_format, _check_zone):
                try:
                    check(parsed)
                except ConfigError as error:
                    by_name[error.key or "format.class"].errors.append(str(error))
        return values

    def task_class(self) -> type[SinkTask]:
        return S3SinkTask


def _check_format(config: dict[str, Any]) -> Format:
    return make_format(config["format.class"], config["s3.compression.type"])


def _check_zone(config: dict[str, Any]) -> object:
    return offset_ms_of(config["timezone"])


class S3SinkTask(FilesSinkTask):
    def parse(self, props: Mapping[str, str]) -> dict[str, Any]:
        return CONFIG.parse(props)

    def open_storage(self, config: dict[str, Any]) -> tuple[Storage, Format]:
        return S3(config), _check_format(config)
