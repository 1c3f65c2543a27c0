"""Which of Avro's logical types a schema has.

One that does not fit its type (a date of strings, a decimal without precision) is no error: the
schema then has none, and the attributes are properties like any others.
"""

from __future__ import annotations

import math
from typing import Any, TypeGuard

from moldau.data.avro.model import Array, AvroType, Fixed, Record

_KINDS = {
    "date": "int",
    "time-millis": "int",
    "time-micros": "long",
    "timestamp-millis": "long",
    "timestamp-micros": "long",
    "timestamp-nanos": "long",
    "local-timestamp-millis": "long",
    "local-timestamp-micros": "long",
    "local-timestamp-nanos": "long",
    "big-decimal": "bytes",
}
_INT_MAX = 2**31 - 1


def logical_type(schema: AvroType) -> str | None:
    """The name of the schema's logical type, if it has one that is known and fits."""
    name = schema.props.get("logicalType")
    if not isinstance(name, str):
        return None
    match name:
        case "decimal":
            fits = _is_decimal(schema)
        case "uuid":
            fits = schema.kind == "string" or (isinstance(schema, Fixed) and schema.size == 16)
        case "duration":
            fits = isinstance(schema, Fixed) and schema.size == 12
        case "map":
            fits = _is_array_of_entries(schema)
        case "variant":
            fits = _is_variant(schema)
        case _:
            fits = _KINDS.get(name) == schema.kind
    return name if fits else None


def decimal_precision_and_scale(schema: AvroType) -> tuple[int, int]:
    """Of a schema whose logical type is decimal."""
    return schema.props["precision"], schema.props.get("scale", 0)


def _is_decimal(schema: AvroType) -> bool:
    if schema.kind not in ("bytes", "fixed"):
        return False
    precision, scale = schema.props.get("precision"), schema.props.get("scale", 0)
    if not (_is_int(precision) and _is_int(scale)):
        return False
    limit = _INT_MAX
    if isinstance(schema, Fixed):
        limit = math.floor(math.log10(2) * (8 * schema.size - 1)) if schema.size else 0
    return 0 < precision <= limit and 0 <= scale <= precision


def _is_int(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= _INT_MAX


def _is_array_of_entries(schema: AvroType) -> bool:
    return (
        isinstance(schema, Array)
        and isinstance(schema.items, Record)
        and [each.name for each in schema.items.fields] == ["key", "value"]
    )


def _is_variant(schema: AvroType) -> bool:
    if not isinstance(schema, Record) or len(schema.fields) != 2:
        return False
    kinds = {each.name: each.type.kind for each in schema.fields}
    return kinds == {"metadata": "bytes", "value": "bytes"}
