"""Whether a field's default is a value of its type, in the JSON form that defaults have."""

from __future__ import annotations

from typing import Any

from moldau.data.avro.model import MISSING, Array, AvroType, Map, Record, Union

_INT_RANGE = range(-(2**31), 2**31)
_LONG_RANGE = range(-(2**63), 2**63)


class DefaultChecker:
    """Checks the defaults of one schema.

    It remembers what it has found: the default of a record may rest on the defaults of its fields,
    and so on, by many ways to the same type.
    """

    def __init__(self) -> None:
        self._found: dict[tuple[int, int], bool] = {}

    def is_valid(self, schema: AvroType, value: Any) -> bool:
        match schema:
            case Union():
                # Any branch will do, though Avro's text speaks of the first only.
                return any(self.is_valid(branch, value) for branch in schema.branches)
            case Array():
                return isinstance(value, list) and all(
                    self.is_valid(schema.items, each) for each in value
                )
            case Map():
                return isinstance(value, dict) and all(
                    self.is_valid(schema.values, each) for each in value.values()
                )
            case Record():
                return isinstance(value, dict) and self._is_valid_record(schema, value)
            case _:
                return _is_valid_simple(schema.kind, value)

    def _is_valid_record(self, schema: Record, value: dict[str, Any]) -> bool:
        key = (id(schema), id(value))
        found = self._found.get(key)
        if found is None:
            found = all(
                self.is_valid(field.type, value.get(field.name, field.default))
                for field in schema.fields
            )
            self._found[key] = found
        return found


def _is_valid_simple(kind: str, value: Any) -> bool:
    if value is MISSING:
        return False
    match kind:
        case "null":
            return value is None
        case "boolean":
            return isinstance(value, bool)
        case "int":
            return _is_integer(value) and value in _INT_RANGE
        case "long":
            return _is_integer(value) and value in _LONG_RANGE
        case "float" | "double":
            return isinstance(value, float) or _is_integer(value)
        case _:
            return isinstance(value, str)


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
