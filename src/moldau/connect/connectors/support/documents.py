"""Values as JSON documents for systems that know no schemas, and texts of keys."""

from __future__ import annotations

import base64
import datetime
from decimal import Decimal
from typing import Any

from moldau.data import json_text
from moldau.data.errors import DataError
from moldau.data.primitive_bytes import java_text
from moldau.data.schema import Schema
from moldau.data.struct import Struct

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MS = datetime.timedelta(milliseconds=1)


def document(value: Any, *, times: str = "ms") -> Any:
    """A value made of what JSON has. `times` is how dates and timestamps are written: ms, as
    Connect's JSON has them, or iso."""
    match value:
        case None | bool() | str() | int():
            return value
        case float():
            return value if value == value and abs(value) != float("inf") else None
        case Struct():
            return {
                field.name: document(value.get(field.name), times=times)
                for field in value.schema.fields
            }
        case dict():
            return {str(key): document(each, times=times) for key, each in value.items()}
        case list() | tuple():
            return [document(each, times=times) for each in value]
        case bytes() | bytearray() | memoryview():
            return base64.b64encode(bytes(value)).decode()
        case Decimal():
            return value
        case datetime.datetime() if times == "ms":
            return (value - _EPOCH) // _MS
        case datetime.datetime() | datetime.date() | datetime.time():
            return value.isoformat()
    raise DataError(f"a {type(value).__name__} has no JSON form: {value!r}")


def json_bytes(value: Any, *, times: str = "ms") -> bytes:
    return json_text.compact(document(value, times=times)).encode()


def text_of(value: Any, schema: Schema | None, what: str) -> str:
    """A primitive value as the text of an id or a key."""
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).decode("utf-8", "replace")
    if isinstance(value, (Struct, dict, list)) or value is None:
        raise DataError(f"{what} must be a text, a number or bytes, not {schema or type(value)}")
    return value if isinstance(value, str) else java_text(value)
