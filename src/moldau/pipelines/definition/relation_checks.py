"""What is wrong with windows, joins and lookups, as far as it shows without columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from typing import Any

from moldau.pipelines.definition.model import COMPLETE, UPDATE, Step
from moldau.pipelines.definition.relations import (
    JOINS,
    MISSING,
    WINDOW_COLUMNS,
    Join,
    Lookup,
    Window,
)
from moldau.pipelines.definition.transform_checks import (
    Around,
    Wrong,
    has_watermark,
    watermark_mistakes,
)
from moldau.pipelines.definition.triggers import interval_ms, is_interval

__all__ = ["relation_mistakes"]


def relation_mistakes(
    step: Window | Join | Lookup, around: Around, earlier: Iterable[Step | None], views: Set[str]
) -> Iterator[Wrong]:
    """`views` are the names that a join may read."""
    match step:
        case Window():
            yield from _window(step, around, earlier)
        case Join():
            yield from _join(step, around, earlier, views)
        case Lookup():
            yield from _lookup(step)


def _window(step: Window, around: Around, earlier: Iterable[Step | None]) -> Iterator[Wrong]:
    if (step.size is None) == (step.gap is None):
        yield Wrong("exactly one of size and gap", (), "size: 10 minutes, or gap for sessions")
    if step.every is not None and step.gap is not None:
        yield Wrong("every: sessions begin with their first row", ("every",))
    found = list(_intervals(step, ("size", "every", "gap", "delay")))
    yield from found
    size, every = (None, None) if found else (step.size, step.every)
    if size is not None and every is not None and interval_ms(every) > interval_ms(size):
        yield Wrong("every: must not be longer than size, or rows would be lost", ("every",))
    if not step.aggregates:
        yield Wrong("no aggregate is named", ("aggregates",), "{orders: count(*)}")
    taken = {name.lower() for name in (*WINDOW_COLUMNS, *step.by)}
    for name in step.aggregates:
        if name.lower() in taken:
            yield Wrong(f"aggregates: there is already a column {name!r}", ("aggregates", name))
    if step.delay is None and around.output_mode != COMPLETE:
        for wrong in watermark_mistakes(None, around, earlier):
            yield Wrong(wrong.message, wrong.at, "delay: 10 minutes here, or a watermark before")
    if step.gap is not None and around.output_mode == UPDATE:
        yield Wrong("a session is written when it has ended", ("gap",), "outputMode: append")


def _join(
    step: Join, around: Around, earlier: Iterable[Step | None], views: Set[str]
) -> Iterator[Wrong]:
    if step.other not in views:
        listed = ", ".join(sorted(views))
        yield Wrong(
            f"with: there is no source or earlier step {step.other!r}",
            ("with",),
            f"there is {listed}",
        )
    if step.kind not in JOINS:
        yield Wrong(f"kind: unknown kind {step.kind!r}", ("kind",), f"one of {', '.join(JOINS)}")
    if not step.keys:
        yield Wrong("no key is named", ("keys",))
    yield from _intervals(step, ("before", "after"))
    if step.other not in views:
        return
    source = around.sources.get(step.other)
    if source is not None and not source.streaming:
        if step.time or step.before or step.after:
            yield Wrong("time: a table that is read once has none", ("time",))
        if step.kind in ("right", "full"):
            yield Wrong(
                f"kind: {step.kind}: rows of a table that is read once are never complete",
                ("kind",),
                "inner or left",
            )
        return
    if len(step.time) != 1 or not (step.before or step.after):
        yield Wrong(
            "needs the times of both sides and how far they may be apart",
            (),
            "time: {at: paid_at}, after: 1 hour",
        )
    for name in (step.source, step.other):
        yield from _side(name, around, earlier)


def _side(name: str | None, around: Around, earlier: Iterable[Step | None]) -> Iterator[Wrong]:
    source = around.sources.get(name or "")
    if source is not None and source.watermark is None:
        yield Wrong(
            f"{name!r} needs a watermark, or all of its rows would be remembered for ever",
            (),
            "watermark: {column: at, delay: 10 minutes} at the source",
        )
    elif source is None and not has_watermark(around, earlier):
        yield Wrong("both sides need a watermark", (), "watermark at the sources")


def _lookup(step: Lookup) -> Iterator[Wrong]:
    if step.missing not in MISSING:
        known = ", ".join(MISSING)
        yield Wrong(f"missing: unknown value {step.missing!r}", ("missing",), f"one of {known}")
    if step.rows_max < 1:
        yield Wrong("maxRows: must be at least 1", ("maxRows",))


def _intervals(step: Any, names: Iterable[str]) -> Iterator[Wrong]:
    for name in names:
        value = getattr(step, name)
        if value is not None and not is_interval(value):
            yield Wrong(f"{name}: {value!r} is no time", (name,), "e.g. 10 minutes")
