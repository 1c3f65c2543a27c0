"""Decides whether a pipeline can run without Spark with the same result, and compiles it.

It can if it goes from topics to a topic, record by record, in steps that `expressions.py` knows.
`NotTranslated` says what it is that needs Spark.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from moldau.pipelines.build.machine.names import METADATA
from moldau.pipelines.build.machine.sql_text import plain_select
from moldau.pipelines.machine.sql_tokens import words_of
from moldau.pipelines.tasks.machine.expressions import (
    BOOLEAN,
    DOUBLE,
    STRING,
    Compiled,
    NotTranslated,
    compiled,
)
from moldau.pipelines.tasks.machine.rows import Field, reader, writer

__all__ = ["TaskPlan", "plan_of", "reason_for_spark"]

_INPUT: Final = "input"
_TYPES: Final = {
    "string": STRING,
    "int": "int",
    "integer": "int",
    "bigint": "bigint",
    "long": "bigint",
    "double": DOUBLE,
    "boolean": BOOLEAN,
}
_COLUMN: Final = re.compile(r"\s*([A-Za-z]\w*)\s*:?\s+(\w+)(\s+not\s+null)?\s*", re.IGNORECASE)
_ALIAS: Final = re.compile(r"\(\s*[\w`]+\s*(,\s*[\w`]+\s*)*\)")
#: What a source and a sink may say beside their topic; everything else is Spark's.
_SOURCE_KEYS: Final = frozenset(
    {"topic", "topics", "format", "schema", "place", "startingOffsets", "groupId"}
)
_SINK_KEYS: Final = frozenset({"topic", "format", "key", "place"})
_STEP_KEYS: Final = frozenset({"sql", "drop", "rename", "place"})
Columns = list[tuple[str, str]]
#: From a row to the next one; None for one that a condition keeps out.
_Stage = Callable[[list[Any]], "list[Any] | None"]


@dataclass(frozen=True, slots=True)
class TaskPlan:
    """A pipeline as a function from a record's value to a record."""

    topics: tuple[str, ...]
    sink: str
    group: str
    starts_at_earliest: bool
    interval_ms: int
    #: Key and value of the record that a value becomes; None if it becomes none.
    convert: Callable[[bytes | None], tuple[bytes | None, bytes | None] | None]


def reason_for_spark(definition: Mapping[str, Any]) -> str | None:
    """What of the pipeline needs Spark; None if nothing does."""
    try:
        plan_of(definition)
    except NotTranslated as error:
        return str(error)
    return None


def plan_of(definition: Mapping[str, Any]) -> TaskPlan:
    """Raises NotTranslated."""
    source, sink = definition.get("source"), definition.get("sink")
    if source is None or sink is None:
        raise NotTranslated("several sources" if source is None else "several sinks")
    _only(source, _SOURCE_KEYS, "source")
    _only(sink, _SINK_KEYS, "sink")
    topics = tuple(source.get("topics") or ([source["topic"]] if "topic" in source else ()))
    if not topics:
        raise NotTranslated("source: topics by pattern")
    starting = str(source.get("startingOffsets", "latest")).lower()
    if starting not in ("earliest", "latest"):
        raise NotTranslated("source: startingOffsets")
    if source.get("format", "json") != "json" or sink.get("format", "json") != "json":
        raise NotTranslated("a format other than json")
    if definition.get("outputMode", "append") != "append":
        raise NotTranslated("outputMode")
    if definition.get("connector", "auto") == "kafka":
        raise NotTranslated("connector: kafka")
    fields = _schema(str(source.get("schema", "")))
    columns: Columns = [(name, kind) for name, kind, _ in fields]
    stages: list[_Stage] = []
    for step in definition.get("steps", ()):
        columns = _step(step, columns, stages)
    read, write = reader(fields), writer(columns)
    key = _key(sink.get("key"), columns)

    def convert(value: bytes | None) -> tuple[bytes | None, bytes | None] | None:
        row: list[Any] | None = read(value)
        for stage in stages:
            if row is None:
                return None
            row = stage(row)
        return None if row is None else (key(row), write(row))

    return TaskPlan(
        topics=topics,
        sink=str(sink["topic"]),
        group=str(source.get("groupId") or definition["name"]),
        starts_at_earliest=starting == "earliest",
        interval_ms=_interval_ms(str(definition.get("trigger", "0 seconds"))),
        convert=convert,
    )


def _only(fields: Mapping[str, Any], known: frozenset[str], where: str) -> None:
    for name in fields:
        if name not in known:
            raise NotTranslated(f"{where}: {name}")


def _interval_ms(trigger: str) -> int:
    found = re.fullmatch(r"(\d+) (millisecond|second|minute)s?", trigger)
    if found is None:
        raise NotTranslated(f"trigger: {trigger}")
    return int(found[1]) * {"millisecond": 1, "second": 1_000, "minute": 60_000}[found[2]]


def _schema(text: str) -> list[Field]:
    fields: list[Field] = []
    for part in text.split(","):
        found = _COLUMN.fullmatch(part)
        if found is None or found[2].lower() not in _TYPES:
            raise NotTranslated(f"schema: {part.strip()}")
        fields.append((found[1], _TYPES[found[2].lower()], found[3] is None))
    _check_names([name for name, _, _ in fields])
    return fields


def _check_names(names: Sequence[str]) -> None:
    lower = [name.lower() for name in names]
    if len(set(lower)) != len(lower) or {*lower} & {each.lower() for each in METADATA}:
        raise NotTranslated("names of columns")


def _step(step: Mapping[str, Any], columns: Columns, stages: list[_Stage]) -> Columns:
    for name in step:
        if name not in _STEP_KEYS:
            raise NotTranslated(f"steps: {name}")
    if "sql" in step:
        return _select(str(step["sql"]), columns, stages)
    names = [name for name, _ in columns]
    if "drop" in step:
        dropped = set(step["drop"])
        if not dropped <= set(names):
            raise NotTranslated("drop of a column that is not there")
        kept = [index for index, name in enumerate(names) if name not in dropped]
        if not kept:
            raise NotTranslated("a row without columns")
        stages.append(lambda row: [row[index] for index in kept])
        return [columns[index] for index in kept]
    renamed = dict(step["rename"])
    if not set(renamed) <= set(names):
        raise NotTranslated("rename of a column that is not there")
    result = [(str(renamed.get(name, name)), kind) for name, kind in columns]
    _check_names([name for name, _ in result])
    return result


def _select(sql: str, columns: Columns, stages: list[_Stage]) -> Columns:
    select = plain_select(sql, _INPUT)
    if select is None or select.source.lower() != _INPUT:
        raise NotTranslated("a query that is not a plain SELECT over input")
    known = {name: (index, kind) for index, (name, kind) in enumerate(columns)}
    result: Columns = []
    values: list[Callable[[Sequence[Any]], Any]] = []
    for item in select.items:
        if item.strip() == "*":
            for name, (_, kind) in known.items():
                result.append((name, kind))
                values.append(compiled(f"`{name}`", known).value)
            continue
        name, expression = _named(item, known)
        if expression.kind not in _TYPES.values():
            raise NotTranslated(f"a column of type {expression.kind}")
        result.append((name, expression.kind))
        values.append(expression.value)
    _check_names([name for name, _ in result])
    if select.condition is None:
        stages.append(lambda row: [value(row) for value in values])
        return result
    if _ALIAS.match(select.condition):
        # Spark reads `FROM input WHERE (a)` as a view with the alias WHERE.
        raise NotTranslated("a condition that begins with names in brackets")
    condition = compiled(select.condition, known)
    if condition.kind != BOOLEAN:
        raise NotTranslated("a condition that is not boolean")
    holds = condition.value
    stages.append(lambda row: [value(row) for value in values] if holds(row) else None)
    return result


def _named(item: str, known: Mapping[str, tuple[int, str]]) -> tuple[str, Compiled]:
    """`expression AS name`, or a column as it is."""
    tokens = words_of(item)
    if len(tokens) >= 3 and tokens[-2].says("as") and tokens[-1].kind in ("word", "quoted"):
        last = tokens[-1]
        name = last.text[1:-1].replace("``", "`") if last.kind == "quoted" else last.text
        return name, compiled(item[: tokens[-2].start], known)
    found = compiled(item, known)
    if found.column is None:
        raise NotTranslated(f"{item} without a name")
    return found.column, found


def _key(text: Any, columns: Columns) -> Callable[[Sequence[Any]], bytes | None]:
    if text is None:
        return lambda row: None
    known = {name: (index, kind) for index, (name, kind) in enumerate(columns)}
    found = compiled(str(text), known)
    if found.kind not in (STRING, BOOLEAN, "int", "bigint"):
        raise NotTranslated(f"sink: a key of type {found.kind}")
    value, is_boolean = found.value, found.kind == BOOLEAN

    def key(row: Sequence[Any]) -> bytes | None:
        made = value(row)
        if made is None:
            return None
        return (str(made).lower() if is_boolean else str(made)).encode()

    return key
