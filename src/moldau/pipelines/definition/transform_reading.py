"""Reads the steps that change the shape of rows from a document's data.

Every mistake in how a step is written is told with the path of what is wrong; None is returned for
a step that cannot be made of what was read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from moldau.pipelines.definition.model import Transforms
from moldau.pipelines.definition.transforms import (
    ColumnsToHeaders,
    Deduplicate,
    Explode,
    Flatten,
    HeadersToColumns,
    Mask,
)
from moldau.pipelines.definition.watermarks import Watermark

__all__ = ["TRANSFORM_OPTIONS", "read_transform"]

Path = tuple[str | int, ...]
#: What may stand beside the step's own name.
TRANSFORM_OPTIONS: dict[str, tuple[str, ...]] = {
    "flatten": ("name", "from"),
    "mask": ("name", "from"),
    "explode": ("name", "from"),
    "headers_to_columns": ("name", "from"),
    "columns_to_headers": ("name", "from", "keep"),
    "deduplicate": ("name", "from"),
}


class Reader(Protocol):
    """What reads the whole definition, and collects its mistakes."""

    def wrong(self, path: Path, message: str, hint: str | None = None) -> None: ...

    def known(
        self, fields: Mapping[Any, Any], known: tuple[str, ...], path: Path, label: str
    ) -> None: ...

    def watermark(self, data: object, path: Path) -> Watermark | None: ...


def read_transform(
    reader: Reader, kind: str, fields: Mapping[str, Any], path: Path, step: dict[str, Any]
) -> Transforms | None:
    """`fields` are the whole step's; `step` its name, source and place."""
    body = _Body(reader, kind, fields[kind], (*path, kind), f"steps[{path[-1]}]")
    made = _READERS[kind](body, {**fields, "path": path}, step)
    return made if body.is_right else None


class _Body:
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


def _flatten(body: _Body, beside: Mapping[str, Any], step: dict[str, Any]) -> Flatten:
    if body.data is None:
        return Flatten(**step)
    if not isinstance(body.data, Mapping):
        return Flatten(body.names(body.data), **step)
    fields = body.fields("columns", "separator", "depth")
    columns = body.names(fields["columns"], "columns") if fields.get("columns") else ()
    separator, depth = body.text(fields, "separator", "_"), body.number(fields, "depth")
    return Flatten(columns, separator=separator, depth=depth, **step)


def _mask(body: _Body, beside: Mapping[str, Any], step: dict[str, Any]) -> Mask:
    if not isinstance(body.data, Mapping):
        body.wrong("expected a mapping of columns", hint="{email: hash, card: partial}")
        return Mask({}, **step)
    return Mask({str(name): rule for name, rule in body.data.items()}, **step)


def _explode(body: _Body, beside: Mapping[str, Any], step: dict[str, Any]) -> Explode:
    if isinstance(body.data, str):
        return Explode(body.data, **step)
    fields = body.fields("column", "as", "position", "outer", needs=("column",))
    return Explode(
        body.text(fields, "column", ""),
        into=body.names(fields["as"], "as") if fields.get("as") else (),
        position=body.text(fields, "position"),
        outer=body.flag(fields, "outer"),
        **step,
    )


def _headers(body: _Body, beside: Mapping[str, Any], step: dict[str, Any]) -> HeadersToColumns:
    return HeadersToColumns(body.pairs(body.data), **step)


def _to_headers(body: _Body, beside: Mapping[str, Any], step: dict[str, Any]) -> ColumnsToHeaders:
    keep = beside.get("keep", False)
    if not isinstance(keep, bool):
        body.wrong(f"keep: expected true or false, got {keep!r}")
    return ColumnsToHeaders(body.pairs(body.data), keep=keep is True, **step)


def _deduplicate(body: _Body, beside: Mapping[str, Any], step: dict[str, Any]) -> Deduplicate:
    if not isinstance(body.data, Mapping):
        return Deduplicate(body.names(body.data), **step)
    fields = body.fields("keys", "watermark", needs=("keys",))
    keys = body.names(fields["keys"], "keys") if fields.get("keys") else ()
    return Deduplicate(keys, watermark=body.watermark(fields), **step)


_READERS: dict[str, Callable[[_Body, Mapping[str, Any], dict[str, Any]], Transforms]] = {
    "flatten": _flatten,
    "mask": _mask,
    "explode": _explode,
    "headers_to_columns": _headers,
    "columns_to_headers": _to_headers,
    "deduplicate": _deduplicate,
}
