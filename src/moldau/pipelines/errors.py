"""What went wrong with a pipeline.

A `PipelineError` is short: what happened, the line of the user's file where it happened, and what
to do about it. Everything else that is known (a Java stack, a worker's traceback) is in `detail`
for the logs and is never shown by itself.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["DefinitionError", "PipelineError", "UnknownPipeline"]


class PipelineError(Exception):
    """A pipeline cannot be defined, built or continued.

    `retriable` says whether another attempt may succeed: an error in a definition or in a record
    stays.
    """

    def __init__(
        self,
        message: str,
        *,
        where: str | None = None,
        hint: str | None = None,
        detail: str = "",
        retriable: bool = False,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.where = where
        self.hint = hint
        self.detail = detail
        self.retriable = retriable

    def __str__(self) -> str:
        text = f"{self.where}: {self.message}" if self.where else self.message
        return f"{text} ({self.hint})" if self.hint else text

    def __reduce__(self) -> tuple[object, ...]:
        fields = (self.message, self.where, self.hint, self.detail, self.retriable)
        return _rebuilt, (type(self), *fields)


class UnknownPipeline(PipelineError):
    """There is no pipeline of that name."""


class DefinitionError(PipelineError):
    """A definition with mistakes; `mistakes` has every one of them, not only the first."""

    def __init__(self, mistakes: Sequence[PipelineError]) -> None:
        first = mistakes[0]
        super().__init__(first.message, where=first.where, hint=first.hint)
        self.mistakes = tuple(mistakes)

    def __str__(self) -> str:
        return "\n".join(str(mistake) for mistake in self.mistakes)

    def __reduce__(self) -> tuple[object, ...]:
        return DefinitionError, (self.mistakes,)


def _rebuilt(
    kind: type[PipelineError],
    message: str,
    where: str | None,
    hint: str | None,
    detail: str,
    retriable: bool,
) -> PipelineError:
    return kind(message, where=where, hint=hint, detail=detail, retriable=retriable)
