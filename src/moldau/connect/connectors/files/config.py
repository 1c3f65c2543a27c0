"""The settings that sinks of files share, named and with defaults as Confluent's."""

from __future__ import annotations

from moldau.connect.api import ConfigDef, Importance, Kind, OneOf, Range


def define_storage(config: ConfigDef) -> ConfigDef:
    return (
        config.define("flush.size", Kind.INT, validator=Range(1), importance=Importance.HIGH,
                      group="Connector", doc="Number of records after which a file is stored")
        .define("rotate.interval.ms", Kind.LONG, -1, group="Connector",
                doc="Store a file when a record is so much newer than its first; -1: never")
        .define("rotate.schedule.interval.ms", Kind.LONG, -1, group="Connector",
                doc="Store files at these intervals of the wall clock, which is at least once; "
                "-1: never")
        .define("topics.dir", Kind.STRING, "topics", group="Storage", doc="The upper folder")
        .define("directory.delim", Kind.STRING, "/", group="Storage", doc="Between folders")
        .define("file.delim", Kind.STRING, "+", group="Storage", doc="Between parts of file names")
        .define("filename.offset.zero.pad.width", Kind.INT, 10, validator=Range(0),
                importance=Importance.LOW, group="Connector", doc="Digits of offsets in file names")
        .define("format.class", Kind.STRING, "JsonFormat", importance=Importance.HIGH,
                group="Storage", doc="JsonFormat, AvroFormat, ParquetFormat, ByteArrayFormat")
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
