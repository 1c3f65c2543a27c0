"""One record of a v3 produce request, read from JSON."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from moldau.http.machine.errors import HttpError
from moldau.services.rest.machine import bodies
from moldau.services.rest.machine.errors import partition_not_found
from moldau.services.rest.machine.formats import PLAIN_FORMATS, SCHEMA_FORMATS
from moldau.services.rest.machine.instants import parse_instant

__all__ = ["ProduceRequest", "read_produce_request"]

_FORMATS: Final = (*PLAIN_FORMATS, *SCHEMA_FORMATS)


@dataclass(frozen=True, slots=True)
class ProduceRequest:
    """`key` and `value` are as they were sent, with their format if that was given; None if they
    were not."""

    partition: int | None
    headers: list[tuple[str, bytes | None]]
    key: tuple[str | None, Mapping[str, Any]] | None
    value: tuple[str | None, Mapping[str, Any]] | None
    timestamp: int | None


def read_produce_request(body: Mapping[str, Any]) -> ProduceRequest:
    """Raises HttpError."""
    partition = bodies.integer(body, "partition_id")
    if partition is not None and partition < 0:
        raise partition_not_found()
    return ProduceRequest(
        partition,
        [_header(each) for each in bodies.items(body, "headers") or ()],
        _data(body, "key"),
        _data(body, "value"),
        _timestamp(body),
    )


def _data(body: Mapping[str, Any], name: str) -> tuple[str | None, Mapping[str, Any]] | None:
    given = body.get(name)
    if given is None:
        return None
    data = bodies.mapping(given, name)
    format = bodies.text(data, "type")
    if format is None:
        # Without a type the data has a schema.
        return None, data
    if format.upper() not in _FORMATS:
        raise HttpError(400, f"type {format} of {name} is none of {', '.join(_FORMATS)}")
    return format.upper(), data


def _header(header: Mapping[str, Any]) -> tuple[str, bytes | None]:
    bodies.required(header, "name")
    name, value = bodies.text(header, "name") or "", bodies.text(header, "value")
    if value is None:
        return name, None
    try:
        return name, base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        raise HttpError(400, f"The value of header {name} is not a base64 string.") from None


def _timestamp(body: Mapping[str, Any]) -> int | None:
    given = body.get("timestamp")
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, str | int):
        raise HttpError(400, "timestamp must be an ISO 8601 time or milliseconds since 1970")
    found = parse_instant(str(given))
    if found is None or found < 0:
        raise HttpError(400, f"timestamp {given} is not an ISO 8601 time of 1970 or later")
    return found
