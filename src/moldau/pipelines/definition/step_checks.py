"""The checks of a pipeline's steps that need no Spark."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from moldau.pipelines.definition.mistakes import (
    VIEW,
    Mistake,
    delay,
    mistake,
    path_of,
    suggestion,
    topic_name,
)
from moldau.pipelines.definition.model import (
    INPUT,
    Cast,
    Drop,
    Relations,
    Rename,
    Sink,
    Source,
    Sql,
    Step,
    Transforms,
)
from moldau.pipelines.definition.places import Place
from moldau.pipelines.definition.relation_checks import relation_mistakes
from moldau.pipelines.definition.relations import Lookup
from moldau.pipelines.definition.transform_checks import transform_mistakes
from moldau.pipelines.definition.watermarks import Watermark

__all__ = ["step_mistakes"]


class Steps(Protocol):
    """What the checks read of a pipeline."""

    @property
    def sources(self) -> Mapping[str, Source]: ...
    @property
    def steps(self) -> Sequence[Step | None]: ...
    @property
    def output_mode(self) -> str: ...
    def ends(self) -> Mapping[str, Sink]: ...
    @property
    def place(self) -> Place | None: ...


def step_mistakes(pipeline: Steps) -> Iterable[Mistake]:
    known = set(pipeline.sources)
    several = len(pipeline.sources) > 1 and INPUT not in pipeline.sources
    for index, step in enumerate(pipeline.steps):
        if step is None:
            continue
        where = f"steps[{index}]"
        if step.name is not None and not VIEW.fullmatch(step.name):
            yield mistake(
                step.place, f"{where}: name {step.name!r} cannot be a view's in SQL", at="name"
            )
        elif step.name is not None and (step.name in known or step.name == INPUT):
            yield mistake(
                step.place, f"{where}: there is already something named {step.name!r}", at="name"
            )
        if step.source is not None and step.source not in known | {INPUT}:
            yield mistake(
                step.place,
                f"{where}: from: there is no source or earlier step {step.source!r}",
                suggestion(step.source, known),
                at="from",
            )
        if several and index == 0 and step.source is None and not isinstance(step, Sql):
            yield mistake(
                step.place,
                f"{where}: with several sources the first step must name its source",
                f"from: {next(iter(pipeline.sources))}",
            )
        yield from _step(step, where)
        if isinstance(step, Transforms):
            yield from _transform(step, where, pipeline, pipeline.steps[:index], known)
        if step.name is not None:
            known.add(step.name)
    if several and not pipeline.steps:
        yield mistake(pipeline.place, "steps: several sources need a step that joins them")


def _step(step: Step, where: str) -> Iterable[Mistake]:
    if isinstance(step, Watermark):
        yield from delay(step, where)
    if isinstance(step, Lookup):
        yield from topic_name(step.topic, step.place, f"{where}: lookup")
    if isinstance(step, Sql) and not step.query.strip():
        yield mistake(step.place, f"{where}: sql: empty")
    if isinstance(step, Sql) and step.source is not None:
        yield mistake(
            step.place, f"{where}: from: a SQL step names its view in the query", at="from"
        )
    if isinstance(step, Cast | Drop | Rename) and not step.columns:
        yield mistake(step.place, f"{where}: no column is named")


def _transform(
    step: Transforms,
    where: str,
    pipeline: Steps,
    earlier: Sequence[Step | None],
    views: set[str],
) -> Iterable[Mistake]:
    found = (
        relation_mistakes(step, pipeline, earlier, views)
        if isinstance(step, Relations)
        else transform_mistakes(step, pipeline, earlier)
    )
    for wrong in found:
        path = (*path_of(where), step.KIND, *wrong.at)
        yield Mistake(step.place, path, f"{where}: {step.KIND}: {wrong.message}", wrong.hint)
