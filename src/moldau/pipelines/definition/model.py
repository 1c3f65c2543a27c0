"""The parts of a pipeline, as data.

Every part is immutable, knows its JSON form and the line it was written at. A `Pipeline` that
exists has been checked: its constructor raises `DefinitionError` with every mistake it finds, so
that what builds and runs pipelines need not look again. The JSON form is the YAML form plus the
places and the code of functions; `Pipeline.from_json(pipeline.to_json()) == pipeline`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from moldau.pipelines.definition.code import Code
from moldau.pipelines.definition.places import Place, place_of_caller

INPUT = "input"
"""The view that the first SQL step reads, and each next step's result."""

APPEND, UPDATE, COMPLETE = "append", "update", "complete"
FAIL, IGNORE = "fail", "ignore"


class _Placed:
    """Remembers the line that made it, if nobody says which line of a file it stands for."""

    __slots__ = ()

    def __post_init__(self) -> None:
        if getattr(self, "place", None) is None:
            object.__setattr__(self, "place", place_of_caller())


def _with_place(fields: dict[str, Any], place: Place | None) -> dict[str, Any]:
    if place is not None:
        fields["place"] = place.to_json()
    return fields


@dataclass(frozen=True, slots=True)
class Watermark(_Placed):
    """How late rows may come: state older than `delay` before the newest `column` is let go."""

    column: str
    delay: str
    name: str | None = field(default=None, kw_only=True)
    source: str | None = field(default=None, kw_only=True)
    place: Place | None = field(default=None, compare=False, kw_only=True, repr=False)

    def to_json(self) -> dict[str, Any]:
        return _step(self, watermark={"column": self.column, "delay": self.delay})


@dataclass(frozen=True, slots=True)
class Sql(_Placed):
    """A SELECT over `input` (what came so far), sources and named steps."""

    query: str
    name: str | None = field(default=None, kw_only=True)
    source: str | None = field(default=None, kw_only=True)
    place: Place | None = field(default=None, compare=False, kw_only=True, repr=False)

    def to_json(self) -> dict[str, Any]:
        return _step(self, sql=self.query)


@dataclass(frozen=True, slots=True)
class Python(_Placed):
    """A function that is given a DataFrame and returns one."""

    function: Code
    args: Mapping[str, Any] = field(default_factory=dict, kw_only=True)
    name: str | None = field(default=None, kw_only=True)
    source: str | None = field(default=None, kw_only=True)
    place: Place | None = field(default=None, compare=False, kw_only=True, repr=False)

    def __post_init__(self) -> None:
        _Placed.__post_init__(self)
        _take_function(self)

    def to_json(self) -> dict[str, Any]:
        return _step(self, python=self.function.to_json(), args=dict(self.args))


@dataclass(frozen=True, slots=True)
class RowStep(_Placed):
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
        _Placed.__post_init__(self)
        _take_function(self)

    def to_json(self) -> dict[str, Any]:
        return _step(self, row=self.function.to_json(), schema=self.schema, args=dict(self.args))


@dataclass(frozen=True, slots=True)
class Cast(_Placed):
    """Columns and the types they must have; a value that cannot be cast is a bad record."""

    columns: Mapping[str, str]
    name: str | None = field(default=None, kw_only=True)
    source: str | None = field(default=None, kw_only=True)
    place: Place | None = field(default=None, compare=False, kw_only=True, repr=False)

    def to_json(self) -> dict[str, Any]:
        return _step(self, cast=dict(self.columns))


@dataclass(frozen=True, slots=True)
class Drop(_Placed):
    """Columns that are left out from here on."""

    columns: tuple[str, ...]
    name: str | None = field(default=None, kw_only=True)
    source: str | None = field(default=None, kw_only=True)
    place: Place | None = field(default=None, compare=False, kw_only=True, repr=False)

    def __post_init__(self) -> None:
        _Placed.__post_init__(self)
        given = (self.columns,) if isinstance(self.columns, str) else tuple(self.columns)
        object.__setattr__(self, "columns", given)

    def to_json(self) -> dict[str, Any]:
        return _step(self, drop=list(self.columns))


@dataclass(frozen=True, slots=True)
class Rename(_Placed):
    """Old names and new names of columns."""

    columns: Mapping[str, str]
    name: str | None = field(default=None, kw_only=True)
    source: str | None = field(default=None, kw_only=True)
    place: Place | None = field(default=None, compare=False, kw_only=True, repr=False)

    def to_json(self) -> dict[str, Any]:
        return _step(self, rename=dict(self.columns))


Step = Watermark | Sql | Python | RowStep | Cast | Drop | Rename


def _step(step: Step, **fields: Any) -> dict[str, Any]:
    written = {name: value for name, value in fields.items() if value not in (None, {})}
    if step.name is not None:
        written["name"] = step.name
    if step.source is not None:
        written["from"] = step.source
    return _with_place(written, step.place)


def _take_function(step: Any) -> None:
    """Functions may be given as they are; a definition carries their code."""
    if not isinstance(step.function, Code):
        object.__setattr__(step, "function", Code.of(step.function))


@dataclass(frozen=True, slots=True, init=False)
class Topic:
    """Topics as a source, or one topic as a sink.

    `settings` are Spark's Kafka options (`startingOffsets`, `maxOffsetsPerTrigger`, ...) by their
    own names, and `kafka.*` for the client; `options` are those of the format.
    """

    topic: str | None
    topics: tuple[str, ...]
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
        for name in ("topic", "topics", "pattern", "assign", "format", "schema"):
            if value := getattr(self, name):
                fields[name] = list(value) if isinstance(value, tuple) else value
        if self.options:
            fields["options"] = dict(self.options)
        fields |= _watermark_json(self.watermark)
        for name in ("key", "headers", "partition", "timestamp"):
            if (value := getattr(self, name)) is not None:
                fields[name] = value
        return _with_place(fields | dict(self.settings), self.place)

    def header_expressions(self) -> tuple[str, ...]:
        """The SQL of the sink's headers."""
        if isinstance(self.headers, str):
            return (self.headers,)
        return tuple((self.headers or {}).values())

    @property
    def streaming(self) -> bool:
        return True

    def __str__(self) -> str:
        return self.topic or ", ".join(self.topics) or self.pattern or self.assign or ""


@dataclass(frozen=True, slots=True)
class Table(_Placed):
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
        return _with_place(fields, self.place)

    def __str__(self) -> str:
        return f"{self.kind} {self.options.get(self.kind, '')}".rstrip()


Source = Topic | Table
Sink = Topic | Table


def _watermark_json(watermark: Watermark | None) -> dict[str, Any]:
    return {"watermark": watermark.to_json()["watermark"]} if watermark else {}


@dataclass(frozen=True, slots=True)
class Trigger:
    """When a query looks for new data; after 0 seconds, at once when the last batch is done."""

    processing_time: str = "0 seconds"
    available_now: bool = False
    once: bool = False

    def to_json(self) -> str:
        if self.available_now:
            return "available now"
        return "once" if self.once else self.processing_time

    def for_spark(self) -> dict[str, Any]:
        """The arguments of `DataStreamWriter.trigger`."""
        if self.available_now:
            return {"availableNow": True}
        if self.once:
            return {"once": True}
        return {"processingTime": self.processing_time}

    @property
    def finite(self) -> bool:
        """Whether the query ends by itself when it has read what there is."""
        return self.available_now or self.once


@dataclass(frozen=True, slots=True, init=False)
class Pipeline:
    """A flow of data from sources through steps into a sink."""

    name: str
    sources: Mapping[str, Source]
    steps: tuple[Step, ...]
    sink: Sink
    trigger: Trigger
    output_mode: str
    dead_letter: str | None
    errors: str
    connector: str
    kafka: Mapping[str, str]
    checkpoint: str | None
    base: str
    """The folder that relative paths of the definition are meant from."""
    place: Place | None = field(default=None, compare=False, kw_only=True, repr=False)

    def __init__(
        self,
        name: str,
        *,
        source: Source | None = None,
        sources: Mapping[str, Source] | None = None,
        steps: Sequence[Step | str | Callable[..., Any]] = (),
        sink: Sink,
        trigger: Trigger | str | Mapping[str, Any] | None = None,
        output_mode: str = APPEND,
        dead_letter: str | None = None,
        errors: str = FAIL,
        connector: str = "auto",
        kafka: Mapping[str, Any] | None = None,
        checkpoint: str | None = None,
        base: str | Path | None = None,
        place: Place | None = None,
    ) -> None:
        from moldau.pipelines.definition.checks import check
        from moldau.pipelines.definition.triggers import trigger_of

        put = object.__setattr__
        named = dict(sources or {})
        if source is not None:
            named = {INPUT: source, **named}
        put(self, "name", name)
        put(self, "sources", named)
        put(self, "steps", tuple(_as_step(step) for step in steps))
        put(self, "sink", sink)
        put(self, "trigger", trigger if isinstance(trigger, Trigger) else trigger_of(trigger))
        put(self, "output_mode", output_mode)
        put(self, "dead_letter", dead_letter)
        put(self, "errors", errors)
        put(self, "connector", connector)
        put(self, "kafka", {key: str(value) for key, value in (kafka or {}).items()})
        put(self, "checkpoint", checkpoint)
        put(self, "base", str(Path(base).absolute() if base is not None else Path.cwd()))
        put(self, "place", place or place_of_caller())
        check(self)

    @property
    def finite(self) -> bool:
        return self.trigger.finite

    @classmethod
    def load(cls, path: str | Path, variables: Mapping[str, object] | None = None) -> Pipeline:
        """The pipeline that a YAML file declares; `variables` are put in for `${name}`."""
        from moldau.pipelines.definition.documents import load

        return load(Path(path), variables)

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Pipeline:
        from moldau.pipelines.definition.reading import pipeline_of

        return pipeline_of(fields)

    def to_json(self) -> dict[str, Any]:
        fields: dict[str, Any] = {"name": self.name}
        if list(self.sources) == [INPUT]:
            fields["source"] = self.sources[INPUT].to_json()
        else:
            fields["sources"] = {name: one.to_json() for name, one in self.sources.items()}
        fields["steps"] = [step.to_json() for step in self.steps]
        fields["sink"] = self.sink.to_json()
        fields["trigger"] = self.trigger.to_json()
        fields["outputMode"] = self.output_mode
        fields["errors"] = self.errors
        fields["connector"] = self.connector
        if self.dead_letter is not None:
            fields["dead_letter"] = self.dead_letter
        if self.kafka:
            fields["kafka"] = dict(self.kafka)
        if self.checkpoint is not None:
            fields["checkpoint"] = self.checkpoint
        fields["base"] = self.base
        return _with_place(fields, self.place)


def _as_step(step: Step | str | Callable[..., Any]) -> Step:
    if isinstance(step, str):
        return Sql(step)
    return Python(step) if callable(step) else step  # type: ignore[arg-type]
