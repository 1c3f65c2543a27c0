"""The settings, named and with defaults as in Debezium's connectors for MariaDB and MySQL."""

from __future__ import annotations

from typing import Final

from moldau.connect.api import ConfigDef, Importance, Kind, OneOf, Range
from moldau.connect.connectors.capture.config import SHARED

CONFIG: Final = (
    ConfigDef()
    .define("database.hostname", Kind.STRING, importance=Importance.HIGH, group="Connection",
            doc="Host of the database")
    .define("database.port", Kind.INT, 3306, validator=Range(0, 65535), importance=Importance.HIGH,
            group="Connection", doc="Its port")
    .define("database.user", Kind.STRING, importance=Importance.HIGH, group="Connection",
            doc="A user who may replicate: REPLICATION SLAVE, REPLICATION CLIENT, RELOAD, SELECT")
    .define("database.password", Kind.PASSWORD, None, importance=Importance.HIGH,
            group="Connection", doc="Its password")
    .define("database.server.id", Kind.LONG, importance=Importance.HIGH, validator=Range(1),
            group="Connection", doc="An id that no other replica of the server has")
    .define("topic.prefix", Kind.STRING, importance=Importance.HIGH, group="Connector",
            doc="Prefix of topics: PREFIX.DATABASE.TABLE")
    .define("database.include.list", Kind.LIST, (), group="Filters",
            doc="Regular expressions of databases")
    .define("database.exclude.list", Kind.LIST, (), group="Filters",
            doc="Regular expressions of databases that are left out")
    .define("table.include.list", Kind.LIST, (), group="Filters",
            doc="Regular expressions of tables, as DATABASE.TABLE")
    .define("table.exclude.list", Kind.LIST, (), group="Filters",
            doc="Regular expressions of tables that are left out")
    .define("snapshot.mode", Kind.STRING, "initial", group="Connector",
            validator=OneOf(("always", "initial", "initial_only", "no_data", "schema_only", "never",
                             "when_needed")),
            doc="When the rows that are there already are read")
    .define("decimal.handling.mode", Kind.STRING, "precise", group="Connector",
            validator=OneOf(("precise", "double", "string")), doc="How decimals are written")
    .define("time.precision.mode", Kind.STRING, "adaptive_time_microseconds", group="Connector",
            validator=OneOf(("adaptive_time_microseconds", "connect")),
            doc="Integers, or Connect's types")
    .define("bigint.unsigned.handling.mode", Kind.STRING, "long", group="Connector",
            validator=OneOf(("long", "precise")), doc="How BIGINT UNSIGNED is written: as a long, "
            "which ends at 2^63-1, or as a decimal")
    .define("max.batch.size", Kind.INT, 2048, validator=Range(1), group="Connector",
            doc="How many records one poll returns")
    .define("poll.interval.ms", Kind.LONG, 500, validator=Range(1), group="Connector",
            doc="How long to wait for changes")
    .including(SHARED)
)  # fmt: skip
