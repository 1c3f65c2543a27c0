"""Field names in settings: V1 takes them literally, V2 has dots for nesting (KIP-821, pure).

In V2 a name that contains dots is put in backticks, and a backtick that is part of a name has a
backslash before it.
"""

from __future__ import annotations

from typing import Any

from moldau.connect.api.errors import ConfigError
from moldau.connect.transforms.parts import require_map
from moldau.data.schema import Field, Schema, Type
from moldau.data.struct import Struct


def path_of(text: str, version: str) -> tuple[str, ...]:
    """The steps to a field."""
    return (text,) if version.upper() == "V1" else _nested(text)


def _nested(text: str) -> tuple[str, ...]:
    steps: list[str] = []
    position = 0
    while True:
        if text.startswith("`", position):
            step, position = _quoted(text, position)
        else:
            end = text.find(".", position)
            step = text[position:] if end < 0 else text[position:end]
            position = len(text) if end < 0 else end
        steps.append(step.replace("\\`", "`"))
        if position >= len(text):
            return tuple(steps)
        position += 1


def _quoted(text: str, start: int) -> tuple[str, int]:
    end = start
    while True:
        end = text.find("`", end + 1)
        if end < 0:
            raise ConfigError(
                f"Incomplete backtick pair in path: [{text}], consider adding a backslash before "
                f"backtick at position {start} to escape it"
            )
        escaped = text[end - 1] == "\\"
        # A pair ends where a dot or the end of the path follows.
        if not escaped and (end + 1 == len(text) or text[end + 1] == "."):
            return text[start + 1 : end], end + 1


def value_in_map(path: tuple[str, ...], value: Any) -> Any:
    for step in path:
        if value is None:
            return None
        value = require_map(value, "nested field access").get(step)
    return value


def field_of(path: tuple[str, ...], schema: Schema) -> Field | None:
    found: Field | None = None
    current: Schema | None = schema
    for step in path:
        if current is None or current.type is not Type.STRUCT:
            return None
        found = current.field(step)
        if found is None:
            return None
        current = found.schema
    return found


def value_in_struct(path: tuple[str, ...], value: Any, replace_null: bool) -> Any:
    for step in path:
        if not isinstance(value, Struct):
            return None
        value = value.get(step) if replace_null else value.get_without_default(step)
    return value
