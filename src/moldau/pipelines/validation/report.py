"""Everything that can be said about a definition file before it is started."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from moldau.pipelines import build
from moldau.pipelines.definition import documents
from moldau.pipelines.definition.model import INPUT
from moldau.pipelines.definition.pipeline import Pipeline, draft_of, mistakes_of, of_document
from moldau.pipelines.definition.reading import in_order
from moldau.pipelines.errors import DefinitionError, PipelineError
from moldau.pipelines.validation.flow import Found, follow

__all__ = ["Validation", "validate"]

WITHOUT_SPARK = "options, functions, schemas, SQL syntax and names of columns"
BY_SPARK = "everything, by Spark's own analysis"
ONLY_SPARK = ("types of expressions", "names of functions")
ONLY_DATA = "whether topics and tables exist and what is in them"


@dataclass(frozen=True, slots=True)
class Validation:
    """What was found, and what was checked."""

    pipeline: Pipeline | None
    mistakes: tuple[PipelineError, ...]
    checked: str
    #: Each in a few words; the definition may still be wrong there.
    unchecked: tuple[str, ...]


def validate(
    path: Path,
    *,
    variables: Mapping[str, object] | None = None,
    analyse: Callable[[Pipeline], None] | None = None,
) -> Validation:
    """All mistakes of a file. `analyse` lets Spark check a pipeline, and raises `PipelineError`.

    Raises `PipelineError` if the file cannot be read, or is not YAML.
    """
    document = documents.read(path, variables)
    reading = document.arguments()
    draft = draft_of(reading)
    mistakes = mistakes_of(reading, document.place)
    checked = follow(
        draft.sources,
        draft.steps,
        draft.sink,
        draft.sinks,
        unread=_unread(document, draft.sources),
    )
    own = [_located(document, found) for found in checked.mistakes]
    if mistakes:
        return Validation(
            None, _sorted([*mistakes, *own]), WITHOUT_SPARK, _skipped(checked.skipped)
        )
    pipeline = of_document(document)
    try:
        build.check(pipeline)
    except PipelineError as error:
        mistakes.append(error)
    if analyse is None or mistakes:
        found = _sorted([*mistakes, *own])
        return Validation(pipeline, found, WITHOUT_SPARK, _skipped(checked.skipped))
    try:
        analyse(pipeline)
    except PipelineError as error:
        found = _sorted([*own, *_new(error, own)])
        return Validation(pipeline, found, BY_SPARK, (ONLY_DATA,))
    return Validation(pipeline, (), BY_SPARK, (ONLY_DATA,))


def _unread(document: documents.Document, sources: Mapping[str, object]) -> list[str]:
    """Sources that are in the document, and so exist, but could not be read."""
    data = document.data if isinstance(document.data, Mapping) else {}
    named = data.get("sources")
    names = list(named) if isinstance(named, Mapping) else []
    if not names and not sources:
        names = [INPUT]
    return [str(name) for name in names if name not in sources]


def _located(document: documents.Document, found: Found) -> PipelineError:
    problem = found.problem
    path, place = found.path, None
    while place is None:
        place = document.place_in(path, found.text, problem.offset, problem.word)
        if not path:
            break
        path = path[:-1]
    return PipelineError(
        f"{found.label}: {problem.message}",
        where=place.exact if place is not None else None,
        hint=problem.hint,
    )


def _new(error: PipelineError, own: list[PipelineError]) -> list[PipelineError]:
    """What Spark says, unless it is about a line whose mistake is reported already."""
    found = error.mistakes if isinstance(error, DefinitionError) else (error,)
    lines = {_line(one) for one in own}
    return [one for one in found if _line(one) not in lines]


def _line(error: PipelineError) -> str:
    return ":".join((error.where or "").split(":")[:2])


def _sorted(mistakes: list[PipelineError]) -> tuple[PipelineError, ...]:
    return in_order(mistakes).mistakes if mistakes else ()


def _skipped(skipped: list[str]) -> tuple[str, ...]:
    return (*dict.fromkeys(skipped), *ONLY_SPARK, ONLY_DATA)
