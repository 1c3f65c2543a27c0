"""Reading JSON bodies: fields with their types, or an error that names the field.

A field of the wrong type is a bad request (400), as when Jackson cannot map it; a value that is not
allowed is 422, with the wording of a violated constraint. Unknown fields are ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from moldau.http.machine.errors import HttpError
from moldau.services.rest.machine.errors import constraint

__all__ = ["boolean", "integer", "items", "mapping", "required", "text"]

ITEMS_MAX: Final = 10_000
_LIMITS: Final = {31: "int", 63: "long"}


def mapping(value: Any, what: str = "body") -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise _wrong(what, value, "an object")
    return value


def required(body: Mapping[str, Any], name: str) -> Any:
    value = body.get(name)
    if value is None:
        raise constraint(f"{name} must not be null (was null)")
    return value


def text(body: Mapping[str, Any], name: str, default: str | None = None) -> str | None:
    value = body.get(name)
    if value is None:
        return default
    if not isinstance(value, str):
        raise _wrong(name, value, "a string")
    return value


def integer(body: Mapping[str, Any], name: str, *, bits: int = 31) -> int | None:
    value = body.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int):
        raise _wrong(name, value, "an integer")
    if not -(1 << bits) <= value < 1 << bits:
        raise HttpError(400, f"{name} is out of range of {_LIMITS[bits]}: {value}")
    return value


def boolean(body: Mapping[str, Any], name: str, *, default: bool = False) -> bool:
    value = body.get(name)
    if value is None:
        return default
    if not isinstance(value, bool):
        raise _wrong(name, value, "true or false")
    return value


def items(body: Mapping[str, Any], name: str) -> list[Mapping[str, Any]] | None:
    """A list of objects; None if it is not there."""
    value = body.get(name)
    if value is None:
        return None
    if not isinstance(value, list):
        raise _wrong(name, value, "a list")
    if len(value) > ITEMS_MAX:
        raise constraint(f"{name} has more than {ITEMS_MAX} elements")
    return [mapping(each, f"{name}[{index}]") for index, each in enumerate(value)]


def texts(body: Mapping[str, Any], name: str) -> list[str] | None:
    value = body.get(name)
    if value is None:
        return None
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise _wrong(name, value, "a list of strings")
    if len(value) > ITEMS_MAX:
        raise constraint(f"{name} has more than {ITEMS_MAX} elements")
    return value


def _wrong(name: str, value: Any, wanted: str) -> HttpError:
    # Only what is short is printed: a list may be as large as the body.
    shown = repr(value) if isinstance(value, int | float | None) else type(value).__name__
    if isinstance(value, str):
        shown = repr(value[:100])
    return HttpError(400, f"{name} must be {wanted}, not {shown}")
