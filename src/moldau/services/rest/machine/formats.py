"""Embedded formats: how keys and values stand in JSON.

binary (base64), json and string are complete here. avro, jsonschema and protobuf need
schemas: whoever has them implements `SchemaFormats`; without one they are refused.
"""

from __future__ import annotations

import base64
import binascii
import json
from binascii import a2b_base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from moldau.http.machine.errors import HttpError
from moldau.http.machine.json_text import dump_json, encode_json
from moldau.services.rest.machine.errors import bad_request

__all__ = [
    "PLAIN_FORMATS",
    "SCHEMA_FORMATS",
    "WITHOUT_SCHEMA",
    "EncodedSchema",
    "decode_plain",
    "encode_plain",
    "no_schemas",
    "plain_encoder",
]

PLAIN_FORMATS: Final = ("BINARY", "JSON", "STRING")
SCHEMA_FORMATS: Final = ("AVRO", "JSONSCHEMA", "PROTOBUF")

_SHOWN_MAX: Final = 100


@dataclass(frozen=True, slots=True)
class EncodedSchema:
    """The schema that data was written with, for the answer."""

    format: str
    schema_id: int | None = None
    schema_version: int | None = None
    subject: str | None = None


#: Of data without a schema, by format.
WITHOUT_SCHEMA: Final = {name: EncodedSchema(name) for name in PLAIN_FORMATS}


def plain_encoder(format: str) -> Callable[[Any], bytes]:
    """From what stands in JSON, other than null, to bytes; raises HttpError with 400."""
    return _ENCODERS[format]


def encode_plain(format: str, value: Any) -> bytes | None:
    """The bytes of a key or value; null is none. Raises HttpError with 400."""
    return None if value is None else _ENCODERS[format](value)


def _encode_binary(value: Any) -> bytes:
    if type(value) is not str:
        raise bad_request(f"data={_shown(value)} is not a base64 string.")
    try:
        return a2b_base64(value, strict_mode=True)
    except (binascii.Error, ValueError):
        raise bad_request(f"data={_shown(value)} is not a valid base64 string.") from None


def _encode_string(value: Any) -> bytes:
    if type(value) is not str:
        raise bad_request(f"data={_shown(value)} is not a string.")
    return value.encode()


_ENCODERS: Final[Mapping[str, Callable[[Any], bytes]]] = {
    "BINARY": _encode_binary,
    "JSON": dump_json,
    "STRING": _encode_string,
}


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
        f"Payload error. Format {format} needs a Schema Registry, and this proxy has no connection "
        "to one. Use binary, json or string.",
        error_code=42206,
    )


def _shown(value: Any) -> str:
    text = encode_json(value)
    return text if len(text) <= _SHOWN_MAX else text[:_SHOWN_MAX] + "..."
