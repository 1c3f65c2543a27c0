"""Records as rows: tables, primary keys, and which statement each record needs.

Consecutive records of one table, one schema and one kind of change form a batch, so the order of
changes to a key is kept.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final, Protocol

from moldau.connect.api.records import SinkRecord
from moldau.connect.connectors.jdbc.machine import statements
from moldau.connect.connectors.jdbc.machine.statements import SinkField, Syntax
from moldau.data import builders, logical
from moldau.data.errors import DataError
from moldau.data.schema import Schema, Type
from moldau.data.struct import Struct

KAFKA_FIELDS: Final = ("__connect_topic", "__connect_partition", "__connect_offset")
_KAFKA_SCHEMAS: Final = (builders.STRING, builders.INT32, builders.INT64)


class Moments(Protocol):
    """How a database takes a timestamp."""

    def moment(self, value: datetime.datetime) -> Any: ...


@dataclass(frozen=True, slots=True)
class RowRules:
    table_format: str
    pk_mode: str
    pk_fields: tuple[str, ...]
    fields: frozenset[str]
    insert_mode: str
    delete_enabled: bool
    replace_nulls: bool = True
    """Whether the default of a field is written where its value is null."""
    timestamps: frozenset[str] = frozenset()
    """Fields with numbers or texts that become timestamps."""
    unit_ns: int = 1000
    """What these count."""
    text_column: str = "record_value"

    def table(self, topic: str) -> str:
        name = self.table_format.replace("${topic}", topic)
        if not name:
            raise DataError(f"Destination table name for topic '{topic}' is empty")
        return name


@dataclass(slots=True)
class Batch:
    table: str
    keys: tuple[str, ...]
    others: tuple[str, ...]
    fields: list[SinkField]
    mode: str
    """insert, upsert, update or delete."""
    values: list[tuple[list[Any], list[Any]]] = field(default_factory=list)

    def statement(self, syntax: Syntax) -> str:
        return syntax.bound(self._statement(syntax))

    def _statement(self, syntax: Syntax) -> str:
        match self.mode:
            case "delete":
                return statements.delete(syntax, self.table, self.keys)
            case "upsert":
                return statements.upsert(syntax, self.table, self.keys, self.others)
            case "update":
                return statements.update(syntax, self.table, self.keys, self.others)
            case _:
                return statements.insert(syntax, self.table, [*self.keys, *self.others])

    def rows(self, binding: Binding) -> list[list[Any]]:
        ordered = (
            [*others, *keys] if self.mode == "update" else [*keys, *others]
            for keys, others in self.values
        )
        return [[binding.bound(value) for value in row] for row in ordered]


@dataclass(frozen=True, slots=True)
class Binding:
    """How values become those of the driver: times are in `zone`, days in `day_zone`."""

    moments: Moments
    zone: datetime.tzinfo = datetime.UTC
    day_zone: datetime.tzinfo = datetime.UTC
    arrays: bool = False

    def bound(self, value: Any) -> Any:
        if isinstance(value, datetime.datetime):
            return self.moments.moment(value)
        if isinstance(value, datetime.time):
            return _in_zone(datetime.date(1970, 1, 1), value, self.zone).time().isoformat()
        if isinstance(value, datetime.date):
            return _in_zone(value, datetime.time(), self.day_zone).date().isoformat()
        if isinstance(value, Decimal):
            return format(value, "f")
        if isinstance(value, list) and self.arrays:
            return [self.bound(each) for each in value]
        if isinstance(value, (list, dict)):
            return json.dumps(value, default=str)
        return value


def _in_zone(day: datetime.date, time: datetime.time, zone: datetime.tzinfo) -> datetime.datetime:
    if zone is datetime.UTC:
        return datetime.datetime.combine(day, time)
    return datetime.datetime.combine(day, time, datetime.UTC).astimezone(zone)


def batches(rules: RowRules, records: Sequence[SinkRecord], size_max: int) -> Iterator[Batch]:
    current: Batch | None = None
    shape: tuple[Any, ...] = ()
    for record in records:
        its_shape = (record.topic, record.key_schema, record.value_schema, record.value is None)
        if current is None or its_shape != shape or 0 < size_max <= len(current.values):
            if current is not None:
                yield current
            current, shape = _batch(rules, record), its_shape
        current.values.append(_values(rules, current, record))
    if current is not None:
        yield current


def _batch(rules: RowRules, record: SinkRecord) -> Batch:
    key_fields = _key_fields(rules, record)
    table = rules.table(record.topic)
    if record.value is None:
        if not rules.delete_enabled:
            raise DataError(
                f"record {record.topic}-{record.partition}@{record.offset} has no value: set "
                "delete.enabled=true to delete its row, or drop it by a transform"
            )
        names = tuple(each.name for each in key_fields)
        return Batch(table, names, (), key_fields, "delete")
    schema = record.value_schema
    if schema is not None and schema.type is Type.STRING and rules.pk_mode != "record_value":
        return _text_batch(rules, table, key_fields, schema)
    if schema is None or schema.type is not Type.STRUCT:
        raise DataError(
            f"record {record.topic}-{record.partition}@{record.offset} has no struct as its value: "
            "the JDBC sink needs values with a schema, such as JSON with schemas.enable=true, "
            "Avro, JSON Schema or Protobuf"
        )
    taken = {each.name for each in key_fields}
    others = [
        SinkField(each.name, _column_schema(rules, each.name, each.schema), False)
        for each in schema.fields
        if each.name not in taken and (not rules.fields or each.name in rules.fields)
    ]
    if not key_fields and not others:
        raise DataError(f"record of topic {record.topic} has no fields to write")
    return Batch(
        table,
        tuple(each.name for each in key_fields),
        tuple(each.name for each in others),
        [*key_fields, *others],
        rules.insert_mode,
    )


def _column_schema(rules: RowRules, name: str, schema: Schema) -> Schema:
    if name not in rules.timestamps:
        return schema
    if schema.type not in (Type.INT64, Type.STRING):
        raise DataError(
            f"field {name} of timestamp.fields.list is a {schema.type.value}: it must be an int64 "
            "or a string"
        )
    return logical.TIMESTAMP.as_optional() if schema.optional else logical.TIMESTAMP


def _text_batch(rules: RowRules, table: str, key_fields: list[SinkField], schema: Schema) -> Batch:
    if rules.fields or rules.timestamps:
        raise DataError(
            "fields.whitelist and timestamp.fields.list are for values with fields, and the value "
            "is a text: remove them"
        )
    text = SinkField(rules.text_column, schema, False)
    keys = tuple(each.name for each in key_fields)
    return Batch(table, keys, (text.name,), [*key_fields, text], rules.insert_mode)


def _key_fields(rules: RowRules, record: SinkRecord) -> list[SinkField]:
    match rules.pk_mode:
        case "kafka":
            names = rules.pk_fields or KAFKA_FIELDS
            return [
                SinkField(name, schema, True)
                for name, schema in zip(names, _KAFKA_SCHEMAS, strict=True)
            ]
        case "record_key":
            return _record_key_fields(rules, record)
        case "record_value":
            schema = record.value_schema
            if schema is None or schema.type is not Type.STRUCT:
                raise DataError("pk.mode=record_value needs a struct as the value")
            wanted = rules.pk_fields or tuple(each.name for each in schema.fields)
            return [_struct_field(schema, name, "value") for name in wanted]
        case _:
            return []


def _record_key_fields(rules: RowRules, record: SinkRecord) -> list[SinkField]:
    schema = record.key_schema
    if schema is None:
        raise DataError(
            f"PK mode for table '{rules.table(record.topic)}' is RECORD_KEY, but record key schema "
            "is missing"
        )
    if schema.type is Type.STRUCT:
        wanted = rules.pk_fields or tuple(each.name for each in schema.fields)
        return [_struct_field(schema, name, "key") for name in wanted]
    if not schema.type.is_primitive or len(rules.pk_fields) != 1:
        raise DataError(
            "Need exactly one PK column defined since the key schema for records is a primitive "
            f"type, defined columns are: {list(rules.pk_fields)}"
        )
    return [SinkField(rules.pk_fields[0], schema, True)]


def _struct_field(schema: Schema, name: str, part: str) -> SinkField:
    found = schema.field(name)
    if found is None:
        raise DataError(
            f"the record {part} has no field {name}, which pk.fields names; it has "
            f"{', '.join(each.name for each in schema.fields)}"
        )
    return SinkField(name, found.schema, True)


def _values(rules: RowRules, batch: Batch, record: SinkRecord) -> tuple[list[Any], list[Any]]:
    match rules.pk_mode:
        case "kafka":
            keys: list[Any] = [
                record.original_topic,
                record.original_partition,
                record.original_offset,
            ]
        case "record_key":
            if record.key is None:
                raise DataError(
                    f"record {record.topic}-{record.partition}@{record.offset} has no key"
                )
            keys = _of(record.key, batch.keys)
        case "record_value":
            keys = _of(record.value, batch.keys)
        case _:
            keys = []
    if isinstance(record.value, str):
        return keys, [record.value]
    return keys, [_value(rules, record.value, name) for name in batch.others]


def _value(rules: RowRules, struct: Any, name: str) -> Any:
    value = struct.get(name) if rules.replace_nulls else struct.get_without_default(name)
    if value is not None and name in rules.timestamps:
        return _EPOCH + datetime.timedelta(microseconds=int(value) * rules.unit_ns // 1000)
    return value


_EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def _of(value: Any, names: Sequence[str]) -> list[Any]:
    return [value.get(name) for name in names] if isinstance(value, Struct) else [value]
