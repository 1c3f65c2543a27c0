"""The step that scores rows with a model: scikit-learn's or ONNX, from a file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

from moldau.pipelines.definition.placed import Placed, Transform, step_json

__all__ = ["METHODS", "SCORE_OPTIONS", "Score", "score_mistakes"]

METHODS: Final = ("predict", "predict_proba", "decision_function")
SCORE_OPTIONS: Final = ("model", "columns", "as", "type", "method")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ENDINGS: Final = (".joblib", ".pkl", ".pickle", ".onnx")


@dataclass(frozen=True, slots=True)
class Score(Transform):
    """A column with what a model says of other columns.

    `columns` are the model's features, in the order in which it was trained.
    """

    KIND: ClassVar[str] = "score"
    model: str
    columns: tuple[str, ...] = ()
    into: str = field(default="score", kw_only=True)
    type: str = field(default="DOUBLE", kw_only=True)
    method: str = field(default="predict", kw_only=True)

    def __post_init__(self) -> None:
        Placed.__post_init__(self)
        given = (self.columns,) if isinstance(self.columns, str) else tuple(self.columns)
        object.__setattr__(self, "columns", given)

    def to_json(self) -> dict[str, Any]:
        body = {
            "model": self.model,
            "columns": list(self.columns),
            "as": self.into,
            "type": self.type,
            "method": self.method,
        }
        return step_json(self, score=body)


def score_mistakes(step: Score) -> Iterator[tuple[str, str, str | None]]:
    """What is wrong, the option it is about, and what to do."""
    if not step.model.endswith(_ENDINGS):
        yield (
            f"model: {step.model!r} is not a model file",
            "model",
            f"write a file that ends with {', '.join(_ENDINGS)}",
        )
    if not step.columns:
        yield "columns: the model needs at least one", "columns", None
    if len(set(step.columns)) != len(step.columns):
        yield "columns: one is there twice", "columns", None
    if step.method not in METHODS:
        yield (
            f"method: {step.method!r} is not known",
            "method",
            f"one of {', '.join(METHODS)}",
        )
    if not _NAME.fullmatch(step.into):
        yield f"as: {step.into!r} cannot name a column", "as", None
