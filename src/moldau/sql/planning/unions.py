"""UNION ALL: the plans of several queries over streams as one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace

from moldau.sql.errors import KsqlException
from moldau.sql.planning.planner import QueryPlan
from moldau.sql.planning.steps import (
    FilterStep,
    FlatMapStep,
    SelectKeyStep,
    SelectStep,
    SinkStep,
    SourceStep,
    Step,
    UnionStep,
    source_steps,
    walk,
)

__all__ = ["united"]

_PLAIN = (FilterStep, FlatMapStep, SelectKeyStep, SelectStep, SinkStep, SourceStep)
_INSTEAD = "Create a stream of each side first, and unite those."


def united(plans: Sequence[QueryPlan]) -> QueryPlan:
    """The first plan with the rows of all of them."""
    first = plans[0]
    for plan in plans:
        if plan.kind != "STREAM" or not all(isinstance(each, _PLAIN) for each in walk(plan.step)):
            raise KsqlException(f"UNION ALL is for streams without joins and groups. {_INSTEAD}")
        if plan.schema != first.schema or plan.window != first.window:
            raise KsqlException(
                "The sides of UNION ALL must have the same columns: names, types and order.\n"
                f"First side: {first.schema}\nOther side: {plan.schema}"
            )
    _check_topics(plans)
    branches = tuple(_body(plan.step, index) for index, plan in enumerate(plans))
    union = UnionStep(
        context=("Union",), schema=branches[0].schema, kind="STREAM", branches=branches
    )
    if isinstance(first.step, SinkStep):
        return replace(first, step=replace(first.step, input=union))
    return replace(first, step=union)


def _body(step: Step, index: int) -> Step:
    body = step.input if isinstance(step, SinkStep) else step
    return body if index == 0 else _renamed(body, f"Union{index}")


def _renamed(step: Step, prefix: str) -> Step:
    """Steps name processors, which must differ; sources are shared."""
    if isinstance(step, SourceStep):
        return step
    changes: dict[str, object] = {"context": (prefix, *step.context)}
    if any(each.name == "input" for each in fields(step)):
        changes["input"] = _renamed(step.inputs[0], prefix)
    return replace(step, **changes)  # type: ignore[arg-type]


def _check_topics(plans: Sequence[QueryPlan]) -> None:
    seen: dict[str, SourceStep] = {}
    for plan in plans:
        for step in source_steps(plan.step):
            before = seen.setdefault(step.source.topic, step)
            if before != step:
                raise KsqlException(
                    f"UNION ALL cannot read the topic {step.source.topic} both as "
                    f"{before.source.name} and as {step.source.name}."
                )
