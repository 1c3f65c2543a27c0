"""Windows and joins of streams as Spark's own, with state that a watermark bounds."""

from __future__ import annotations

from typing import Any

from moldau.pipelines.build.records import quoted
from moldau.pipelines.definition.relations import WINDOW_COLUMNS, Join, Window
from moldau.pipelines.definition.triggers import interval_ms
from moldau.pipelines.errors import PipelineError

__all__ = ["joined", "windowed"]

_WINDOW = "__window"
#: Before the names of the other side's columns, until both are in one frame.
_OTHER = "__other_"


def windowed(step: Window, frame: Any) -> Any:
    from pyspark.sql import functions as F

    if step.delay is not None:
        frame = frame.withWatermark(step.time, _interval(step.delay))
    time = quoted(step.time)
    if step.gap is not None:
        window = F.session_window(time, _interval(step.gap))
    else:
        every = None if step.every is None else _interval(step.every)
        window = F.window(time, _interval(str(step.size)), every)
    groups = frame.groupBy(window.alias(_WINDOW), *[quoted(name) for name in step.by])
    rows = groups.agg(*[F.expr(text).alias(name) for name, text in step.aggregates.items()])
    first, last = WINDOW_COLUMNS
    return rows.select(
        F.col(_WINDOW)["start"].alias(first),
        F.col(_WINDOW)["end"].alias(last),
        *[quoted(name) for name in (*step.by, *step.aggregates)],
    )


def joined(step: Join, left: Any, right: Any) -> Any:
    """`left` and `right` have the columns that are to be in the result."""
    from pyspark.sql import functions as F

    own = {name.lower(): name for name in left.columns}
    others = {name.lower(): name for name in right.columns}
    on = {_name(step, one, own): _name(step, two, others) for one, two in step.keys.items()}
    right = right.select(*[quoted(name).alias(f"{_OTHER}{name}") for name in right.columns])
    condition = F.lit(True)
    for one, two in on.items():
        condition = condition & (quoted(one) == quoted(f"{_OTHER}{two}"))
    for one, two in step.time.items():
        mine, theirs = _name(step, one, own), f"{_OTHER}{_name(step, two, others)}"
        condition = condition & F.expr(_near(step, mine, theirs))
    rows = left.join(right, condition, step.kind)
    same = {one: two for one, two in on.items() if one.lower() == two.lower()}
    made = {
        # Where one side is missing, its key is the other's.
        name: F.coalesce(quoted(name), quoted(f"{_OTHER}{same[name]}"))
        if name in same
        else quoted(name)
        for name in left.columns
    }
    for name in others.values():
        if name in same.values():
            continue
        shown = f"{step.prefix}{name}"
        if shown.lower() in {one.lower() for one in made}:
            raise PipelineError(
                f"join: both sides have a column {shown!r}",
                where=str(step.place) if step.place else None,
                hint="prefix: a text before the names of the other side",
            )
        made[shown] = quoted(f"{_OTHER}{name}")
    return rows.select(*[column.alias(name) for name, column in made.items()])


def _near(step: Join, mine: str, theirs: str) -> str:
    before, after = (f"INTERVAL {_seconds(text)} SECONDS" for text in (step.before, step.after))
    return f"`{theirs}` >= `{mine}` - {before} AND `{theirs}` <= `{mine}` + {after}"


def _seconds(interval: str | None) -> str:
    """As a literal; no interval is none."""
    whole, milli = divmod(interval_ms(interval) if interval else 0, 1000)
    return f"'{whole}.{milli:03}'" if milli else f"'{whole}'"


def _interval(text: str) -> str:
    return f"{interval_ms(text)} milliseconds"


def _name(step: Join, written: str, columns: dict[str, str]) -> str:
    found = columns.get(written.lower())
    if found is None:
        raise PipelineError(
            f"join: there is no column {written!r}; there are {', '.join(columns.values())}",
            where=str(step.place) if step.place else None,
        )
    return found
