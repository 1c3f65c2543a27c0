"""Reads what a step is given, and tells what is wrong with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from moldau.pipelines.definition.mistakes import Path
from moldau.pipelines.definition.watermarks import Watermark

__all__ = ["Body", "Reader"]


class Reader(Protocol):
    """What reads the whole definition, and collects its mistakes."""

    def wrong(self, path: Path, message: str, hint: str | None = None) -> None: ...

    def known(
        self, fields: Mapping[Any, Any], known: tuple[str, ...], path: Path, label: str
    ) -> None: ...

    def watermark(self, data: object, path: Path) -> Watermark | None: ...


class Body:
    """What a step is given; remembers whether everything in it was right."""

    def __init__(self, reader: Reader, kind: str, data: object, path: Path, where: str) -> None:
        self._reader = reader
        self._label = f"{where}: {kind}"
        self.data = data
        self.path = path
        self.is_right = True

    def wrong(self, message: str, *at: str | int, hint: str | None = None) -> None:
        self.is_right = False
        self._reader.wrong((*self.path, *at), f"{self._label}: {message}", hint)

    def fields(self, *known: str, needs: tuple[str, ...] = ()) -> dict[str, Any]:
        """The options of a step that is given as a mapping."""
        if not isinstance(self.data, Mapping):
            self.wrong(f"expected a mapping with {', '.join(known)}, got {self.data!r}")
            return {}
        fields = {str(name): value for name, value in self.data.items()}
        if any(name not in known for name in fields):
            self.is_right = False
            self._reader.known(fields, known, self.path, f"{self._label}: ")
        for name in needs:
            if fields.get(name) is None:
                self.wrong(f"needs {name}")
        return fields

    def text(self, fields: Mapping[str, Any], name: str, default: str | None = None) -> Any:
        value = fields.get(name)
        if value is None:
            return default
        if isinstance(value, Mapping | list):
            self.wrong(f"{name}: expected a text", name)
        return str(value).lower() if isinstance(value, bool) else str(value)

    def names(self, value: object, *at: str) -> tuple[str, ...]:
        """A name or a list of names."""
        if isinstance(value, str):
            return (value,)
        if isinstance(value, list) and all(isinstance(one, str | int) for one in value):
            return tuple(str(one) for one in value)
        self.wrong(f"{': '.join((*at, 'expected'))} a list of columns, got {value!r}", *at)
        return ()

    def pairs(self, value: object, *at: str) -> dict[str, str]:
        """A mapping of names, or a list of those that are called the same elsewhere."""
        if not isinstance(value, Mapping):
            return {name: name for name in self.names(value, *at)}
        for name, other in value.items():
            if isinstance(other, Mapping | list) or other is None:
                self.wrong(f"{': '.join((*at, str(name)))}: expected a name", *at, name)
        return {str(name): str(other) for name, other in value.items()}

    def number(self, fields: Mapping[str, Any], name: str) -> int | None:
        value = fields.get(name)
        if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
            self.wrong(f"{name}: expected a whole number, got {value!r}", name)
            return None
        return value

    def flag(self, fields: Mapping[str, Any], name: str) -> bool:
        value = fields.get(name, False)
        if not isinstance(value, bool):
            self.wrong(f"{name}: expected true or false, got {value!r}", name)
        return value is True

    def watermark(self, fields: Mapping[str, Any]) -> Watermark | None:
        if fields.get("watermark") is None:
            return None
        found = self._reader.watermark(fields["watermark"], (*self.path, "watermark"))
        self.is_right = self.is_right and found is not None
        return found
