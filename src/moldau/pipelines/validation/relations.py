"""Follows columns through windows, joins and lookups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from moldau.pipelines.definition.model import Relations
from moldau.pipelines.definition.relations import WINDOW_COLUMNS, Join, Lookup, Window
from moldau.pipelines.validation.machine.problems import Problem
from moldau.pipelines.validation.machine.resolving import Columns
from moldau.pipelines.validation.machine.types import type_of, with_prefix
from moldau.pipelines.validation.transforms import Notes, Path, twice

__all__ = ["ExpressionNotes", "columns_after_relation"]

_TIMES = ("timestamp", "timestamp_ntz", "timestamp_ltz", "date")


class ExpressionNotes(Notes, Protocol):
    """Also reads texts that are SQL."""

    def expression(self, text: str, columns: Columns, path: Path, label: str) -> None: ...

    def schema(self, schema: object, path: Path, label: str, *, own: bool = True) -> Columns: ...


def columns_after_relation(
    step: Relations,
    before: Columns,
    views: Mapping[str, Columns],
    path: Path,
    notes: ExpressionNotes,
) -> Columns:
    label = f"steps[{path[-1]}]: {step.KIND}"
    at = (*path, step.KIND)
    match step:
        case Window():
            return _window(step, before, at, label, notes)
        case Join():
            return _join(step, before, views.get(step.other), at, label, notes)
        case Lookup():
            return _lookup(step, before, at, label, notes)


def _window(step: Window, before: Columns, at: Path, label: str, notes: ExpressionNotes) -> Columns:
    notes.have([step.time], before, (*at, "time"), f"{label}: time")
    _is_time(step.time, before, (*at, "time"), f"{label}: time", notes)
    notes.have(step.by, before, (*at, "by"), f"{label}: by")
    for name, text in step.aggregates.items():
        notes.expression(text, before, (*at, "aggregates", name), f"{label}: aggregates: {name}")
    return (*WINDOW_COLUMNS, *step.by, *step.aggregates)


def _is_time(name: str, columns: Columns, path: Path, label: str, notes: ExpressionNotes) -> None:
    for column in columns or ():
        kind = type_of(column)
        if column.lower() == name.lower() and kind is not None and kind.kind not in _TIMES:
            message = f"column {name!r} is no TIMESTAMP, but {kind.kind.upper()}"
            notes.add(path, label, name, [Problem(message, 0, name)])


def _join(
    step: Join, left: Columns, right: Columns, at: Path, label: str, notes: ExpressionNotes
) -> Columns:
    notes.have(step.keys, left, (*at, "keys"), f"{label}: keys")
    notes.have(step.time, left, (*at, "time"), f"{label}: time")
    for part, pairs in (("keys", step.keys), ("time", step.time)):
        for own, other in pairs.items():
            notes.have([other], right, (*at, part, own), f"{label}: {part}: {step.other}")
    for own, other in step.time.items():
        _is_time(own, left, (*at, "time"), f"{label}: time", notes)
        _is_time(other, right, (*at, "time", own), f"{label}: time: {step.other}", notes)
    if left is None or right is None:
        return None
    result = (
        *left,
        *(with_prefix(step.prefix, name) for name in right if not is_same_key(name, step)),
    )
    for name in twice(result):
        message = f"both sides have a column {name!r}"
        notes.add(at, label, name, [Problem(message, 0, "", "prefix: a text before the others'")])
    return result


def is_same_key(name: str, step: Join) -> bool:
    """Whether a column of the other side is a key by the same name: it is there once."""
    return any(own.lower() == other.lower() == name.lower() for own, other in step.keys.items())


def _lookup(step: Lookup, before: Columns, at: Path, label: str, notes: ExpressionNotes) -> Columns:
    notes.expression(step.key, before, (*at, "key"), f"{label}: key")
    found = notes.schema(step.schema, (*at, "schema"), f"{label}: schema")
    notes.have(step.columns, found, (*at, "columns"), f"{label}: columns")
    wanted = step.columns or found
    if before is None or wanted is None:
        return None
    result = (*before, *(f"{step.prefix}{name}" for name in wanted))
    for name in twice(result):
        message = f"there is already a column {name!r}"
        notes.add(at, label, name, [Problem(message, 0, "", "prefix: a text before the others'")])
    return result
