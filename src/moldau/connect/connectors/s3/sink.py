"""The S3 sink: exactly once, as files are named and cut by what is in them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from moldau.connect.api import ConfigDef, ConfigValue, SinkTask
from moldau.connect.connectors.files.config import check_storage, define_storage
from moldau.connect.connectors.files.formats import Format, make_format
from moldau.connect.connectors.files.sink import FilesSinkTask, Storage
from moldau.connect.connectors.s3.storage import S3, define_s3
from moldau.connect.connectors.support.plain import PlainSink

CONFIG: Final = define_s3(define_storage(ConfigDef()))


class S3SinkConnector(PlainSink):
    DESCRIPTION = "Topics to objects of S3: JSON, Avro, Parquet or bytes"
    SETTINGS = CONFIG

    def validate(self, props: Mapping[str, str]) -> list[ConfigValue]:
        values = super().validate(props)
        check_storage(values, "s3.compression.type")
        return values

    def task_class(self) -> type[SinkTask]:
        return S3SinkTask


class S3SinkTask(FilesSinkTask):
    def parse(self, props: Mapping[str, str]) -> dict[str, Any]:
        return CONFIG.parse(props)

    def open_storage(self, config: dict[str, Any]) -> tuple[Storage, Format]:
        return S3(config), make_format(config["format.class"], config["s3.compression.type"])
