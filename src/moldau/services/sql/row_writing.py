"""RowWriter: rows that clients insert, to the topics of their streams."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from moldau.client import Producer
from moldau.client.errors import KafkaError
from moldau.services.sql.machine.json_rows import column_name, row_values
from moldau.sql.engine.engine import KsqlEngine
from moldau.sql.engine.inserts import target_of
from moldau.sql.engine.results import Inserted
from moldau.sql.errors import KsqlException
from moldau.sql.sources.data_source import DataSource

__all__ = ["RowWriter"]

_TIMEOUT_S: Final = 30


class RowWriter:
    """Called from threads."""

    def __init__(self, settings: Mapping[str, str], engine: Callable[[], KsqlEngine]) -> None:
        self._producer = Producer(settings, acks="all", linger_ms=0)
        self._engine = engine

    def insert(self, record: Inserted) -> None:
        """Write what INSERT VALUES has made."""
        sent = self._producer.send(
            record.topic, record.value, key=record.key, timestamp=record.timestamp
        )
        self.written(sent)

    def target(self, name: str) -> DataSource:
        """The stream or table that rows are inserted into; raises KsqlException."""
        engine = self._engine()
        return target_of(column_name(name), engine.metastore, engine.settings)

    def send(self, target: str, row: Mapping[str, Any]) -> Any:
        """Send a row that came as JSON. See `written`. As in ksqlDB, a key must be there."""
        source = self.target(target)
        schema = source.schema
        values = row_values(row, (*schema.key, *schema.value))
        for key, value in zip(schema.key, values, strict=False):
            if value is None:
                raise KsqlException(f"Key field must be specified: {key.name}")
        return self._sent(source, values)

    def write(self, source: DataSource, rows: Sequence[tuple[Any, ...]]) -> None:
        """Write rows, the columns of the key first; raises KsqlException."""
        count = len(source.schema.key)
        for row in rows:
            if source.kind == "TABLE" and None in row[:count]:
                raise KsqlException(f"A row has no value for the primary key of {source.name}")
        for sent in [self._sent(source, row) for row in rows]:
            self.written(sent)

    def _sent(self, source: DataSource, values: tuple[Any, ...]) -> Any:
        schema, value = source.schema, source.value_format
        count = len(schema.key)
        serdes = self._engine().serdes
        key_serde = serdes.key(source.key_format, schema)
        value_serde = serdes.value(value.format, schema, value.features)
        return self._producer.send(
            source.topic,
            value_serde.serialize(source.topic, values[count:]),
            key=key_serde.serialize(source.topic, values[:count]),
        )

    def written(self, sent: Any) -> None:
        """Wait until a row is written; raises KsqlException."""
        try:
            sent.result(timeout=_TIMEOUT_S)
        except (KafkaError, TimeoutError) as error:
            raise KsqlException(f"The row could not be written: {error}") from error

    def close(self) -> None:
        self._producer.close(timeout=5)
