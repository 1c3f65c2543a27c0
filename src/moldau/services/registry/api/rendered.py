"""Answers that do not change: the JSON of a version, made once.

Most requests ask for the same few schemas, and writing a schema's text as JSON is a good part of
what such a request costs. Bounded; an entry counts only for the very object it was made from.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moldau.http.machine.json_text import dump_json
from moldau.services.registry.machine.schemas import StoredSchema

__all__ = ["RenderedSchemas"]


class RenderedSchemas:
    def __init__(self, render: Callable[[StoredSchema], Any], *, size_max: int) -> None:
        self._render = render
        self._size_max = size_max
        self._made: dict[tuple[str, int], tuple[StoredSchema, bytes]] = {}

    def of(self, stored: StoredSchema) -> bytes:
        key = (stored.subject, stored.version)
        found = self._made.get(key)
        if found is not None and found[0] is stored:
            return found[1]
        data = dump_json(self._render(stored))
        if len(self._made) >= self._size_max:
            self._made.clear()
        self._made[key] = (stored, data)
        return data
