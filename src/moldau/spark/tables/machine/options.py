"""Which options each kind of table has, as a source and as a sink.

A declaration such as `{parquet: orders, partitionBy: [day]}` is checked here before Spark sees it:
unknown, missing and contradictory options are errors that name the option and what to do. Names
are Spark's (or Delta's, Iceberg's, Kafka Connect's where the option is theirs) and, as in Spark,
their case does not matter. `Options` always holds the canonical names and parsed values only.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from moldau.spark.tables.errors import OptionError
from moldau.spark.tables.machine import option_values as values
from moldau.spark.tables.machine.option_values import Parser, Value

SOURCE = "source"
SINK = "sink"
FILE_KINDS = ("parquet", "json", "csv")
KINDS = (*FILE_KINDS, "delta", "iceberg", "jdbc")
ADDRESS = dict.fromkeys(KINDS, "path") | {"jdbc": "url"}

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

_OPTIONS: dict[tuple[str, str], dict[str, Parser]] = {
    ("parquet", SOURCE): {
        **_ANY_FILE_SOURCE,
        "mergeSchema": values.flag,
        "datetimeRebaseMode": values.text,
        "int96RebaseMode": values.text,
    },
    ("json", SOURCE): {**_ANY_FILE_SOURCE, **_JSON_SOURCE},
    ("csv", SOURCE): {**_ANY_FILE_SOURCE, **_CSV_SOURCE},
    ("parquet", SINK): _ANY_FILE_SINK,
    ("json", SINK): {**_ANY_FILE_SINK, **_TEXT_DATES, "ignoreNullFields": values.flag},
    ("csv", SINK): {
        **_ANY_FILE_SINK,
        **_TEXT_DATES,
        **_CSV_QUOTING,
        "quoteAll": values.flag,
        "escapeQuotes": values.flag,
    },
    ("delta", SOURCE): {
        **_TABLE_SOURCE,
        "startingVersion": values.text,
        "versionAsOf": values.not_negative,
    },
    ("delta", SINK): {**_TABLE_SINK, **_TRANSACTION},
    ("iceberg", SOURCE): {
        **_TABLE_SOURCE,
        **_ICEBERG,
        "startingVersion": values.text,
        "snapshot-id": values.number,
    },
    ("iceberg", SINK): {**_TABLE_SINK, **_TRANSACTION, **_ICEBERG},
    ("jdbc", SOURCE): {
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
    ("jdbc", SINK): {
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
}
_REQUIRED: dict[tuple[str, str], tuple[str, ...]] = {
    ("iceberg", SOURCE): ("table",),
    ("iceberg", SINK): ("table",),
    ("jdbc", SINK): ("table",),
}
# Properties of other libraries, passed on as they are written.
_PASSED_ON = {
    "delta": ("storage.",),
    "iceberg": ("catalog.", "table."),
    "jdbc": ("kafka.", "jdbc."),
}


@dataclass(frozen=True, slots=True, repr=False)
class Options(Mapping[str, Value]):
    """Options of one source or sink that were found right, by their canonical names."""

    kind: str
    role: str
    given: Mapping[str, Value]

    def __getitem__(self, name: str) -> Value:
        return self.given[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.given)

    def __len__(self) -> int:
        return len(self.given)

    def __repr__(self) -> str:
        # Addresses and options may hold secrets, and this may end up in a log.
        return f"Options({self.kind} {self.role}: {', '.join(self.given)})"

    @property
    def address(self) -> str:
        """The folder or the database's URL."""
        return str(self.given[ADDRESS[self.kind]])

    def text(self, name: str, default: str = "") -> str:
        return str(self.given.get(name, default))

    def number(self, name: str, default: int = 0) -> int:
        return int(str(self.given.get(name, default)))

    def flag(self, name: str) -> bool:
        return self.given.get(name) is True

    def names(self, name: str) -> tuple[str, ...]:
        value = self.given.get(name, ())
        return value if isinstance(value, tuple) else (str(value),)

    def prefixed(self, prefix: str) -> dict[str, str]:
        """The properties that are passed on to a library, without their prefix."""
        return {
            name.removeprefix(prefix): str(value)
            for name, value in self.given.items()
            if name.startswith(prefix)
        }

    def as_spark(self) -> dict[str, str]:
        """The same options as the texts that Spark carries."""
        return {name: _as_text(value) for name, value in self.given.items()}


def check_options(kind: str, role: str, options: Mapping[str, object]) -> Options:
    """The options, understood; `OptionError` says which one is wrong and what would be right.

    `options` is the mapping under `source:` or `sink:` as it is written: the folder or URL is the
    value of the kind's own name, or of `path` (`url` for JDBC).
    """
    if kind not in KINDS:
        raise OptionError(f"unknown kind of table {kind!r}", f"Known are {', '.join(KINDS)}")
    if role not in (SOURCE, SINK):
        raise OptionError(f"unknown role {role!r}", "A table is a source or a sink")
    known = _OPTIONS[kind, role]
    canonical = {name.lower(): name for name in known} | {kind: ADDRESS[kind]}
    found: dict[str, Value] = {}
    for written, value in options.items():
        name = canonical.get(written.lower())
        if name is None and written.lower().startswith(_PASSED_ON.get(kind, ())):
            found[written] = values.any_text(value)
            continue
        if name is None:
            raise _unknown(kind, role, written, known)
        if name in found:
            raise OptionError(f"{kind} {role}: {name!r} is given twice")
        try:
            found[name] = known[name](value)
        except OptionError as error:
            raise OptionError(f"{kind} {role}: {written!r}: {error.message}") from None
    for name in (ADDRESS[kind], *_REQUIRED.get((kind, role), ())):
        if name not in found:
            raise OptionError(
                f"{kind} {role}: {name!r} is missing", f"Write it as {_example(kind)}"
            )
    checked = Options(kind, role, found)
    _check_combinations(checked)
    return checked


def _check_combinations(options: Options) -> None:
    where = f"{options.kind} {options.role}"
    if ("txnAppId" in options) != ("txnVersion" in options):
        raise OptionError(f"{where}: 'txnAppId' and 'txnVersion' name a batch only together")
    if "sequenceBy" in options and "upsert" not in options:
        raise OptionError(
            f"{where}: 'sequenceBy' orders the rows of one key, and there is no key",
            "Add upsert: [key columns]",
        )
    if options.kind == "jdbc":
        _check_jdbc(options, where)
    if options.get("cleanSource") == "archive" and "sourceArchiveDir" not in options:
        raise OptionError(
            f"{where}: 'cleanSource: archive' does not say where to", "Add sourceArchiveDir: folder"
        )
    if "startingVersion" in options:
        _starting_version(options.text("startingVersion"), where)


def _check_jdbc(options: Options, where: str) -> None:
    if not options.address.startswith("jdbc:"):
        raise OptionError(
            f"{where}: {options.address.split('?')[0]!r} is no JDBC address",
            "Write jdbc:postgresql://host/database, jdbc:sqlite:file.db, or another jdbc:... "
            "with its driver",
        )
    if options.role == SINK:
        if options.text("onError") == "dead_letter":
            for name in ("deadLetterTopic", "kafka.bootstrap.servers"):
                if name not in options:
                    raise OptionError(f"{where}: 'onError: dead_letter' also needs {name!r}")
        return
    if ("table" in options) == ("query" in options):
        raise OptionError(f"{where}: give either 'table' or 'query'")
    bounds = ("partitionColumn", "lowerBound", "upperBound", "numPartitions")
    given = [name for name in bounds if name in options]
    if given and len(given) < len(bounds):
        missing = ", ".join(sorted(set(bounds) - set(given)))
        raise OptionError(
            f"{where}: {', '.join(given)} without {missing}",
            "The four cut the table into parts only together",
        )
    mode = options.text("mode")
    for column in ("incrementing", "timestamp"):
        name = f"{column}.column.name"
        if column in mode.split("+") and name not in options:
            raise OptionError(f"{where}: 'mode: {mode}' also needs {name!r}")
        if name in options and column not in mode.split("+"):
            raise OptionError(
                f"{where}: {name!r} has no meaning with mode {mode!r}",
                "Modes are incrementing, timestamp and timestamp+incrementing",
            )


def _starting_version(value: str, where: str) -> None:
    if value not in ("latest", "earliest") and not value.isdigit():
        raise OptionError(
            f"{where}: 'startingVersion': expected a version or latest, got {value!r}"
        )


def check_output_mode(options: Options, output_mode: str) -> str:
    """The output mode in Spark's spelling, if this sink can take such a query's rows."""
    mode = output_mode.lower()
    if mode not in ("append", "update", "complete"):
        raise OptionError(
            f"unknown output mode {output_mode!r}", "Spark's are append, update and complete"
        )
    if options.kind in FILE_KINDS and mode != "append":
        raise OptionError(
            f"a {options.kind} sink cannot take output mode {mode!r}: files are only added, "
            "never changed",
            "Use append with a watermark, so that results are written once they are final, or a "
            "delta, iceberg or jdbc sink with upsert: [keys]",
        )
    if mode == "update" and "upsert" not in options:
        raise OptionError(
            f"a {options.kind} sink needs a key to take output mode 'update': a result that "
            "changes would otherwise be there several times",
            "Add upsert: [key columns]",
        )
    if mode == "complete" and "upsert" in options:
        raise OptionError(
            "output mode 'complete' replaces the whole table, so upsert has no meaning",
            "Leave out upsert, or use output mode update",
        )
    return mode


def _unknown(kind: str, role: str, written: str, known: Mapping[str, Parser]) -> OptionError:
    near = difflib.get_close_matches(written.lower(), [name.lower() for name in known], n=1)
    meant = next((name for name in known if near and name.lower() == near[0]), "")
    return OptionError(
        f"{kind} {role}: unknown option {written!r}",
        f"Did you mean {meant!r}?" if meant else f"Known are {', '.join(known)}",
    )


def _example(kind: str) -> str:
    return {
        "iceberg": "{iceberg: warehouse/folder, table: db.name}",
        "jdbc": "{jdbc: 'jdbc:postgresql://host/database', table: name}",
    }.get(kind, f"{{{kind}: folder}}")


def _as_text(value: Value) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        # A name may have a comma in it.
        return json.dumps(list(value)) if any("," in name for name in value) else ",".join(value)
    return str(value)
