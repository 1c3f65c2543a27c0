"""Embedded formats: how keys and values stand in JSON.

binary (base64), json and string are complete here. avro, jsonschema and protobuf need schemas:
whoever has them implements `SchemaFormats`; without one they are refused with a clear error.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from moldau.http.machine.errors import HttpError
from moldau.services.rest.machine.errors import bad_request

__all__ = [
    "PLAIN_FORMATS",
    "SCHEMA_FORMATS",
    "EncodedSchema",
    "SchemaFormats",
    "decode_plain",
    "encode_plain",
    "no_schemas",
]

PLAIN_FORMATS: Final = ("BINARY", "JSON", "STRING")
SCHEMA_FORMATS: Final = ("AVRO", "JSONSCHEMA", "PROTOBUF")

_encode_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_SHOWN_MAX: Final = 100


@dataclass(frozen=True, slots=True)
class EncodedSchema:
    """The schema that data was written with, for the answer."""

    format: str
    schema_id: int | None = None
    schema_version: int | None = None
    subject: str | None = None


class SchemaFormats(Protocol):
    """Keys and values with a schema of the registry. Errors are HttpErrors with Confluent's codes
    (42201 to 42207)."""

    async def resolve(
        self,
        topic: str,
        *,
        format: str | None,
        is_key: bool,
        data: Mapping[str, Any],
    ) -> EncodedSchema:
        """The schema that `data` names (schema, schema_id, schema_version, subject,
        subject_name_strategy), registered if it is a text."""
        ...

    async def encode(
        self, topic: str, schema: EncodedSchema, value: Any, *, is_key: bool
    ) -> bytes: ...

    async def decode(self, topic: str, format: str, data: bytes, *, is_key: bool) -> Any: ...


def encode_plain(format: str, value: Any) -> bytes | None:
    """The bytes of a key or value; null is none. Raises HttpError with 400."""
    if value is None:
        return None
    if format == "JSON":
        return _encode_json(value).encode()
    if format == "STRING":
        if not isinstance(value, str):
            raise bad_request(f"data={_shown(value)} is not a string.")
        return value.encode()
    if not isinstance(value, str):
        raise bad_request(f"data={_shown(value)} is not a base64 string.")
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        raise bad_request(f"data={_shown(value)} is not a valid base64 string.") from None


def decode_plain(format: str, data: bytes | None) -> Any:
    """What stands in JSON; raises HttpError with 408 and 40801 for bytes that are not the format,
    which is the original's code for them."""
    if data is None:
        return None
    if format == "BINARY":
        return base64.b64encode(data).decode()
    try:
        text = bytes(data).decode()
        return text if format == "STRING" else json.loads(text)
    except (ValueError, RecursionError):
        raise HttpError(
            408,
            f"A record's key or value is not {format}. Read it with format binary.",
            error_code=40801,
        ) from None


def no_schemas(format: str) -> HttpError:
    return HttpError(
        422,
        f"Payload error. Format {format} needs a Schema Registry: start the proxy with "
        "schema.registry.url, or use binary, json or string.",
        error_code=42206,
    )


def _shown(value: Any) -> str:
    text = _encode_json(value)
    return text if len(text) <= _SHOWN_MAX else text[:_SHOWN_MAX] + "..."
