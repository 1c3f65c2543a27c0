"""Debezium's JDBC sink: changes in Debezium's form, and plain rows, to rows of tables.

A change is replaced by its row before the JDBC sink gets it; a table has the topic's name with `_`
for dots.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from moldau.connect.api import SinkRecord, SinkTask
from moldau.connect.connectors.jdbc.sink import JdbcSinkConnector, JdbcSinkTask
from moldau.connect.transforms.debezium import DELETE_TO_TOMBSTONE, DROP, ExtractNewRecordState


class ChangesSinkConnector(JdbcSinkConnector):
    DESCRIPTION = "Changes in Debezium's form, or rows, to rows of a database's tables"

    def task_class(self) -> type[SinkTask]:
        return ChangesSinkTask


class ChangesSinkTask(JdbcSinkTask):
    def start(self, props: Mapping[str, str]) -> None:
        super().start(props)
        self._unwrap = ExtractNewRecordState()
        mode: Any = DELETE_TO_TOMBSTONE if self._config["delete.enabled"] else DROP
        self._unwrap.configure({"delete.tombstone.handling.mode": mode})

    def put(self, records: Sequence[SinkRecord]) -> None:
        rows = [self._unwrap.apply(each) for each in records]
        super().put(
            [
                each.new_record(topic=each.topic.replace(".", "_"))
                for each in rows
                if each is not None
            ]
        )
