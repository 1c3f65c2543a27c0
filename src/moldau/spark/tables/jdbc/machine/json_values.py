"""Arrow values as JSON: how arrays, structs and maps are stored, and how a refused row is shown."""

from __future__ import annotations

import base64
import datetime
import decimal
import json
import math
from typing import Any

import pyarrow as pa


def json_text(value: Any, arrow_type: Any) -> str:
    return json.dumps(json_value(value, arrow_type), ensure_ascii=False)


def json_value(value: Any, arrow_type: Any) -> Any:
    """A value as Spark's to_json writes it; binary as base64, map keys as text."""
    if value is None:
        return None
    if pa.types.is_struct(arrow_type):
        return {field.name: json_value(value[field.name], field.type) for field in arrow_type}
    if pa.types.is_map(arrow_type):
        return {
            str(json_value(key, arrow_type.key_type)): json_value(item, arrow_type.item_type)
            for key, item in value
        }
    if pa.types.is_list(arrow_type) or pa.types.is_large_list(arrow_type):
        return [json_value(item, arrow_type.value_type) for item in value]
    return _scalar(value)


def _scalar(value: Any) -> Any:
    match value:
        case bytes():
            return base64.b64encode(value).decode()
        case datetime.datetime() | datetime.date():
            return value.isoformat()
        case decimal.Decimal():
            return str(value)
        case float() if not math.isfinite(value):
            return str(value)
        case str() | bool() | int() | float():
            return value
        case _:
            return str(value)


def row_json(row: tuple[Any, ...], schema: Any) -> str:
    """A whole row, for people and for the dead-letter topic."""
    return json.dumps(
        {
            field.name: json_value(value, field.type)
            for field, value in zip(schema, row, strict=True)
        },
        ensure_ascii=False,
    )


def is_nested(arrow_type: Any) -> bool:
    return bool(
        pa.types.is_struct(arrow_type)
        or pa.types.is_map(arrow_type)
        or pa.types.is_list(arrow_type)
        or pa.types.is_large_list(arrow_type)
    )
