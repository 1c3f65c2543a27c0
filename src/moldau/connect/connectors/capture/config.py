"""The settings that Debezium's connectors share, with its names and defaults."""

from __future__ import annotations

from typing import Final

from moldau.connect.api import ConfigDef, Importance, Kind, ListOf, OneOf, Range
from moldau.connect.connectors.capture.machine.columns import BINARY_MODES

SHARED: Final = (
    ConfigDef()
    .define("topic.delimiter", Kind.STRING, ".", validator=OneOf((".", "-", "_")),
            group="Connector", doc="What is between the parts of a topic's name")
    .define("tombstones.on.delete", Kind.BOOLEAN, True, group="Connector",
            doc="Whether a record without a value follows a delete")
    .define("skipped.operations", Kind.LIST, ("t",), group="Connector",
            validator=ListOf(("c", "u", "d", "t", "none")),
            doc="Changes that are no records: c (inserts), u, d, t (truncates), or none")
    .define("skip.messages.without.change", Kind.BOOLEAN, False, group="Connector",
            doc="Leave out updates that change no captured column, where the old row is known")
    .define("binary.handling.mode", Kind.STRING, "bytes", validator=OneOf(BINARY_MODES),
            group="Connector", doc="How binary data is written")
    .define("column.include.list", Kind.LIST, (), group="Filters",
            doc="Regular expressions of columns, with their tables in front")
    .define("column.exclude.list", Kind.LIST, (), group="Filters",
            doc="Regular expressions of columns that are left out")
    .define("message.key.columns", Kind.STRING, None, group="Filters",
            doc="Columns of keys, as TABLE:COLUMN,COLUMN;TABLE:COLUMN with expressions of tables")
    .define("snapshot.include.collection.list", Kind.LIST, (), group="Filters",
            doc="Regular expressions of the tables whose rows are read; all if it is empty")
    .define("snapshot.select.statement.overrides", Kind.LIST, (), group="Filters",
            doc="Tables whose rows are read by a statement of their own, each with the setting "
            "snapshot.select.statement.overrides.TABLE. It must have all columns of the table")
    .define("database.initial.statements", Kind.STRING, None, group="Connection",
            doc="Statements for each ordinary connection, separated by ; (;; is one in them)")
    .define("unavailable.value.placeholder", Kind.STRING, "__debezium_unavailable_value",
            group="Connector",
            doc="What texts and bytes are that the database does not send: they were not changed")
    .define("provide.transaction.metadata", Kind.BOOLEAN, False, group="Connector",
            doc="Whether changes name their place in a transaction, with records of its "
            "begin and end")
    .define("topic.transaction", Kind.STRING, "transaction", group="Connector",
            doc="These go to the topic of topic.prefix and this name")
    .define("heartbeat.interval.ms", Kind.LONG, 0, validator=Range(0), group="Connector",
            importance=Importance.MEDIUM,
            doc="How often to write a heartbeat with the place in the log; 0: never")
    .define("heartbeat.action.query", Kind.STRING, None, group="Connector",
            doc="A statement for the database, at each heartbeat")
    .define("topic.heartbeat.prefix", Kind.STRING, "__debezium-heartbeat", group="Connector",
            doc="Heartbeats go to the topic of this name and topic.prefix")
)  # fmt: skip
