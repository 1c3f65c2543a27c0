"""Connect's cases as Python values: schemas and values from the notation of their README."""

from __future__ import annotations

import base64
import datetime
import struct
from decimal import Decimal
from typing import Any

from moldau.data import logical
from moldau.data.schema import Field, Schema, Type
from moldau.data.struct import Struct

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def schema_of(node: Any) -> Schema | None:
    if node is None:
        return None
    if isinstance(node, str):
        return Schema(type=Type(node.rstrip("?")), optional=node.endswith("?"))
    fields = []
    for index, each in enumerate(node.get("fields", [])):
        inner = schema_of(each["schema"])
        assert inner is not None
        fields.append(Field(each["field"], index, inner))
    schema = Schema(
        type=Type(node["type"]),
        optional=node.get("optional", False),
        name=node.get("name"),
        version=node.get("version"),
        doc=node.get("doc"),
        parameters=node.get("parameters") or {},
        fields=tuple(fields),
        key_schema=schema_of(node.get("keys")),
        value_schema=schema_of(node.get("items") or node.get("values")),
    )
    return schema.replace(default=value_of(schema, node.get("default")))


def value_of(schema: Schema | None, node: Any) -> Any:
    if schema is None:
        return _schemaless(node)
    if node is None:
        return None
    match schema.name:
        case logical.DECIMAL_NAME:
            return Decimal(node)
        case logical.DATE_NAME | logical.TIME_NAME | logical.TIMESTAMP_NAME:
            return _temporal(schema.name, node)
    match schema.type:
        case Type.BYTES:
            return base64.b64decode(node)
        case Type.FLOAT32:
            return struct.unpack(">f", struct.pack(">f", float(node)))[0]
        case Type.FLOAT64:
            return float(node)
        case Type.ARRAY:
            return [value_of(schema.value_schema, each) for each in node]
        case Type.MAP:
            pairs = node.items() if isinstance(node, dict) else node
            if isinstance(node, dict) and "$pairs" in node:
                pairs = node["$pairs"]
            return {
                value_of(schema.key_schema, _untagged(key)): value_of(schema.value_schema, each)
                for key, each in pairs
            }
        case Type.STRUCT:
            result = Struct(schema)
            for field in schema.fields:
                if node.get(field.name) is not None:
                    result.put(field.name, value_of(field.schema, node[field.name]))
            return result
        case _:
            return node


def _untagged(node: Any) -> Any:
    return next(iter(node.values())) if isinstance(node, dict) else node


def _temporal(name: str, since_epoch: int) -> Any:
    """The logical value, or as in Java an instant where there is none: a Date with a time."""
    try:
        if name == logical.DATE_NAME and since_epoch % logical.DAY_MS == 0:
            return logical.date_from_days(since_epoch // logical.DAY_MS)
        if name == logical.TIME_NAME:
            return logical.time_from_ms(since_epoch)
    except ValueError:
        pass
    return _EPOCH + datetime.timedelta(milliseconds=since_epoch)


def _schemaless(node: Any) -> Any:
    match node:
        case Decimal():
            return float(node)
        case list():
            return [_schemaless(each) for each in node]
        case {"$bytes": text}:
            return base64.b64decode(text)
        case {"$decimal": text}:
            return Decimal(text)
        case {"$bigint": text}:
            return int(text)
        case {"$date_ms": number}:
            return _EPOCH + datetime.timedelta(milliseconds=number)
        case {"$pairs": pairs}:
            return {_schemaless(key): _schemaless(each) for key, each in pairs}
        case {"$int8": number} | {"$int16": number} | {"$int32": number}:
            return number
        case {"$float32": number}:
            return float(number)
        case dict():
            return {key: _schemaless(each) for key, each in node.items()}
        case _:
            return node
