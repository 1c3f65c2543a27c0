"""What is wrong with steps that change the shape of rows, as far as it shows without columns."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from moldau.pipelines.definition.model import (
    Python,
    Shapes,
    Sink,
    Source,
    Step,
    Topic,
    Watermark,
)
from moldau.pipelines.definition.scoring import Score, score_mistakes
from moldau.pipelines.definition.transforms import (
    ColumnsToHeaders,
    Deduplicate,
    Explode,
    Flatten,
    HeadersToColumns,
    Mask,
    mask_rule,
)
from moldau.pipelines.definition.triggers import is_interval

__all__ = ["Wrong", "transform_mistakes"]


@dataclass(frozen=True, slots=True)
class Wrong:
    """`at` leads from the step's body to what is wrong."""

    message: str
    at: tuple[str | int, ...] = ()
    hint: str | None = None


class Around(Protocol):
    """What is before the step."""

    @property
    def sources(self) -> Mapping[str, Source]: ...
    @property
    def output_mode(self) -> str: ...
    def ends(self) -> Mapping[str, Sink]: ...


def transform_mistakes(
    step: Shapes, around: Around, earlier: Iterable[Step | None]
) -> Iterator[Wrong]:
    match step:
        case Flatten():
            if not step.separator:
                yield Wrong("separator: must not be empty", ("separator",))
            if step.depth is not None and step.depth < 1:
                yield Wrong("depth: must be at least 1", ("depth",))
        case Score():
            for message, option, hint in score_mistakes(step):
                yield Wrong(message, (option,), hint)
        case Mask():
            yield from _mask(step)
        case Explode():
            yield from _explode(step)
        case HeadersToColumns():
            yield from _headers(step, around.sources.values(), "source")
        case ColumnsToHeaders():
            yield from _headers(step, around.ends().values(), "sink")
        case Deduplicate():
            if not step.keys:
                yield Wrong("no key is named", ("keys",))
            yield from watermark_mistakes(step.watermark, around, earlier)


def watermark_mistakes(
    own: Watermark | None, around: Around, earlier: Iterable[Step | None]
) -> Iterator[Wrong]:
    """A step whose state would grow for ever without a watermark."""
    if own is not None:
        if not is_interval(own.delay):
            yield Wrong(
                f"watermark: delay {own.delay!r} is no time", ("watermark",), "e.g. 10 minutes"
            )
    elif not has_watermark(around, earlier):
        yield Wrong(
            "needs a watermark, or it would have to remember all rows for ever",
            (),
            "watermark: {column: at, delay: 10 minutes} here or at the source",
        )


def has_watermark(around: Around, earlier: Iterable[Step | None]) -> bool:
    """Whether rows may have one; what a function or an unread step does is not known."""
    if any(source.watermark is not None for source in around.sources.values()):
        return True
    return any(
        step is None
        or isinstance(step, Watermark | Python)
        or getattr(step, "watermark", None) is not None
        for step in earlier
    )


def _headers(
    step: HeadersToColumns | ColumnsToHeaders, ends: Collection[Source], what: str
) -> Iterator[Wrong]:
    if not step.columns:
        yield Wrong("no column is named")
    # One that could not be read may be a topic.
    if ends and not any(isinstance(end, Topic) for end in ends):
        yield Wrong(f"only records have headers, and no {what} is a topic")


def _mask(step: Mask) -> Iterator[Wrong]:
    if not step.columns:
        yield Wrong("no column is named")
    for name, written in step.columns.items():
        try:
            mask_rule(written)
        except ValueError as error:
            yield Wrong(f"{name}: {error}", (name,))


def _explode(step: Explode) -> Iterator[Wrong]:
    if len(step.into) > 2:
        yield Wrong("as: one name, or two for the keys and values of a map", ("as",))
    names = [name.lower() for name in (*step.into, *([step.position] if step.position else ()))]
    if len(set(names)) != len(names):
        yield Wrong("as: a name is given twice", ("as",))
