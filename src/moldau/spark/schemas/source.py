"""The typed columns of a query that reads topics: their types, and rows that do not decode."""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import StructField, StructType

from moldau.client.errors import KafkaError
from moldau.serde.registry_client import SchemaRegistryClient
from moldau.serde.values import Schema
from moldau.spark.columns.schema import pyarrow
from moldau.spark.schemas.machine.options import SchemaOptions
from moldau.spark.schemas.typed import BadRow, ColumnDecoder
from moldau.spark.topic_options import OptionError

__all__ = ["TypedColumns", "with_types"]

VERSIONS_MAX = 20


def with_types(plain: StructType, options: SchemaOptions) -> StructType:
    """The columns with the types of the subjects' latest schemas. Raises OptionError."""
    with SchemaRegistryClient(config=options.registry) as registry:
        fields = []
        for each in plain.fields:
            column = options.columns.get(each.name)
            if column is None:
                fields.append(each)
                continue
            schema = _latest(registry, column.subject or "")
            _check_type(column.schema_type, schema, column.subject or "")
            decoder = ColumnDecoder(registry, schema, is_key=each.name == "key")
            fields.append(StructField(each.name, from_arrow_type(decoder.type)))
        return StructType(fields)


def _latest(registry: SchemaRegistryClient, subject: str) -> Schema:
    try:
        return registry.latest(subject).schema
    except KafkaError as error:
        raise OptionError(f"The schema of subject {subject} cannot be had: {error}") from None


def _check_type(wanted: str, schema: Schema, subject: str) -> None:
    if schema.schema_type != wanted:
        raise OptionError(
            f"The schema of subject {subject} is of type {schema.schema_type}, not {wanted}."
        )


@dataclass(frozen=True, slots=True)
class TypedColumns:
    """Sent to tasks: the schemas that columns are read as, chosen when the query starts."""

    options: SchemaOptions
    schemas: Mapping[str, Schema]
    client: Mapping[str, str]

    @classmethod
    def of(
        cls, options: SchemaOptions, given: StructType, client: Mapping[str, str]
    ) -> TypedColumns:
        """Those that have the types of `given`: a newer version may have come meanwhile."""
        with SchemaRegistryClient(config=options.registry) as registry:
            schemas = {
                name: _matching(
                    registry, column.subject or "", given[name].dataType, is_key=name == "key"
                )
                for name, column in options.columns.items()
            }
        return cls(options, schemas, client)

    def reading(self) -> TypedReading:
        return TypedReading(self)


def _matching(registry: SchemaRegistryClient, subject: str, wanted: Any, *, is_key: bool) -> Schema:
    for number in registry.versions(subject)[::-1][:VERSIONS_MAX]:
        schema = registry.version(subject, number).schema
        decoder = ColumnDecoder(registry, schema, is_key=is_key)
        if from_arrow_type(decoder.type).simpleString() == wanted.simpleString():
            return schema
    raise OptionError(
        f"No schema of subject {subject} has the columns {wanted.simpleString()}: remove "
        ".schema(...)"
    )


class TypedReading:
    """In a task: decodes batches, and sends what does not decode to the dead-letter topic."""

    def __init__(self, columns: TypedColumns) -> None:
        self._columns = columns
        self._registry = SchemaRegistryClient(config=columns.options.registry)
        self._decoders = {
            name: ColumnDecoder(self._registry, schema, is_key=name == "key")
            for name, schema in columns.schemas.items()
        }
        self._producer: Any = None

    def typed(self, batch: pyarrow.RecordBatch) -> pyarrow.RecordBatch:
        """Without the rows that went to the dead-letter topic. Raises for them if there is none."""
        arrays = list(batch.columns)
        bad: dict[int, tuple[str, BadRow]] = {}
        names = batch.schema.names
        headers = batch.column("headers") if "headers" in names else None
        for name, decoder in self._decoders.items():
            position = names.index(name)
            arrays[position], rows = decoder.decode(batch.column(position), headers)
            for row in rows:
                bad.setdefault(row.index, (name, row))
        made = pyarrow.RecordBatch.from_arrays(arrays, names=names)
        if not bad:
            return made
        self._send_bad(batch, bad)
        return made.filter(pyarrow.array([at not in bad for at in range(made.num_rows)]))

    def close(self) -> None:
        if self._producer is not None:
            self._producer.close()
        self._registry.close()

    def _send_bad(self, batch: pyarrow.RecordBatch, bad: Mapping[int, tuple[str, BadRow]]) -> None:
        topic = self._columns.options.dead_letter_topic
        for index, (side, row) in bad.items():
            record = batch.slice(index, 1).to_pylist()[0]
            place = f"{record['topic']}-{record['partition']} offset {record['offset']}"
            if topic is None:
                raise RuntimeError(
                    f"the {side} of the record at {place} does not decode: {row.error}. The option "
                    "deadLetterTopic sends such records to a topic."
                ) from row.error
            self._made().send(
                topic, record["value"], key=record["key"], headers=_headers(record, side, row.error)
            )
        # A task that ends has sent all of them.
        self._made().flush()

    def _made(self) -> Any:
        if self._producer is None:
            from moldau.client.config import PRODUCER_KEYS, keys_of
            from moldau.client.producer import Producer

            self._producer = Producer(keys_of(PRODUCER_KEYS, dict(self._columns.client)))
        return self._producer


def _headers(
    record: Mapping[str, Any], side: str, error: Exception
) -> list[tuple[str, bytes | None]]:
    """Connect's."""
    stage = "KEY_CONVERTER" if side == "key" else "VALUE_CONVERTER"
    told = {
        "topic": record["topic"],
        "partition": record["partition"],
        "offset": record["offset"],
        "stage": stage,
        "class.name": "moldau.spark.schemas",
        "exception.class.name": f"{type(error).__module__}.{type(error).__qualname__}",
        "exception.message": error,
        "exception.stacktrace": "".join(traceback.format_exception(error)),
    }
    before = [(each["key"], each["value"]) for each in record.get("headers") or ()]
    return before + [
        (f"__connect.errors.{name}", str(value).encode()) for name, value in told.items()
    ]
