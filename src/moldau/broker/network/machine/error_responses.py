"""Builds the response that tells a client of an error which no handler put into words.

Only a response with an error code at its top level can do that; for the others the caller has to
close the connection, and handlers that answer per topic or partition catch their own errors.
"""

from __future__ import annotations

from typing import Any

from moldau.wire.apis import Api
from moldau.wire.errors import ErrorCode
from moldau.wire.message import Message


def error_response(api: Api, version: int, code: ErrorCode, message: str = "") -> Message | None:
    """The response of `api` with nothing in it but the error; None if the version has no field
    for one."""
    response = api.response
    fields = _fields_of(response, version)
    if "error_code" not in fields:
        return None
    values: dict[str, Any] = {"error_code": int(code)}
    if "error_message" in fields:
        values["error_message"] = message or None
    return response(**values)


def _fields_of(cls: type[Message], version: int) -> set[str]:
    return {name for name, _, first, last, *_ in cls.FIELDS if first <= version <= last}
