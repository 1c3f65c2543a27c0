"""The parts of a pipeline, as data: steps, topics and tables.

Every part is immutable, and has its JSON form and the line it was written at. The JSON form is the
YAML form plus the places and the code of functions.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from moldau.pipelines.definition.code import Code
from moldau.pipelines.definition.placed import Placed, step_json, with_place
from moldau.pipelines.definition.places import Place, place_of_caller
from moldau.pipelines.definition.relations import Join, Lookup, Window
from moldau.pipelines.definition.scoring import Score
from moldau.pipelines.definition.transforms import (
    ColumnsToHeaders,
    Deduplicate,
    Explode,
    Flatten,
    HeadersToColumns,
    Mask,
)
from moldau.pipelines.definition.watermarks import Watermark

__all__ = [
    "APPEND",
    "COMPLETE",
    "FAIL",
    "IGNORE",
    "INPUT",
    "UPDATE",
    "Cast",
    "Drop",
    "Python",
    "Relations",
    "Rename",
    "RowStep",
    "Shapes",
    "Sink",
    "Source",
    "Sql",
    "Step",
    "Table",
    "Topic",
    "Transforms",
    "Watermark",
    "with_place",
]

INPUT = "input"
"""The view that the first SQL step reads, and each next step's result."""

APPEND, UPDATE, COMPLETE = "append", "update", "complete"
FAIL, IGNORE = "fail", "ignore"


@dataclass(frozen=True, slots=True)
class Sql(Placed):
    """A SELECT over `input` (what came so far), sources and named steps."""

    query: str
    name: str | None = field(default=None, kw_only=True)
    source: str | None = field(default=None, kw_only=True)
    place: Place | None = field(default=None, compare=False, kw_only=True, repr=False)

    def to_json(self) -> dict[str, Any]:
        return step_json(self, sql=self.query)


@dataclass(frozen=True, slots=True)
class Python(Placed):
    """A function that is given a DataFrame and returns one."""

    function: Code
    args: Mapping[str, Any] = field(default_factory=dict, kw_only=True)
    name: str | None = field(default=None, kw_only=True)
    source: str | None = field(default=None, kw_only=True)
    place: Place | None = field(default=None, compare=False, kw_only=True, repr=False)

    def __post_init__(self) -> None:
        Placed.__post_init__(self)
        _take_function(self)

    def to_json(self) -> dict[str, Any]:
        return step_json(self, python=self.function.to_json(), args=dict(self.args))


@dataclass(frozen=True, slots=True)
class RowStep(Placed):
    """A function that is given one row as a dict and returns a row, several or None.

    `schema` is the result's columns as DDL; without it they are the same as before.
    """

    function: Code
    schema: str | None = None
    args: Mapping[str, Any] = field(default_factory=dict, kw_only=True)
    name: str | None = field(default=None, kw_only=True)
    source: str | None = field(default=None, kw_only=True)
    place: Place | None = field(default=None, compare=False, kw_only=True, repr=False)

    def __post_init__(self) -> None:
        Placed.__post_init__(self)
        _take_function(self)

    def to_json(self) -> dict[str, Any]:
        return step_json(
            self, row=self.function.to_json(), schema=self.schema, args=dict(self.args)
        )


@dataclass(frozen=True, slots=True)
class Cast(Placed):
    """Columns and the types they must have; a value that cannot be cast is a bad record."""

    columns: Mapping[str, str]
    name: str | None = field(default=None, kw_only=True)
    source: str | None = field(default=None, kw_only=True)
    place: Place | None = field(default=None, compare=False, kw_only=True, repr=False)

    def to_json(self) -> dict[str, Any]:
        return step_json(self, cast=dict(self.columns))


@dataclass(frozen=True, slots=True)
class Drop(Placed):
    """Columns that are left out from here on."""

    columns: tuple[str, ...]
    name: str | None = field(default=None, kw_only=True)
    source: str | None = field(default=None, kw_only=True)
    place: Place | None = field(default=None, compare=False, kw_only=True, repr=False)

    def __post_init__(self) -> None:
        Placed.__post_init__(self)
        given = (self.columns,) if isinstance(self.columns, str) else tuple(self.columns)
        object.__setattr__(self, "columns", given)

    def to_json(self) -> dict[str, Any]:
        return step_json(self, drop=list(self.columns))


@dataclass(frozen=True, slots=True)
class Rename(Placed):
    """Old names and new names of columns."""

    columns: Mapping[str, str]
    name: str | None = field(default=None, kw_only=True)
    source: str | None = field(default=None, kw_only=True)
    place: Place | None = field(default=None, compare=False, kw_only=True, repr=False)

    def to_json(self) -> dict[str, Any]:
        return step_json(self, rename=dict(self.columns))


Shapes = Flatten | Mask | Explode | HeadersToColumns | ColumnsToHeaders | Deduplicate | Score
Relations = Window | Join | Lookup
Transforms = Shapes | Relations
Step = Watermark | Sql | Python | RowStep | Cast | Drop | Rename | Transforms


def _take_function(step: Any) -> None:
    """Functions may be given as they are; a definition carries their code."""
    if not isinstance(step.function, Code):
        object.__setattr__(step, "function", Code.of(step.function))


@dataclass(frozen=True, slots=True, init=False)
class Topic:
    """Topics as a source; as a sink one topic, or several of which `route` names one by row.

    `settings` are Spark's Kafka options (`startingOffsets`, `maxOffsetsPerTrigger`, ...) by their
    own names, and `kafka.*` for the client; `options` are those of the format.
    """

    topic: str | None
    topics: tuple[str, ...]
    route: str | None
    pattern: str | None
    assign: str | None
    format: str
    schema: str | None
    options: Mapping[str, Any]
    watermark: Watermark | None
    key: str | None
    headers: str | Mapping[str, str] | None
    partition: str | None
    timestamp: str | None
    settings: Mapping[str, Any]
    place: Place | None = field(default=None, compare=False, kw_only=True, repr=False)

    def __init__(
        self,
        topic: str | None = None,
        *,
        topics: Sequence[str] = (),
        route: str | None = None,
        pattern: str | None = None,
        assign: str | Mapping[str, Sequence[int]] | None = None,
        format: str = "json",
        schema: str | None = None,
        options: Mapping[str, Any] | None = None,
        watermark: Watermark | None = None,
        key: str | None = None,
        headers: str | Mapping[str, str] | None = None,
        partition: str | None = None,
        timestamp: str | None = None,
        place: Place | None = None,
        **settings: Any,
    ) -> None:
        put = object.__setattr__
        put(self, "topic", topic)
        put(self, "topics", tuple(topics))
        put(self, "route", route)
        put(self, "pattern", pattern)
        given = json.dumps(assign) if isinstance(assign, Mapping) else assign
        put(self, "assign", given)
        put(self, "format", format)
        put(self, "schema", schema)
        put(self, "options", dict(options or {}))
        put(self, "watermark", watermark)
        put(self, "key", key)
        put(self, "headers", headers)
        put(self, "partition", partition)
        put(self, "timestamp", timestamp)
        put(self, "settings", settings)
        put(self, "place", place or place_of_caller())

    def to_json(self) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        for name in ("topic", "topics", "route", "pattern", "assign", "format", "schema"):
            if value := getattr(self, name):
                fields[name] = list(value) if isinstance(value, tuple) else value
        if self.options:
            fields["options"] = dict(self.options)
        fields |= _watermark_json(self.watermark)
        for name in ("key", "headers", "partition", "timestamp"):
            if (value := getattr(self, name)) is not None:
                fields[name] = value
        return with_place(fields | dict(self.settings), self.place)

    @property
    def written(self) -> tuple[str, ...]:
        """The topics that a sink is known to write to."""
        named = () if self.topic is None else (self.topic,)
        return tuple(dict.fromkeys((*named, *self.topics)))

    def header_expressions(self) -> tuple[str, ...]:
        """The SQL of the sink's headers."""
        if isinstance(self.headers, str):
            return (self.headers,)
        return tuple((self.headers or {}).values())

    @property
    def streaming(self) -> bool:
        return True

    def __str__(self) -> str:
        return (
            self.topic or ", ".join(self.topics) or self.route or self.pattern or self.assign or ""
        )


@dataclass(frozen=True, slots=True)
class Table(Placed):
    """A folder or a database's table; `options` as they are written, the kind's name included."""

    kind: str
    options: Mapping[str, Any]
    watermark: Watermark | None = None
    streaming: bool = True
    place: Place | None = field(default=None, compare=False, kw_only=True, repr=False)

    def to_json(self) -> dict[str, Any]:
        fields = dict(self.options) | _watermark_json(self.watermark)
        if not self.streaming:
            fields["streaming"] = False
        return with_place(fields, self.place)

    def __str__(self) -> str:
        return f"{self.kind} {self.options.get(self.kind, '')}".rstrip()


Source = Topic | Table
Sink = Topic | Table


def _watermark_json(watermark: Watermark | None) -> dict[str, Any]:
    return {"watermark": watermark.to_json()["watermark"]} if watermark else {}
