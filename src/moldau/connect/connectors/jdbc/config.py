"""The settings of the JDBC connectors, named and with defaults as Confluent's."""

from __future__ import annotations

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
from moldau.connect.connectors.jdbc.machine import progress

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


SOURCE: Final = (
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
        "table.types",
        Kind.LIST,
        ("TABLE",),
        validator=ListOf(("TABLE", "VIEW")),
        importance=Importance.LOW,
        group=_DATABASE,
        doc="TABLE, VIEW",
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

SINK: Final = (
    _connection(ConfigDef())
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
        "db.timezone",
        Kind.STRING,
        "UTC",
        validator=OneOf(("UTC",)),
        group="Data Mapping",
        doc="Time zone of timestamps without one: UTC",
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
