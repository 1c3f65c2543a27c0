"""Builds a response that contains only an error, for errors that no handler caught.

This works only for responses with an error code at the top level; for others the caller must close
the connection, and handlers that respond per topic or partition catch their own errors.
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
