"""Reads fields of JSON objects as Confluent's registry does: numbers and booleans pass as text.

What cannot be read is an InvalidRequest that names the field.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from moldau.services.registry.machine.errors import InvalidRequest

__all__ = [
    "boolean_field",
    "int_field",
    "list_field",
    "object_field",
    "text_field",
    "text_list",
    "text_map",
]

_INT32_MAX = 2**31 - 1

JsonObject = Mapping[str, Any]


def text_field(source: JsonObject, name: str) -> str | None:
    value = source.get(name)
    return None if value is None else _text(value, name)


def int_field(source: JsonObject, name: str) -> int | None:
    value = source.get(name)
    if value is None:
        return None
    if isinstance(value, bool):
        raise InvalidRequest(f"field {name!r} must be an integer, not {value!r}")
    if isinstance(value, float):
        value = int(value)
    if isinstance(value, str):
        if not value:
            return None
        try:
            value = int(value)
        except ValueError:
            raise InvalidRequest(f"field {name!r} must be an integer, not {value!r}") from None
    if not isinstance(value, int) or abs(value) > _INT32_MAX:
        raise InvalidRequest(f"field {name!r} must be an integer of 32 bits")
    return value


def boolean_field(source: JsonObject, name: str) -> bool | None:
    value = source.get(name)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    raise InvalidRequest(f"field {name!r} must be true or false")


def object_field(source: JsonObject, name: str) -> dict[str, Any] | None:
    value = source.get(name)
    if value is None or isinstance(value, dict):
        return value
    raise InvalidRequest(f"field {name!r} must be an object")


def list_field(source: JsonObject, name: str) -> list[Any]:
    value = source.get(name)
    if value is None:
        return []
    if not isinstance(value, list):
        raise InvalidRequest(f"field {name!r} must be an array")
    return value


def text_list(value: object, name: str) -> tuple[str, ...]:
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise InvalidRequest(f"field {name!r} must be an array of strings")
    return tuple(_text(each, name) for each in value if each is not None)


def text_map(source: JsonObject, name: str) -> dict[str, str]:
    value = object_field(source, name) or {}
    return {key: _text(each, f"{name}.{key}") for key, each in value.items() if each is not None}


def _text(value: object, name: str) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return str(value)
    raise InvalidRequest(f"field {name!r} must be a string")
