"""The plan of a query: steps from its sources to its sink, as data.

`context` names a step; stores and internal topics take their names from it, as in ksqlDB.
`schema` is what the step passes on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from moldau.sql.expressions.compiled import Select
from moldau.sql.sources.data_source import (
    DataSource,
    FormatInfo,
    KeyFormat,
    TimestampColumn,
    ValueFormat,
)
from moldau.sql.sources.schema import LogicalSchema
from moldau.sql.syntax.expressions import Expression, FunctionCall
from moldau.sql.syntax.statements import SourceKind, Window

JoinKind = Literal["INNER", "LEFT", "RIGHT", "OUTER"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    context: tuple[str, ...]
    schema: LogicalSchema
    kind: SourceKind

    @property
    def name(self) -> str:
        return "-".join(self.context)

    @property
    def inputs(self) -> tuple[Step, ...]:
        return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceStep(Step):
    """Reads a source's topic."""

    source: DataSource


@dataclass(frozen=True, slots=True, kw_only=True)
class SingleInput(Step):
    input: Step

    @property
    def inputs(self) -> tuple[Step, ...]:
        return (self.input,)


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterStep(SingleInput):
    expression: Expression


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectStep(SingleInput):
    """Computes a new row. A table that has no store yet gets one, in these formats."""

    selects: tuple[Select, ...]
    key_format: KeyFormat
    value_format: FormatInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectKeyStep(SingleInput):
    """Computes a new key; NULL as the only expression takes the key away."""

    expressions: tuple[Expression, ...]
    key_format: KeyFormat
    value_format: FormatInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class FlatMapStep(SingleInput):
    functions: tuple[FunctionCall, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupStep(SingleInput):
    """Groups by expressions, or by the key as it is where there are none."""

    expressions: tuple[Expression, ...] | None
    key_format: KeyFormat
    value_format: FormatInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregateStep(SingleInput):
    """The input is a `GroupStep`. `columns` are passed on beside the aggregates."""

    columns: tuple[str, ...]
    functions: tuple[FunctionCall, ...]
    window: Window | None
    emit_final: bool
    key_format: KeyFormat
    value_format: FormatInfo
    #: What the store holds: aggregates before their results are computed.
    store_schema: LogicalSchema


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinStep(Step):
    """A join by key of two streams, a stream and a table, or two tables."""

    left: Step
    right: Step
    join: JoinKind
    key_format: KeyFormat
    left_format: FormatInfo
    right_format: FormatInfo
    before_ms: int = 0
    after_ms: int = 0
    grace_ms: int | None = None

    @property
    def inputs(self) -> tuple[Step, ...]:
        return (self.left, self.right)


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignKeyJoinStep(Step):
    """A join of two tables by an expression over the left one's row."""

    left: Step
    right: Step
    join: JoinKind
    expression: Expression
    key_format: KeyFormat
    value_format: FormatInfo

    @property
    def inputs(self) -> tuple[Step, ...]:
        return (self.left, self.right)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnionStep(Step):
    """The rows of several streams, as they come."""

    branches: tuple[Step, ...]

    @property
    def inputs(self) -> tuple[Step, ...]:
        return self.branches


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkStep(SingleInput):
    topic: str
    key_format: KeyFormat
    value_format: ValueFormat
    timestamp: TimestampColumn | None = None


def walk(step: Step) -> list[Step]:
    """The step and all before it."""
    found = [step]
    for each in step.inputs:
        found += walk(each)
    return found


def source_steps(step: Step) -> list[SourceStep]:
    """Where the plan reads, from left to right."""
    return [each for each in walk(step) if isinstance(each, SourceStep)]


def is_repartitioned(plan: Step, source: SourceStep) -> bool:
    """Whether the plan gives the rows of a source new keys."""
    return any(
        isinstance(each, SelectKeyStep) and source in walk(each.input) for each in walk(plan)
    )
