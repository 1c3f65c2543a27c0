"""The settings, named and with defaults as Debezium's connector for PostgreSQL has them."""

from __future__ import annotations

from typing import Final

from moldau.connect.api import ConfigDef, Importance, Kind, OneOf, Range
from moldau.connect.connectors.capture.config import SHARED

CONFIG: Final = (
    ConfigDef()
    .define("database.hostname", Kind.STRING, importance=Importance.HIGH, group="Connection",
            doc="Host of the database")
    .define("database.port", Kind.INT, 5432, validator=Range(0, 65535), importance=Importance.HIGH,
            group="Connection", doc="Its port")
    .define("database.user", Kind.STRING, importance=Importance.HIGH, group="Connection",
            doc="A user with the attribute REPLICATION")
    .define("database.password", Kind.PASSWORD, None, importance=Importance.HIGH,
            group="Connection", doc="Its password")
    .define("database.dbname", Kind.STRING, importance=Importance.HIGH, group="Connection",
            doc="The database")
    .define("database.sslmode", Kind.STRING, "prefer", group="Connection",
            validator=OneOf(("disable", "allow", "prefer", "require", "verify-ca", "verify-full")),
            doc="How the connection is secured")
    .define("database.sslrootcert", Kind.STRING, None, group="Connection",
            doc="File with certificates to trust")
    .define("topic.prefix", Kind.STRING, importance=Importance.HIGH, group="Connector",
            doc="Prefix of topics: PREFIX.SCHEMA.TABLE")
    .define("plugin.name", Kind.STRING, "pgoutput", validator=OneOf(("pgoutput",)),
            group="Replication", doc="The output plug-in of the server: pgoutput")
    .define("slot.name", Kind.STRING, "debezium", group="Replication",
            doc="The replication slot, which is created if it is missing")
    .define("slot.drop.on.stop", Kind.BOOLEAN, False, group="Replication",
            doc="Drop the slot when the task stops: changes after that are lost")
    .define("publication.name", Kind.STRING, "dbz_publication", group="Replication",
            doc="The publication")
    .define("publication.autocreate.mode", Kind.STRING, "all_tables", group="Replication",
            validator=OneOf(("all_tables", "filtered", "no_tables", "disabled")),
            doc="Which tables a publication that is created has")
    .define("publish.via.partition.root", Kind.BOOLEAN, False, group="Replication",
            doc="Whether rows of a partitioned table go to its own topic, and a publication that "
            "is created says so; otherwise each partition has a topic")
    .define("schema.include.list", Kind.LIST, (), group="Filters",
            doc="Regular expressions of schemas")
    .define("schema.exclude.list", Kind.LIST, (), group="Filters",
            doc="Regular expressions of schemas that are left out")
    .define("table.include.list", Kind.LIST, (), group="Filters",
            doc="Regular expressions of tables, as SCHEMA.TABLE")
    .define("table.exclude.list", Kind.LIST, (), group="Filters",
            doc="Regular expressions of tables that are left out")
    .define("snapshot.mode", Kind.STRING, "initial", group="Connector",
            validator=OneOf(("always", "initial", "initial_only", "no_data", "never",
                             "when_needed")),
            doc="When the rows that are there already are read")
    .define("snapshot.fetch.size", Kind.INT, 10_240, validator=Range(1), group="Connector",
            doc="How many rows the snapshot reads at once")
    .define("decimal.handling.mode", Kind.STRING, "precise", group="Connector",
            validator=OneOf(("precise", "double", "string")), doc="How decimals are written")
    .define("time.precision.mode", Kind.STRING, "adaptive", group="Connector",
            validator=OneOf(("adaptive", "adaptive_time_microseconds", "connect")),
            doc="adaptive: integers of milliseconds or microseconds; connect: Connect's types")
    .define("interval.handling.mode", Kind.STRING, "numeric", group="Connector",
            validator=OneOf(("numeric", "string")), doc="How intervals are written: microseconds "
            "in which a month is a twelfth of a year, or texts of ISO 8601")
    .define("hstore.handling.mode", Kind.STRING, "json", validator=OneOf(("json", "map")),
            group="Connector", doc="How values of hstore are written")
    .define("money.fraction.digits", Kind.INT, 2, validator=Range(0, 9), group="Connector",
            doc="How many digits after the point amounts of money have")
    .define("include.unknown.datatypes", Kind.BOOLEAN, False, group="Connector",
            doc="Whether columns of other types are written as bytes")
    .define("max.batch.size", Kind.INT, 2048, validator=Range(1), group="Connector",
            doc="How many records one poll returns")
    .define("poll.interval.ms", Kind.LONG, 500, validator=Range(1), group="Connector",
            doc="How long to wait for changes")
    .define("status.update.interval.ms", Kind.INT, 10_000, validator=Range(1), group="Replication",
            doc="How often to report the position to the server")
    .including(SHARED)
)  # fmt: skip
