"""Follows columns through the steps that change the shape of rows.

Where the type of a column is known, from a schema, the columns of its fields are too; where it is
not, what comes after is not known either.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from moldau.pipelines.definition.model import Shapes
from moldau.pipelines.definition.scoring import Score
from moldau.pipelines.definition.transforms import (
    ColumnsToHeaders,
    Deduplicate,
    Explode,
    Flatten,
    HeadersToColumns,
    Mask,
)
from moldau.pipelines.validation.machine.problems import Problem, near
from moldau.pipelines.validation.machine.resolving import Columns
from moldau.pipelines.validation.machine.types import Column, Doubtful, Type, certain, type_of

__all__ = ["Notes", "Path", "columns_after", "twice"]

Path = tuple[str | int, ...]


class Notes(Protocol):
    """Where mistakes are written down."""

    def have(
        self, names: Sequence[str] | Mapping[str, str], columns: Columns, path: Path, label: str
    ) -> bool: ...

    def add(self, path: Path, label: str, text: str, problems: Sequence[Problem]) -> None: ...

    def skip(self, what: str) -> None: ...


def columns_after(step: Shapes, before: Columns, path: Path, notes: Notes) -> Columns:
    """`path` is the step's."""
    label = f"steps[{path[-1]}]: {step.KIND}"
    at = (*path, step.KIND)
    match step:
        case Flatten():
            return _flatten(step, before, at, label, notes)
        case Mask():
            return _mask(step, before, at, label, notes)
        case Explode():
            return _explode(step, before, at, label, notes)
        case HeadersToColumns():
            taken = [name for name in step.columns if name.lower() in _lower(before)]
            for name in taken:
                problem = Problem(f"there is already a column {name!r}", 0, name)
                notes.add((*at, name), label, name, [problem])
            return None if before is None else (*before, *step.columns)
        case ColumnsToHeaders():
            notes.have(step.columns, before, at, label)
            moved = set() if step.keep else {name.lower() for name in step.columns}
            return _without(before, moved)
        case Score():
            notes.have(step.columns, before, (*at, "columns"), label)
            if step.into.lower() in _lower(before):
                problem = Problem(f"there is already a column {step.into!r}", 0, step.into)
                notes.add((*at, "as"), label, step.into, [problem])
            return None if before is None else (*before, step.into)
        case Deduplicate():
            notes.have(step.keys, before, (*at, "keys"), label)
            if step.watermark is not None:
                column = (*at, "watermark", "column")
                notes.have([step.watermark.column], before, column, f"{label}: watermark")
            return before


def _lower(columns: Columns) -> set[str]:
    return {name.lower() for name in certain(columns or ())}


def _without(columns: Columns, dropped: set[str]) -> Columns:
    if columns is None:
        return None
    return tuple(name for name in columns if name.lower() not in dropped)


def _flatten(step: Flatten, before: Columns, at: Path, label: str, notes: Notes) -> Columns:
    notes.have(step.columns, before, (*at, "columns"), label)
    if before is None:
        return None
    wanted = {name.lower() for name in step.columns}
    for name in before:
        found = type_of(name)
        if name.lower() in wanted and found is not None and found.kind != "struct":
            message = f"column {name!r} is no struct, but {found.kind.upper()}"
            notes.add((*at, "columns"), label, name, [Problem(message, 0, name)])
    opened = [name for name in before if not wanted or name.lower() in wanted]
    if any(type_of(name) is None for name in opened):
        notes.skip(f"the columns after {label}")
        return None
    result: list[str] = []
    for name in before:
        result += _opened(name, step) if name in opened else [name]
    for name in twice(result):
        message = f"two columns would be named {name!r}"
        hint = "another separator, or a rename before"
        notes.add(at, label, name, [Problem(message, 0, "", hint)])
    return tuple(result)


def _opened(column: str, step: Flatten, level: int = 0) -> list[str]:
    kind = type_of(column)
    is_deep = step.depth is not None and level >= step.depth
    if kind is None or kind.kind != "struct" or is_deep:
        return [column]
    return [
        name
        for field in kind.fields
        for name in _opened(
            Column.of(f"{column}{step.separator}{field}", field.type), step, level + 1
        )
    ]


def twice(names: Sequence[str]) -> Iterator[str]:
    seen: set[str] = set()
    for name in certain(names):
        if name.lower() in seen:
            yield name
        seen.add(name.lower())


def _mask(step: Mask, before: Columns, at: Path, label: str, notes: Notes) -> Columns:
    for name in step.columns:
        notes.have({name: ""}, before, at, label)
        _field(name, before, (*at, name), label, notes)
    if before is None:
        return None
    masked = {name.lower() for name in step.columns}
    # Its type may be another now.
    return tuple(str(name) if name.lower() in masked else name for name in before)


def _field(name: str, before: Columns, path: Path, label: str, notes: Notes) -> None:
    """A path into a struct whose fields are known."""
    first, *rest = name.split(".")
    kind = next((type_of(one) for one in before or () if one.lower() == first.lower()), None)
    for part in rest:
        if kind is None:
            return
        fields = {field.lower(): field for field in kind.fields}
        if part.lower() not in fields:
            meant = near(part, kind.fields)
            hint = f"did you mean {meant}?" if meant else None
            problem = Problem(f"{first!r} has no field {part!r}", 0, "", hint)
            notes.add(path, label, name, [problem])
            return
        kind = fields[part.lower()].type


def _explode(step: Explode, before: Columns, at: Path, label: str, notes: Notes) -> Columns:
    is_there = notes.have([step.column], before, (*at, "column"), label)
    if before is None:
        return None
    if not is_there:
        return _doubtful(step, before)
    column = next((one for one in before if one.lower() == step.column.lower()), None)
    kind = None if column is None else type_of(column)
    if kind is not None and kind.kind not in ("array", "map"):
        message = f"column {step.column!r} is neither array nor map, but {kind.kind.upper()}"
        notes.add((*at, "column"), label, step.column, [Problem(message, 0, step.column)])
        return _doubtful(step, before)
    if kind is None and not step.into:
        notes.skip(f"the columns after {label}")
        return None
    made = _exploded(step, kind)
    if kind is not None and step.into and len(step.into) != len(made):
        message = "as: one name for an array, two for a map"
        notes.add((*at, "as"), label, "", [Problem(message, 0, "")])
    left = [name for name in before if name is not column]
    result = [*left, *([step.position] if step.position else []), *made]
    for name in twice(result):
        problem = Problem(f"there is already a column {name!r}", 0, "", "name another with as:")
        notes.add(at, label, name, [problem])
    return tuple(result)


def _doubtful(step: Explode, before: tuple[str, ...]) -> Columns:
    """Another column was meant."""
    position = [step.position] if step.position else []
    made = step.into or (step.column, "key", "value")
    return (*before, *(Doubtful(name) for name in (*position, *made)))


def _exploded(step: Explode, kind: Type | None) -> list[str]:
    if kind is None:
        return list(step.into)
    names = step.into or ((step.column,) if kind.kind == "array" else ("key", "value"))
    return [Column.of(name, part) for name, part in zip(names, kind.parts, strict=False)]
