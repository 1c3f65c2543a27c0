"""The settings of the JDBC connectors, named and with defaults as Confluent's."""

from __future__ import annotations

import re
from typing import Any, Final

from moldau.connect.api import (
    CheckedBy,
    ConfigDef,
    Importance,
    Kind,
    ListOf,
    OneOf,
    Password,
    Range,
)
from moldau.connect.connectors.jdbc.machine import progress, tables
from moldau.connect.connectors.jdbc.machine.columns import CONNECT_LOGICAL, GRANULARITIES, zone_of

_DATABASE: Final = "Database"


def _is_url(key: str, value: Any) -> None:
    if not str(value).startswith("jdbc:"):
        raise ValueError("must begin with jdbc:")


def _connection(config: ConfigDef) -> ConfigDef:
    return (
        config.define(
            "connection.url",
            Kind.STRING,
            validator=CheckedBy(_is_url, "a JDBC URL"),
            importance=Importance.HIGH,
            group=_DATABASE,
            doc="JDBC URL: jdbc:postgresql://HOST/DATABASE, jdbc:mariadb:, jdbc:mysql: or "
            "jdbc:sqlite:FILE",
        )
        .define(
            "connection.user",
            Kind.STRING,
            None,
            importance=Importance.HIGH,
            group=_DATABASE,
            doc="User of the database",
        )
        .define(
            "connection.password",
            Kind.PASSWORD,
            None,
            importance=Importance.HIGH,
            group=_DATABASE,
            doc="Password of the user",
        )
        .define(
            "connection.attempts",
            Kind.INT,
            3,
            validator=Range(1),
            importance=Importance.LOW,
            group=_DATABASE,
            doc="How often to try to connect before the call counts as failed",
        )
        .define(
            "connection.backoff.ms",
            Kind.LONG,
            10_000,
            validator=Range(0),
            importance=Importance.LOW,
            group=_DATABASE,
            doc="How long to wait between attempts to connect",
        )
    )


def _is_zone(key: str, value: Any) -> None:
    zone_of(str(value))


def _are_mappings(key: str, value: Any) -> None:
    for each in value or ():
        tables.parse_mapping(each)


def _are_patterns(key: str, value: Any) -> None:
    for each in value or ():
        re.compile(each)


def _zone(config: ConfigDef, group: str) -> ConfigDef:
    return config.define(
        "db.timezone",
        Kind.STRING,
        "UTC",
        validator=CheckedBy(_is_zone, "a time zone"),
        group=group,
        doc="Time zone of timestamps that have none of their own",
    )


SOURCE = (
    _connection(ConfigDef())
    .define(
        "mode",
        Kind.STRING,
        "",
        validator=OneOf(
            (
                "",
                progress.BULK,
                progress.INCREMENTING,
                progress.TIMESTAMP,
                progress.BOTH,
            )
        ),
        importance=Importance.HIGH,
        group="Mode",
        doc="How new rows are found: bulk, incrementing, timestamp, timestamp+incrementing",
    )
    .define(
        "incrementing.column.name",
        Kind.STRING,
        "",
        group="Mode",
        doc="The column whose value grows with each row; empty: the primary key or the column that "
        "numbers itself",
    )
    .define(
        "timestamp.column.name",
        Kind.LIST,
        (),
        group="Mode",
        doc="Columns with the time of the last change; the first that is not null counts",
    )
    .define(
        "timestamp.columns.mapping",
        Kind.LIST,
        (),
        validator=CheckedBy(_are_mappings, "REGEX:[COLUMN|COLUMN],..."),
        group="Mode",
        doc="Instead of timestamp.column.name: for each table, REGEX:[COLUMN|COLUMN]",
    )
    .define(
        "incrementing.column.mapping",
        Kind.LIST,
        (),
        validator=CheckedBy(_are_mappings, "REGEX:COLUMN,..."),
        group="Mode",
        doc="Instead of incrementing.column.name: for each table, REGEX:COLUMN",
    )
    .define(
        "timestamp.granularity",
        Kind.STRING,
        CONNECT_LOGICAL,
        validator=OneOf(GRANULARITIES),
        importance=Importance.LOW,
        group="Mode",
        doc="How timestamps are written: Connect's Timestamp (milliseconds), or microseconds or "
        "nanoseconds as a number or a text",
    )
    .define(
        "timestamp.initial",
        Kind.LONG,
        None,
        importance=Importance.LOW,
        group="Mode",
        doc="Without a stored offset, begin at this time in ms since 1970; -1: now",
    )
    .define(
        "validate.non.null",
        Kind.BOOLEAN,
        True,
        importance=Importance.LOW,
        group="Mode",
        doc="Refuse incrementing and timestamp columns that may be null",
    )
    .define("query", Kind.STRING, "", group="Mode", doc="A query instead of tables")
    .define(
        "query.suffix",
        Kind.STRING,
        "",
        importance=Importance.LOW,
        group="Mode",
        doc="Text behind the query, such as LIMIT 100",
    )
    .define("table.whitelist", Kind.LIST, (), group=_DATABASE, doc="Tables to copy")
    .define("table.blacklist", Kind.LIST, (), group=_DATABASE, doc="Tables not to copy")
    .define(
        "table.include.list",
        Kind.LIST,
        (),
        validator=CheckedBy(_are_patterns, "regular expressions"),
        group=_DATABASE,
        doc="Tables to copy, as regular expressions of full names",
    )
    .define(
        "table.exclude.list",
        Kind.LIST,
        (),
        validator=CheckedBy(_are_patterns, "regular expressions"),
        group=_DATABASE,
        doc="Of these the tables not to copy",
    )
    .define(
        "table.types",
        Kind.LIST,
        ("TABLE",),
        validator=ListOf(
            ("TABLE", "PARTITIONED TABLE", "VIEW", "MATERIALIZED VIEW", "FOREIGN TABLE")
        ),
        importance=Importance.LOW,
        group=_DATABASE,
        doc="TABLE, VIEW; with PostgreSQL also PARTITIONED TABLE (instead of its partitions), "
        "MATERIALIZED VIEW, FOREIGN TABLE",
    )
    .define(
        "schema.pattern",
        Kind.STRING,
        None,
        group=_DATABASE,
        doc="Schemas to look for tables in, as in LIKE",
    )
    .define(
        "catalog.pattern",
        Kind.STRING,
        None,
        group=_DATABASE,
        doc="The database; must be the one of the URL if it is set",
    )
    .define(
        "numeric.mapping",
        Kind.STRING,
        "none",
        validator=OneOf(
            (
                "none",
                "precision_only",
                "best_fit",
                "best_fit_eager_double",
            )
        ),
        importance=Importance.LOW,
        group=_DATABASE,
        doc="Whether decimals become integers or doubles where they fit",
    )
    .define(
        "topic.prefix",
        Kind.STRING,
        importance=Importance.HIGH,
        group="Connector",
        doc="Prefix of topics; with a query the topic itself",
    )
    .define(
        "poll.interval.ms",
        Kind.INT,
        5000,
        validator=Range(0),
        importance=Importance.HIGH,
        group="Connector",
        doc="How often to ask for new rows",
    )
    .define(
        "batch.max.rows",
        Kind.INT,
        100,
        validator=Range(1),
        importance=Importance.LOW,
        group="Connector",
        doc="How many rows one poll returns",
    )
    .define(
        "table.poll.interval.ms",
        Kind.LONG,
        60_000,
        validator=Range(0),
        importance=Importance.LOW,
        group="Connector",
        doc="How often to look for new or removed tables",
    )
    .define(
        "timestamp.delay.interval.ms",
        Kind.LONG,
        0,
        validator=Range(0),
        group="Connector",
        doc="How long to wait before a row with a timestamp is read, for transactions that "
        "commit late",
    )
)

SOURCE = _zone(SOURCE, _DATABASE)

SINK: Final = (
    _zone(_connection(ConfigDef()), "Data Mapping")
    .define(
        "insert.mode",
        Kind.STRING,
        "insert",
        validator=OneOf(
            (
                "insert",
                "upsert",
                "update",
            )
        ),
        importance=Importance.HIGH,
        group="Writes",
        doc="insert, upsert or update",
    )
    .define(
        "batch.size",
        Kind.INT,
        3000,
        validator=Range(0),
        group="Writes",
        doc="How many records one statement run takes",
    )
    .define(
        "delete.enabled",
        Kind.BOOLEAN,
        False,
        group="Writes",
        doc="Delete the row of a record without a value; needs pk.mode=record_key",
    )
    .define(
        "table.name.format",
        Kind.STRING,
        "${topic}",
        group="Data Mapping",
        doc="Name of the table; ${topic} is replaced",
    )
    .define(
        "pk.mode",
        Kind.STRING,
        "none",
        validator=OneOf(
            (
                "none",
                "kafka",
                "record_key",
                "record_value",
            )
        ),
        importance=Importance.HIGH,
        group="Data Mapping",
        doc="Where the primary key comes from",
    )
    .define(
        "pk.fields", Kind.LIST, (), group="Data Mapping", doc="Names of the primary key's fields"
    )
    .define(
        "fields.whitelist",
        Kind.LIST,
        (),
        group="Data Mapping",
        doc="Fields of the value to write; empty: all",
    )
    .define(
        "date.timezone",
        Kind.STRING,
        "DB_TIMEZONE",
        validator=OneOf(("DB_TIMEZONE", "UTC")),
        group="Data Mapping",
        doc="Whether days are taken as midnight UTC in db.timezone, as the original does, or as "
        "they are (UTC)",
    )
    .define(
        "replace.null.with.default",
        Kind.BOOLEAN,
        True,
        group="Writes",
        doc="Whether the default of a field is written where its value is null",
    )
    .define(
        "timestamp.fields.list",
        Kind.LIST,
        (),
        group="Data Mapping",
        doc="Fields with numbers or texts of microseconds or nanoseconds that become timestamps",
    )
    .define(
        "timestamp.precision.mode",
        Kind.STRING,
        "microseconds",
        validator=OneOf(("microseconds", "nanoseconds")),
        group="Data Mapping",
        doc="What timestamp.fields.list counts: microseconds, nanoseconds",
    )
    .define(
        "string.output.value.column.name",
        Kind.STRING,
        "record_value",
        importance=Importance.LOW,
        group="Data Mapping",
        doc="Column of values that are texts",
    )
    .define(
        "auto.create",
        Kind.BOOLEAN,
        False,
        group="DDL Support",
        doc="Create tables that are missing",
    )
    .define(
        "auto.evolve", Kind.BOOLEAN, False, group="DDL Support", doc="Add columns that are missing"
    )
    .define(
        "max.retries",
        Kind.INT,
        10,
        validator=Range(0),
        group="Retries",
        doc="How often a failed write is tried again before the task fails",
    )
    .define(
        "retry.backoff.ms",
        Kind.INT,
        3000,
        validator=Range(0),
        group="Retries",
        doc="How long to wait before that",
    )
)


def secret(value: Any) -> str | None:
    return value.value if isinstance(value, Password) else value
