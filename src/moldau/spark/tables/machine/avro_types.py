"""Columns as Avro's types and back: what Avro files of pipelines contain.

Pure. The types are those that Spark's own Avro source and sink use: timestamps of microseconds,
decimals as bytes, every column nullable. What Arrow lacks is read as text.
"""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from moldau.spark.tables.errors import SchemaMismatchError

__all__ = ["arrow_schema_of", "avro_schema", "plain"]

_TO_AVRO = {
    pa.bool_(): "boolean",
    pa.int8(): "int",
    pa.int16(): "int",
    pa.int32(): "int",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.large_string(): "string",
    pa.binary(): "bytes",
    pa.large_binary(): "bytes",
    pa.date32(): {"type": "int", "logicalType": "date"},
}
_FROM_AVRO = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "bytes": pa.binary(),
    "fixed": pa.binary(),
    "enum": pa.string(),
}
_LOGICAL = {
    "date": pa.date32(),
    "timestamp-millis": pa.timestamp("us", "UTC"),
    "timestamp-micros": pa.timestamp("us", "UTC"),
    "local-timestamp-millis": pa.timestamp("us"),
    "local-timestamp-micros": pa.timestamp("us"),
    # Spark's columns have no times of day and no UUIDs.
    "time-millis": pa.string(),
    "time-micros": pa.string(),
    "uuid": pa.string(),
}


def avro_schema(schema: Any, name: str = "topLevelRecord") -> dict[str, Any]:
    """The record that holds rows of this Arrow schema; its name is Spark's."""
    return {"type": "record", "name": name, "fields": [_field(each, name) for each in schema]}


def _field(field: Any, path: str) -> dict[str, Any]:
    return {"name": field.name, "type": ["null", _to_avro(field.type, f"{path}.{field.name}")]}


def _to_avro(kind: Any, path: str) -> Any:
    if kind in _TO_AVRO:
        return _TO_AVRO[kind]
    if pa.types.is_decimal(kind):
        sizes = {"precision": kind.precision, "scale": kind.scale}
        return {"type": "bytes", "logicalType": "decimal", **sizes}
    if pa.types.is_timestamp(kind):
        name = "timestamp-micros" if kind.tz else "local-timestamp-micros"
        return {"type": "long", "logicalType": name}
    if pa.types.is_struct(kind):
        # The names of records are unique in a file.
        return avro_schema(kind, path)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return {"type": "array", "items": ["null", _to_avro(kind.value_type, f"{path}.element")]}
    if pa.types.is_map(kind) and kind.key_type in (pa.string(), pa.large_string()):
        return {"type": "map", "values": ["null", _to_avro(kind.item_type, f"{path}.value")]}
    raise SchemaMismatchError(
        f"column {path.partition('.')[2]!r} is {kind}, which Avro has no type for",
        "Cast it in a step, for instance to text",
    )


def arrow_schema_of(avro: Any) -> Any:
    """The columns of files with this schema of a record."""
    named: dict[str, Any] = {}
    if not isinstance(avro, Mapping) or avro.get("type") != "record":
        raise SchemaMismatchError(
            "the files hold no records", "Every value in them must be a record of columns"
        )
    return pa.schema([(each["name"], _from_avro(each["type"], named)) for each in avro["fields"]])


def _from_avro(kind: Any, named: dict[str, Any]) -> Any:
    if isinstance(kind, list):
        return _of_union(kind, named)
    if isinstance(kind, str):
        found = _FROM_AVRO.get(kind, named.get(kind))
        if found is None:
            raise SchemaMismatchError(f"the type {kind!r} is not known, or contains itself")
        return found
    name = kind["type"]
    logical = kind.get("logicalType")
    if logical == "decimal":
        return pa.decimal128(kind["precision"], kind.get("scale", 0))
    if logical in _LOGICAL:
        return _LOGICAL[logical]
    if isinstance(name, Mapping | list):
        return _from_avro(name, named)
    made = _of_complex(name, kind, named)
    if "name" in kind:
        named[kind["name"]] = made
    return made


def _of_complex(name: str, kind: Mapping[str, Any], named: dict[str, Any]) -> Any:
    if name == "record":
        return pa.struct(
            [(each["name"], _from_avro(each["type"], named)) for each in kind["fields"]]
        )
    if name == "array":
        return pa.list_(_from_avro(kind["items"], named))
    if name == "map":
        return pa.map_(pa.string(), _from_avro(kind["values"], named))
    return _from_avro(name, named)


def _of_union(kinds: list[Any], named: dict[str, Any]) -> Any:
    found = [_from_avro(each, named) for each in kinds if each != "null"]
    if len(found) == 1:
        return found[0]
    if set(found) == {pa.int32(), pa.int64()}:
        return pa.int64()
    if set(found) == {pa.float32(), pa.float64()}:
        return pa.float64()
    raise SchemaMismatchError(
        f"a union of {len(found)} types is no column", "Write the files with one type and null"
    )


def plain(kind: Any) -> Callable[[Any], Any]:
    """How a decoded value becomes one that Arrow takes for this type."""
    if pa.types.is_string(kind):
        return _text
    if pa.types.is_struct(kind):
        inner = {each.name: plain(each.type) for each in kind}
        return lambda value: (
            None if value is None else {name: of(value.get(name)) for name, of in inner.items()}
        )
    if pa.types.is_list(kind):
        each = plain(kind.value_type)
        return lambda value: None if value is None else [each(item) for item in value]
    if pa.types.is_map(kind):
        item = plain(kind.item_type)
        return lambda value: (
            None if value is None else [(key, item(held)) for key, held in value.items()]
        )
    return lambda value: value


def _text(value: Any) -> Any:
    if isinstance(value, datetime.time):
        return value.isoformat()
    return str(value) if isinstance(value, uuid.UUID) else value
