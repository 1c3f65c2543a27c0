"""CREATE OR REPLACE: whether a running query may go on with another plan and the same state."""

from __future__ import annotations

from typing import Any

from moldau.sql.errors import KsqlException
from moldau.sql.planning.steps import (
    AggregateStep,
    FilterStep,
    ForeignKeyJoinStep,
    GroupStep,
    JoinStep,
    SelectKeyStep,
    SelectStep,
    SinkStep,
    SourceStep,
    Step,
    UnionStep,
)


def check_upgrade(old: Step, new: Step) -> None:
    """An error where the new plan cannot take over. Filters and projections may change."""
    before, after = _enforced(old), _enforced(new)
    while True:
        _must_match(before, after)
        if isinstance(before, SourceStep):
            return
        before, after = _enforced(before.inputs[0]), _enforced(after.inputs[0])


def _enforced(step: Step) -> Step:
    """The next step that state or other queries depend on."""
    while isinstance(step, FilterStep | SelectStep):
        step = step.input
    return step


def _must_match(before: Step, after: Step) -> None:
    name = step_name(before)
    properties = _properties(before)
    if properties is None:
        raise KsqlException(f"Upgrades not yet supported for {name}")
    if step_name(after) != name:
        raise _differs(name, "class", name, step_name(after))
    others = _properties(after) or {}
    for label, value in properties.items():
        if others.get(label) != value:
            raise _differs(name, label, value, others.get(label))


def _differs(name: str, label: str, one: Any, other: Any) -> KsqlException:
    return KsqlException(
        f"Query is not upgradeable. Plan step of type {name} must have matching {label}. "
        f"Values differ: {one} vs. {other}"
    )


def _properties(step: Step) -> dict[str, Any] | None:
    """What must be the same; None for steps that cannot be upgraded."""
    match step:
        case SinkStep():
            return {
                "properties": step.context,
                "formats": (step.key_format, step.value_format),
                "topicName": step.topic,
                "timestampColumn": step.timestamp,
            }
        case SourceStep() if not step.source.is_windowed:
            return {
                "properties": step.context,
                "topicName": step.source.topic,
                "formats": (step.source.key_format, step.source.value_format),
                "timestampColumn": step.source.timestamp,
            }
        case SelectKeyStep():
            return {"properties": step.context, "keyExpressions": step.expressions}
        case GroupStep() if step.kind == "STREAM":
            return {
                "properties": step.context,
                "internalFormats": (step.key_format, step.value_format),
                "groupByExpressions": step.expressions,
            }
        case AggregateStep() if step.window is None and step.input.kind == "STREAM":
            return {
                "properties": step.context,
                "internalFormats": (step.key_format, step.value_format),
                "columns not part of aggregate": _names(step.columns),
                "aggregationFunctions": step.functions,
            }
    return None


def _names(columns: tuple[str, ...]) -> str:
    return "[" + ", ".join(f"`{each}`" for each in columns) + "]"


def step_name(step: Step) -> str:
    """ksqlDB's name of a kind of step."""
    kind = step.kind.capitalize()
    match step:
        case SinkStep():
            return f"{kind}Sink"
        case UnionStep():
            return f"{kind}Union"
        case SourceStep():
            return f"{'Windowed' if step.source.is_windowed else ''}{kind}Source"
        case FilterStep():
            return f"{kind}Filter"
        case SelectStep():
            return f"{kind}Select"
        case SelectKeyStep():
            return f"{kind}SelectKey"
        case GroupStep():
            return f"{kind}GroupBy{'Key' if step.expressions is None else ''}"
        case AggregateStep():
            source = step.input.kind.capitalize()
            return f"{source}{'' if step.window is None else 'Windowed'}Aggregate"
        case JoinStep():
            return f"{step.left.kind.capitalize()}{step.right.kind.capitalize()}Join"
        case ForeignKeyJoinStep():
            return "ForeignKeyTableTableJoin"
    return f"{kind}FlatMap"
