"""The settings that sinks of files share, named and with defaults as Confluent's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from moldau.connect.api import (
    ConfigDef,
    ConfigError,
    ConfigValue,
    Importance,
    Kind,
    OneOf,
    Range,
)
from moldau.connect.connectors.files.formats import (
    AVRO_CODECS,
    PARQUET_CODECS,
    FormatOptions,
    make_format,
)
from moldau.connect.connectors.files.machine.partitioners import make_extractor, make_partitioner
from moldau.connect.connectors.files.machine.rotation import COMPATIBILITIES
from moldau.connect.connectors.files.machine.zones import offset_ms_of


def define_storage(config: ConfigDef, *, format_class: str = "JsonFormat") -> ConfigDef:
    return (
        config.define("flush.size", Kind.INT, validator=Range(1), importance=Importance.HIGH,
                      group="Connector", doc="Number of records after which a file is stored")
        .define("rotate.interval.ms", Kind.LONG, -1, group="Connector",
                doc="Store the files when a record is so much newer than the first in them, with "
                "TimeBasedPartitioner and its kind; with others S3 ignores it, and HDFS and SFTP "
                "take the wall clock; -1: never")
        .define("rotate.file.on.partition.change", Kind.BOOLEAN, True, group="Connector",
                doc="S3 with rotate.interval.ms: store the files also when a record goes to "
                "another folder than the one before")
        .define("rotate.schedule.interval.ms", Kind.LONG, -1, group="Connector",
                doc="Store files at these intervals of the wall clock, which is at least once; "
                "-1: never")
        .define("topics.dir", Kind.STRING, "topics", group="Storage", doc="The upper folder")
        .define("directory.delim", Kind.STRING, "/", group="Storage", doc="Between folders")
        .define("file.delim", Kind.STRING, "+", group="Storage", doc="Between parts of file names")
        .define("filename.offset.zero.pad.width", Kind.INT, 10, validator=Range(0),
                importance=Importance.LOW, group="Connector", doc="Digits of offsets in file names")
        .define("format.class", Kind.STRING, format_class, importance=Importance.HIGH,
                group="Storage", doc="JsonFormat, AvroFormat, ParquetFormat, ByteArrayFormat")
        .define("avro.codec", Kind.STRING, "null", validator=OneOf(AVRO_CODECS), group="Storage",
                doc="Compression of Avro files: null, deflate, bzip2 or snappy")
        .define("parquet.codec", Kind.STRING, "snappy", validator=OneOf(PARQUET_CODECS),
                group="Storage", doc="That of Parquet files: none, snappy, gzip, brotli, lz4, zstd")
        .define("format.bytearray.extension", Kind.STRING, ".bin", group="Storage",
                doc="The extension of files of ByteArrayFormat")
        .define("format.bytearray.separator", Kind.STRING, None, group="Storage",
                doc="What follows each value in them, and in those of StringFormat; empty: a line "
                "feed")
        .define("json.decimal.format", Kind.STRING, "BASE64", group="Storage",
                validator=OneOf(("BASE64", "NUMERIC"), ignore_case=True),
                doc="How JsonFormat writes decimals: BASE64 of their bytes, or NUMERIC")
        .define("schema.compatibility", Kind.STRING, "NONE", group="Storage",
                validator=OneOf(COMPATIBILITIES, ignore_case=True),
                doc="NONE: another schema begins a new file. BACKWARD, FULL: a newer version does, "
                "values of older ones are projected to it; FORWARD: an older version does")
        .define("partitioner.class", Kind.STRING, "DefaultPartitioner", importance=Importance.HIGH,
                group="Partitioner",
                doc="DefaultPartitioner, FieldPartitioner, TimeBasedPartitioner, "
                "HourlyPartitioner, DailyPartitioner")
        .define("partition.field.name", Kind.LIST, (), group="Partitioner",
                doc="Fields of FieldPartitioner")
        .define("partition.duration.ms", Kind.LONG, -1, group="Partitioner",
                doc="How long one folder of TimeBasedPartitioner lasts")
        .define("path.format", Kind.STRING, "", group="Partitioner",
                doc="Folders of TimeBasedPartitioner, such as 'year'=YYYY/'month'=MM")
        .define("locale", Kind.STRING, "", group="Partitioner",
                validator=OneOf(("", "en", "en-US")), doc="Language of month names: English")
        .define("timezone", Kind.STRING, "UTC", group="Partitioner", doc="Time zone of folders")
        .define("timestamp.extractor", Kind.STRING, "Wallclock", group="Partitioner",
                doc="Wallclock, Record or RecordField")
        .define("timestamp.field", Kind.STRING, "timestamp", group="Partitioner",
                doc="The field of RecordField")
        .define("behavior.on.null.values", Kind.STRING, "fail", group="Connector",
                validator=OneOf(("ignore", "fail"), ignore_case=True),
                doc="What a record without a value does: ignore, fail")
    )  # fmt: skip


def format_options(config: Mapping[str, Any], compression: str) -> FormatOptions:
    """`compression` is the name of the storage's setting."""
    return FormatOptions(
        compression=config[compression],
        level=config.get("s3.compression.level", -1),
        avro_codec=config["avro.codec"],
        parquet_codec=config["parquet.codec"],
        bytes_extension=config["format.bytearray.extension"],
        separator=config["format.bytearray.separator"] or "\n",
        json_decimals=config["json.decimal.format"],
    )


def check_storage(values: Sequence[ConfigValue], compression: str) -> None:
    """Add errors that only several settings together show; `compression` is the name of one."""
    if any(each.errors for each in values):
        return
    parsed = {each.name: each.value for each in values}
    by_name = {each.name: each for each in values}

    def check_format(config: dict[str, Any]) -> object:
        return make_format(config["format.class"], format_options(config, compression))

    def check_zone(config: dict[str, Any]) -> object:
        return offset_ms_of(config["timezone"])

    for check in (make_partitioner, make_extractor, check_format, check_zone):
        try:
            check(parsed)
        except ConfigError as error:
            by_name[error.key or "format.class"].errors.append(str(error))
