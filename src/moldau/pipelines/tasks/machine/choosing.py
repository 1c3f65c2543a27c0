"""Which engine runs a pipeline: micro-batches of Spark, or a task without Spark.

Invariants: a pipeline that Spark has begun stays with Spark, because its checkpoint has its
offsets; one that a task has begun may move to Spark, which then starts at the group's committed
offsets.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from moldau.pipelines.tasks.machine.expressions import NotTranslated
from moldau.pipelines.tasks.machine.plan import reason_for_spark

__all__ = ["SPARK", "TASK", "begun_by_task", "choose", "engine_of", "moved_to_spark"]

SPARK, TASK = "spark", "task"
_ENGINE: Final = "engine"
_BEGUN_BY_TASK: Final = "begun_by_task"


def engine_of(settings: Mapping[str, Any]) -> str:
    """Which engine a pipeline's record names."""
    return str(settings.get(_ENGINE, SPARK))


def begun_by_task(settings: Mapping[str, Any]) -> bool:
    """Whether Spark has to continue at the group's offsets if there is no checkpoint."""
    return bool(settings.get(_BEGUN_BY_TASK, False))


def moved_to_spark(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {**settings, _ENGINE: SPARK, _BEGUN_BY_TASK: True}


def choose(
    definition: Mapping[str, Any],
    settings: Mapping[str, Any] | None,
    *,
    has_checkpoint: bool,
) -> dict[str, Any]:
    """The settings of a pipeline's record; `settings` are those of the present one.

    Raises NotTranslated if the definition asks for a task and that is not possible.
    """
    wanted = str(definition.get("engine", "auto"))
    before = None if settings is None else engine_of(settings)
    present = dict(settings or {})
    if wanted == TASK:
        reason = reason_for_spark(definition)
        if reason is not None:
            raise NotTranslated(f"{reason} needs Spark")
        if before == SPARK and has_checkpoint:
            raise NotTranslated("it has a checkpoint of Spark, so it has to stay there")
        return {_ENGINE: TASK}
    if before == TASK:
        stays = wanted == "auto" and reason_for_spark(definition) is None
        return present if stays else moved_to_spark(present)
    if wanted == SPARK or before == SPARK or has_checkpoint:
        return {**present, _ENGINE: SPARK}
    return {_ENGINE: TASK if reason_for_spark(definition) is None else SPARK}
