"""The formats of tables: one description of each, from which everything else follows.

Options and their check (`options.py`), the data source that Spark is given (`frames.py`), the words
of `moldau pipelines` and what a definition may name are read from `FORMATS`; tests compare the
functions of `moldau.pipelines` and docs/tables.md with it. To add a format, describe it here and
write its source and sink.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from moldau.spark.tables.machine import option_values as values
from moldau.spark.tables.machine.jdbc_options import check_jdbc
from moldau.spark.tables.machine.option_values import Parser, Value

__all__ = ["FORMATS", "SINK", "SOURCE", "TableFormat"]

SOURCE = "source"
SINK = "sink"


def _nothing(options: Mapping[str, Value], role: str, where: str) -> None:
    """No rule beyond those for all formats."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFormat:
    """One kind of table, as a source and as a sink."""

    name: str
    #: How it is declared in YAML, with all that it requires.
    example: str
    source: Mapping[str, Parser]
    sink: Mapping[str, Parser]
    #: The option that holds the folder or URL; in a definition, the value of the format's name.
    address: str = "path"
    required: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    #: Prefixes of properties of other libraries, which are passed on as they are written.
    passed_on: tuple[str, ...] = ()
    #: The class in `datasource.py`; None for what Spark reads and writes itself.
    data_source: str | None = None
    #: Whether it is a folder of files, to which files are only added.
    is_files: bool = False
    #: Which options go together; raises OptionError.
    check: Callable[[Mapping[str, Value], str, str], None] = _nothing

    def options(self, role: str) -> Mapping[str, Parser]:
        return self.source if role == SOURCE else self.sink


_ANY_FILE_SOURCE: dict[str, Parser] = {
    "path": values.text,
    "schema": values.text,
    "maxFilesPerTrigger": values.positive,
    "maxBytesPerTrigger": values.size,
    "maxFileAge": values.text,
    "maxCachedFiles": values.not_negative,
    "latestFirst": values.flag,
    "fileNameOnly": values.flag,
    "cleanSource": values.one_of("archive", "delete", "off"),
    "sourceArchiveDir": values.text,
    "pathGlobFilter": values.text,
    "recursiveFileLookup": values.flag,
    "basePath": values.text,
    "ignoreCorruptFiles": values.flag,
    "ignoreMissingFiles": values.flag,
    "modifiedBefore": values.text,
    "modifiedAfter": values.text,
}
_ANY_FILE_SINK: dict[str, Parser] = {
    "path": values.text,
    "partitionBy": values.names,
    "mode": values.one_of("append"),
    "compression": values.text,
    "maxRecordsPerFile": values.positive,
    "retention": values.text,
}
_TEXT_DATES: dict[str, Parser] = {
    "dateFormat": values.text,
    "timestampFormat": values.text,
    "timestampNTZFormat": values.text,
    "timeZone": values.text,
    "encoding": values.text,
    "lineSep": values.text,
    "locale": values.text,
}
_JSON_SOURCE: dict[str, Parser] = {
    **_TEXT_DATES,
    "mode": values.one_of("permissive", "dropmalformed", "failfast"),
    "columnNameOfCorruptRecord": values.text,
    "primitivesAsString": values.flag,
    "prefersDecimal": values.flag,
    "allowComments": values.flag,
    "allowUnquotedFieldNames": values.flag,
    "allowSingleQuotes": values.flag,
    "allowNumericLeadingZeros": values.flag,
    "allowNonNumericNumbers": values.flag,
    "allowBackslashEscapingAnyCharacter": values.flag,
    "allowUnquotedControlChars": values.flag,
    "multiLine": values.flag,
    "samplingRatio": values.text,
    "dropFieldIfAllNull": values.flag,
    "singleVariantColumn": values.text,
}
_CSV_QUOTING: dict[str, Parser] = {
    "sep": values.any_text,
    "delimiter": values.any_text,
    "quote": values.any_text,
    "escape": values.any_text,
    "charToEscapeQuoteEscaping": values.any_text,
    "header": values.flag,
    "nullValue": values.any_text,
    "emptyValue": values.any_text,
    "ignoreLeadingWhiteSpace": values.flag,
    "ignoreTrailingWhiteSpace": values.flag,
}
_CSV_SOURCE: dict[str, Parser] = {
    **_TEXT_DATES,
    **_CSV_QUOTING,
    "mode": values.one_of("permissive", "dropmalformed", "failfast"),
    "columnNameOfCorruptRecord": values.text,
    "comment": values.any_text,
    "inferSchema": values.flag,
    "preferDate": values.flag,
    "enforceSchema": values.flag,
    "nanValue": values.any_text,
    "positiveInf": values.any_text,
    "negativeInf": values.any_text,
    "maxColumns": values.positive,
    "maxCharsPerColumn": values.number,
    "unescapedQuoteHandling": values.text,
    "multiLine": values.flag,
    "samplingRatio": values.text,
}
_XML: dict[str, Parser] = {
    **_TEXT_DATES,
    "rowTag": values.text,
    "attributePrefix": values.any_text,
    "valueTag": values.text,
    "nullValue": values.any_text,
}
_XML_SOURCE: dict[str, Parser] = {
    **_XML,
    "mode": values.one_of("permissive", "dropmalformed", "failfast"),
    "columnNameOfCorruptRecord": values.text,
    "excludeAttribute": values.flag,
    "ignoreSurroundingSpaces": values.flag,
    "ignoreNamespace": values.flag,
    "inferSchema": values.flag,
    "preferDate": values.flag,
    "rowValidationXSDPath": values.text,
    "samplingRatio": values.text,
    "wildcardColName": values.text,
}
_TABLE_SINK: dict[str, Parser] = {
    "path": values.text,
    "partitionBy": values.names,
    "mode": values.one_of("append"),
    "upsert": values.names,
    "sequenceBy": values.text,
    "mergeSchema": values.flag,
    "compression": values.one_of("snappy", "zstd", "gzip", "lz4", "none"),
    "targetFileSize": values.size,
}
# Delta's names for what makes a batch write idempotent.
_TRANSACTION: dict[str, Parser] = {"txnAppId": values.text, "txnVersion": values.not_negative}
_TABLE_SOURCE: dict[str, Parser] = {
    "path": values.text,
    "maxFilesPerTrigger": values.positive,
    "skipChangeCommits": values.flag,
}
_ICEBERG: dict[str, Parser] = {"table": values.text, "catalog": values.text}
_JDBC: dict[str, Parser] = {
    "url": values.text,
    "user": values.text,
    "password": values.any_text,
    "driver": values.text,
}

_FORMATS = (
    TableFormat(
        name="parquet",
        example="{parquet: folder}",
        source={
            **_ANY_FILE_SOURCE,
            "mergeSchema": values.flag,
            "datetimeRebaseMode": values.text,
            "int96RebaseMode": values.text,
        },
        sink=_ANY_FILE_SINK,
        is_files=True,
    ),
    TableFormat(
        name="json",
        example="{json: folder}",
        source={**_ANY_FILE_SOURCE, **_JSON_SOURCE},
        sink={**_ANY_FILE_SINK, **_TEXT_DATES, "ignoreNullFields": values.flag},
        is_files=True,
    ),
    TableFormat(
        name="csv",
        example="{csv: folder}",
        source={**_ANY_FILE_SOURCE, **_CSV_SOURCE},
        sink={
            **_ANY_FILE_SINK,
            **_TEXT_DATES,
            **_CSV_QUOTING,
            "quoteAll": values.flag,
            "escapeQuotes": values.flag,
        },
        is_files=True,
    ),
    TableFormat(
        name="xml",
        example="{xml: folder, rowTag: order}",
        source={**_ANY_FILE_SOURCE, **_XML_SOURCE},
        sink={
            **_ANY_FILE_SINK,
            **_XML,
            "rootTag": values.text,
            "declaration": values.any_text,
            "arrayElementName": values.text,
            "validateName": values.flag,
        },
        required={SOURCE: ("rowTag",), SINK: ("rowTag",)},
        is_files=True,
    ),
    TableFormat(
        name="text",
        example="{text: folder}",
        source={
            **_ANY_FILE_SOURCE,
            "wholetext": values.flag,
            "lineSep": values.any_text,
            "encoding": values.text,
        },
        sink={**_ANY_FILE_SINK, "lineSep": values.any_text, "encoding": values.text},
        is_files=True,
    ),
    TableFormat(
        name="avro",
        example="{avro: folder}",
        source=_ANY_FILE_SOURCE,
        sink={
            "path": values.text,
            "mode": values.one_of("append"),
            "compression": values.one_of("null", "deflate", "bzip2", "xz"),
            **_TRANSACTION,
        },
        passed_on=("storage.",),
        data_source="AvroDataSource",
        is_files=True,
    ),
    TableFormat(
        name="delta",
        example="{delta: folder}",
        source={
            **_TABLE_SOURCE,
            "startingVersion": values.text,
            "versionAsOf": values.not_negative,
        },
        sink={**_TABLE_SINK, **_TRANSACTION},
        passed_on=("storage.",),
        data_source="DeltaDataSource",
    ),
    TableFormat(
        name="iceberg",
        example="{iceberg: warehouse/folder, table: db.name}",
        source={
            **_TABLE_SOURCE,
            **_ICEBERG,
            "startingVersion": values.text,
            "snapshot-id": values.number,
        },
        sink={**_TABLE_SINK, **_TRANSACTION, **_ICEBERG},
        required={SOURCE: ("table",), SINK: ("table",)},
        passed_on=("catalog.", "table."),
        data_source="IcebergDataSource",
    ),
    TableFormat(
        name="jdbc",
        example="{jdbc: 'jdbc:postgresql://host/database', table: name}",
        address="url",
        source={
            **_JDBC,
            "table": values.text,
            "query": values.text,
            "schema": values.text,
            "fetchsize": values.positive,
            "partitionColumn": values.text,
            "lowerBound": values.text,
            "upperBound": values.text,
            "numPartitions": values.positive,
            "mode": values.one_of("incrementing", "timestamp", "timestamp+incrementing"),
            "incrementing.column.name": values.text,
            "timestamp.column.name": values.text,
            "timestamp.delay.interval.ms": values.not_negative,
            "poll.interval.ms": values.positive,
            "batch.max.rows": values.positive,
        },
        sink={
            **_JDBC,
            **_TRANSACTION,
            "table": values.text,
            "mode": values.one_of("append"),
            "upsert": values.names,
            "sequenceBy": values.text,
            "onError": values.one_of("fail", "dead_letter"),
            "deadLetterTopic": values.text,
            "kafka.bootstrap.servers": values.text,
        },
        required={SINK: ("table",)},
        passed_on=("kafka.", "jdbc."),
        data_source="JdbcDataSource",
        check=check_jdbc,
    ),
)
FORMATS: Mapping[str, TableFormat] = {each.name: each for each in _FORMATS}
