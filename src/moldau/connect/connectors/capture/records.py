"""What the connectors for PostgreSQL and MariaDB do alike: from settings to records."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from typing import Any

from moldau.connect.api import (
    ConfigValue,
    ConnectorTransactionBoundaries,
    DataError,
    ExactlyOnceSupport,
    Header,
    SourceRecord,
)
from moldau.connect.connectors.capture.machine import heartbeats, transactions
from moldau.connect.connectors.capture.machine.columns import (
    MASK,
    TRUNCATE,
    Columns,
    key_columns,
    patterns,
    rule_error,
)
from moldau.connect.connectors.capture.machine.envelope import Emitted, Event, Table
from moldau.connect.connectors.capture.machine.heartbeats import Heartbeats
from moldau.connect.connectors.capture.machine.transactions import Transactions
from moldau.connect.connectors.support.plain import SingleSource
from moldau.data.struct import Struct

_PATTERNS = (
    "column.include.list",
    "column.exclude.list",
    "snapshot.include.collection.list",
    "table.include.list",
    "table.exclude.list",
)


_SELECTS = "snapshot.select.statement.overrides"


def statements(text: str | None) -> list[str]:
    """Of `database.initial.statements`: separated by a semicolon, of which two are one in them."""
    parts = [
        each.replace("\0", ";").strip() for each in (text or "").replace(";;", "\0").split(";")
    ]
    return [each for each in parts if each]


class Capture:
    """The settings of a task that all databases share."""

    def __init__(self, config: Mapping[str, Any], props: Mapping[str, str]) -> None:
        self._config = config
        self.columns = Columns(config, props)
        self.emitted = Emitted(
            config["tombstones.on.delete"],
            frozenset(config["skipped.operations"]) - {"none"},
            unchanged=not config["skip.messages.without.change"],
        )
        self.transactions = Transactions() if config["provide.transaction.metadata"] else None
        self.partition = {"server": config["topic.prefix"]}
        self._heartbeats = Heartbeats(config["heartbeat.interval.ms"], time.monotonic())
        self._read = patterns(config["snapshot.include.collection.list"])
        #: Statements for the rows of tables, by their names as SCHEMA.TABLE or DATABASE.TABLE.
        self.selects = {
            name: props[f"{_SELECTS}.{name}"]
            for name in config[_SELECTS]
            if props.get(f"{_SELECTS}.{name}")
        }

    def topic(self, *names: str) -> str:
        delimiter: str = self._config["topic.delimiter"]
        return delimiter.join((self._config["topic.prefix"], *names))

    def is_read(self, outer: str, table: str) -> bool:
        """Whether a snapshot has the rows of a table."""
        return not self._read or any(each.fullmatch(f"{outer}.{table}") for each in self._read)

    def record(self, table: Table, event: Event, offset: Mapping[str, Any]) -> SourceRecord:
        other = event.other_key
        return SourceRecord(
            self.partition,
            offset,
            table.topic,
            key=event.key,
            key_schema=None if event.key is None else table.key_schema,
            value=event.value,
            value_schema=None if event.value is None else table.schema,
            headers=() if other is None else (Header(*other, table.key_schema),),
        )

    def boundary(self, value: Struct, offset: Mapping[str, Any]) -> SourceRecord:
        """The record of a transaction's begin or end."""
        return SourceRecord(
            self.partition,
            offset,
            self.topic(self._config["topic.transaction"]),
            key=Struct(transactions.KEY_SCHEMA, {"id": value.get("id")}),
            key_schema=transactions.KEY_SCHEMA,
            value=value,
            value_schema=transactions.VALUE_SCHEMA,
        )

    def heartbeat(self, offset: Mapping[str, Any]) -> list[SourceRecord]:
        """A heartbeat, if it is time for one."""
        if not self._heartbeats.is_due(time.monotonic()):
            return []
        prefix = self._config["topic.heartbeat.prefix"]
        delimiter = self._config["topic.delimiter"]
        server = self._config["topic.prefix"]
        return [
            SourceRecord(
                self.partition,
                offset,
                f"{prefix}{delimiter}{server}",
                0,
                key=Struct(heartbeats.KEY_SCHEMA, {"serverName": server}),
                key_schema=heartbeats.KEY_SCHEMA,
                value=Struct(heartbeats.VALUE_SCHEMA, {"ts_ms": time.time_ns() // 1_000_000}),
                value_schema=heartbeats.VALUE_SCHEMA,
            )
        ]


class CaptureConnector(SingleSource):
    """One task, since a log is read in order; exactly once, by the database's transactions."""

    PASSED_ON = (TRUNCATE, MASK, f"{_SELECTS}.")

    def validate(self, props: Mapping[str, str]) -> list[ConfigValue]:
        found = super().validate(props)
        values = {each.name: each for each in found}
        for name in _PATTERNS:
            if name in values and isinstance(values[name].value, (list, tuple)):
                try:
                    patterns(values[name].value)
                except re.error as error:
                    values[name].errors.append(f"{name} has no regular expression: {error}")
        try:
            key_columns(values["message.key.columns"].value)
        except (DataError, re.error) as error:
            values["message.key.columns"].errors.append(str(error))
        for key, text in props.items():
            if (wrong := rule_error(key, text)) is not None:
                found.append(ConfigValue(key, text, errors=[wrong]))
        for name in values[_SELECTS].value or ():
            if not props.get(f"{_SELECTS}.{name}"):
                values[_SELECTS].errors.append(f"{_SELECTS}.{name} must have the statement")
        if values["column.include.list"].value and values["column.exclude.list"].value:
            values["column.exclude.list"].errors.append(
                '"column.include.list" or "column.exclude.list" may be given, not both'
            )
        return found

    def exactly_once_support(self, props: Mapping[str, str]) -> ExactlyOnceSupport:
        return ExactlyOnceSupport.SUPPORTED

    def can_define_transaction_boundaries(
        self, props: Mapping[str, str]
    ) -> ConnectorTransactionBoundaries:
        return ConnectorTransactionBoundaries.SUPPORTED
