"""RowWriter: rows that clients insert, to the topics of their streams."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from moldau.client import Producer
from moldau.client.errors import KafkaError
from moldau.sql.engine.engine import KsqlEngine
from moldau.sql.engine.inserts import target_of
from moldau.sql.engine.results import Inserted
from moldau.sql.errors import KsqlException
from moldau.sql.formats.errors import Misfit
from moldau.sql.formats.json_reading import by_rules, parse
from moldau.sql.sources.data_source import DataSource
from moldau.sql.types import StructType

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
        return target_of(_name(name), self._engine().metastore)

    def send(self, target: str, row: Mapping[str, Any]) -> Any:
        """Send a row that came as JSON. See `written`.

        As in ksqlDB: names match as they do in JSON topics, others are passed over, and a key must
        be there.
        """
        source = self.target(target)
        schema = source.schema
        columns = (*schema.key, *schema.value)
        given = {_name(name) for name, value in row.items() if value is not None}
        for key in schema.key:
            if key.name not in given:
                raise KsqlException(f"Key field must be specified: {key.name}")
        read = by_rules(StructType(tuple((each.name, each.type) for each in columns)))
        try:
            values = read(parse(json.dumps(row).encode()))
        except Misfit as misfit:
            raise KsqlException(str(misfit)) from None
        count = len(schema.key)
        serdes, value = self._engine().serdes, source.value_format
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


def _name(text: str) -> str:
    """An identifier as a client writes it: in capitals unless it is quoted."""
    return text[1:-1] if text[:1] == "`" == text[-1:] else text.upper()
